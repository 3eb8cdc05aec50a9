"""What the segments say the rows must be: places taken and given back, line by line.

Pure: lines come in, in the order in which they were written; what stands where comes out. The store compares
that with its rows (`memd.ledger.store.checking`). Memory is a bit per place, whatever the ledger's size.
"""

from __future__ import annotations

from collections.abc import Iterator


class Places:
    """Which positions of which sessions are taken: one bit each."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, str, bool], bytearray] = {}
        self.count = 0

    def take(self, harness: str, session: str, is_side: bool, position: int) -> bool:
        """False when the place was taken already."""
        bits = self._bits.setdefault((harness, session, is_side), bytearray())
        byte, mask = position >> 3, 1 << (position & 7)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        if bits[byte] & mask:
            return False
        bits[byte] |= mask
        self.count += 1
        return True

    def give_back(self, harness: str, session: str, is_side: bool, position: int) -> bool:
        """False when the place was not taken."""
        bits = self._bits.get((harness, session, is_side), bytearray())
        byte, mask = position >> 3, 1 << (position & 7)
        if byte >= len(bits) or not bits[byte] & mask:
            return False
        bits[byte] &= ~mask
        self.count -= 1
        return True

    def left(self) -> Iterator[tuple[str, str, bool, int]]:
        """Every place that is taken still."""
        for (harness, session, is_side), bits in self._bits.items():
            for byte, value in enumerate(bits):
                for bit in range(8):
                    if value >> bit & 1:
                        yield harness, session, is_side, byte * 8 + bit


class Numbers:
    """A set of event numbers in two dense lanes: one bit each."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._old = bytearray()
        self._new = bytearray()
        self.count = 0

    def add(self, number: int) -> None:
        bits, at = (self._new, number - self._lane) if number >= self._lane else (self._old, number)
        byte, mask = at >> 3, 1 << (at & 7)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        if not bits[byte] & mask:
            bits[byte] |= mask
            self.count += 1

    def __contains__(self, number: int) -> bool:
        bits, at = (self._new, number - self._lane) if number >= self._lane else (self._old, number)
        byte, mask = at >> 3, 1 << (at & 7)
        return byte < len(bits) and bool(bits[byte] & mask)
