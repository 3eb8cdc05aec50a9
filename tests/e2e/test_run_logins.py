"""A session of Claude Code that moves with the agent from one login to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support_desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_a_session_of_another_login_is_copied_when_somebody_says_yes(desk: Desk) -> None:
    work = str(desk.home.path / ".claude-work")
    done = desk.run("claude", do="say:at_work", CLAUDE_CONFIG_DIR=work)
    assert done.returncode == 0, done.stderr
    session = desk.args()[1]
    (desk.home.path / ".claude").mkdir()
    screen = desk.screen("claude", do="say:at_home", TERM="dumb")
    screen.until("[Y/n]")
    assert ".claude-work" in screen.text()
    screen.type("y\r")
    assert screen.wait() == 0, screen.text()
    assert desk.args() == ["--resume", session]
    assert desk.words() == ["at work", "re at work", "at home", "re at home"]
    back = desk.run("--carry", "claude", do="say:back", CLAUDE_CONFIG_DIR=work)
    assert back.returncode == 0, back.stderr
    assert desk.args() == ["--resume", session]
    assert desk.words()[-2:] == ["back", "re back"]
    assert len(desk.words()) == 6


def test_without_a_terminal_a_new_session_begins_and_it_is_said_how_to_carry(desk: Desk) -> None:
    work = str(desk.home.path / ".claude-work")
    assert desk.run("claude", do="say:at_work", CLAUDE_CONFIG_DIR=work).returncode == 0
    session = desk.args()[1]
    (desk.home.path / ".claude").mkdir()
    done = desk.run("claude", do="say:at_home")
    assert "--carry" in done.stderr
    assert session not in desk.args()
    assert not list(desk.home.path.glob(f".claude/projects/*/{session}.jsonl"))
