"""Small things that adapters remember or compare: losses counted, ids unique everywhere."""

from __future__ import annotations

import hashlib
import re

MAX_COUNTED = 6_000
_BYTES = 8
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Counted:
    """What was counted, so that a row that is read again is not counted again: the last `MAX_COUNTED`."""

    def __init__(self, state: bytes = b"") -> None:
        self.state = state[: len(state) // _BYTES * _BYTES]

    def is_new(self, name: str) -> bool:
        """Whether it was not there before; it is now."""
        mark = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_BYTES).digest()
        found = self.state.find(mark)
        while found >= 0 and found % _BYTES:
            found = self.state.find(mark, found + 1)
        if found < 0:
            self.state = (self.state + mark)[-MAX_COUNTED * _BYTES :]
        return found < 0


def origin_of(session: str, record: str) -> str:
    """A record's id made unique: as it is where it is a UUID, else within its session."""
    return record if _UUID.fullmatch(record) else f"{session}/{record}"


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
