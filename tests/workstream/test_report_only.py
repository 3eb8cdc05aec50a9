"""Which session a run was on, where no hook ever says it: the only one that it can have been."""

from __future__ import annotations

from memd.ledger.store.interface import SessionRow
from memd.workstream import report

START = 1_770_000_000.0


def row(name: str, started: str) -> SessionRow:
    return SessionRow(
        harness="crush",
        id=name,
        cwd="/w",
        title="",
        started=started,
        last_activity="",
        events=1,
        side_events=0,
        losses=0,
    )


OLD, NEW = "2026-02-01T00:00:00Z", "2026-02-02T02:40:01Z"


def test_one_that_was_begun_in_the_run_is_it_whatever_else_went_on() -> None:
    rows = [row("old", OLD), row("new", NEW)]
    assert report.only(rows, ["old", "new"], START) == ["new"]


def test_one_that_went_on_is_it_when_none_was_begun() -> None:
    assert report.only([row("old", OLD)], ["old"], START) == ["old"]


def test_one_that_the_workstream_had_before_was_not_begun_in_the_run() -> None:
    rows = [row("a", NEW), row("b", NEW)]
    assert report.only(rows, ["a", "b"], START, ["a"]) == ["b"]
    assert report.only(rows, ["a"], START, ["a"]) == ["a"]


def test_of_several_nobody_can_tell() -> None:
    assert report.only([row("a", NEW), row("b", NEW)], ["a", "b"], START) == []
    assert report.only([row("a", OLD), row("b", OLD)], ["a", "b"], START) == []
    assert report.only([], [], START) == []
