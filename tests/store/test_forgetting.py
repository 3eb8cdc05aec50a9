"""What every engine promises of forgetting."""

from __future__ import annotations

import pytest

from memd.errors import UsageError
from memd.harness.model import Session
from memd.ledger.store.interface import Filter, Selection
from support_engines import Lines
from support_ledger import S1, S2, entry, loss


def fill(lines: Lines) -> None:
    lines.put(
        entry("zebrafish in the first session"),
        entry("quagga result", kind="tool_result", role="tool", occurred_at="2026-02-05T00:00:00Z"),
        sessions=[Session(id=S1, cwd="/w/one", title="about zebrafish")],
        source=b"s1",
        cursor=b"1",
    )
    lines.put(
        entry("okapi in the second", session=S2),
        sessions=[Session(id=S2, cwd="/w/two")],
        source=b"s2",
        cursor=b"1",
        losses=[loss("image", session=S2)],
    )


def test_a_session_is_gone_everywhere(lines: Lines) -> None:
    fill(lines)
    plan = lines.writer.plan_forget(Selection(session=S1))
    assert (plan.events, plan.session_count, plan.elsewhere) == (2, 1, 0)
    assert lines.texts() != []
    assert lines.forget(Selection(session=S1)) == plan
    assert lines.texts() == []
    assert lines.reader.search("zebrafish", Filter()) == []
    assert [row.id for row in lines.reader.sessions(Filter())] == [S2]
    assert lines.texts(S2) == ["okapi in the second"]
    assert lines.problems() == []


def test_it_never_comes_back(lines: Lines) -> None:
    fill(lines)
    lines.forget(Selection(session=S1))
    fill(lines)
    lines.put(entry("zebrafish in the first session", session="a copy of it"))
    assert lines.texts() == []
    assert lines.texts("a copy of it") == []
    assert lines.reader.cursor(b"s1") == b"1"


def test_everything_before_a_date(lines: Lines) -> None:
    fill(lines)
    lines.forget(Selection(before="2026-02-04"))
    assert lines.texts() == ["quagga result"]
    assert lines.sequences() == [2]
    assert lines.texts(S2) == []
    assert lines.put(entry("old", occurred_at="2025-01-01T00:00:00Z")).forgotten == 1
    assert lines.put(entry("new", occurred_at="2026-02-06T00:00:00Z")).stored == 1
    assert lines.sequences() == [2, 3]
    assert lines.problems() == []


def test_what_matches_a_query(lines: Lines) -> None:
    fill(lines)
    lines.forget(Selection(matching="zebrafish"))
    assert lines.texts() == ["quagga result"]
    [row] = lines.reader.find(S1)
    assert row.title == ""
    lines.put(sessions=[Session(id=S1, title="about zebrafish again")])
    assert lines.problems() == []


def test_what_was_not_imported_yet_stays_out(lines: Lines) -> None:
    fill(lines)
    lines.forget(Selection(session=S1))
    assert lines.put(entry("an old tail", occurred_at="2026-02-06T00:00:00Z")).forgotten == 1
    assert lines.put(entry("said later", occurred_at="2199-01-01T00:00:00Z")).stored == 1
    assert lines.texts() == ["said later"]
    [row] = lines.reader.find(S1)
    assert row.title == "said later"


def test_a_project_is_a_directory_and_all_below(lines: Lines) -> None:
    fill(lines)
    lines.put(entry("deeper", session="deep"), sessions=[Session(id="deep", cwd="/w/one/sub")])
    lines.put(entry("beside", session="near"), sessions=[Session(id="near", cwd="/w/one-more")])
    lines.forget(Selection(project="/w/one/"))
    assert sorted(row.id for row in lines.reader.sessions(Filter())) == sorted([S2, "near"])
    late = lines.put(entry("late", session="x"), sessions=[Session(id="x", cwd="/w/one/sub/x")])
    assert late.forgotten == 1
    assert lines.reader.find("x") == []


def test_conditions_are_joined(lines: Lines) -> None:
    fill(lines)
    assert lines.writer.plan_forget(Selection(session=S1, matching="okapi")).events == 0
    assert lines.writer.plan_forget(Selection(session=S1, before="2026-02-04")).events == 1
    assert lines.writer.plan_forget(Selection(project="/w", matching="in the")).events == 2
    assert lines.writer.plan_forget(Selection(session=S1, harness="codex")).events == 0


def test_a_copy_goes_too_and_is_told_before(lines: Lines) -> None:
    fill(lines)
    lines.put(entry("zebrafish in the first session", session=S2), entry("own", session=S2))
    plan = lines.writer.plan_forget(Selection(session=S1))
    assert (plan.elsewhere, [name for _harness, name in plan.sessions]) == (1, [S1, S2])
    lines.forget(Selection(session=S1))
    assert lines.texts(S2) == ["okapi in the second", "own"]
    assert lines.problems() == []


def test_a_selection_of_nothing_is_refused(lines: Lines) -> None:
    for selection in (
        Selection(),
        Selection(harness="claude"),
        Selection(matching="(("),
        Selection(before="x"),
    ):
        with pytest.raises(UsageError):
            lines.writer.plan_forget(selection)
