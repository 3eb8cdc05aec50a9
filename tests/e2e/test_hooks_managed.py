"""Runs whose agents call memd's hooks: what the second agent is told, once, and what is on record of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.harness.packets import PACKET_MARKER
from support_daemon import eventually
from support_desk import Desk
from support_hooks import placed


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.home.environment["FAKE_HOOK"] = str(placed(made.home.path / ".local" / "share"))
    made.home.start()
    yield made
    made.close()


def told(desk: Desk) -> list[str]:
    """What the hooks of the last run told, of those that told anything; each is one JSON document."""
    path = desk.home.path / "hooked"
    text = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    found = []
    decoder = json.JSONDecoder()
    while text:
        answer, end = decoder.raw_decode(text)
        found.append(answer["hookSpecificOutput"]["additionalContext"])
        text = text[end:]
    return found


def test_the_second_agent_is_told_once_what_the_first_one_did(desk: Desk) -> None:
    desk.ok("claude", do="hook:SessionStart hook:UserPromptSubmit say:count_the_boats hook:SessionEnd")
    assert told(desk) == []
    desk.ok("codex", do="say:and_the_ropes hook:SessionStart hook:SessionStart hook:UserPromptSubmit")
    (packet,) = told(desk)
    assert packet.startswith(PACKET_MARKER)
    assert "count the boats" in packet
    assert "re count the boats" in packet
    assert "and the ropes" not in packet  # its own
    desk.ok("codex", do="hook:SessionStart say:more")
    assert told(desk) == []
    desk.ok("claude", do="say:go_on hook:SessionStart")
    (back,) = told(desk)
    assert "and the ropes" in back
    assert "count the boats" not in back
    assert PACKET_MARKER not in "".join(desk.said())


def test_a_waiting_handoff_comes_with_the_packet(desk: Desk) -> None:
    desk.ok("claude", do="say:count_the_boats")
    made = desk.home.memctl("handoff", "create", "the port stays 8123", cwd=desk.checkout)
    assert made.returncode == 0, made.stderr
    desk.ok("codex", do="say:and_the_ropes hook:SessionStart")
    (text,) = told(desk)
    assert text.index("the port stays 8123") < text.index(PACKET_MARKER) < text.index("count the boats")
    assert states(desk) == ["accepted"]


def test_a_packet_that_no_hook_asked_for_is_told_next_time(desk: Desk) -> None:
    desk.ok("claude", do="say:count_the_boats")
    desk.ok("codex", do="say:and_the_ropes")
    assert told(desk) == []
    desk.ok("codex", do="hook:SessionStart say:more")
    (packet,) = told(desk)
    assert "count the boats" in packet


def test_a_session_that_nobody_asked_anything_gives_its_handoff_back(desk: Desk) -> None:
    desk.home.memctl("handoff", "create", "the port stays 8123", cwd=desk.checkout)
    desk.ok("claude", do="hook:SessionStart hook:SessionEnd")
    (text,) = told(desk)
    assert "the port stays 8123" in text
    eventually(lambda: states(desk) == ["open"])


def states(desk: Desk) -> list[str]:
    listed: Any = desk.json("handoff", "list")
    rows = listed["handoffs"] if isinstance(listed, dict) else listed
    return [row["state"] for row in rows]
