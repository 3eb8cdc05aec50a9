"""The branches of a session tree that is appended to: which entries leave the main line, which come back.

Each entry names its parent. The main line is the path from the last entry (the leaf) up to a root. While an
entry follows the leaf nothing changes. When it follows another entry, a branch was left: what lies between
that entry and the old leaf is beside the main line from now on, and what is on the new path is in it.

Entries are kept as two numbers each, the last `MAX_HELD` of them; what is older stays as it was. Ids stand as
32 bits: eight hexadecimal digits fit exactly, of anything else the checksum. A parent that is unknown, or
that is missing, is taken to be the leaf: damage never hides anything.
"""

from __future__ import annotations

import bisect
import re
import zlib
from array import array

import msgspec

MAX_HELD = 6_000
MAX_JUMPS = 128  # entries that do not follow the one before
ROOT = -1

_SHORT = re.compile(r"[0-9a-f]{8}")
_NUMBER = "I"  # 32 bits
_SPAN = 1 << 31


class BranchState(msgspec.Struct, array_like=True):
    """What goes into a cursor: at most `MAX_HELD` * 8 bytes and the jumps.

    dropped  how many entries are no longer held; entries are numbered from the first of the file
    origin   `at` of the first entry that is held
    ids      a number per entry
    places   per entry `at` behind `origin`, times two, plus one when it gave events
    jumps    entries that do not follow the one before, with the entry they follow (`ROOT`: none)
    leaf     the number of the last entry of the main line
    """

    dropped: int = 0
    origin: int = 0
    ids: bytes = b""
    places: bytes = b""
    jumps: list[tuple[int, int]] = []
    leaf: int = ROOT


class Branches:
    """The tree of one file."""

    def __init__(self, state: BranchState) -> None:
        self._ids, self._places = _unpacked(state.ids), _unpacked(state.places)
        end = state.dropped + len(self._ids)
        if len(self._ids) != len(self._places) or state.dropped < 0 or not ROOT <= state.leaf < end:
            self._ids, self._places, state = array(_NUMBER), array(_NUMBER), BranchState()
        self._dropped = state.dropped
        self._origin = state.origin
        self._leaf = state.leaf if self._ids else ROOT
        self._jumps = {child: parent for child, parent in state.jumps if ROOT <= parent < child}
        self._starts = sorted(self._jumps)

    def state(self) -> BranchState:
        return BranchState(
            dropped=self._dropped,
            origin=self._origin,
            ids=self._ids.tobytes(),
            places=self._places.tobytes(),
            jumps=list(self._jumps.items()),
            leaf=self._leaf,
        )

    def step(
        self, entry: str, parent: str | None, at: int, *, is_visible: bool, is_aside: bool = False
    ) -> list[tuple[int, int, bool]]:
        """Add an entry; what changed sides because of it, as `(first at, last at, is_side)`.

        parent    the id of the entry it follows, None for a root, "" when it does not say
        is_aside  bookkeeping that may be written to another branch without leaving this one
        """
        if not self._ids:
            self._origin, self._dropped, self._leaf = at, 0, ROOT
            self._jumps, self._starts = {}, []
        if not 0 <= at - self._origin < _SPAN:
            self._forget(at)
        before = self._leaf if parent == "" else ROOT if parent is None else self._find(parent)
        number = self._dropped + len(self._ids)
        self._ids.append(_number(entry))
        self._places.append((at - self._origin) * 2 + is_visible)
        if before != number - 1:
            self._jumps[number] = before
            self._starts.append(number)
        turns: list[tuple[int, int, bool]] = []
        if before == self._leaf:
            self._leaf = number
        elif not is_aside:
            turns = self._turn(before)
            self._leaf = number
        self._trim()
        return turns

    def _find(self, parent: str) -> int:
        wanted = _number(parent)
        last = self._leaf - self._dropped
        if last >= 0 and self._ids[last] == wanted:
            return self._leaf
        try:
            return self._dropped + self._ids.index(wanted)
        except ValueError:
            return self._leaf

    def _turn(self, before: int) -> list[tuple[int, int, bool]]:
        """Go up from the old leaf and from the new entry's parent until the two meet."""
        old, new = self._leaf, before
        turns: list[tuple[int, int, bool]] = []
        while old != new and max(old, new) >= self._dropped:
            is_side = old > new
            high, other = max(old, new), min(old, new)
            start, above = self._run(high)
            if start <= other:  # the other one is further down on the same run
                start, above = other + 1, other
            if is_side:
                old = above
            else:
                new = above
            seen = [
                place for place in self._places[start - self._dropped : high - self._dropped + 1] if place & 1
            ]
            if seen:
                turns.append((self._origin + (seen[0] >> 1), self._origin + (seen[-1] >> 1), is_side))
        return turns

    def _run(self, number: int) -> tuple[int, int]:
        """Where the run of entries that ends here began, and the entry that its first one follows."""
        place = bisect.bisect_right(self._starts, number)
        if not place:
            return self._dropped, self._dropped - 1
        start = self._starts[place - 1]
        return start, self._jumps[start]

    def _trim(self) -> None:
        while len(self._ids) > MAX_HELD or len(self._jumps) > MAX_JUMPS:
            count = max(1, len(self._ids) // 4)
            moved = self._places[count] >> 1 if count < len(self._places) else 0
            del self._ids[:count], self._places[:count]
            self._places = array(_NUMBER, (max(0, place - 2 * moved) for place in self._places))
            self._origin += moved
            self._dropped += count
            self._jumps = {child: parent for child, parent in self._jumps.items() if child >= self._dropped}
            self._starts = sorted(self._jumps)

    def _forget(self, at: int) -> None:
        """Begin anew at `at`: the file is longer than places can say."""
        self._dropped += len(self._ids)
        self._leaf = self._dropped - 1
        self._origin = at
        self._ids, self._places = array(_NUMBER), array(_NUMBER)
        self._jumps, self._starts = {}, []


def _number(entry: str) -> int:
    if _SHORT.fullmatch(entry):
        return int(entry, 16)
    return zlib.crc32(entry.encode("utf-8", "surrogatepass"))


def _unpacked(packed: bytes) -> array[int]:
    numbers = array(_NUMBER)
    numbers.frombytes(packed[: len(packed) // numbers.itemsize * numbers.itemsize])
    return numbers
