"""The names a merge gives to what loses, to what finds its place taken, to a folder set aside. Pure.

    _superseded/<path>.<label>.<stamp>     the loser of two notes; label `agent` for the owned one
    <name>.<label>.<extension>             a note whose place is taken by something that is no note
    memory.pre-shared[-<stamp>]            the folder that stood where the link is now

Every name has numbered forms (`.2`, `.3`, ...) for when it is taken. A name that would be too long keeps its
beginning and gets a short digest of the whole in place of the rest.
"""

from __future__ import annotations

import datetime
import hashlib

SUPERSEDED = b"_superseded"
ASIDE = b"memory.pre-shared"
INDEX = b"MEMORY.md"
OWNED_LABEL = b"agent"

MAX_NAME_BYTES = 255
MAX_LABEL_BYTES = 64
MAX_NUMBER = 9999

_EPOCH = datetime.datetime(1970, 1, 1)


def label_of(config_home: bytes) -> bytes:
    """What a login is called in the names of its notes: the folder's name without its leading dot."""
    name = config_home.rstrip(b"/").rpartition(b"/")[2]
    return _cut(name.removeprefix(b"."), MAX_LABEL_BYTES) or b"login"


def stamp(time_ns: int) -> bytes:
    """A time as UTC, `2026-02-03T10-00-00-000Z`; outside the years 1 to 9999 its milliseconds as a number."""
    ms = time_ns // 1_000_000
    try:
        moment = _EPOCH + datetime.timedelta(milliseconds=ms)
    except OverflowError:
        return b"%dms" % ms
    text = f"{moment:%m-%dT%H-%M-%S}-{moment.microsecond // 1000:03}Z"
    return f"{moment.year:04}-{text}".encode("ascii")


def superseded_name(rel: bytes, label: bytes, mtime_ns: int, number: int = 1) -> bytes:
    """Where the loser of two notes called `rel` goes, within the owned folder."""
    folder, _, name = rel.rpartition(b"/")
    suffix = b".%b.%b%b" % (label, stamp(mtime_ns), _number(number))
    return b"/".join(part for part in (SUPERSEDED, folder, fitted(name, suffix)) if part)


def free_name(rel: bytes, label: bytes, number: int = 1) -> bytes:
    """Another name for a note or folder called `rel`, with the extension it had."""
    folder, _, name = rel.rpartition(b"/")
    dot = name.rfind(b".")
    base, extension = (name[:dot], name[dot:]) if dot > 0 and len(name) - dot <= 16 else (name, b"")
    new = fitted(base, b".%b%b%b" % (label, _number(number), extension))
    return folder + b"/" + new if folder else new


def numbered(rel: bytes, number: int) -> bytes:
    folder, _, name = rel.rpartition(b"/")
    new = fitted(name, _number(number))
    return folder + b"/" + new if folder else new


def aside_name(now_ms: int, attempt: int) -> bytes:
    """The `attempt`-th name, from 0, for a folder that is set aside."""
    if attempt == 0:
        return ASIDE
    return ASIDE + b"-" + stamp(now_ms * 1_000_000) + _number(attempt)


def is_aside(path: bytes) -> bool:
    """Whether a path has a name that is given to what is set aside."""
    return path.rpartition(b"/")[2].startswith(ASIDE)


def fitted(name: bytes, suffix: bytes) -> bytes:
    """`name` and `suffix` in one name that the file system takes."""
    if len(name) + len(suffix) <= MAX_NAME_BYTES:
        return name + suffix
    digest = b"~" + hashlib.sha256(name).hexdigest()[:12].encode("ascii")
    return _cut(name, MAX_NAME_BYTES - len(suffix) - len(digest)) + digest + suffix


def _number(number: int) -> bytes:
    return b".%d" % number if number > 1 else b""


def _cut(name: bytes, size: int) -> bytes:
    """The beginning of a name, not ending within a character."""
    if len(name) <= size:
        return name
    head = name[:size]
    for back in range(1, 4):  # the longest character has four bytes, so its first is at most the third last
        if back <= len(head) and head[-back] >= 0xC0:
            width = 2 if head[-back] < 0xE0 else 3 if head[-back] < 0xF0 else 4
            return head[:-back] if width > back else head
        if back <= len(head) and head[-back] < 0x80:
            break
    return head
