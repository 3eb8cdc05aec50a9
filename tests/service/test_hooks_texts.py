"""Texts that only hooks carry: put in once, scrubbed, also by way of a note; starts that come each turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from memctl import hook
from memd import disk
from memd.ledger.store.interface import Filter
from support_hook_service import Desk, until
from support_ledger import entry
from support_workstreams import Lines

ME = "7c0d5c1e-2222-4222-8333-000000000001"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


def call(desk: Desk, words: str = "make", **more: Any) -> dict[str, Any]:
    return {
        "conversationId": ME,
        "workspacePaths": [str(desk.cwd)],
        "stepIdx": 1,
        "toolCall": {"name": "run_command", "args": {"command": words}},
        **more,
    }


def texts(desk: Desk) -> list[str]:
    found = desk.lines.reader.sessions(Filter(harness="antigravity"))
    return [event.content for row in found for event in desk.lines.reader.export(row.harness, row.id)]


async def test_a_call_goes_in_once_before_it_is_answered(desk: Desk) -> None:
    for event in ("PreToolUse", "PostToolUse", "PreToolUse"):
        printed = await desk.fire(event, "antigravity", **call(desk))
        assert printed == ('{"decision":"allow"}' if event == "PreToolUse" else "{}")
        assert texts(desk) == ['run_command: {"command":"make"}']
    (row,) = desk.lines.reader.sessions(Filter(harness="antigravity"))
    assert (row.id, row.cwd) == (ME, str(desk.cwd))


async def test_secrets_are_scrubbed(desk: Desk) -> None:
    await desk.fire("PreToolUse", "antigravity", **call(desk, "export GITHUB_TOKEN=ghp_" + "a" * 36))
    (text,) = texts(desk)
    assert "ghp_" not in text


async def test_what_is_kept_out_of_the_import_is_kept_out_here(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def imports(harness: str, cwd: bytes) -> bool:
        return cwd != b"/secret"

    monkeypatch.setattr(desk.records, "imports", imports)
    for places in (["/secret"], [str(desk.cwd), "/secret"]):
        printed = await desk.fire("PreToolUse", "antigravity", **call(desk, workspacePaths=places))
        assert printed == '{"decision":"allow"}'
    assert texts(desk) == []


async def test_a_note_that_a_hook_left_gives_the_same_event(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = msgspec.json.encode(call(desk))
    for number in range(2):
        name = f"170000000000000{number}-x"
        fields = (hook.NOTE, b"antigravity", b"PreToolUse", bytes(desk.cwd), b"", b"1", b"1770000000000")
        (desk.state / "spool").mkdir(parents=True, exist_ok=True)
        (desk.state / "spool" / name).write_bytes(b"\0".join((*fields, payload)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.hooks.keep)
        await until(lambda: bool(texts(desk)))
        nursery.cancel_scope.cancel()
    assert texts(desk) == ['run_command: {"command":"make"}']
    await desk.fire("PostToolUse", "antigravity", **call(desk))
    assert texts(desk) == ['run_command: {"command":"make"}']


@pytest.mark.parametrize("stdin", [b"", b"{", b"\xff", b"null", b'{"toolCall":'])
async def test_a_tool_is_allowed_however_broken_its_payload_is(desk: Desk, stdin: bytes) -> None:
    body = desk.message("PreToolUse", "antigravity", "", 1, stdin)
    assert await desk.hooks.answer(body) == '{"decision":"allow"}'


async def start(desk: Desk, number: object = 0, **more: Any) -> str:
    payload = {"conversationId": ME, "workspacePaths": [str(desk.cwd)], "invocationNum": number}
    return await desk.fire("PreInvocation", "antigravity", **payload, **more)


async def test_a_handoff_is_told_at_the_first_turn_and_by_no_later_one(desk: Desk) -> None:
    first = await desk.note()
    assert await start(desk, 1) == "{}"
    assert desk.handoff_state(first) == "open"
    assert "the port stays 8123" in await start(desk)
    assert desk.handoff_state(first) == "accepted"
    second = await desk.note("another")
    assert await start(desk) == "{}"
    assert desk.handoff_state(second) == "open"


async def test_a_run_in_the_same_conversation_is_told_what_it_has_not_seen(desk: Desk) -> None:
    assert await start(desk) == "{}"
    other = await desk.launch("codex", session="c1")
    said = (entry("first request", session="c1"), entry("first reply", session="c1"))
    desk.lines.put(*said, harness="codex")
    await desk.runs.exited(other.id, 0)
    run = await desk.launch("antigravity")
    printed = await start(desk, run=run)
    assert "first reply" in printed
    assert desk.found(run).session == ME
    assert await start(desk, run=run) == "{}"
