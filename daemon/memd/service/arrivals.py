"""What came from the worker and is not in the ledger yet, and how much of it goes in at once. Pure.

A store takes several groups together in less time than one by one. Back-fill waits for more of its kind; what
somebody waits for, and the last of all, does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memd.ledger import messages
from memd.ledger.messages import Read
from memd.ledger.store.interface import GROUP_BYTES, Batch

TOGETHER_BYTES = 3 * GROUP_BYTES
"""Of messages that go in together: the end of their transaction takes about 10 ms then."""


class Coming:
    """Batches in their order. Each is unpacked when its turn comes, by whoever takes it.

    Unpacked all at once, and in another thread, they would be out of the processor's cache by then.
    """

    def __init__(self, reads: Sequence[Read], skipped: int = 0) -> None:
        """skipped: so many batches at the beginning are not among them"""
        self._reads = reads
        self._skipped = skipped

    def __len__(self) -> int:
        return sum(read.count for read in self._reads) - self._skipped

    def __iter__(self) -> Iterator[Batch]:
        skipped = self._skipped
        for read in self._reads:
            if skipped >= read.count:
                skipped -= read.count
                continue
            yield from messages.batches(read, skipped)
            skipped = 0

    def after(self, count: int) -> Coming:
        """Without the first so many."""
        return Coming(self._reads, self._skipped + count)

    @property
    def harness(self) -> str:
        """Of the first one."""
        return next(iter(self)).harness

    @property
    def events(self) -> int:
        return sum(len(batch.entries) for batch in self)


class Taken(NamedTuple):
    """numbers: of the groups that these are. size: of their messages, in bytes"""

    numbers: tuple[int, ...]
    batches: Coming
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
        self.events += read.events

    @property
    def is_due(self) -> bool:
        """Whether there is as much as goes in together, or something for which nobody should wait."""
        is_urgent = any(read.is_live or not read.is_more for read, _ in self._reads)
        return is_urgent or self._size >= TOGETHER_BYTES

    def take(self) -> Taken:
        """The next that go in together: at least one, which must be there."""
        taken: list[Read] = []
        size = 0
        while self._reads and (not taken or size + self._reads[0][1] <= TOGETHER_BYTES):
            read, its_size = self._reads.popleft()
            taken.append(read)
            size += its_size
            self.events -= read.events
        self._size -= size
        return Taken(
            numbers=tuple(read.number for read in taken),
            batches=Coming(taken),
            is_live=any(read.is_live for read in taken),
            size=size,
        )
