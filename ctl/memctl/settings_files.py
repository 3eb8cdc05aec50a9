"""Settings files of other programs, as memctl reads them before a change.

A link is followed to where the file really is, since what is written there must not replace the link. A link
that leads nowhere, and a place where nothing may be written, is refused before anything is planned.
"""

from __future__ import annotations

import os
import stat

from memctl import files
from memctl.paths import shown
from memd.errors import Refused


def read_through(path: bytes) -> tuple[bytes, bytes | None]:
    """Where the file really is, and its content; None when there is none yet but it can be made.

    raises  Refused for what cannot or must not be written, DiskError
    """
    name = shown(path)
    try:
        facts: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        facts = None
    except OSError as reason:
        raise Refused(
            f"{name} cannot be followed to a file: {reason.strerror}",
            remedy="Correct the links or folders on the way.",
        ) from None
    if facts is None:
        _refuse_dangling(path)
    elif not stat.S_ISREG(facts.st_mode):
        raise Refused(f"{name} is no regular file", remedy="Look at what it is; memd leaves it.")
    real = os.path.realpath(path)
    where = name if real == path else f"{name} (really {shown(real)})"
    folder = os.path.dirname(real)
    while facts is None and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.access(folder, os.W_OK | os.X_OK) or (facts is not None and not facts.st_mode & stat.S_IWUSR):
        raise Refused(
            f"{where} may not be written",
            remedy="Make it and its folder writable, or make the change where the file comes from.",
        )
    if facts is None:
        return real, None
    content, kind = files.read(real)
    if kind != "file":
        raise Refused(f"{where} changed while it was being read", remedy="Repeat the command.")
    return real, content


def _refuse_dangling(path: bytes) -> None:
    """Refuse a link to nothing, also in a folder on the way: what it should lead to is not ours to make."""
    while path != os.path.dirname(path):
        if os.path.islink(path) and not os.path.exists(path):
            target = shown(os.readlink(path))
            raise Refused(
                f"{shown(path)} is a link to {target}, which does not exist",
                remedy="Make what it leads to, or remove the link, then repeat the command.",
            )
        path = os.path.dirname(path)


def text(content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("it is not UTF-8", remedy="Save it as UTF-8, then repeat the command.") from None


def linked_twice(real: bytes) -> tuple[str, ...]:
    try:
        count = os.stat(real).st_nlink
    except OSError:
        return ()
    return ("the file has another name, a hard link, which keeps the old content",) if count > 1 else ()
