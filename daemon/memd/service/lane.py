"""One thread's worth of blocking work, urgent things first.

The ledger's writer belongs to one thread at a time. Claims and commands overtake import batches that wait;
what runs is never interrupted, but long work may ask whether something more urgent `is_wanted`, and end
early.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")

URGENT, LIVE, BULK = 0, 1, 2


class Lane:
    """Runs one piece of work at a time, in a thread, by priority and then by order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, trio.Event]] = []
        self._arrived = 0
        self._is_busy = False
        self._limiter = trio.CapacityLimiter(1)

    async def run(self, work: Callable[[], T], priority: int = URGENT) -> T:
        """The result of `work`. Cancelled while it waits, it never runs; once it runs, it is waited for."""
        await self._turn(priority)
        try:
            return await trio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._next()

    def is_wanted(self, priority: int) -> bool:
        """Whether something more urgent than that waits. Any thread may ask."""
        try:
            return self._waiting[0][0] < priority
        except IndexError:
            return False

    async def _turn(self, priority: int) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        turn = trio.Event()
        ticket = (priority, self._arrived, turn)
        self._arrived += 1
        heapq.heappush(self._waiting, ticket)
        try:
            await turn.wait()
        except trio.Cancelled:
            if turn.is_set():
                self._next()  # the turn came with the cancellation: pass it on
            else:
                self._waiting.remove(ticket)
                heapq.heapify(self._waiting)
            raise

    def _next(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].set()
        else:
            self._is_busy = False
