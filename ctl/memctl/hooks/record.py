"""Where hooks were installed, and what taking them out has to know; a file beside the hook itself.

    <data>/hook/installed.json

Without it hooks are found by the settings themselves: it only knows folders that a variable named then and no
longer does, and what the settings looked like before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from memctl import files
from memctl.hooks import files as hook_files
from memctl.paths import shown
from memd.errors import DiskError, Refused, TryAgain

LOCK_S = 10.0
VERSION = 1


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """
    path      as the agent knows it, links not followed
    hollow    see `hook_settings.Edited`
    is_made   there was no such file before
    folders   those that were made for it, innermost first
    """

    agent: str
    path: bytes
    form: str
    hollow: Mapping[str, str] = {}
    is_made: bool = False
    folders: tuple[bytes, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """version  a file without one is of version 1"""

    version: int = VERSION
    installed: tuple[Installed, ...] = ()

    def of(self, agent: str, path: bytes) -> Installed | None:
        return next((one for one in self.installed if (one.agent, one.path) == (agent, path)), None)


class _Version(msgspec.Struct):
    version: int = VERSION


def record_path() -> bytes:
    return os.path.dirname(hook_files.hook_file()) + b"/installed.json"


def read() -> Record:
    """What was noted; nothing when that is missing or not understood.

    raises  DiskError, Refused for a record of a later memd
    """
    text = files.read(record_path())[0] or b"{}"
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version > VERSION:
            raise Refused(
                f"{shown(record_path())} has version {version}; this memctl knows version {VERSION}",
                remedy="Use the memctl that installed the hooks, or upgrade this one.",
            )
        return msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Record()


def note(fresh: Sequence[Installed], gone: Sequence[tuple[str, bytes]] = ()) -> None:
    """Put these in, in place of what was said of their files, and take some out. Raises MemdError."""
    before = read()
    named = {(one.agent, one.path) for one in fresh} | set(gone)
    kept = [one for one in before.installed if (one.agent, one.path) not in named]
    made = Record(installed=tuple(sorted((*kept, *fresh), key=lambda one: (one.agent, one.path))))
    if made == before:
        return
    old, _ = files.read(record_path())
    files.write(record_path(), msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n", old, 0o600)


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """One installation at a time; raises TryAgain when another takes too long, DiskError."""
    folder = os.path.dirname(record_path())
    files.make_folder(folder, 0o700)
    path = folder + b"/install.lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as reason:
        raise DiskError("open", path, reason) from reason
    try:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TryAgain("another memctl is installing hooks") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(fd)
