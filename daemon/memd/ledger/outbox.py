"""Batches that are made and not sent yet, and which of them go in together.

A store takes many batches at once in far less time than one by one. Back-fill waits until a group is full;
what somebody waits for goes at once, with whatever was made before it.
"""

from __future__ import annotations

from collections import deque

from memd.ledger.store.interface import GROUP_BYTES, GROUP_EVENTS, Batch

GROUP_BATCHES = 256  # also of batches that only move a cursor


class Outbox:
    """First in, first out: batches of one source must arrive in their order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Batch, bool, int]] = deque()
        self._events = self._size = self._live = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def is_due(self) -> bool:
        """Whether there is a whole group, or something that somebody waits for."""
        is_full = self._events >= GROUP_EVENTS or self._size >= GROUP_BYTES
        return is_full or self._live > 0 or len(self._waiting) >= GROUP_BATCHES

    def put(self, batch: Batch, *, is_live: bool) -> None:
        size = sum(len(entry.content) for entry in batch.entries)
        self._waiting.append((batch, is_live, size))
        self._count(batch, is_live, size, 1)

    def take(self) -> tuple[tuple[Batch, ...], bool]:
        """The next group, within the bounds of a group but never empty, and whether somebody waits for it."""
        group: list[Batch] = []
        events = characters = 0
        is_live = False
        while self._waiting:
            batch, is_urgent, size = self._waiting[0]
            events += len(batch.entries)
            characters += size
            is_full = events > GROUP_EVENTS or characters > GROUP_BYTES or len(group) == GROUP_BATCHES
            if group and is_full:
                break
            self._waiting.popleft()
            self._count(batch, is_urgent, size, -1)
            group.append(batch)
            is_live = is_live or is_urgent
        return tuple(group), is_live

    def _count(self, batch: Batch, is_live: bool, size: int, sign: int) -> None:
        self._events += sign * len(batch.entries)
        self._size += sign * size
        self._live += sign * is_live
