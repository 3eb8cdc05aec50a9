"""How far a source has been read, and whether it is still the same file.

A cursor stands just past a newline. It knows the file by inode and by two windows of the bytes before it:
the first and the last 4 KiB. An append leaves both as they were; a rewrite in place, a truncation or another
file under the name does not, and the source is then read from its beginning again, which costs time and
nothing else, since ids are made of what is said. Harnesses known to rewrite in place are checked over the
whole prefix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

WINDOW_BYTES = 4096
HASH_CHUNK_BYTES = 1 << 20

ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, size)` of a source: fewer bytes only at its end."""


class FileCursor(msgspec.Struct, frozen=True, array_like=True):
    """inode and device; offset of the first byte not dealt with; digests; what the adapter remembers.

    size_seen, mtime_ns  the file when it was last looked at: equal means nothing to do
    whole                digest of all bytes before `offset`, for sources that are rewritten in place
    beside               digest of the file that says which session it is, for sources that have one
    """

    inode: int
    device: int
    offset: int
    head: bytes = b""
    tail: bytes = b""
    whole: bytes = b""
    session: str = ""
    state: bytes = b""
    size_seen: int = 0
    mtime_ns: int = 0
    beside: bytes = b""


class RowCursor(msgspec.Struct, frozen=True, array_like=True):
    """A database's: per query the last `updated` and `id` that were dealt with.

    fingerprint  of the files of a session in many documents; of the directories a database belongs to
    """

    fingerprint: bytes = b""
    places: dict[str, tuple[int, str]] = {}
    state: bytes = b""


_file = msgspec.msgpack.Decoder(FileCursor)
_rows = msgspec.msgpack.Decoder(RowCursor)


def encode(cursor: FileCursor | RowCursor) -> bytes:
    return msgspec.msgpack.encode(cursor)


def file_cursor(stored: bytes) -> FileCursor | None:
    """None for nothing, and for what another version wrote: reading again is always right."""
    if not stored:
        return None
    try:
        return _file.decode(stored)
    except msgspec.DecodeError:
        return None


def row_cursor(stored: bytes) -> RowCursor:
    if not stored:
        return RowCursor()
    try:
        return _rows.decode(stored)
    except msgspec.DecodeError:
        return RowCursor()


def windows(read_at: ReadAt, offset: int, loose: int = 0) -> tuple[bytes, bytes]:
    """Digests of the first and the last `WINDOW_BYTES` before `offset`, without the `loose` first bytes."""
    first = min(loose, offset)
    head = read_at(first, min(WINDOW_BYTES, offset - first)) if offset > first else b""
    if offset - first <= WINDOW_BYTES:
        return _digest(head), b""
    size = min(WINDOW_BYTES, offset - first - WINDOW_BYTES)
    return _digest(head), _digest(read_at(offset - size, size))


def digest(data: bytes) -> bytes:
    """What stands for a small file in a cursor."""
    return _digest(data)


class Prefix:
    """Digests of the beginning of a file, one file at a time.

    A longer beginning of the same file costs no more than what is new in it: else a long file would be hashed
    from its start with every slice that is read of it.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._at = 0
        self._digest = hashlib.sha256()

    def whole(self, key: object, read_at: ReadAt, offset: int) -> bytes:
        """Digest of everything before `offset`; empty when the file ends before.

        key  stands for the file as it is now: the same only while nothing of it can have changed
        """
        if key != self._key or offset < self._at:
            self._key, self._at, self._digest = key, 0, hashlib.sha256()
        while self._at < offset:
            part = read_at(self._at, min(HASH_CHUNK_BYTES, offset - self._at))
            if not part:
                return b""
            self._digest.update(part)
            self._at += len(part)
        return self._digest.digest()[:16]


def continues(
    cursor: FileCursor,
    read_at: ReadAt,
    *,
    inode: int,
    device: int,
    size: int,
    whole: Callable[[int], bytes] | None = None,
    loose: int = 0,
) -> bool:
    """Whether the file still begins with what was dealt with, as far as that can be told (see above).

    whole  for a file that is rewritten in place: the digest of all that stands before an offset
    loose  bytes at the start that the harness rewrites in place; what they say is no sign
    """
    if (inode, device) != (cursor.inode, cursor.device) or size < cursor.offset:
        return False
    if whole is not None:
        return whole(cursor.offset) == cursor.whole
    return windows(read_at, cursor.offset, loose) == (cursor.head, cursor.tail)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]
