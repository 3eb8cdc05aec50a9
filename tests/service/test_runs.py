"""The life of a run on the daemon's side: prepared, watched, closed, whatever dies in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from memd import disk
from memd.ledger.store.interface import Filter
from memd.ledger.store.workstreams import Process, Run, RunGone
from memd.processes import start_of
from memd.service.runs import WATCH_S, Runs
from memd.workstream import report
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.delivery import Start
from memd.workstream.lease import LEASE_S, Busy
from memd.workstream.linking import UnknownSession
from memd.workstream.opening import Ask
from memd.workstream.room import Room
from memd.workstream.selection import Wanted
from support_fake_ledger import FakeRecords, Processes
from support_ledger import S1, S2, entry
from support_workstreams import AGENT, CWD, LAUNCHER, PLACE, Lines

HEAD = "a" * 40
OTHER = Process(99, "9")


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
def alive() -> Processes:
    return Processes()


@pytest.fixture
def runs(records: FakeRecords, alive: Processes) -> Runs:
    return daemon(records, alive)


def daemon(records: FakeRecords, alive: Processes) -> Runs:
    return Runs(
        records,
        checkpoint=taken,
        wall_ms=lambda: records.lines.clock.wall_ms,
        see=alive,
    )


async def taken(run: Run) -> Checkpoint:
    await trio.lowlevel.checkpoint()
    assert run.cwd == CWD
    return Checkpoint(head=HEAD, branch="main", changed_paths=("a.py",))


def ask(harness: str = "claude", **more: Any) -> Ask:
    fields: dict[str, Any] = {"place": PLACE, "cwd": CWD, "harness": harness, "launcher": LAUNCHER}
    return Ask(**{**fields, **more})


async def launch(runs: Runs, harness: str = "claude", session: str = "", **more: Any) -> Run:
    made = await runs.prepare(ask(harness, **more))
    await runs.plan(made.run.id, expected=session)
    return await runs.started(made.run.id, AGENT)


@asynccontextmanager
async def watching(runs: Runs) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runs.keep)
        yield
        nursery.cancel_scope.cancel()


def found(lines: Lines, run: Run) -> Run:
    row = lines.reader.workstreams.run(run.id)
    assert row is not None
    return row


async def test_a_run_from_prepare_to_finish(runs: Runs, records: FakeRecords, lines: Lines) -> None:
    records.on_import = lambda: lines.put(entry("said in the end"))
    run = await launch(runs, session=S1)
    closed = await runs.exited(run.id, 23)
    assert (closed.run.state, closed.run.exit_code, closed.name, closed.events) == (
        "finished",
        23,
        "default",
        2,
    )
    assert lines.view(run.workstream) == [
        "said in the end",
        f"HEAD {HEAD}\nBranch main\nChanged paths:\n- a.py",
    ]
    [checkpoint] = [one for one in lines.reader.workstreams.tail(run.workstream) if one.kind == "checkpoint"]
    assert (checkpoint.session, checkpoint.metadata) == (S1, {"exit_code": 23})
    assert checkpoint.event_id == f"managed-run:{run.id}:checkpoint"


async def test_finish_twice_imports_nothing_and_says_nothing_twice(runs: Runs, lines: Lines) -> None:
    run = await launch(runs, session=S1)
    lines.put(entry("a"))
    first = await runs.exited(run.id, 0)
    lines.put(entry("late, of the session all the same"))
    again = await runs.exited(run.id, 5)
    assert again.run == first.run
    assert lines.sequences_of(run.workstream) == [1, 2, 3]


async def test_two_who_close_a_run_at_once_close_it_once(runs: Runs, lines: Lines) -> None:
    run = await launch(runs, session=S1)
    lines.put(entry("a"))
    closed = []

    async def close() -> None:
        closed.append(await runs.exited(run.id, 0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(close)
        nursery.start_soon(close)
    assert closed[0].run == closed[1].run
    assert len(lines.view(run.workstream)) == 2


async def test_a_utility_saves_the_checkpoint_alone(runs: Runs, records: FakeRecords, lines: Lines) -> None:
    lines.put(entry("an unrelated session of the checkout"))
    made = await runs.prepare(ask())
    imports = records.import_count
    await runs.plan(made.run.id, expected=S1, is_passing=True)
    await runs.started(made.run.id, AGENT)
    closed = await runs.exited(made.run.id, 0)
    assert (closed.events, closed.was_untold) == (1, False)
    assert records.import_count == imports
    assert [one.session for one in lines.reader.workstreams.tail(made.workstream.id)] == [
        f"unresolved:{made.run.id}"
    ]
    assert lines.reader.workstreams.linked(made.workstream.id) == []
    listed = [row.id for row in lines.reader.sessions(Filter())]
    assert listed == [S1]  # where memd's own words stand is no session to be listed or resumed


async def test_a_child_that_could_not_be_started_is_a_loss_and_selects_nothing(
    runs: Runs, lines: Lines
) -> None:
    await runs.exited((await launch(runs, session=S1)).id, 0)
    made = await runs.prepare(ask(wanted=Wanted(new="other")))
    await runs.plan(made.run.id, expected=S2)
    closed = await runs.exited(made.run.id, None, [report.NOT_STARTED])
    assert (closed.run.state, closed.run.exit_code, closed.was_untold) == ("finished", None, False)
    kinds = {one.kind: one.content for one in lines.reader.workstreams.tail(made.workstream.id)}
    assert kinds["annotation"] == f"- {report.NOT_STARTED}"
    assert (await runs.prepare(ask())).workstream.name == "default"


async def test_a_session_that_nobody_named_is_found_by_checkout_and_time(runs: Runs, lines: Lines) -> None:
    lines.clock.wall_ms = 1_770_113_000_000  # 2026-02-03T10:03:20Z
    lines.put(entry("old", session="old", occurred_at="2026-02-03T09:00:00Z"), harness="opencode")
    run = await launch(runs, "opencode")
    now = "2026-02-03T10:04:00Z"
    lines.put(entry("mine", session="mine", occurred_at=now), harness="opencode")
    elsewhere = entry("elsewhere", session="elsewhere", occurred_at="2026-02-03T10:05:00Z")
    lines.put(elsewhere, harness="opencode", sessions=[session("elsewhere", "/somewhere/else")])
    lines.workstream("w9", name="w9")
    lines.put(entry("theirs", session="theirs", occurred_at="2026-02-03T10:05:00Z"), harness="opencode")
    lines.link("theirs", "opencode", workstream="w9")
    closed = await runs.exited(run.id, 0)
    assert closed.run.session == "mine"
    assert [one.session for one in lines.reader.workstreams.linked(run.workstream)] == ["mine"]


def session(id: str, cwd: str) -> Any:
    from memd.harness.model import Session

    return Session(id=id, cwd=cwd)


async def test_a_session_that_is_not_found_is_a_loss(runs: Runs, lines: Lines) -> None:
    run = await launch(runs, "opencode")
    closed = await runs.exited(run.id, 0)
    assert closed.run.session == ""
    assert any(report.SESSION_UNKNOWN in text for text in lines.view(run.workstream))


async def test_a_linked_session_of_another_checkout_is_set_aside(runs: Runs, lines: Lines) -> None:
    run = await launch(runs, "opencode")
    lines.put(entry("nested"), harness="opencode", sessions=[session(S1, "/somewhere/else")])
    assert await runs.link(run.id, "opencode", S1) is not None
    closed = await runs.exited(run.id, 0)
    assert closed.run.session == ""
    assert lines.reader.workstreams.linked(run.workstream) == []


@pytest.mark.parametrize("fault", ["trouble", "hangs"])
async def test_an_import_that_fails_is_a_loss_and_the_exit_code_stays(
    fault: str, runs: Runs, records: FakeRecords, lines: Lines, autojump_clock: trio.testing.MockClock
) -> None:
    run = await launch(runs, session=S1)
    setattr(records, fault, True if fault == "hangs" else "the disk is full")
    closed = await runs.exited(run.id, 7)
    assert (closed.run.state, closed.run.exit_code) == ("finished", 7)
    assert any(report.IMPORT_UNFINISHED in text for text in lines.view(run.workstream))


async def test_prepare_waits_a_bounded_time_for_what_is_there_already(
    runs: Runs, records: FakeRecords, autojump_clock: trio.testing.MockClock
) -> None:
    records.hangs = True
    began = trio.current_time()
    await runs.prepare(ask())
    assert trio.current_time() - began == pytest.approx(2.0)


async def test_what_stores_hold_already_comes_in_before_a_run_is_prepared(
    runs: Runs, records: FakeRecords, lines: Lines
) -> None:
    run = await launch(runs, session=S1)
    lines.put(entry("said in the run"))
    await runs.exited(run.id, 0)
    records.on_import = lambda: lines.put(entry("said without memd"))
    made = await runs.prepare(ask("codex"))
    assert lines.view(made.workstream.id)[-1] == "said without memd"
    assert made.run.sync_through == made.workstream.last_sequence == 3


async def test_secrets_in_what_memd_says_are_scrubbed(records: FakeRecords, alive: Processes) -> None:
    secret = "ghp_" + "a1B2" * 9

    async def leaky(run: Run) -> Checkpoint:
        await trio.lowlevel.checkpoint()
        return Checkpoint(branch=secret, changed_paths=(f"notes/{secret}",))

    runs = Runs(records, checkpoint=leaky, wall_ms=lambda: 0, see=alive)
    run = await launch(runs, session=S1)
    await runs.exited(run.id, 0, [f"failed with {secret}"])
    said = "\n".join(records.lines.view(run.workstream))
    assert secret not in said
    assert "REDACTED" in said


# --------------------------------------------------------------------------------------- watching


async def test_a_lease_is_renewed_as_long_as_one_of_them_lives(
    runs: Runs, lines: Lines, alive: Processes, autojump_clock: trio.testing.MockClock
) -> None:
    async with watching(runs):
        run = await launch(runs, session=S1)
        alive.gone.add(LAUNCHER)
        for _ in range(40):
            await trio.sleep(10)
            lines.clock.go(10)
            assert found(lines, run).expires_ms > lines.clock.ms
        assert found(lines, run).state == "active"


async def test_when_launcher_and_agent_are_gone_the_daemon_imports_the_tail_and_closes_the_run(
    runs: Runs,
    records: FakeRecords,
    lines: Lines,
    alive: Processes,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with watching(runs):
        run = await launch(runs, session=S1)
        records.on_import = lambda: lines.put(entry("the tail"))
        alive.gone.update((LAUNCHER, AGENT))
        await trio.sleep(WATCH_S * 2)
        assert found(lines, run).state == "finished"
        view = lines.view(run.workstream)
        assert view[0] == "the tail"
        assert any(report.ABANDONED in text for text in view)


async def test_a_workstream_whose_holder_is_gone_is_free_at_once(
    runs: Runs, records: FakeRecords, lines: Lines, alive: Processes
) -> None:
    run = await launch(runs, session=S1)
    records.on_import = lambda: lines.put(entry("the tail"))
    alive.gone.update((LAUNCHER, AGENT))
    made = await runs.prepare(ask("codex", launcher=OTHER))
    assert made.superseded is None
    assert found(lines, run).state == "finished"
    assert "the tail" in lines.view(run.workstream)
    assert made.run.sync_through == made.workstream.last_sequence


async def test_a_living_holder_is_named_to_whoever_comes(runs: Runs) -> None:
    await launch(runs, session=S1)
    with pytest.raises(Busy, match="pid 4242, agent pid 4243"):
        await runs.prepare(ask("codex", launcher=OTHER))


async def test_a_launcher_that_dies_before_the_plan_leaves_nothing(
    runs: Runs, lines: Lines, alive: Processes, autojump_clock: trio.testing.MockClock
) -> None:
    async with watching(runs):
        await runs.prepare(ask(wanted=Wanted(new="typo")))
        alive.gone.add(LAUNCHER)
        await trio.sleep(WATCH_S * 2)
        assert lines.reader.workstreams.workstreams(PLACE) == []


async def test_a_launcher_that_dies_between_plan_and_start_keeps_one_lease(
    runs: Runs, lines: Lines, alive: Processes, autojump_clock: trio.testing.MockClock
) -> None:
    async with watching(runs):
        made = await runs.prepare(ask(wanted=Wanted(new="typo")))
        await runs.plan(made.run.id, expected=S1)
        alive.gone.add(LAUNCHER)
        await trio.sleep(WATCH_S * 2)
        lines.clock.go(LEASE_S - 1)
        await trio.sleep(WATCH_S * 2)
        assert found(lines, made.run).state == "active"
        lines.clock.go(2)
        await trio.sleep(WATCH_S * 2)
        assert lines.reader.workstreams.workstreams(PLACE) == []


async def test_a_daemon_that_starts_anew_goes_on_with_the_runs_it_finds(
    runs: Runs,
    records: FakeRecords,
    lines: Lines,
    alive: Processes,
    autojump_clock: trio.testing.MockClock,
) -> None:
    run = await launch(runs, session=S1)
    lines.clock.go(80)
    again = daemon(records, alive)
    async with watching(again):
        await trio.sleep(WATCH_S)
        assert found(lines, run).expires_ms == lines.clock.ms + LEASE_S * 1000
        assert (await again.take_up(run.id, LAUNCHER)).phase == "running"
        closed = await again.exited(run.id, 0)
        assert closed.run.state == "finished"


async def test_a_run_that_was_taken_over_is_gone_for_its_launcher(
    runs: Runs, lines: Lines, alive: Processes
) -> None:
    run = await launch(runs, session=S1)
    alive.unknown.update((LAUNCHER, AGENT))
    lines.clock.go(LEASE_S + 1)
    made = await runs.prepare(ask("codex", launcher=OTHER))
    assert made.superseded is not None
    for step in (
        lambda: runs.exited(run.id, 0),
        lambda: runs.beat(run.id),
        lambda: runs.started(run.id, AGENT),
        lambda: runs.take_up(run.id, LAUNCHER),
    ):
        with pytest.raises(RunGone):
            await step()
    assert lines.view(run.workstream) == []
    await runs.cancel(run.id)
    assert found(lines, run).state == "expired"


async def test_after_a_reboot_every_run_is_void(
    runs: Runs, records: FakeRecords, lines: Lines, alive: Processes
) -> None:
    run = await launch(runs, session=S1)
    alive.gone.update((LAUNCHER, AGENT))
    lines.clock.boot = "boot-2"
    again = daemon(records, alive)
    made = await again.prepare(ask(launcher=OTHER))
    assert made.workstream.id == run.workstream
    assert found(lines, run).state == "expired"


# ------------------------------------------------------------------------------------------ hooks


async def test_a_hook_of_the_child_links_and_is_told_once(runs: Runs, lines: Lines) -> None:
    first = await launch(runs, "codex", session="c1")
    lines.put(entry("codex words", session="c1"), harness="codex")
    await runs.exited(first.id, 0)
    run = await launch(runs)
    linked = await runs.link(run.id, "claude", S1)
    start = Start(harness="claude", cwd=CWD, workspace="default", project="proj", session=S1, run=linked)
    offer = await runs.offer(start, Room(10_000, "characters"))
    assert await runs.offer(start, Room(10_000, "characters")) == offer
    claimed = await runs.claim(offer)
    assert "codex words" in claimed.packet
    assert (await runs.claim(offer)).text() == ""


async def test_a_process_below_the_agent_speaks_for_the_run(runs: Runs) -> None:
    import os

    made = await runs.prepare(ask())
    me = Process(os.getpid(), start_of(os.getpid()))
    await runs.started(made.run.id, me)
    assert await runs.link(made.run.id, "claude", S1, pid=os.getpid(), is_prompt=True) is not None
    assert await runs.link(made.run.id, "claude", S2, pid=1) is None
    assert await runs.go_on_in(made.run.id, "claude", S2, pid=1) is None
    moved = await runs.go_on_in(made.run.id, "claude", S2, pid=os.getpid())
    assert moved is not None
    assert moved.session == S2


async def test_ids_that_cannot_be_kept_change_nothing(runs: Runs, lines: Lines) -> None:
    run = await launch(runs)
    for bad in ("a\u202eb", "ghp_" + "a1B2" * 9, "x" * 513):
        with pytest.raises(UnknownSession) as refused:
            await runs.link(run.id, "claude", bad)
        assert bad not in str(refused.value)
        with pytest.raises(UnknownSession):
            await runs.plan(run.id, expected=bad)
    assert lines.reader.workstreams.linked(run.workstream) == []
    assert lines.reader.sessions(Filter()) == []


async def test_a_closed_run_is_watched_no_more(
    runs: Runs, lines: Lines, alive: Processes, autojump_clock: trio.testing.MockClock
) -> None:
    async with watching(runs):
        run = await launch(runs, session=S1)
        await runs.exited(run.id, 0)
        alive.gone.update((LAUNCHER, AGENT))
        await trio.sleep(WATCH_S * 5)
        assert [text for text in lines.view(run.workstream) if report.ABANDONED in text] == []


async def test_what_is_not_imported_is_still_resumed(runs: Runs, records: FakeRecords, lines: Lines) -> None:
    records.is_importing = False
    run = await launch(runs, session=S1)
    await runs.exited(run.id, 0)
    made = await runs.prepare(ask())
    assert made.current is not None
    assert made.current.session == S1
    assert not any(report.SESSION_UNKNOWN in text for text in lines.view(run.workstream))


async def test_an_answer_that_comes_after_the_end_of_a_run_brings_it_not_back(
    records: FakeRecords, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await runs.prepare(ask())
    real, is_held, go_on = records.work, [True], trio.Event()

    async def work(do: Any) -> Any:
        done = await real(do)
        if is_held.pop() if is_held else False:
            await go_on.wait()
        return done

    monkeypatch.setattr(records, "work", work)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runs.beat, made.run.id)
        await wait_all_tasks_blocked()
        await runs.cancel(made.run.id)
        go_on.set()
    assert runs.active() == []
