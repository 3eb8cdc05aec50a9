"""What the worker knows of every source: its cursor, and how it looked when it was last read.

A person may have tens of thousands, so an entry is a few dozen bytes and no object of its own: a digest of
the path, a digest of the looks, and the cursor, one after the other on one of so many shelves. Two paths of
one digest would only be read again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping

LOOKS_BYTES = 8
SHELVES = 4096
_ENTRY = struct.Struct(f"<7sI{LOOKS_BYTES}s")  # path and looks as digests; between them the cursor's length
_NEVER = bytes(LOOKS_BYTES)

Looks = tuple[int | bytes, ...]


class Known:
    def __init__(self) -> None:
        self._shelves: dict[int, bytes] = {}
        self._count = 0

    def add(self, cursors: Mapping[bytes, bytes]) -> None:
        """Sources that an earlier worker read, as far as that came into the ledger."""
        for path, cursor in cursors.items():
            self._put(path, _NEVER, cursor)

    def __len__(self) -> int:
        return self._count

    def cursor(self, path: bytes) -> bytes:
        """Where the source was left; empty when it was never read."""
        return self._get(path)[1]

    def is_as_it_was(self, path: bytes, looks: Looks) -> bool:
        return self._get(path)[0] == _digest(looks)

    def has_looks(self, path: bytes) -> bool:
        """Whether this worker has read the source; what earlier ones saw only the cursor tells."""
        return self._get(path)[0] != _NEVER

    def set_cursor(self, path: bytes, cursor: bytes) -> None:
        self._put(path, self._get(path)[0], cursor)

    def set_looks(self, path: bytes, looks: Looks) -> None:
        self._put(path, _digest(looks), self.cursor(path))

    def forget_looks(self) -> None:
        """Everything is to be looked at again, from where it was left."""
        for number, shelf in self._shelves.items():
            entries = _entries(shelf)
            self._shelves[number] = b"".join(_entry(key, _NEVER, cursor) for key, _, cursor, _, _ in entries)

    def _get(self, path: bytes) -> tuple[bytes, bytes]:
        """Looks and cursor."""
        key, number = _place(path)
        for found, looks, cursor, _, _ in _entries(self._shelves.get(number, b"")):
            if found == key:
                return looks, cursor
        return _NEVER, b""

    def _put(self, path: bytes, looks: bytes, cursor: bytes) -> None:
        key, number = _place(path)
        shelf = self._shelves.get(number, b"")
        start = end = len(shelf)
        for found, _, _, at, after in _entries(shelf):
            if found == key:
                start, end = at, after
                break
        else:
            self._count += 1
        self._shelves[number] = shelf[:start] + _entry(key, looks, cursor) + shelf[end:]


def _place(path: bytes) -> tuple[bytes, int]:
    """What stands for a path, and its shelf."""
    key = hashlib.blake2b(path, digest_size=7).digest()
    return key, int.from_bytes(key[:2], "big") % SHELVES


def _entry(key: bytes, looks: bytes, cursor: bytes) -> bytes:
    return _ENTRY.pack(key, len(cursor), looks) + cursor


def _entries(shelf: bytes) -> Iterator[tuple[bytes, bytes, bytes, int, int]]:
    """Path, looks and cursor of each, and where it begins and ends."""
    at = 0
    while at < len(shelf):
        key, length, looks = _ENTRY.unpack_from(shelf, at)
        after = at + _ENTRY.size + length
        yield key, looks, shelf[after - length : after], at, after
        at = after


def _digest(looks: Looks) -> bytes:
    return hashlib.blake2b(repr(looks).encode(), digest_size=LOOKS_BYTES).digest()
