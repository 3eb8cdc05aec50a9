"""How the hooks of Kimi Code, Command Code and Grok Build are answered: told once, at the place that reaches
the model, and a conversation that is begun after another stays with the workstream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk
from memd.harness.packets import PACKET_MARKER
from memd.service.lineage import Lineage
from support_hook_service import Desk
from support_ledger import entry
from support_workstreams import Lines


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


async def worked(desk: Desk) -> None:
    """Codex has worked in the workstream and is done."""
    run = await desk.launch("codex", session="c1")
    desk.lines.put(entry("first request", session="c1"), entry("first reply", session="c1"), harness="codex")
    await desk.runs.exited(run.id, 0)


async def test_kimi_is_told_at_its_first_prompt_and_not_at_its_start(desk: Desk) -> None:
    await worked(desk)
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch("kimi")
    about = {"session_id": "k1", "run": run}
    assert await desk.fire("SessionStart", "kimi", source="startup", **about) == ""
    first = await desk.fire("UserPromptSubmit", "kimi", prompt=[], **about)
    assert first.startswith(PACKET_MARKER)
    assert "first reply" in first
    assert "MEMORY BLOCK" in first
    for event in ("UserPromptSubmit", "Stop", "SessionEnd"):
        assert await desk.fire(event, "kimi", **about) == ""
    assert (desk.found(run).session, desk.found(run).is_told) == ("k1", True)


async def test_kimi_without_a_run_gets_handoff_and_memory_with_the_first_prompt_only(desk: Desk) -> None:
    await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    assert await desk.fire("SessionStart", "kimi", session_id="k1", source="startup") == ""
    first = await desk.fire("UserPromptSubmit", "kimi", session_id="k1")
    assert "the port stays 8123" in first
    assert "MEMORY BLOCK" in first
    assert await desk.fire("UserPromptSubmit", "kimi", session_id="k1") == ""


async def test_command_code_is_told_at_its_start_within_its_limit(desk: Desk) -> None:
    await worked(desk)
    desk.topics.text = "x" * 10_000
    run = await desk.launch("command-code")
    printed = json.loads(
        await desk.fire("SessionStart", "command-code", run=run, session_id="m1", source="startup")
    )
    text = printed["hookSpecificOutput"]["additionalContext"]
    assert text.startswith(PACKET_MARKER)
    assert 3_000 < len(text) <= 4_000
    assert await desk.fire("Stop", "command-code", run=run, session_id="m1") == "{}"
    assert desk.found(run).is_confirmed


async def test_command_code_without_a_screen_is_linked_after_its_turn_and_stays_to_be_told(
    desk: Desk,
) -> None:
    await worked(desk)
    run = await desk.launch("command-code")
    assert await desk.fire("Stop", "command-code", run=run, session_id="m1") == "{}"
    assert (desk.found(run).session, desk.found(run).is_told) == ("m1", False)


async def test_grok_that_goes_on_is_told_once_after_its_first_turn(desk: Desk) -> None:
    await worked(desk)
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch("grok", session="g1")
    about = {"sessionId": "g1", "run": run}
    assert await desk.fire("SessionStart", "grok", source="load", **about) == "{}"
    over = {"reason": "end_turn", "stopHookActive": False, **about}
    assert await desk.fire("Stop", "grok", **{**over, "reason": "error"}) == "{}"
    told = json.loads(await desk.fire("Stop", "grok", **over))["hookSpecificOutput"]
    assert told["hookEventName"] == "Stop"
    assert told["additionalContext"].startswith(PACKET_MARKER)
    assert "first reply" in told["additionalContext"]
    assert "MEMORY BLOCK" not in told["additionalContext"]  # no round of its own for that
    assert await desk.fire("Stop", "grok", **{**over, "stopHookActive": True}) == "{}"
    assert await desk.fire("Stop", "grok", **over) == "{}"


async def test_grok_with_nothing_to_be_told_has_no_round_more(desk: Desk) -> None:
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch("grok", session="g1")
    over = {"sessionId": "g1", "reason": "end_turn", "stopHookActive": False}
    assert await desk.fire("Stop", "grok", run=run, **over) == "{}"
    assert await desk.fire("Stop", "grok", **over) == "{}"  # without a run


@pytest.mark.parametrize(
    ("harness", "name", "begin", "asked"),
    [
        ("kimi", "session_id", {"source": "startup"}, "UserPromptSubmit"),
        ("grok", "sessionId", {"source": "new"}, "Stop"),
        ("command-code", "session_id", {"source": "resume"}, "Stop"),
        ("command-code", "session_id", {"source": "clear"}, "Stop"),
    ],
)
async def test_conversation_that_is_begun_after_another_joins_the_workstream(
    desk: Desk, harness: str, name: str, begin: dict[str, str], asked: str
) -> None:
    run = await desk.launch(harness)
    desk.hooks._lineage = Lineage(str, lambda pid: 0)
    for id in ("first", "second"):
        start = begin if id == "second" else {"source": "startup"}
        await desk.fire("SessionStart", harness, run=run, **{name: id}, **start)
        await desk.fire(asked, harness, run=run, **{name: id})
    assert desk.found(run).session == "second"
    linked = desk.lines.reader.workstreams.linked(run.workstream)
    assert {one.session for one in linked} == {"first", "second"}
