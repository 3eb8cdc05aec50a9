"""Steps of a run said again, refusals that cost nothing, and the last words of a harness that was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from memd import disk
from memd.harness.model import Session
from memd.ledger.store.workstreams import Process, Run
from memd.service.runs import DISCOVERY_SLACK_S, Runs
from memd.workstream import report
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.lease import Busy
from memd.workstream.opening import Ask
from memd.workstream.selection import NameTaken, Wanted
from support_fake_ledger import FakeRecords, Processes
from support_ledger import S1, entry
from support_workstreams import AGENT, CWD, LAUNCHER, PLACE, Lines

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
def runs(records: FakeRecords) -> Runs:
    return Runs(records, checkpoint=nothing, wall_ms=lambda: records.lines.clock.wall_ms, see=Processes())


async def nothing(_run: Run) -> Checkpoint:
    await trio.lowlevel.checkpoint()
    return Checkpoint()


def ask(harness: str = "claude", **more: Any) -> Ask:
    fields: dict[str, Any] = {"place": PLACE, "cwd": CWD, "harness": harness, "launcher": LAUNCHER}
    return Ask(**{**fields, **more})


async def test_a_launcher_that_lost_the_answer_prepares_again(runs: Runs, lines: Lines) -> None:
    first = await runs.prepare(ask(wanted=Wanted(new="other")))
    await runs.plan(first.run.id, expected=S1)
    again = await runs.prepare(ask(wanted=Wanted(new="other")))
    assert again.is_new
    assert [run.id for run in lines.reader.workstreams.active_runs()] == [again.run.id]
    assert [row.name for row in lines.reader.workstreams.workstreams(PLACE)] == ["other"]


async def test_a_launcher_whose_child_runs_is_in_its_own_way(runs: Runs) -> None:
    made = await runs.prepare(ask())
    await runs.started(made.run.id, AGENT)
    with pytest.raises(Busy):
        await runs.prepare(ask())


async def test_what_is_refused_is_refused_before_anything_is_imported(
    runs: Runs, records: FakeRecords
) -> None:
    await runs.started((await runs.prepare(ask())).run.id, AGENT)
    count = records.import_count
    with pytest.raises(Busy):
        await runs.prepare(ask("codex", launcher=OTHER))
    with pytest.raises(NameTaken):
        await runs.prepare(ask("codex", launcher=OTHER, wanted=Wanted(new="default")))
    assert records.import_count == count


async def test_a_session_is_read_to_its_end_where_the_harness_may_leave_it_open(
    runs: Runs, records: FakeRecords, lines: Lines
) -> None:
    made = await runs.prepare(ask("opencode"))
    await runs.plan(made.run.id, expected=S1)
    await runs.started(made.run.id, AGENT)

    def put() -> None:
        lines.put(entry("cut off" if records.ended else "asked"), harness="opencode")

    records.on_import = put
    await runs.exited(made.run.id, 1)
    assert lines.view(made.workstream.id)[:2] == ["asked", "cut off"]
    assert records.ended is not None
    assert (records.ended.harness, records.ended.session) == ("opencode", S1)
    assert records.ended.since_ms == made.run.began_ms - DISCOVERY_SLACK_S * 1000


async def test_an_end_that_cannot_be_read_is_a_loss(
    runs: Runs, records: FakeRecords, lines: Lines, autojump_clock: trio.testing.MockClock
) -> None:
    made = await runs.prepare(ask("opencode"))
    await runs.plan(made.run.id, expected=S1)
    await runs.started(made.run.id, AGENT)
    lines.put(entry("asked"), harness="opencode")

    def hang_next() -> None:
        records.hangs = True

    records.on_import = hang_next
    closed = await runs.exited(made.run.id, 3)
    assert closed.run.exit_code == 3
    assert any(report.IMPORT_UNFINISHED in text for text in lines.view(made.workstream.id))


async def test_whoever_keeps_something_for_a_run_hears_of_its_end(runs: Runs) -> None:
    over: list[str] = []
    runs.on_over = over.append
    first = await runs.prepare(ask())
    await runs.cancel(first.run.id)
    second = await runs.prepare(ask())
    await runs.started(second.run.id, AGENT)
    await runs.exited(second.run.id, 0)
    assert over == [first.run.id, second.run.id]


async def test_a_session_that_was_begun_in_the_run_beats_one_that_goes_on_beside_it(
    runs: Runs, lines: Lines
) -> None:
    lines.clock.wall_ms = 1_770_113_000_000  # 2026-02-03T10:03:20Z
    made = await runs.prepare(ask("codex"))
    await runs.started(made.run.id, AGENT)
    for name, started, active in (
        ("mine", "2026-02-03T10:03:21Z", "2026-02-03T10:03:30Z"),
        ("beside", "2026-02-03T08:00:00Z", "2026-02-03T10:03:40Z"),
    ):
        place = Session(id=name, cwd=CWD.decode(), started=started)
        lines.put(entry(name, session=name, occurred_at=active), harness="codex", sessions=[place])
    closed = await runs.exited(made.run.id, 0)
    assert closed.run.session == "mine"


async def test_a_session_that_a_hook_linked_beats_a_newer_one_of_the_same_checkout(
    runs: Runs, lines: Lines
) -> None:
    lines.clock.wall_ms = 1_770_113_000_000  # 2026-02-03T10:03:20Z
    made = await runs.prepare(ask("codex"))
    await runs.started(made.run.id, AGENT)
    assert await runs.link(made.run.id, "codex", "mine") is not None
    for name, at in (("mine", "2026-02-03T10:03:21Z"), ("beside", "2026-02-03T10:03:50Z")):
        place = Session(id=name, cwd=CWD.decode(), started=at)
        lines.put(entry(name, session=name, occurred_at=at), harness="codex", sessions=[place])
    closed = await runs.exited(made.run.id, 0)
    assert closed.run.session == "mine"
    assert [one.session for one in lines.reader.workstreams.linked(made.workstream.id)] == ["mine"]


async def test_what_a_launcher_withdraws_is_seen_no_more(runs: Runs, lines: Lines) -> None:
    lost = await runs.prepare(ask(wanted=Wanted(new="other")))
    again = await runs.prepare(ask())
    assert lost.run.id != again.run.id
    assert [run.id for run in runs.active()] == [again.run.id]
    assert [run.id for run in lines.reader.workstreams.active_runs()] == [again.run.id]
