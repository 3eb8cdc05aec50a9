"""What hooks lead to besides an answer: looks at transcripts, handoffs given back, notes taken in, status."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from memctl import hook
from memd import disk
from memd.errors import BadRequest, TryAgain
from memd.service import hook_view
from memd.service.hook_calls import Session
from memd.service.hook_texts import HookTexts
from support_hook_service import Desk, until
from support_ledger import S1, entry
from support_workstreams import WALL_MS, Lines


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
async def test_a_transcript_is_looked_at_as_named_and_where_links_lead(desk: Desk, event: str) -> None:
    (desk.home / ".claude").mkdir()
    (desk.home / "link").symlink_to(desk.home / ".claude")
    named = f"{desk.home}/link/t.jsonl"
    async with desk.keeping():
        assert await desk.fire(event, session_id="s1", transcript_path=named) == ""
    assert desk.records.looked == {
        named.encode(),
        bytes(desk.home / ".claude" / "t.jsonl"),
    }


async def test_a_sub_agents_stop_is_a_hint_all_the_same(desk: Desk) -> None:
    async with desk.keeping():
        await desk.fire("Stop", session_id="s1", agent_id="a1", transcript_path="/t.jsonl")
    assert b"/t.jsonl" in desk.records.looked


async def test_a_session_that_was_never_asked_gives_its_handoff_back(desk: Desk) -> None:
    id = await desk.note()
    async with desk.keeping():
        await desk.start("s1")
        assert desk.handoff_state(id) == "accepted"
        await desk.fire("SessionEnd", session_id="s1", reason="prompt_input_exit")
    assert desk.handoff_state(id) == "open"
    assert "the port stays 8123" in await desk.start("s2")


async def test_a_session_that_was_asked_keeps_it(desk: Desk) -> None:
    id = await desk.note()
    async with desk.keeping():
        await desk.start("s1")
        await desk.fire("UserPromptSubmit", session_id="s1")
        await desk.fire("SessionEnd", session_id="s1")
    assert desk.handoff_state(id) == "accepted"


async def test_what_the_ledger_has_of_a_session_counts_as_asked(desk: Desk) -> None:
    id = await desk.note()
    await desk.start(S1)
    desk.lines.put(entry("said, and the daemon restarted since"))
    desk.hooks = desk.service()
    async with desk.keeping():
        await desk.fire("SessionEnd", session_id=S1)
    assert desk.handoff_state(id) == "accepted"


async def test_a_run_that_was_asked_before_a_clear_keeps_what_it_was_given(desk: Desk) -> None:
    id = await desk.note()
    run = await desk.launch(session=S1)
    async with desk.keeping():
        await desk.start(S1, run=run)
        await desk.fire("UserPromptSubmit", run=run, session_id=S1)
        await desk.fire("SessionEnd", run=run, session_id=S1, reason="clear")
        await desk.start("cleared", run=run, source="clear")
        await desk.fire("SessionEnd", run=run, session_id="cleared")
    assert desk.handoff_state(id) == "accepted"


async def test_a_session_that_was_resumed_and_not_asked_gives_its_handoff_back(desk: Desk) -> None:
    run = await desk.launch(session=S1)
    desk.lines.put(entry("said in an earlier run"))
    await desk.runs.exited(run.id, 0)
    id = await desk.note()
    again = await desk.launch(session=S1)
    async with desk.keeping():
        await desk.start(S1, run=again, source="resume")
        assert desk.handoff_state(id) == "accepted"
        await desk.fire("SessionEnd", run=again, session_id=S1)
    assert desk.handoff_state(id) == "open"
    desk.lines.put(entry("said now, by a hook that never came"))
    async with desk.keeping():
        await desk.start(S1, run=again, source="resume")
        await desk.fire("SessionEnd", run=again, session_id=S1)
    assert desk.handoff_state(id) == "accepted"


async def test_an_agent_inside_a_run_gives_nothing_back(desk: Desk) -> None:
    id = await desk.note()
    run = await desk.launch(session=S1)
    async with desk.keeping():
        await desk.start(S1, run=run)
        await desk.fire("SessionEnd", run=run, session_id="inner")
    assert desk.handoff_state(id) == "accepted"


async def test_a_hook_that_nobody_listens_to_is_refused(desk: Desk) -> None:
    with pytest.raises(BadRequest):
        await desk.fire("PreToolUse", session_id="s1")
    with pytest.raises(BadRequest):
        await desk.hooks.answer(b"")


async def test_notes_lead_to_one_look_at_everything(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(hook, "notes_dir", lambda: bytes(desk.state / "spool"))
    who = (b"claude", b"Stop", b"/w", b"", b"42")
    hook.leave_note(who, b"")
    hook.leave_note((b"nobody", *who[1:]), b"")
    async with desk.keeping():
        await until(lambda: desk.records.looked == {b"everything"})
        desk.records.looked.clear()
        await trio.sleep(60)
        assert desk.records.looked == set()
        hook.leave_note(who, b'{"session_id":"s1","transcript_path":"/kept.jsonl"}')
        await until(lambda: desk.records.looked == {b"everything", b"/kept.jsonl"})
    state = await desk.hooks.state()
    assert state.waiting.count == 0
    assert state.fired["claude"]["Stop"] > 0


async def test_a_text_that_the_ledger_refused_is_kept_and_put_in_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(hook, "notes_dir", lambda: bytes(desk.state / "spool"))
    refusals = [TryAgain("the disk is full")] * 2
    taken: list[bytes] = []

    async def take(_texts: HookTexts, session: Session, _at_ms: int) -> int:
        await trio.lowlevel.checkpoint()
        if refusals:
            raise refusals.pop()
        taken.append(session.call.payload)
        return 1

    monkeypatch.setattr(HookTexts, "take", take)
    hook.leave_note((b"claude", b"Stop", b"/w", b"", b"42"), b'{"session_id":"s1"}')
    async with desk.keeping():
        await trio.sleep(1)
        assert (await desk.hooks.state()).waiting.count == 1
        await until(lambda: bool(taken))
        await trio.sleep(60)
    assert len(taken) == 1
    assert (await desk.hooks.state()).waiting.count == 0


async def test_notes_wait_for_a_ledger_that_opens(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(hook, "notes_dir", lambda: bytes(desk.state / "spool"))
    hook.leave_note((b"claude", b"Stop", b"/w", b"", b"42"), b"")
    desk.records.opening = trio.Event()
    async with desk.keeping():
        await trio.sleep(30)
        assert (await desk.hooks.state()).waiting.count == 1
        desk.records.opening.set()
        await until(lambda: desk.records.looked == {b"everything"})


async def test_status_tells_when_each_hook_fired_and_what_waits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.start("s1")
    desk.lines.clock.go(200)
    await desk.fire("Stop", session_id="s1")
    monkeypatch.setattr(hook, "notes_dir", lambda: bytes(desk.state / "spool"))
    monkeypatch.setattr("time.time_ns", lambda: WALL_MS * 1_000_000)
    hook.leave_note((b"claude", b"Stop", b"/w", b"", b"42"), b"")
    shown = hook_view.rows(await desk.hooks.state(), WALL_MS + 3_600_000 + 200_000)
    ages = {one.event: one.age_s for one in shown.fired}
    assert ages == {"SessionStart": 3800.0, "UserPromptSubmit": None, "Stop": 3600.0, "SessionEnd": None}
    assert (shown.waiting, shown.oldest_s) == (1, 3800.0)
    text = [line for line, _ in hook_view.lines(shown, 200)]
    assert text == [
        "  hooks      claude: SessionStart 1 hour ago, UserPromptSubmit never, Stop 1 hour ago,"
        " SessionEnd never",
        "             1 note of hooks still to be taken in, the oldest for 1 hour",
    ]
    assert all(len(line) <= 60 for line, _ in hook_view.lines(shown, 60))
    nothing = hook_view.HooksState(fired={}, waiting=hook_view.Waiting())
    assert hook_view.lines(hook_view.rows(nothing, 0), 80) == []


async def test_the_memory_of_hooks_is_written_seldom_and_at_the_end(
    desk: Desk, autojump_clock: MockClock
) -> None:
    path = desk.state / "hooks.json"
    async with desk.keeping():
        await desk.fire("Stop", session_id="s1")
        await trio.sleep(30)
        assert not path.exists()
        await until(path.exists)
        await desk.fire("SessionEnd", session_id="s1")
    again = await desk.service().state()
    assert again.fired["claude"]["SessionEnd"] > 0
