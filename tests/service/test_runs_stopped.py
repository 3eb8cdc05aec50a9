"""A launcher that was stopped, on real processes and a clock that is set: its lease, and what follows.

The same in real time, with memd and its programs: `tests/faults/test_stopped_launchers.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from memd import disk
from memd.ledger.store.workstreams import Process, Run, RunGone
from memd.processes import start_of
from memd.service.runs import WATCH_S, Runs
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.lease import Busy
from memd.workstream.opening import Ask
from support_fake_ledger import FakeRecords
from support_ledger import S1, entry
from support_workstreams import CWD, PLACE, Lines

STOPPED_S = (30, 89, 91, 600)


class Stand:
    """A launcher and its agent, stood in for by processes that do nothing."""

    def __init__(self) -> None:
        self.launcher, self.agent = (subprocess.Popen(["sleep", "600"]) for _ in range(2))

    def stop_launcher(self) -> None:
        self.launcher.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.launcher.pid, os.WSTOPPED)

    def end(self) -> None:
        for child in (self.launcher, self.agent):
            child.kill()
            child.wait()


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger") as made:
        yield made


@pytest.fixture
def records(lines: Lines) -> FakeRecords:
    return FakeRecords(lines)


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.end()


async def taken(_run: Run) -> Checkpoint:
    await trio.lowlevel.checkpoint()
    return Checkpoint()


@asynccontextmanager
async def daemon(records: FakeRecords) -> AsyncIterator[Runs]:
    """A daemon that sees processes as the system does; it goes on with what is active when it starts."""
    runs = Runs(records, checkpoint=taken, wall_ms=lambda: records.lines.clock.wall_ms)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runs.keep)
        yield runs
        nursery.cancel_scope.cancel()


def process(child: subprocess.Popen[bytes]) -> Process:
    return Process(child.pid, start_of(child.pid))


def ask(launcher: Process, harness: str = "claude") -> Ask:
    return Ask(place=PLACE, cwd=CWD, harness=harness, launcher=launcher)


async def launch(runs: Runs, stand: Stand) -> Run:
    made = await runs.prepare(ask(process(stand.launcher)))
    await runs.plan(made.run.id, expected=S1)
    return await runs.started(made.run.id, process(stand.agent))


async def pass_by(lines: Lines, seconds: float) -> None:
    """So much time, on the clock of leases and for the daemon that watches."""
    for _ in range(int(seconds) // 10 + 1):
        lines.clock.go(10)
        await trio.sleep(10)


def found(lines: Lines, run: Run) -> Run:
    row = lines.reader.workstreams.run(run.id)
    assert row is not None
    return row


OTHER = Process(99, "9")


@pytest.mark.parametrize("stopped_s", STOPPED_S)
async def test_its_workstream_is_kept_while_the_agent_lives(
    records: FakeRecords, lines: Lines, stand: Stand, stopped_s: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with daemon(records) as runs:
        run = await launch(runs, stand)
        stand.stop_launcher()
        await pass_by(lines, stopped_s)
        with pytest.raises(Busy, match=f"pid {stand.launcher.pid}, agent pid {stand.agent.pid}"):
            await runs.prepare(ask(OTHER, "codex"))
        stand.launcher.send_signal(signal.SIGCONT)
        assert (await runs.take_up(run.id, process(stand.launcher))).state == "active"
        assert (await runs.exited(run.id, 4)).run.exit_code == 4


@pytest.mark.parametrize("stopped_s", STOPPED_S)
async def test_its_workstream_is_kept_when_the_agent_died_meanwhile_since_it_can_still_tell_how_it_ended(
    records: FakeRecords, lines: Lines, stand: Stand, stopped_s: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with daemon(records) as runs:
        run = await launch(runs, stand)
        stand.stop_launcher()
        stand.agent.kill()
        stand.agent.wait()
        await pass_by(lines, stopped_s)
        with pytest.raises(Busy):
            await runs.prepare(ask(OTHER, "codex"))
        stand.launcher.send_signal(signal.SIGCONT)
        assert (await runs.exited(run.id, 1)).run.exit_code == 1
        assert (await runs.prepare(ask(OTHER, "codex"))).superseded is None


@pytest.mark.parametrize("stopped_s", STOPPED_S)
async def test_it_is_free_at_once_when_both_are_killed(
    records: FakeRecords, lines: Lines, stand: Stand, stopped_s: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with daemon(records) as runs:
        run = await launch(runs, stand)
        stand.stop_launcher()
        await pass_by(lines, stopped_s)
        records.on_import = lambda: lines.put(entry("the tail"))
        stand.end()
        await trio.sleep(WATCH_S * 2)
        assert found(lines, run).state == "finished"
        assert lines.view(run.workstream)[0] == "the tail"
        await runs.prepare(ask(OTHER, "codex"))


@pytest.mark.parametrize("stopped_s", STOPPED_S)
async def test_a_daemon_that_was_away_meanwhile_finds_the_holder_alive_however_late_its_lease_is(
    records: FakeRecords, lines: Lines, stand: Stand, stopped_s: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with daemon(records) as runs:
        run = await launch(runs, stand)
    stand.stop_launcher()
    lines.clock.go(stopped_s)
    async with daemon(records) as runs:
        with pytest.raises(Busy):
            await runs.prepare(ask(OTHER, "codex"))
        await trio.sleep(WATCH_S * 2)
        assert found(lines, run).expires_ms > lines.clock.ms
        stand.launcher.send_signal(signal.SIGCONT)
        assert (await runs.take_up(run.id, process(stand.launcher))).state == "active"


async def test_a_launcher_that_comes_back_after_both_were_believed_gone_is_told_so(
    records: FakeRecords, lines: Lines, stand: Stand, autojump_clock: trio.testing.MockClock
) -> None:
    async with daemon(records) as runs:
        run = await launch(runs, stand)
        stand.end()
        await trio.sleep(WATCH_S * 2)
        with pytest.raises(RunGone):
            await runs.take_up(run.id, process(stand.launcher))
