"""Who waits for the import, and how far what was made has come. The worker's own bookkeeping."""

from __future__ import annotations

import msgspec

from memd.ledger.messages import Ended


class Wait(msgspec.Struct):
    """Somebody who waits until what is visible is in the ledger.

    since_ns  with much to be read, only sources that changed since then count; 0: all
    ended     a session to be read to its end, too
    paths     the sources that count and were not seen to be read yet; None: nobody has looked
    batches   how many batches had been made when these were read; -1: they are not
    """

    token: int
    since_ns: int = 0
    ended: Ended | None = None
    paths: list[bytes] | None = None
    batches: int = -1


class Flow:
    """Batches in the order in which they are made, sent in groups, and acknowledged group by group."""

    def __init__(self) -> None:
        self.made = 0
        self._sent = 0
        self._number = 0
        self._under_way: dict[int, int] = {}  # group -> batches that were sent before it

    def __len__(self) -> int:
        """Groups under way."""
        return len(self._under_way)

    @property
    def groups(self) -> int:
        """Groups that were sent."""
        return self._number

    def send(self, count: int) -> int:
        """The number of the next group, of so many batches."""
        self._number += 1
        self._under_way[self._number] = self._sent
        self._sent += count
        return self._number

    def acknowledge(self, number: int) -> None:
        self._under_way.pop(number, None)

    def is_sent(self, batches: int) -> bool:
        """Whether the first so many batches are on their way or further."""
        return self._sent >= batches

    def is_in(self, batches: int) -> bool:
        """Whether the first so many batches are in the ledger."""
        return self.is_sent(batches) and all(before >= batches for before in self._under_way.values())
