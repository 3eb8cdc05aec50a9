"""What the worker knows of every source: its cursor, and how it looked when it was last read.

One small entry a source, since a person may have tens of thousands: the key is a digest of the path, the
value a digest of the looks and the cursor. Two paths of one digest would only be read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

LOOKS_BYTES = 8

Looks = tuple[int | bytes, ...]


class Known:
    def __init__(self) -> None:
        self._entries: dict[int, bytes] = {}

    def add(self, cursors: Mapping[bytes, bytes]) -> None:
        """Sources that an earlier worker read, as far as that came into the ledger."""
        for path, cursor in cursors.items():
            self._entries[_key(path)] = bytes(LOOKS_BYTES) + cursor

    def __len__(self) -> int:
        return len(self._entries)

    def cursor(self, path: bytes) -> bytes:
        """Where the source was left; empty when it was never read."""
        return self._entries.get(_key(path), b"")[LOOKS_BYTES:]

    def is_as_it_was(self, path: bytes, looks: Looks) -> bool:
        return self._entries.get(_key(path), b"")[:LOOKS_BYTES] == _digest(looks)

    def has_looks(self, path: bytes) -> bool:
        """Whether this worker has read the source; what earlier ones saw only the cursor tells."""
        return any(self._entries.get(_key(path), b"")[:LOOKS_BYTES])

    def set_cursor(self, path: bytes, cursor: bytes) -> None:
        key = _key(path)
        self._entries[key] = self._entries.get(key, bytes(LOOKS_BYTES))[:LOOKS_BYTES] + cursor

    def set_looks(self, path: bytes, looks: Looks) -> None:
        self._entries[_key(path)] = _digest(looks) + self.cursor(path)

    def forget_looks(self) -> None:
        """Everything is to be looked at again, from where it was left."""
        for key, entry in self._entries.items():
            self._entries[key] = bytes(LOOKS_BYTES) + entry[LOOKS_BYTES:]


def _key(path: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(path, digest_size=7).digest(), "big")


def _digest(looks: Looks) -> bytes:
    return hashlib.blake2b(repr(looks).encode(), digest_size=LOOKS_BYTES).digest()
