"""Who follows whom in a transcript whose lines are not quite in order: which record must wait for another?

Some harnesses write a record before the one it answers, and link them with ids. `Chain` walks the records of
one file in file order and says of each which record it has to wait for, if any. A record waits when its
parent has not been seen (the last `RECENT` ids are remembered, so nearly every parent is known at once) or
is waiting itself. After `WINDOW` more records it waits no longer, so that a lost, foreign or circular parent
delays a few records and nothing more.

The ledger does the placing (see `memd.harness.model.Link`); this only gives the hints. What it says depends
on the records alone and not on where chunks were cut.
"""

from __future__ import annotations

import zlib
from collections import deque

import msgspec

RECENT = 64
WINDOW = 64
MAX_ID = 128  # characters; a longer id is no id, and its record stands where it stands


class ChainState(msgspec.Struct, array_like=True):
    """What goes into a cursor: less than a kilobyte, unless records are waiting."""

    last: str = ""
    recent: list[int] = []  # checksums, oldest first: a false match only leaves a record in file order
    held: list[tuple[str, str, int]] = []  # record, the parent it waits for, `count` when it began to wait
    count: int = 0


class Chain:
    """The chain of one file.

    last        the id of the record before this one
    is_awaited  after `step`: others wait for this record, or it waits itself; without events it needs a link
    given_up    after `step`: ids that are waited for no longer; each needs a link with an empty parent
    """

    def __init__(self, state: ChainState) -> None:
        self.last = state.last
        self.is_awaited = False
        self.given_up: tuple[str, ...] = ()
        self._recent: deque[str | int] = deque(state.recent, maxlen=RECENT)
        self._count = state.count
        self._held: dict[str, tuple[str, int]] = {}
        self._waiting: dict[str, list[str]] = {}
        for record, parent, since in state.held:
            self._hold(record, parent, since)

    def state(self) -> ChainState:
        return ChainState(
            last=self.last,
            recent=[one if isinstance(one, int) else sum_of(one) for one in self._recent],
            held=[(record, parent, since) for record, (parent, since) in self._held.items()],
            count=self._count if self._held else 0,
        )

    @property
    def is_waiting(self) -> bool:
        """Whether any record waits now."""
        return bool(self._held)

    def step(self, record: str, parent: str) -> str:
        """The record that `record` must wait for, "" when it may be placed. To be called in file order."""
        if not self._held and (not parent or parent == self.last or parent in self._recent):
            self.last = record
            self._recent.append(record)
            self.is_awaited = False
            self.given_up = ()
            return ""
        return self._step(record, parent)

    def _step(self, record: str, parent: str) -> str:
        self._count += 1
        self.given_up = self._expire() if self._held else ()
        if len(record) > MAX_ID:
            self.last, self.is_awaited = "", False
            return ""
        if record in self._held:  # it stands there twice: it waits as it did the first time
            parent = self._held[record][0]
        elif len(parent) > MAX_ID or parent == record or self._is_placed(parent):
            parent = ""
        if parent:
            self.is_awaited = True
            self._hold(record, parent, self._count)
        else:
            self.is_awaited = record in self._waiting
            self._release(record)
        self.last = record
        self._recent.append(record)
        return parent

    def _is_placed(self, parent: str) -> bool:
        if not parent:
            return True
        return parent not in self._held and (parent in self._recent or sum_of(parent) in self._recent)

    def _hold(self, record: str, parent: str, since: int) -> None:
        if record not in self._held:
            self._held[record] = (parent, since)
            self._waiting.setdefault(parent, []).append(record)

    def _release(self, record: str) -> None:
        open_ = [record]
        while open_:
            for child in self._waiting.pop(open_.pop(), ()):
                del self._held[child]
                open_.append(child)

    def _expire(self) -> tuple[str, ...]:
        """Give up what the oldest records wait for; a circle is cut where it is met first."""
        given_up = []
        while self._held:
            oldest = next(iter(self._held))
            parent, since = self._held[oldest]
            if self._count - since < WINDOW:
                break
            met = {oldest}
            while parent in self._held and parent not in met:
                met.add(parent)
                parent = self._held[parent][0]
            given_up.append(parent)
            self._release(parent)
        return tuple(given_up)


def sum_of(record: str) -> int:
    """A checksum that stands for a record's id."""
    return zlib.crc32(record.encode("utf-8", "surrogatepass"))
