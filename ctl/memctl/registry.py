"""The checkouts this user has worked in, `projects.json` in the data folder: where `continue` can go.

    {"version": 1,
     "links": [{"ledger": "local", "workspace": "default", "project": "app",
                "path": "/home/me/app", "linked_at": "2026-01-02T03:04:05Z"}]}

One link for each ledger, workspace and project: the checkout used last. `ledger` is `local`, or the address
of a ledger that several machines share, without credentials (`ledger_address`). A path that is no UTF-8 keeps
its bytes as JSON escapes of lone surrogates.

The file is read and written whole under a lock on its own (`projects.lock`), and replaced atomically. One
that memd does not understand (not JSON, unknown or missing fields, a field or a link that stands there twice,
another version, a link in place of the file, too large) is refused and never written over.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from memctl import files, ledger_address, paths
from memd.errors import ConfigError, DiskError, Refused, TryAgain, UsageError

VERSION: Final = 1
MAX_LINKS: Final = 10_000
MAX_BYTES: Final = 4 << 20
LOCK_S: Final = 2.0
FIELDS: Final = ("ledger", "workspace", "project", "path", "linked_at")


class Link(NamedTuple):
    """linked_at: RFC 3339 as memd writes it; whoever edits the file may have written anything."""

    ledger: str
    workspace: str
    project: str
    path: bytes
    linked_at: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.ledger, self.workspace, self.project


def registry_path() -> bytes:
    return paths.data_dir() + b"/projects.json"


def links() -> list[Link]:
    """All links in the order of the file; none when there is no file. Raises ConfigError, DiskError."""
    return _read()[1]


def note(workspace: str, project: str, path: bytes) -> None:
    """This checkout was used just now. Raises what `links` raises, UsageError, Refused, TryAgain.

    path  canonical, and a directory
    """
    if os.path.realpath(path) != path or not os.path.isdir(path):
        raise UsageError(
            f"{paths.shown(path)} is not the physical path of a directory", remedy="Start there again."
        )
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fresh = Link(ledger_address.here(), workspace, project, path, now)
    change(lambda rows: [*(row for row in rows if row.key != fresh.key), fresh])


def rekeyed(rows: Sequence[Link], ledger: str, old: tuple[str, str], new: tuple[str, str]) -> list[Link]:
    """The links after a project of a ledger got another workspace or name.

    old, new  workspace and project. A link that the new name has already stays, and the old one goes
    """
    has_new = any(row.key == (ledger, *new) for row in rows)
    result = []
    for row in rows:
        if old != new and row.key == (ledger, *old):
            if has_new:
                continue
            row = row._replace(workspace=new[0], project=new[1])
        result.append(row)
    return result


def change(do: Callable[[list[Link]], list[Link]]) -> bool:
    """Replace the links by what `do` makes of them; whether that changed anything.

    raises  ConfigError, DiskError, Refused, TryAgain; the file is as it was then
    """
    with _lock():
        text, before = _read()
        after = do(list(before))
        if after == before:
            return False
        if len(after) > MAX_LINKS:
            raise Refused(
                f"{_name()} holds {MAX_LINKS} checkouts already",
                remedy="Take out of it those that are not needed any more.",
            )
        encoded = render(after)
        if len(encoded) > MAX_BYTES:
            raise Refused(
                f"{_name()} would be longer than {MAX_BYTES >> 20} MiB",
                remedy="Take out of it those that are not needed any more.",
            )
        files.write(registry_path(), encoded, text, mode=0o600)
        return True


# ------------------------------------------------------------------------------------ the format


def render(rows: Sequence[Link]) -> bytes:
    document = {
        "version": VERSION,
        "links": [{**dict(zip(FIELDS, row, strict=True)), "path": os.fsdecode(row.path)} for row in rows],
    }
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def parse(text: bytes) -> list[Link]:
    """The links of a registry. raises ValueError, which says what is wrong with it"""
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES >> 20} MiB")
    try:
        document = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"its version is {version!r}, not {VERSION}")
    if set(document) != {"version", "links"} or not isinstance(document["links"], list):
        raise ValueError("it must hold a version and a list of links, nothing else")
    if len(document["links"]) > MAX_LINKS:
        raise ValueError(f"it holds more than {MAX_LINKS} links")
    rows = [_link(number, item) for number, item in enumerate(document["links"], 1)]
    known: set[tuple[str, str, str]] = set()
    for row in rows:
        if row.key in known:
            raise ValueError(f"{row.workspace}/{row.project} is linked twice")
        known.add(row.key)
    return rows


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a field stands there twice")
    return made


def _link(number: int, item: object) -> Link:
    if not isinstance(item, dict) or set(item) != set(FIELDS):
        raise ValueError(f"link {number} must have exactly the fields {', '.join(FIELDS)}")
    if not all(isinstance(value, str) for value in item.values()):
        raise ValueError(f"every field of link {number} must be a text")
    try:
        path = os.fsencode(item["path"])
    except UnicodeEncodeError:
        raise ValueError(f"the path of link {number} cannot be one") from None
    return Link(item["ledger"], item["workspace"], item["project"], path, item["linked_at"])


# -------------------------------------------------------------------------------------- the file


def _read() -> tuple[bytes | None, list[Link]]:
    path = registry_path()
    text, kind = files.read(path)
    if kind == "absent":
        return None, []
    if text is None:
        raise _refused("a link stands in its place" if kind == "link" else "it is not a file")
    try:
        return text, parse(text)
    except ValueError as reason:
        raise _refused(str(reason)) from None


def _refused(why: str) -> ConfigError:
    return ConfigError(
        f"{_name()} cannot be used: {why}", remedy="Correct it, or move it away; memd leaves it as it is."
    )


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    path = paths.data_dir() + b"/projects.lock"
    files.make_folder(paths.data_dir())
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as reason:
        raise DiskError("open", path, reason) from reason
    try:
        _take(fd)
        yield
    finally:
        os.close(fd)  # lets go of the lock


def _take(fd: int) -> None:
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TryAgain(f"{_name()} is being changed by another memctl") from None
            time.sleep(0.01)
        except OSError as reason:
            raise DiskError("lock", _name(), reason) from reason


def _name() -> str:
    return paths.shown(registry_path())
