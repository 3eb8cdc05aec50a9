"""What the segments say the rows must be: places taken, turned and given back, line by line.

Pure: lines come in, in the order in which they were written; what stands where comes out. The store compares
that with its rows (`memd.ledger.store.checking`). Memory is two bits per place, whatever the ledger's size.
"""

from __future__ import annotations

from collections.abc import Iterator


class Bits:
    """A set of small numbers, one bit each."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.count = 0

    def __contains__(self, number: int) -> bool:
        byte = number >> 3
        return byte < len(self._bytes) and bool(self._bytes[byte] & 1 << (number & 7))

    def add(self, number: int) -> None:
        if number not in self:
            byte = number >> 3
            if byte >= len(self._bytes):
                self._bytes.extend(bytes(byte + 1 - len(self._bytes)))
            self._bytes[byte] |= 1 << (number & 7)
            self.count += 1

    def discard(self, number: int) -> None:
        if number in self:
            self._bytes[number >> 3] &= ~(1 << (number & 7))
            self.count -= 1

    def __iter__(self) -> Iterator[int]:
        for byte, value in enumerate(self._bytes):
            for bit in range(8):
                if value >> bit & 1:
                    yield byte * 8 + bit


class Places:
    """Which positions of which sessions are taken, and which of these are beside the main line."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], Bits] = {}
        self._side: dict[tuple[str, str], Bits] = {}

    def take(self, harness: str, session: str, position: int, *, is_side: bool) -> bool:
        """False when the place was taken already."""
        taken = self._taken.setdefault((harness, session), Bits())
        if position in taken:
            return False
        taken.add(position)
        self.turn(harness, session, position, is_side=is_side)
        return True

    def give_back(self, harness: str, session: str, position: int) -> bool:
        """False when the place was not taken."""
        taken = self._taken.get((harness, session))
        if taken is None or position not in taken:
            return False
        taken.discard(position)
        return True

    def turn(self, harness: str, session: str, position: int, *, is_side: bool) -> None:
        side = self._side.setdefault((harness, session), Bits())
        if is_side:
            side.add(position)
        else:
            side.discard(position)

    def is_side(self, harness: str, session: str, position: int) -> bool:
        side = self._side.get((harness, session))
        return side is not None and position in side

    def left(self) -> Iterator[tuple[str, str, int]]:
        """Every place that is taken still."""
        for (harness, session), taken in self._taken.items():
            for position in taken:
                yield harness, session, position


class Numbers:
    """A set of event numbers, which come in two dense lanes."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._old, self._new = Bits(), Bits()

    def add(self, number: int) -> None:
        if number >= self._lane:
            self._new.add(number - self._lane)
        else:
            self._old.add(number)

    def __contains__(self, number: int) -> bool:
        return number - self._lane in self._new if number >= self._lane else number in self._old
