"""Which native session a run is on."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.ledger.sanitiser import Sanitiser
from memd.workstream import linking, opening
from memd.workstream.linking import UnknownSession
from support_ledger import S1, S2, entry
from support_runs import Runs
from support_workstreams import Lines

SANITISER = Sanitiser()


def test_a_hook_links_the_session_it_names(runs: Runs, lines: Lines) -> None:
    runs.launch()
    linked = runs.link("run-1", S1)
    assert linked is not None
    assert (linked.session, linked.made_link) == (S1, True)
    assert runs.current() == S1
    lines.put(entry("a"))
    assert lines.view() == ["a"]


def test_the_first_sign_of_a_child_starts_the_run(runs: Runs) -> None:
    made = runs.prepare(new="other")
    runs.plan(made.run.id, expected=S1)
    linked = runs.link(made.run.id, S1)
    assert linked is not None
    assert linked.phase == "running"
    assert runs.prepare(new="third").workstream.name == "third"
    assert runs.names()[0] == "other"


def test_another_harness_or_a_run_that_is_over_links_nothing(runs: Runs) -> None:
    runs.launch()
    assert runs.link("run-1", S1, harness="codex") is None
    assert runs.link("never heard of", S1) is None
    runs.close("run-1")
    assert runs.link("run-1", S1) is None
    assert runs.lines.reader.workstreams.linked("w1") == []


def test_after_a_reboot_a_run_links_nothing(runs: Runs) -> None:
    runs.launch()
    runs.lines.clock.boot = "boot-2"
    assert runs.link("run-1", S1) is None


def test_a_process_that_is_not_the_child_links_nothing(runs: Runs) -> None:
    runs.launch(session=S1)
    assert runs.link("run-1", S2, is_own=False) is None
    assert runs.run("run-1").session == S1


def test_until_something_is_delivered_the_link_may_be_corrected(runs: Runs) -> None:
    runs.launch(session=S1)
    linked = runs.link("run-1", S2, is_own=None)
    assert linked is not None
    assert (linked.session, runs.current()) == (S2, S2)
    assert runs.linked(S1) is None  # a link that the run had made, to something nobody has seen


def test_a_corrected_link_leaves_a_session_that_was_there_before(runs: Runs, lines: Lines) -> None:
    runs.launch(session=S1)
    lines.put(entry("a"))
    runs.close("run-1")
    runs.launch(session=S1)
    runs.link("run-2", S2)
    old = runs.linked(S1)
    assert old is not None
    assert (old.is_current, old.told, runs.current()) == (False, 1, S2)


def test_a_link_to_a_second_session_after_delivery_is_refused(runs: Runs, lines: Lines) -> None:
    prepare_delta(runs, lines)
    run = runs.launch(session=S2)
    runs.told(run)
    runs.link(run.id, S2, is_prompt=True)
    assert runs.link(run.id, "nested") is None
    assert runs.link(run.id, "nested", is_prompt=True) is None
    assert runs.run(run.id).session == S2
    assert runs.linked("nested") is None


def test_a_link_that_cannot_be_traced_does_not_move_after_delivery(runs: Runs, lines: Lines) -> None:
    prepare_delta(runs, lines)
    run = runs.launch(session=S2)
    runs.told(run)
    assert runs.link(run.id, "nested", is_own=None) is None


def test_a_fork_that_shows_its_name_with_the_first_prompt_takes_link_and_claim_along(
    runs: Runs, lines: Lines
) -> None:
    prepare_delta(runs, lines)
    runs.launch(session=S2)
    lines.put(entry("older words", session=S2))
    runs.told(runs.run("run-2"))
    runs.close("run-2")
    lines.link("codex-1", "codex")
    lines.put(entry("meanwhile", session="codex-1"), harness="codex")
    run = runs.launch(session=S2)
    assert "meanwhile" in runs.told(run).packet
    moved = runs.link(run.id, "fork", is_prompt=True)
    assert moved is not None
    assert (moved.session, moved.is_told, moved.is_confirmed) == ("fork", True, True)
    delivery = lines.reader.workstreams.delivery(run.id)
    assert delivery is not None
    assert delivery.session == "fork"
    old, new = runs.linked(S2), runs.linked("fork")
    assert old is not None
    assert new is not None
    assert (old.is_current, new.is_current) == (False, True)
    assert new.told == run.sync_through
    assert old.told == run.sync_after < run.sync_through  # it will be told when somebody resumes it


def test_a_fork_of_a_session_that_was_none_of_ours_leaves_no_link_to_it(runs: Runs, lines: Lines) -> None:
    prepare_delta(runs, lines)
    run = runs.launch(session=S2)
    runs.told(run)
    runs.link(run.id, "fork", is_prompt=True)
    assert runs.linked(S2) is None
    assert runs.current() == "fork"


def prepare_delta(runs: Runs, lines: Lines) -> None:
    """Something that a new session has not seen."""
    runs.launch("codex", session="codex-0")
    lines.put(entry("first words", session="codex-0"), harness="codex")
    runs.close("run-1")


def test_a_conversation_begun_anew_in_the_same_program_belongs_to_the_workstream(
    runs: Runs, lines: Lines
) -> None:
    prepare_delta(runs, lines)
    run = runs.launch(session=S1)
    runs.told(run)
    lines.put(entry("before", session=S1))
    after = lines.work(lambda work: linking.go_on_in(work, run.id, "claude", S2))
    assert after is not None
    assert (after.session, runs.current()) == (S2, S2)
    lines.put(entry("after", session=S2))
    assert lines.view()[-2:] == ["before", "after"]
    assert runs.told(after).packet == ""
    assert lines.work(lambda work: linking.go_on_in(work, run.id, "codex", "x")) is None
    assert lines.work(lambda work: linking.go_on_in(work, "none", "claude", "x")) is None
    runs.close(run.id)
    assert lines.work(lambda work: linking.go_on_in(work, run.id, "claude", "x")) is None


BAD = [
    "",
    "x" * 513,
    "é" * 257,
    "a\0b",
    "a\nb",
    "a\u202eb",
    "a\u2066b",
    "a\u200bb",
    "a\ufeffb",
    "a\ud800b",
    "a\u2028b",
]


@pytest.mark.parametrize("session", BAD)
def test_ids_that_cannot_be_kept_are_refused_and_not_repeated(session: str) -> None:
    with pytest.raises(UnknownSession, match="native session identity is UNKNOWN") as refused:
        linking.check_id(session, lambda text: text)
    assert not session or session not in str(refused.value)


def test_an_id_that_looks_like_a_secret_is_refused() -> None:
    with pytest.raises(UnknownSession, match="UNKNOWN"):
        linking.check_id("ghp_x", lambda text: "[REDACTED]")


@pytest.mark.parametrize("session", [S1, "ses_東京", "x" * 512, "é" * 256, "a/b c"])
def test_other_ids_are_kept_as_they_are(session: str) -> None:
    assert linking.check_id(session, lambda text: text) == session


def test_linking_renews_the_lease(runs: Runs) -> None:
    runs.launch()
    runs.lines.clock.go(89)
    runs.link("run-1", S1)
    runs.lines.clock.go(89)
    assert runs.run("run-1").expires_ms > runs.lines.clock.ms
    assert runs.lines.work(lambda work: opening.beat(work, "run-1")).session == S1


@settings(max_examples=200)
@given(uuid=st.uuids())
def test_a_plain_id_needs_no_sanitiser_and_none_would_take_it_for_a_secret(uuid: UUID) -> None:
    assert linking.is_plain(str(uuid))
    assert SANITISER.scrub(str(uuid)) == str(uuid)


@pytest.mark.parametrize(
    "session", ["", "ses_4f1c", "A" + S1[1:], S1 + "\n", f"{S1} {S1}", "ghp_" + "a" * 36]
)
def test_any_other_id_is_not_plain(session: str) -> None:
    assert not linking.is_plain(session)
