"""What a starting session is told, once; and the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd.harness.registry import adapters
from memd.ledger.store.workstreams import RunGone
from memd.workstream import closing, delivery, handoff, opening
from memd.workstream.handoff import Note, Receiver
from memd.workstream.room import Room, room_of
from support_cases import expectation
from support_ledger import S1, S2, entry
from support_runs import Runs
from support_workstreams import CWD, LAUNCHER, PLACE, Clock, Lines


def note(lines: Lines, id: str = "h1", **more: object) -> str:
    fields: dict[str, object] = {
        "workspace": PLACE.workspace,
        "project": PLACE.project,
        "cwd": CWD,
        "summary": "the port stays 8123",
    }
    made = Note(**{**fields, **more})  # type: ignore[arg-type]
    lines.work(lambda work: handoff.create(work, made, id))
    return id


def state(lines: Lines, id: str = "h1") -> str:
    row = lines.reader.workstreams.handoff(id)
    assert row is not None
    return row.state


@pytest.fixture
def worked(runs: Runs, lines: Lines) -> Runs:
    """Claude has worked on S1 and is done."""
    runs.launch(session=S1)
    lines.put(entry("first request"), entry("first reply", role="assistant"))
    runs.close("run-1")
    return runs


def test_a_session_is_told_what_it_has_not_seen(worked: Runs) -> None:
    run = worked.launch("codex", session="c1")
    told = worked.told(run)
    assert "first request" in told.packet
    assert "first reply" in told.packet
    after = worked.run(run.id)
    assert (after.is_told, after.sync_through) == (True, 2)
    found = worked.lines.reader.workstreams.delivery(run.id)
    assert found is not None
    assert (found.session, found.after, found.through, found.shown, found.omitted) == ("c1", 0, 2, 2, 0)


def test_a_second_start_in_one_run_is_told_nothing(worked: Runs) -> None:
    run = worked.launch("codex", session="c1")
    worked.told(run)
    again = worked.link(run.id, "c1", harness="codex")
    assert again is not None
    assert worked.told(again).text() == ""


def test_nothing_due_still_counts_as_told(worked: Runs) -> None:
    run = worked.launch(session=S1)
    assert worked.told(run).text() == ""
    assert worked.run(run.id).is_told
    assert worked.lines.reader.workstreams.delivery(run.id) is None


def test_what_a_session_was_not_told_is_offered_again_next_time(worked: Runs, lines: Lines) -> None:
    run = worked.launch("codex", session="c1")
    lines.put(entry("said without knowing", session="c1"), harness="codex")
    closed = worked.close(run.id)
    assert closed.was_untold
    again = worked.launch("codex", session="c1")
    told = worked.told(again)
    assert "first request" in told.packet
    assert "said without knowing" not in told.packet  # its own words


def test_own_words_are_left_out_and_the_cursor_goes_over_them(worked: Runs, lines: Lines) -> None:
    linked = worked.linked(S1)
    assert linked is not None
    assert linked.told == 2
    run = worked.launch("codex", session="c1")
    worked.told(run)
    lines.put(entry("codex says", session="c1"), harness="codex")
    worked.close(run.id)
    back = worked.launch(session=S1)
    told = worked.told(back).packet
    assert "codex says" in told
    assert "first request" not in told


def test_what_comes_during_the_run_from_others_is_told_next_time(worked: Runs, lines: Lines) -> None:
    run = worked.launch("codex", session="c1")
    worked.told(run)
    lines.put(entry("codex says", session="c1"), harness="codex")
    lines.put(entry("claude beside it"))  # started directly, in a session of the workstream
    worked.close(run.id)
    again = worked.launch("codex", session="c1")
    told = worked.told(again).packet
    assert "claude beside it" in told
    assert "codex says" not in told


def test_events_that_arrive_after_prepare_are_outside_this_packet(worked: Runs, lines: Lines) -> None:
    run = worked.launch("codex", session="c1")
    lines.put(entry("too late"))
    told = worked.told(run)
    assert "too late" not in told.packet
    lines.put(entry("codex says", session="c1"), harness="codex")
    worked.close(run.id)
    again = worked.launch("codex", session="c1")
    assert "too late" in worked.told(again).packet


def test_handoff_and_packet_are_told_in_this_order_and_consumed_together(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    text = worked.told(run).text()
    assert text.index("the port stays 8123") < text.index("first request")
    assert state(lines) == "accepted"


def test_a_packet_that_cannot_be_claimed_leaves_the_handoff_open(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    offers = [worked.offer(run), worked.offer(run)]
    lines.work(lambda work: opening.cancel(work, run.id))
    for offer in offers:
        assert worked.claim(offer).text() == ""
    assert state(lines) == "open"


@pytest.mark.parametrize("fault", ["told", "moved", "expired", "reboot"])
def test_whatever_made_the_packet_stale_neither_is_told(worked: Runs, lines: Lines, fault: str) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    offer = worked.offer(run)
    if fault == "told":
        assert worked.claim(worked.offer(run, project="elsewhere")).packet
    elif fault == "moved":
        worked.link(run.id, "c2", harness="codex")
    elif fault == "expired":
        lines.clock.go(200)
        worked.prepare()
    else:
        lines.clock.boot = "boot-2"
    assert worked.claim(offer).text() == ""
    assert state(lines) == "open"


def test_two_starts_at_once_are_told_once(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    first, second = worked.offer(run), worked.offer(run)
    assert worked.claim(first).packet
    assert worked.claim(second).text() == ""


def test_a_handoff_that_somebody_else_took_does_not_hold_up_the_packet(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    offer = worked.offer(run)
    lines.work(lambda work: handoff.cancel(work, "h1"))
    claimed = worked.claim(offer)
    assert (claimed.handoff, bool(claimed.packet)) == ("", True)


def test_rendering_may_be_repeated_until_it_is_claimed(worked: Runs) -> None:
    run = worked.launch("crush", session="x")
    first, again = worked.offer(run), worked.offer(run)
    assert first == again
    assert worked.claim(again).packet
    assert worked.offer(worked.run(run.id)).packet is None


def test_a_packet_without_room_stays_due(worked: Runs) -> None:
    run = worked.launch("codex", session="c1")
    assert worked.told(run, room=Room(500, "characters")).text() == ""
    assert not worked.run(run.id).is_told
    assert "first request" in worked.told(run).packet


def test_handoff_and_packet_share_the_room(worked: Runs, lines: Lines) -> None:
    note(lines, summary="long " * 1000)
    lines.put(*(entry(f"{n} " + "word " * 400, at=n) for n in range(2, 60)))
    run = worked.launch("codex", session="c1")
    claimed = worked.told(run)
    assert claimed.handoff
    assert claimed.packet
    assert len(claimed.text()) <= 10_000


def test_an_explicit_other_session_is_told_from_its_own_cursor(worked: Runs, lines: Lines) -> None:
    run = worked.launch("codex", session="c1")
    worked.told(run)
    lines.put(entry("codex says", session="c1"), harness="codex")
    worked.close(run.id)
    for session, expected in (("c1", False), ("c2", True)):
        again = worked.launch("codex", session=session)
        assert ("first request" in worked.told(again).packet) is expected
        worked.lines.work(lambda work, id=again.id: opening.cancel(work, id))  # type: ignore[misc]


# --------------------------------------------------------------------------------- the end of a run


def test_a_session_in_which_nothing_was_said_is_told_again(worked: Runs, lines: Lines) -> None:
    note(lines)
    lines.link("c1", "codex", told=0)
    lines.put(entry("older codex words", session="c1"), harness="codex")
    run = worked.launch("codex", session="c1")
    assert worked.told(run).handoff
    worked.close(run.id)
    assert state(lines) == "open"
    again = worked.launch("codex", session="c1")
    claimed = worked.told(again)
    assert claimed.handoff
    assert "first request" in claimed.packet


def test_a_prompt_or_a_word_makes_the_delivery_final(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    worked.told(run)
    worked.link(run.id, "c1", harness="codex", is_prompt=True)
    worked.close(run.id)
    assert state(lines) == "accepted"


def test_without_a_full_import_nothing_is_taken_back(worked: Runs, lines: Lines) -> None:
    note(lines)
    run = worked.launch("codex", session="c1")
    worked.told(run)
    worked.close(run.id, is_imported=False)
    assert state(lines) == "accepted"
    linked = worked.linked("c1", "codex")
    assert linked is not None
    assert linked.told == 2


def test_a_session_that_was_never_seen_is_not_the_one_to_resume(worked: Runs) -> None:
    run = worked.launch(session="never-written")
    worked.close(run.id)
    assert worked.current() == S1
    assert worked.linked("never-written") is None


def test_a_fresh_session_takes_the_place_of_one_that_is_lost(worked: Runs, lines: Lines) -> None:
    run = worked.launch(session=S2)
    lines.put(entry("said in the new one", session=S2))
    told = worked.told(run)
    assert "first reply" in told.packet  # the old words are not lost
    worked.close(run.id)
    assert worked.current() == S2
    assert lines.view() == ["first request", "first reply", "said in the new one"]


def test_finish_twice_is_fine_and_a_lost_run_cannot_be_finished(worked: Runs) -> None:
    run = worked.launch()
    assert worked.close(run.id).run.state == "finished"
    assert worked.close(run.id).run == worked.run(run.id)
    late = worked.launch()
    worked.lines.clock.go(100)
    worked.launch("codex")
    with pytest.raises(RunGone):
        worked.close(late.id)
    with pytest.raises(RunGone):
        worked.close("never heard of")


def test_leaving_keeps_the_exit_code(worked: Runs) -> None:
    run = worked.launch()
    worked.lines.work(lambda work: closing.leave(work, run.id, 23))
    assert worked.run(run.id).phase == "exited"
    assert worked.close(run.id).run.exit_code == 23


def test_a_session_found_afterwards_is_linked_and_its_words_join(worked: Runs, lines: Lines) -> None:
    run = worked.launch("opencode")
    lines.put(entry("found", session="o1"), harness="opencode")
    lines.work(lambda work: closing.find(work, run.id, "o1"))
    closed = worked.close(run.id)
    assert (closed.events, lines.view()[-1], worked.current("opencode")) == (1, "found", "o1")


def test_a_stranger_that_a_nested_agent_had_linked_is_set_aside(worked: Runs) -> None:
    run = worked.launch("opencode")
    worked.link(run.id, "stranger", harness="opencode", is_own=None)
    lines = worked.lines
    assert lines.work(lambda work: closing.set_aside(work, run.id)).session == ""
    assert worked.linked("stranger", "opencode") is None


def test_a_session_started_without_memd_gets_handoffs_only(worked: Runs, lines: Lines) -> None:
    note(lines)
    claimed = worked.told(None, session="direct")
    assert "the port stays 8123" in claimed.handoff
    assert claimed.packet == ""
    row = lines.reader.workstreams.handoff("h1")
    assert row is not None
    assert (row.taken_harness, row.taken_session) == ("claude", "direct")
    receiver = Receiver(harness="claude", cwd=CWD, session="direct")
    lines.work(lambda work: handoff.give_back(work, "default", "proj", receiver))
    assert state(lines) == "open"


# ------------------------------------------------------------------------------------ the hard case


def long_history(lines: Lines) -> None:
    said = []
    for number in range(200):
        said.append(entry(f"request {number:03} " + "words " * 40, at=2 * number))
        reply = f"reply {number:03} " + ("東京の話 " * 60 if number % 2 else "text " * 80)
        if number == 198:
            reply += "long " * 6000
        said.append(entry(reply, at=2 * number + 1, role="assistant"))
    said.append(entry("NEWEST-REQUEST keep the port", at=900))
    said.append(entry("NEWEST-REPLY the port is kept", at=901, role="assistant"))
    lines.put(*said)


LIMITS = {"claude": (10_000, "characters"), "codex": (9_000, "bytes"), "command-code": (4_000, "characters")}
"""What a start hook may print at most; all others 30,000 characters."""


def test_a_long_ledger_gives_a_packet_that_is_seen(runs: Runs, lines: Lines) -> None:
    expected = expectation("41-packet-that-fits-inline")
    runs.launch(session=S1)
    long_history(lines)
    runs.close("run-1")
    assert len(lines.view()) == expected["message_count"]
    for harness, adapter in adapters().items():
        limit, hooks = adapter.start_output_limit, adapter.hooks
        assert (limit.count, limit.unit) == LIMITS.get(harness, (30_000, "characters"))
        room = room_of(limit)
        if hooks is not None:
            room = room_of(limit, hooks.wrapper, is_escaped=hooks.is_escaped)
        run = runs.launch(harness, session=f"new-{harness}")
        text = runs.told(run, room=room).text()
        assert room.size(text) <= room.left
        if hooks is not None:
            where = next(event for event in hooks.events if event.role == "start" or event.may_tell)
            printed = hooks.answer(where.name, text)
            assert Room(0, limit.unit).size(printed) <= limit.count
            assert harness != expected["harness"] or len(printed) <= expected["max_chars"]
        assert text.startswith("<!-- memd:workstream-packet:v1 -->\n")
        for words in expected["must_contain"]:
            assert words in text
        assert ("request 195" in text) == (limit.count > 4_000)
        assert "memctl workstream-search --workstream-id w1" in text
        found = lines.reader.workstreams.delivery(run.id)
        assert found is not None
        assert found.shown + found.omitted == found.through >= 402
        assert found.first == found.through + 1 - found.shown
        assert runs.told(runs.run(run.id), room=room).text() == ""
        lines.put(entry(f"go on, {harness}", session=f"new-{harness}"), harness=harness)
        runs.close(run.id)
        again = runs.launch(harness, session=f"new-{harness}")
        assert "NEWEST-REQUEST" not in runs.told(again, room=room).text()
        runs.close(again.id)


# ------------------------------------------------------------------------------- kills in between


@pytest.mark.parametrize("died", ["gathered", "composed", "claimed", "started"])
def test_a_daemon_that_dies_in_between_tells_once_or_again(tmp_path: Path, died: str) -> None:
    clock = Clock()
    with Lines(tmp_path / "kill", clock) as lines:
        runs = Runs(lines)
        runs.launch("codex", session="c0")
        lines.put(entry("first request", session="c0"), harness="codex")
        runs.close("run-1")
        note(lines)
        made = runs.prepare()
        runs.plan(made.run.id, expected=S1)
        linked = runs.link(made.run.id, S1)
        offer = runs.offer(linked)
        if died == "claimed":
            assert runs.claim(offer).packet
        elif died == "started":
            runs.start(made.run.id)
    with Lines(tmp_path / "kill", clock) as lines:
        again = Runs(lines)
        run = lines.work(lambda work: opening.take_up(work, made.run.id, LAUNCHER))
        told = again.told(run)
        is_first = died != "claimed"
        assert ("first request" in told.packet) is is_first
        assert bool(told.handoff) is is_first
        assert again.run(run.id).is_told


def test_an_offer_says_what_room_is_left_for_the_rest(worked: Runs) -> None:
    run = worked.launch("codex", session="c1")
    room = Room(10_000, "characters")
    offer = worked.offer(run, room=room)
    assert offer.packet is not None
    assert offer.left.left == room.left - len(offer.packet.text) - 1
    assert not delivery.may_have_packet(offer.start) or offer.wants_packet
