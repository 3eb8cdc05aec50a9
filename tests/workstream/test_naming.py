"""Lists of workstreams, and other names for them and their projects."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memd.errors import NotFound, UsageError
from memd.ledger.store.workstreams import Place
from memd.workstream import naming, opening
from memd.workstream.selection import NameTaken
from support_ledger import S1, entry
from support_runs import Runs
from support_workstreams import PLACE, Lines, handoff

OLD = ("default", "proj")


@pytest.fixture
def three(runs: Runs, lines: Lines) -> Lines:
    """default, a and b, b last."""
    for name in ("", "a", "b"):
        lines.clock.go(10)
        run = runs.launch(session=f"s-{name}", **({"new": name} if name else {}))
        lines.put(entry(f"said in {name}", session=f"s-{name}"))
        runs.close(run.id)
    return lines


def names(lines: Lines, place: Place = PLACE, limit: int = 100) -> list[str]:
    return [row.name for row in naming.listing(lines.reader.workstreams, place, limit)]


def test_the_current_one_comes_first_then_the_last_used(three: Lines, runs: Runs) -> None:
    assert names(three) == ["b", "a", "default"]
    three.clock.go(10)
    runs.close(runs.launch(workstream="default", harness="codex").id)
    found = naming.listing(three.reader.workstreams, PLACE)
    assert [(row.name, row.current) for row in found] == [("default", True), ("b", False), ("a", False)]
    assert found[0].linked_harnesses == ("claude",)
    assert found[0].last_active_ms == three.clock.wall_ms


def test_the_list_is_of_this_scope_and_checkout_and_bounded(three: Lines) -> None:
    assert names(three, replace(PLACE, worktree="x")) == []
    assert names(three, replace(PLACE, project="x")) == []
    assert names(three, limit=2) == ["b", "a"]
    assert names(three, limit=0) == ["b"]


def test_there_and_back_leaves_everything_as_it_was(three: Lines) -> None:
    before = naming.listing(three.reader.workstreams, PLACE)
    three.work(lambda work: naming.rename_workstream(work, PLACE, "z", name="a"))
    assert names(three) == ["b", "z", "default"]
    three.work(lambda work: naming.rename_workstream(work, PLACE, "a", name="z"))
    three.work(lambda work: naming.rename_workstream(work, PLACE, "a", name="a"))
    assert naming.listing(three.reader.workstreams, PLACE) == before


def test_names_that_are_taken_wrong_or_of_another_checkout_are_refused(three: Lines) -> None:
    id = naming.listing(three.reader.workstreams, PLACE)[0].workstream_id
    for refusal, more in (
        (NameTaken, {"to": "a", "name": "b"}),
        (UsageError, {"to": "a/b", "name": "b"}),
        (NotFound, {"to": "x", "name": "none"}),
        (NotFound, {"to": "x", "workstream_id": id, "place": replace(PLACE, worktree="other")}),
        (UsageError, {"to": "x"}),
        (UsageError, {"to": "x", "name": "b", "workstream_id": id}),
    ):
        fields = {"place": PLACE, **more}
        with pytest.raises(refusal):
            three.work(lambda work, fields=fields: naming.rename_workstream(work, **fields))  # type: ignore[misc]
    assert names(three) == ["b", "a", "default"]


def test_a_project_takes_its_workstreams_and_handoffs_to_the_new_name(three: Lines, runs: Runs) -> None:
    three.work(lambda work: work.put_handoff(handoff()))
    elsewhere = replace(PLACE, worktree="elsewhere")
    runs.close(runs.launch(place=elsewhere).id)
    moved = three.work(lambda work: naming.rename_project(work, OLD, ("default", "app")))
    assert (moved.workstreams, moved.handoffs) == (4, 1)
    assert names(three) == []
    assert names(three, replace(PLACE, project="app")) == ["b", "a", "default"]
    assert names(three, replace(elsewhere, project="app")) == ["default"]
    assert [row.id for row in three.reader.workstreams.handoffs("default", "app")] == ["h1"]
    assert runs.prepare(place=replace(PLACE, project="app")).workstream.name == "b"


def test_a_project_that_is_not_there_or_whose_name_is_taken(three: Lines, runs: Runs) -> None:
    with pytest.raises(NotFound):
        three.work(lambda work: naming.rename_project(work, ("default", "none"), ("default", "app")))
    made = runs.prepare(place=replace(PLACE, project="app"))
    with pytest.raises(NameTaken):
        three.work(lambda work: naming.rename_project(work, OLD, ("default", "app")))
    three.work(lambda work: opening.cancel(work, made.run.id))
    assert three.work(lambda work: naming.rename_project(work, OLD, OLD)).workstreams == 3
    assert S1 not in names(three)


def test_a_project_moves_to_another_workspace_with_all_its_handoffs(three: Lines) -> None:
    notes = [handoff(f"h{number}", state="cancelled") for number in range(1100)]
    three.work(lambda work: [work.put_handoff(note) for note in notes])
    moved = three.work(lambda work: naming.rename_project(work, OLD, ("acme", "proj")))
    assert (moved.workstreams, moved.handoffs) == (3, 1100)
    assert three.reader.workstreams.handoffs("default", "proj") == []
    assert names(three, replace(PLACE, workspace="acme")) == ["b", "a", "default"]


def test_a_project_whose_new_name_has_only_a_handoff_keeps_its_own(three: Lines) -> None:
    three.work(lambda work: work.put_handoff(handoff(project="app")))
    with pytest.raises(NameTaken):
        three.work(lambda work: naming.rename_project(work, OLD, ("default", "app")))
    assert names(three) == ["b", "a", "default"]
