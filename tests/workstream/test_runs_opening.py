"""A run up to the moment its child exists."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memd.errors import NotFound, Refused, UsageError
from memd.ledger.store.workstreams import Process, RunGone
from memd.workstream import opening
from memd.workstream.lease import Busy
from memd.workstream.selection import NameTaken
from support_ledger import S1, S2, entry
from support_runs import Runs
from support_workstreams import AGENT, LAUNCHER, PLACE, Lines


def test_the_first_launch_makes_default_and_the_next_uses_it(runs: Runs) -> None:
    first = runs.launch()
    runs.close(first.id)
    again = runs.prepare("codex")
    assert (again.workstream.name, again.is_new) == ("default", False)
    assert again.run.workstream == first.workstream


def test_a_second_prepare_is_refused_while_the_first_is_active(runs: Runs) -> None:
    runs.launch()
    with pytest.raises(Busy, match=r"^workstream is already active: claude has 'default'"):
        runs.prepare("codex")


def test_it_succeeds_as_soon_as_the_other_is_gone(runs: Runs) -> None:
    first = runs.launch()
    runs.lines.work(lambda work: opening.cancel(work, first.id))
    assert runs.prepare("codex").run.state == "active"


def test_a_holder_that_is_known_to_be_gone_is_superseded_at_once(runs: Runs) -> None:
    first = runs.start(runs.prepare().run.id, AGENT)
    made = runs.prepare("codex", see=lambda process: "gone")
    assert made.superseded is not None
    assert made.superseded.id == first.id
    assert runs.run(first.id).state == "expired"


def test_a_living_agent_keeps_the_workstream_whatever_the_clock_says(runs: Runs) -> None:
    runs.start(runs.prepare().run.id, AGENT)
    runs.lines.clock.go(4000)
    with pytest.raises(Busy, match="it is still alive"):
        runs.prepare("codex", see=lambda process: "alive" if process == AGENT else "gone")


def test_runs_of_other_workstreams_are_left_alone_by_a_prepare(runs: Runs) -> None:
    first = runs.launch()
    runs.lines.clock.go(200)
    runs.prepare(new="other")
    assert runs.lines.work(lambda work: opening.beat(work, first.id)).state == "active"


def test_two_workstreams_of_one_checkout_run_at_once_and_keep_their_sessions_apart(runs: Runs) -> None:
    runs.launch(session=S1)
    other = runs.prepare(new="other")
    assert other.current is None
    assert other.run.workstream != "w1"
    assert len(runs.lines.reader.workstreams.active_runs()) == 2


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_the_current_session_of_the_harness_is_named_with_what_it_was_told(runs: Runs, harness: str) -> None:
    runs.launch(session=S1)
    runs.lines.put(entry("a"))
    runs.close("run-1")
    made = runs.prepare(harness)
    if harness == "claude":
        assert made.current is not None
        assert (made.current.session, made.run.sync_after, made.run.sync_through) == (S1, 1, 1)
    else:
        assert (made.current, made.run.sync_after, made.run.sync_through) == (None, 0, 1)


def test_a_child_that_never_starts_changes_no_selection_and_leaves_nothing(runs: Runs) -> None:
    runs.close(runs.launch().id)
    runs.close(runs.launch(new="other").id)
    runs.plan(runs.prepare(workstream="default").run.id, expected=S1)
    runs.lines.work(lambda work: opening.cancel(work, f"run-{runs.count}"))
    assert runs.names() == ["other", "default"]
    assert runs.linked(S1) is None
    assert runs.prepare().workstream.name == "other"


def test_a_workstream_made_for_a_child_that_never_started_goes_with_its_run(runs: Runs) -> None:
    made = runs.prepare(new="typo")
    runs.plan(made.run.id, expected=S1)
    runs.lines.work(lambda work: opening.cancel(work, made.run.id))
    assert runs.names() == []
    runs.lines.work(lambda work: opening.cancel(work, made.run.id))
    assert runs.prepare(new="typo").is_new


def test_a_started_child_selects_its_workstream(runs: Runs) -> None:
    runs.close(runs.launch().id)
    runs.close(runs.launch(new="other").id)
    runs.lines.clock.wall_ms -= 86_400_000  # somebody set the clock back
    runs.close(runs.launch(workstream="default").id)
    assert runs.names() == ["default", "other"]


def test_cancel_twice_is_fine_and_frees_at_once(runs: Runs) -> None:
    first = runs.launch()
    for _ in range(2):
        runs.lines.work(lambda work: opening.cancel(work, first.id))
    assert runs.run(first.id).state == "cancelled"
    runs.lines.work(lambda work: opening.cancel(work, "never heard of"))
    assert runs.prepare().workstream.name == "default"


def test_a_finished_run_is_not_cancelled(runs: Runs) -> None:
    runs.close(runs.launch().id)
    runs.lines.work(lambda work: opening.cancel(work, "run-1"))
    assert runs.run("run-1").state == "finished"


def test_wishes_that_cannot_be_are_refused_before_anything_is_changed(runs: Runs) -> None:
    runs.close(runs.launch().id)
    for refusal, wish in (
        (NotFound, {"workstream": "none"}),
        (NameTaken, {"new": "default"}),
        (UsageError, {"new": "a", "workstream": "b"}),
        (UsageError, {"new": "a/b"}),
    ):
        with pytest.raises(refusal):
            runs.prepare(**wish)
    assert runs.names() == ["default"]
    assert runs.lines.reader.workstreams.active_runs() == []


def test_other_checkouts_and_scopes_have_their_own_workstreams(runs: Runs) -> None:
    runs.close(runs.launch().id)
    for place in (replace(PLACE, worktree="x"), replace(PLACE, project="x"), replace(PLACE, workspace="x")):
        assert runs.prepare(place=place).is_new
        with pytest.raises(NotFound):
            runs.prepare(place=replace(place, repository="y"), workstream="default")


def test_only_what_was_said_or_linked_stands_against_adoption(runs: Runs, lines: Lines) -> None:
    made = runs.prepare()
    assert made.may_adopt
    runs.start(made.run.id)
    lines.say(made.run.id, entry("HEAD", kind="checkpoint", role="", session="unresolved:run-1"))
    runs.close(made.run.id)
    assert runs.prepare().may_adopt
    lines.work(lambda work: opening.cancel(work, "run-2"))
    runs.launch(session=S1)
    runs.lines.put(entry("a"))
    runs.close("run-3")
    assert not runs.prepare("codex").may_adopt


def test_unasked_an_established_workstream_goes_on_with_its_own_harness(runs: Runs) -> None:
    more = {"is_automatic": True, "available": ("codex", "claude"), "pool": ("codex", "claude", "pi")}
    assert runs.prepare("codex", **more).run.harness == "codex"
    runs.start("run-1")
    runs.close("run-1")
    runs.launch(session=S1)
    runs.lines.put(entry("a"))
    runs.close("run-2")
    made = runs.prepare("codex", **more)
    assert made.run.harness == "claude"
    assert made.current is not None
    runs.lines.work(lambda work: opening.cancel(work, "run-3"))
    assert runs.prepare("codex", new="fresh", **more).run.harness == "codex"
    with pytest.raises(UsageError):
        runs.prepare("grok", is_automatic=True, available=("grok",), pool=("codex",))


def test_the_plan_may_change_until_the_child_is_there(runs: Runs) -> None:
    made = runs.prepare()
    assert runs.plan(made.run.id, expected=S1).expected == S1
    assert runs.plan(made.run.id, expected=S2).expected == S2
    assert runs.linked(S2) is None
    started = runs.start(made.run.id, AGENT)
    assert (started.session, started.agent, started.phase) == (S2, AGENT, "running")
    assert runs.current() == S2
    with pytest.raises(Refused):
        runs.plan(made.run.id, expected=S1)


def test_started_said_twice_counts_for_the_process_alone(runs: Runs) -> None:
    runs.launch(session=S1)
    assert runs.start("run-1", AGENT).agent == AGENT
    assert runs.start("run-1").agent == AGENT


def test_a_session_that_is_chosen_has_its_own_cursor(runs: Runs, lines: Lines) -> None:
    runs.launch(session=S1)
    lines.put(entry("a"))
    runs.close("run-1")
    runs.launch(session=S2)
    lines.put(entry("b", session=S2), entry("c", session=S2))
    runs.told(runs.run("run-2"))
    runs.close("run-2")
    made = runs.prepare()
    assert made.run.sync_after == 3
    assert runs.plan(made.run.id, expected=S1).sync_after == 1
    assert runs.plan(made.run.id).sync_after == 0


def test_a_utility_links_nothing(runs: Runs) -> None:
    made = runs.prepare()
    runs.plan(made.run.id, expected=S1, is_passing=True)
    runs.start(made.run.id)
    assert runs.link(made.run.id, S1) is None
    runs.close(made.run.id)
    assert runs.lines.reader.workstreams.linked("w1") == []


def test_a_run_is_taken_up_again_by_its_own_launcher_alone(runs: Runs) -> None:
    runs.launch()
    runs.lines.clock.go(4000)
    assert runs.lines.work(lambda work: opening.take_up(work, "run-1", LAUNCHER)).state == "active"
    with pytest.raises(Refused):
        runs.lines.work(lambda work: opening.take_up(work, "run-1", Process(1, "x")))
    runs.close("run-1")
    with pytest.raises(RunGone):
        runs.lines.work(lambda work: opening.take_up(work, "run-1", LAUNCHER))
