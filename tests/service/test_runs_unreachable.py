"""Runs while the ledger's server is away: refused before a child, undisturbed with one, closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
import trio
import trio.testing

from memd import disk
from memd.ledger.store.interface import Appended, Batch, Unreachable
from memd.ledger.store.workstreams import Process
from memd.service.runs import UNREACHABLE_S, WATCH_S, Runs, see
from memd.workstream import report
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.lease import BEAT_S
from memd.workstream.opening import Ask
from support_fake_ledger import FakeRecords, Processes
from support_ledger import S1, entry
from support_workstreams import AGENT, CWD, LAUNCHER, PLACE, Lines

T = TypeVar("T")


class Away(FakeRecords):
    """`is_away`: nothing can be asked of the ledger."""

    is_away = False
    count = 0

    def _go(self) -> None:
        self.count += 1
        if self.is_away:
            raise Unreachable("the ledger's server cannot be reached")

    async def work(self, do: Callable[..., T]) -> T:
        self._go()
        return await super().work(do)

    async def ask(self, question: Callable[..., T]) -> T:
        self._go()
        return await super().ask(question)

    async def append(self, batch: Batch) -> Appended:
        self._go()
        return await super().append(batch)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger") as made:
        yield made


@pytest.fixture
def records(lines: Lines) -> Away:
    return Away(lines)


@pytest.fixture
def alive() -> Processes:
    return Processes()


@pytest.fixture
def runs(records: Away, alive: Processes) -> Runs:
    async def taken(_run: Any) -> Checkpoint:
        await trio.lowlevel.checkpoint()
        return Checkpoint(head="a" * 40)

    return Runs(records, checkpoint=taken, wall_ms=lambda: records.lines.clock.wall_ms, see=alive)


async def launch(runs: Runs) -> str:
    made = await runs.prepare(Ask(place=PLACE, cwd=CWD, harness="claude", launcher=LAUNCHER))
    await runs.plan(made.run.id, expected=S1)
    await runs.started(made.run.id, AGENT)
    return made.run.id


async def test_a_launch_is_refused_before_a_child_can_be(runs: Runs, records: Away) -> None:
    records.is_away = True
    with pytest.raises(Unreachable) as caught:
        await launch(runs)
    assert caught.value.exit_status == 69
    assert runs.active() == []


async def test_what_the_launcher_said_at_the_end_counts_when_the_server_is_back(
    runs: Runs,
    records: Away,
    lines: Lines,
    alive: Processes,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runs.keep)
        run = await launch(runs)
        lines.put(entry("said in the dark"))
        records.is_away = True
        with pytest.raises(Unreachable):
            await runs.exited(run, 7, ["one thing was lost"])
        alive.gone.update((LAUNCHER, AGENT))
        await trio.sleep(600)
        records.is_away = False
        await trio.sleep(UNREACHABLE_S + WATCH_S * 2)
        nursery.cancel_scope.cancel()
    found = lines.reader.workstreams.run(run)
    assert found is not None
    assert (found.state, found.exit_code) == ("finished", 7)
    view = lines.view(found.workstream)
    assert "said in the dark" in view
    assert any("one thing was lost" in text for text in view)
    assert not any(report.ABANDONED in text for text in view)


async def test_a_server_that_is_away_for_long_is_asked_now_and_then_and_told_of_once(
    runs: Runs, records: Away, autojump_clock: trio.testing.MockClock
) -> None:
    with structlog.testing.capture_logs() as said:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runs.keep)
            run = await launch(runs)
            records.is_away = True
            before = records.count
            await trio.sleep(BEAT_S + 3600)
            assert records.count - before <= 3600 / UNREACHABLE_S + 2
            records.is_away = False
            await trio.sleep(UNREACHABLE_S + WATCH_S * 2)
            nursery.cancel_scope.cancel()
    assert [one.id for one in runs.active()] == [run]
    assert len([line for line in said if line["event"] == "run.unattended"]) == 1


def test_nothing_is_known_of_processes_of_another_machine() -> None:
    assert see(Process(1, "", "laptop")) == "unknown"
    assert see(Process(2_000_000_000, "1")) == "gone"
