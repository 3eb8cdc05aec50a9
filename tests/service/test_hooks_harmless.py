"""What each event of each harness prints when there is nothing to tell, whatever came on standard input.

The table stands here a second time on purpose: some of these programs take silence for a refusal, others show
an object that they did not expect as a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memd import disk
from memd.harness import registry
from support_hook_service import AGENT, Desk
from support_hooks import EVENTS, IDS, command, placed, run, state_of_daemon
from support_workstreams import Lines

SILENT = frozenset({"claude", "codex", "opencode", "pi", "omp", "kimi", "kiro"})
OBJECT = frozenset({"command-code", "grok", "antigravity"})

BROKEN = (
    b"",
    b"\0",
    b"{",
    b"null",
    b"[1]",
    b'"text"',
    b"\xff\xfe",
    b"{}",
    b'{"session_id":',
    b'{"session_id":7,"sessionId":[],"conversationId":{},"cwd":1,"invocationNum":"0","toolCall":1}',
    b"[" * 5000,
)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


def expected(harness: str, event: str) -> str:
    if (harness, event) == ("antigravity", "PreToolUse"):
        return '{"decision":"allow"}'
    return "{}" if harness in OBJECT else ""


def test_the_table_names_every_harness_that_has_hooks() -> None:
    assert {name for name, one in registry.adapters().items() if one.hooks is not None} == SILENT | OBJECT
    assert {(name, one.name): one.harmless for name, one in EVENTS} == {
        (name, one.name): expected(name, one.name) for name, one in EVENTS
    }


@pytest.mark.parametrize(("harness", "event"), [(name, one.name) for name, one in EVENTS], ids=IDS)
async def test_broken_standard_input_is_answered_harmlessly_and_takes_nothing(
    desk: Desk, harness: str, event: str
) -> None:
    handoff = await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    for stdin in BROKEN:
        body = desk.message(event, harness, "", AGENT.pid, stdin)
        assert await desk.hooks.answer(body) == expected(harness, event), stdin
    assert desk.handoff_state(handoff) == "open"


@pytest.mark.parametrize("stdin", [b"", b'{"session_id":"\xff'])
def test_broken_standard_input_and_no_daemon_are_harmless_together(tmp_path: Path, stdin: bytes) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    with state_of_daemon(tmp_path, "dead-file"), ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda one: run(command(hook_file, *one), tmp_path, stdin), EVENTS)
        for name, (harness, event), one in zip(IDS, EVENTS, done, strict=True):
            printed = expected(harness, event.name).encode()
            assert (one.returncode, one.stdout, one.stderr) == (0, printed, b""), name
