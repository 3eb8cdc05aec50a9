"""What came from the worker and is not in the ledger yet, and how much of it goes in at once. Pure.

A store takes several groups together in less time than one by one. Back-fill waits for more of its kind; what
somebody waits for, and the last of all, does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from memd.ledger.messages import Read
from memd.ledger.store.interface import GROUP_BYTES, Batch

TOGETHER_BYTES = 3 * GROUP_BYTES
"""Of messages that go in together: the end of their transaction takes about 10 ms then."""


class Taken(NamedTuple):
    """numbers: of the groups that these are. size: of their messages, in bytes"""

    numbers: tuple[int, ...]
    batches: tuple[Batch, ...]
    is_live: bool
    size: int


class Arrivals:
    """First in, first out."""

    def __init__(self) -> None:
        self._reads: deque[tuple[Read, int]] = deque()
        self._size = 0
        self.events = 0  # of all that wait

    def __bool__(self) -> bool:
        return bool(self._reads)

    def add(self, read: Read, size: int) -> None:
        """size: of its message, in bytes"""
        self._reads.append((read, size))
        self._size += size
        self.events += _events(read.batches)

    @property
    def is_due(self) -> bool:
        """Whether there is as much as goes in together, or something for which nobody should wait."""
        is_urgent = any(read.is_live or not read.is_more for read, _ in self._reads)
        return is_urgent or self._size >= TOGETHER_BYTES

    def take(self) -> Taken:
        """The next that go in together: at least one, which must be there."""
        taken: list[tuple[Read, int]] = []
        size = 0
        while self._reads and (not taken or size + self._reads[0][1] <= TOGETHER_BYTES):
            taken.append(self._reads.popleft())
            size += taken[-1][1]
        batches = tuple(batch for read, _ in taken for batch in read.batches)
        self._size -= size
        self.events -= _events(batches)
        return Taken(
            numbers=tuple(read.number for read, _ in taken),
            batches=batches,
            is_live=any(read.is_live for read, _ in taken),
            size=size,
        )


def _events(batches: Sequence[Batch]) -> int:
    return sum(len(batch.entries) for batch in batches)
