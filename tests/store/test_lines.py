"""What every engine promises of workstreams, links, runs and handoffs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from memd.ledger.store.interface import Filter, Selection
from memd.ledger.store.workstreams import Delivery, Handoff, Work
from support_engines import Engines, Lines
from support_ledger import S1, S2, entry
from support_workstreams import AGENT, PLACE, WALL_MS, handoff, linked, run, workstream


@pytest.fixture
def lines(engines: Engines) -> Iterator[Lines]:
    with engines.open() as made:
        made.workstream()
        yield made


def test_a_workstream_is_kept_as_it_was_given(lines: Lines) -> None:
    row = workstream("w2", name="größer", cwd=b"/w/\xff", selected_ms=3)
    lines.work(lambda work: work.put_workstream(row))
    assert lines.reader.workstreams.workstream("w2") == row
    assert lines.reader.workstreams.workstream("none") is None


def test_two_workstreams_of_one_place_cannot_have_one_name(lines: Lines, engines: Engines) -> None:
    with pytest.raises(engines.refusals):
        lines.workstream("w2", name="w1")
    lines.workstream("w2", name="w1", place=replace(PLACE, worktree="other"))


def test_a_run_is_kept_as_it_was_given(lines: Lines) -> None:
    row = run(
        flavor="v3",
        phase="running",
        cwd=b"/w/\xff",
        agent=AGENT,
        expected=S1,
        session=S2,
        made_link=True,
        is_confirmed=True,
        is_passing=True,
        sync_after=3,
        sync_through=9,
        is_told=True,
        exit_code=-9,
    )
    lines.work(lambda work: work.put_run(row))
    assert lines.reader.workstreams.run(row.id) == row
    assert lines.reader.workstreams.active("w1") == row
    assert lines.reader.workstreams.active_runs() == [row]
    done = replace(row, state="finished", ended_ms=WALL_MS)
    lines.work(lambda work: work.put_run(done))
    assert lines.reader.workstreams.run(row.id) == done
    assert lines.reader.workstreams.active("w1") is None


def test_a_second_active_run_cannot_be_stored(lines: Lines, engines: Engines) -> None:
    lines.work(lambda work: work.put_run(run()))
    with pytest.raises(engines.refusals):
        lines.work(lambda work: work.put_run(run("run-2")))
    lines.work(lambda work: work.put_run(run("run-3", state="expired")))
    assert [one.id for one in lines.reader.workstreams.active_runs()] == ["run-1"]


def delivery() -> Delivery:
    return Delivery(
        run="run-1",
        harness="claude",
        session=S1,
        after=0,
        through=4,
        shown=3,
        omitted=1,
        first=2,
        at_ms=WALL_MS,
    )


def test_a_handoff_is_kept_as_it_was_given(lines: Lines) -> None:
    row = handoff(
        cwd=b"/w/\xff",
        questions=("which port?", "why?"),
        steps=("go on",),
        files=("a.py",),
        workstream="w1",
        harness="codex",
        from_harness="claude",
        from_session=S1,
        from_run="run-1",
        is_automatic=True,
    )
    lines.work(lambda work: work.put_handoff(row))
    assert lines.reader.workstreams.handoff("h1") == row
    taken = replace(
        row, state="accepted", ended_ms=5, taken_harness="codex", taken_session="x", taken_run="r"
    )
    lines.work(lambda work: work.put_handoff(taken))
    assert lines.reader.workstreams.handoff("h1") == taken


def test_a_scope_has_one_open_handoff(lines: Lines, engines: Engines) -> None:
    lines.work(lambda work: work.put_handoff(handoff()))
    with pytest.raises(engines.refusals):
        lines.work(lambda work: work.put_handoff(handoff("h2")))
    lines.work(lambda work: work.put_handoff(handoff("h3", project="other")))
    lines.work(lambda work: work.put_handoff(handoff("h4", state="cancelled")))
    found = lines.reader.workstreams.handoffs("default", "proj")
    assert [row.id for row in found] == ["h1", "h4"]


def test_an_open_handoff_of_any_scope_is_known(lines: Lines) -> None:
    assert not lines.reader.workstreams.has_open_handoff()
    lines.work(lambda work: work.put_handoff(handoff(state="expired")))
    assert not lines.reader.workstreams.has_open_handoff()
    lines.work(lambda work: work.put_handoff(handoff("h2", project="other")))
    assert lines.reader.workstreams.has_open_handoff()


def test_workstreams_come_last_selected_first(lines: Lines) -> None:
    lines.workstream("w2", selected_ms=5)
    lines.workstream("w3", selected_ms=5)
    lines.workstream("w4", selected_ms=9)
    lines.workstream("w5", place=replace(PLACE, worktree="other"))
    found = lines.reader.workstreams.workstreams(PLACE)
    assert [row.id for row in found] == ["w4", "w3", "w2", "w1"]


def test_changing_a_workstream_leaves_its_numbers_alone(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a"), entry("b"))
    lines.workstream(name="renamed", last_sequence=0)
    row = lines.reader.workstreams.workstream("w1")
    assert row is not None
    assert (row.name, row.last_sequence) == ("renamed", 2)


def test_one_session_of_a_harness_is_the_current_one(lines: Lines) -> None:
    lines.link(S1)
    lines.link("codex-1", "codex")
    lines.link(S2, linked_ms=WALL_MS + 1)
    found = lines.reader.workstreams.linked("w1")
    assert [(one.session, one.is_current) for one in found] == [(S2, True), (S1, False), ("codex-1", True)]
    assert lines.reader.workstreams.workstreams_of("claude", S1) == ["w1"]


def test_a_link_or_what_was_said_establishes_a_workstream(lines: Lines) -> None:
    lines.workstream("w2")
    lines.workstream("w3")
    lines.link(S1, workstream="w2")
    lines.put(entry("a"))
    lines.work(lambda work: work.put_linked("w3", linked(S1)))
    lines.work(lambda work: work.drop_linked("w3", "claude", S1))
    found = [lines.reader.workstreams.is_established(name) for name in ("w1", "w2", "w3")]
    assert found == [False, True, True]


def test_a_transaction_that_fails_leaves_nothing(lines: Lines) -> None:
    def breaks(work: Work) -> None:
        work.put_linked("w1", linked(S1))
        work.put_run(run())
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        lines.work(breaks)
    assert lines.reader.workstreams.linked("w1") == []
    assert lines.reader.workstreams.active_runs() == []
    lines.put(entry("a"))
    assert lines.view() == []


def test_a_dropped_workstream_takes_its_rows_and_leaves_the_events(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a"))
    lines.work(lambda work: work.put_run(run()))
    lines.work(lambda work: work.put_delivery(delivery()))
    lines.work(lambda work: work.drop_workstream("w1"))
    assert lines.reader.workstreams.run("run-1") is None
    assert lines.texts() == ["a"]
    assert lines.problems() == []
    lines.put(entry("b"))
    assert lines.texts() == ["a", "b"]


def test_a_run_has_one_delivery(lines: Lines) -> None:
    lines.work(lambda work: work.put_run(run()))
    lines.work(lambda work: work.put_delivery(delivery()))
    moved = replace(delivery(), session=S2)
    lines.work(lambda work: work.put_delivery(moved))
    assert lines.reader.workstreams.delivery("run-1") == moved
    lines.work(lambda work: work.drop_delivery("run-1"))
    assert lines.reader.workstreams.delivery("run-1") is None


@pytest.mark.parametrize(
    "selection",
    [
        Selection(session=S2),
        Selection(project="/home/dev/pro"),
        Selection(before="2020-01-01"),
        Selection(matching="port harbour"),
        Selection(session=S1, harness="codex"),
    ],
    ids=lambda selection: repr(selection)[:60],
)
def test_forgetting_leaves_other_handoffs(lines: Lines, selection: Selection) -> None:
    row = handoff(from_harness="claude", from_session=S1)
    lines.work(lambda work: work.put_handoff(row))
    assert lines.forget(selection).handoffs == 0
    assert isinstance(lines.reader.workstreams.handoff("h1"), Handoff)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(session=S1),
        Selection(project="/home/dev"),
        Selection(before="2030-01-01"),
        Selection(matching="Pört"),
        Selection(matching="zebra"),
        Selection(harness="claude", matching="port zebra"),
    ],
    ids=lambda selection: repr(selection)[:60],
)
def test_forgetting_takes_the_handoffs_of_the_same(lines: Lines, selection: Selection) -> None:
    row = handoff(from_harness="claude", from_session=S1, summary="the port stays", files=("zebra.py",))
    lines.work(lambda work: work.put_handoff(row))
    assert lines.writer.plan_forget(selection).handoffs == 1
    assert lines.forget(selection).handoffs == 1
    assert lines.reader.workstreams.handoff("h1") is None


def test_what_memd_says_of_a_run_without_a_session_is_no_session_in_any_list_or_count(lines: Lines) -> None:
    lines.put(entry("said", session=S1), entry("noted", session="unresolved:run-1"))
    assert [row.id for row in lines.reader.sessions(Filter())] == [S1]
    assert lines.reader.stats().sessions == lines.reader.history("").session_count == 1
    assert [row.id for row in lines.reader.find("unresolved:run-1")] == ["unresolved:run-1"]
