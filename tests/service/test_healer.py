"""When the healer looks again by itself: soon after a failure, ever more seldom, and once after a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock

from memd.errors import DiskError
from memd.protocol import Entry, Outcome
from memd.service import healer as module
from memd.service.healer import RETRY_S, SETTLE_S, Healer
from memd.service.watcher import Watcher
from memd.settings import Settings

T = TypeVar("T")
USUAL_S = Settings().memory.rescan_s


def entry(outcome: Outcome, *, changed: bool = False) -> Entry:
    return Entry(agent=b"/a", config_home=b"/h", path=b"/h/e", outcome=outcome, changed=changed)


class Scripted(Healer):
    """Each look comes to the next of these; the last one repeats. Notes when it looked."""

    def __init__(self, *looks: Sequence[Any] | Exception, recoveries: Sequence[bool] = (True,)) -> None:
        self.script = list(looks)
        self.recoveries = list(recoveries)
        self.recovered = 0
        self.at: list[float] = []
        self.wanted = 0
        self.is_enough = trio.Event()
        ownership: Any = SimpleNamespace(
            registry=Path("/nowhere"),
            recover=self._recover,
            heal=self._next,
            config_homes=lambda _seen=(): [],
            watch_points=list,
        )
        super().__init__(ownership, ownership, Settings(), Watcher(step_ms=50, poll=True))

    async def run(self, work: Callable[[Any], T]) -> T:
        await trio.lowlevel.checkpoint()
        return work(self._ownership)

    def _recover(self, *, now_ms: int) -> tuple[Entry, ...]:
        self.recovered += 1
        if not self.recoveries.pop(0):
            raise DiskError("open", b"/x", OSError(5, "Input/output error"))
        return ()

    def _next(self, *, now_ms: int) -> tuple[Entry, ...]:
        self.at.append(trio.current_time())
        if len(self.at) == self.wanted:
            self.is_enough.set()
        told = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(told, Exception):
            raise told
        return tuple(told)

    async def pauses(self, count: int) -> list[float]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keep)
            self.wanted = count + 1
            await self.is_enough.wait()
            nursery.cancel_scope.cancel()
        return [pytest.approx(later - now) for now, later in zip(self.at, self.at[1:], strict=False)][:count]


BROKEN = DiskError("open", b"/x", OSError(5, "Input/output error"))


@pytest.mark.parametrize("failing", [BROKEN, (entry("failed"),)], ids=["the look", "one place"])
async def test_after_a_failure_it_looks_again_soon_and_ever_more_seldom(
    autojump_clock: MockClock, failing: Any
) -> None:
    healer = Scripted(failing)
    assert await healer.pauses(7) == [*RETRY_S[:2], USUAL_S, USUAL_S, USUAL_S, USUAL_S, USUAL_S]


async def test_while_events_arrive_the_pauses_after_failures_grow_to_the_end(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.Healer, "_period_s", lambda _self: 60.0)
    assert await Scripted(BROKEN).pauses(6) == [*RETRY_S, 60, 60]


async def test_once_it_worked_the_pauses_begin_anew(autojump_clock: MockClock) -> None:
    healer = Scripted(BROKEN, BROKEN, (), BROKEN, ())
    assert await healer.pauses(5) == [RETRY_S[0], RETRY_S[1], USUAL_S, RETRY_S[0], USUAL_S]


async def test_after_a_change_it_looks_once_more(autojump_clock: MockClock) -> None:
    healer = Scripted((entry("migrated", changed=True),), ())
    assert await healer.pauses(3) == [SETTLE_S, USUAL_S, USUAL_S]


async def test_what_a_crash_left_is_completed_though_the_first_try_failed(autojump_clock: MockClock) -> None:
    healer = Scripted((), recoveries=(False, True))
    assert (await healer.pauses(2))[0] == RETRY_S[0]
    assert healer.recovered == 2
