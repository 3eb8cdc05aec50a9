"""One piece of work at a time, urgent ones first, and long work that learns that somebody waits."""

from __future__ import annotations

import threading
from functools import partial

import trio
import trio.testing

from memd.service.lane import BULK, LIVE, URGENT, Lane


async def test_urgent_work_overtakes_what_waits_longer() -> None:
    lane, done, gate = Lane(), list[str](), threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lane.run, gate.wait, BULK)
        await trio.testing.wait_all_tasks_blocked()
        for name, priority in (("bulk", BULK), ("live", LIVE), ("urgent", URGENT)):
            nursery.start_soon(lane.run, partial(done.append, name), priority)
            await trio.testing.wait_all_tasks_blocked()
        gate.set()
    assert done == ["urgent", "live", "bulk"]


async def test_long_work_learns_that_something_more_urgent_waits() -> None:
    lane, gate, learnt = Lane(), threading.Event(), list[bool]()

    def long(priority: int) -> None:
        gate.wait()
        learnt.append(lane.is_wanted(priority))

    for running, waiting in ((BULK, URGENT), (BULK, LIVE), (LIVE, BULK), (BULK, BULK)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lane.run, partial(long, running), running)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(lane.run, lambda: None, waiting)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        gate.clear()
    assert learnt == [True, True, False, False]
    assert not lane.is_wanted(BULK)


async def test_work_that_was_called_off_while_it_waited_never_runs() -> None:
    lane, done, gate = Lane(), list[str](), threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lane.run, gate.wait, BULK)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01):
            await lane.run(partial(done.append, "called off"))
        assert not lane.is_wanted(BULK)
        nursery.start_soon(lane.run, partial(done.append, "next"))
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
    assert done == ["next"]
