"""Inside a terminal multiplexer that tracks agents: it finds what it looks for where it looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import eventually
from support_desk import Desk

HINTS = {
    "HERDR_AGENT": "claude",
    "HERDR_ENV": "1",
    "HERDR_PANE_ID": "w1:p1",
    "HERDR_SOCKET_PATH": "/tmp/hérdr dir/herdr.sock",
    "TMUX": "/tmp/tmux-0/default,1,0",
    "TMUX_PANE": "%3",
    "ZELLIJ": "0",
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("hints", [HINTS, {"HERDR_AGENT": ""}, {}])
def test_its_variables_reach_the_agent_untouched(desk: Desk, hints: dict[str, str]) -> None:
    start = desk.ok("claude", do="say:hello", **hints)
    found = {
        name: value for name, value in start["env"].items() if name.startswith(("HERDR", "TMUX", "ZELL"))
    }
    assert found == hints


def test_the_hint_stands_in_the_foreground_process_too(desk: Desk) -> None:
    """Where the agent is a child of memctl, the hint is looked for in the leader of the terminal's group."""
    screen = desk.screen("claude", do="wait", HERDR_AGENT="claude")
    eventually(lambda: desk.fakes.starts())
    start = desk.fakes.last()
    assert start["group"] == screen.pid
    environ = Path(f"/proc/{screen.pid}/environ").read_bytes().split(b"\0")
    assert b"HERDR_AGENT=claude" in environ
    assert os.fsencode(start["env"]["HERDR_AGENT"]) == b"claude"
    desk.fakes.go()
    assert screen.wait() == 0
