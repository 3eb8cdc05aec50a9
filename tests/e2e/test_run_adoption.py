"""The first launch on a terminal: a session that was held without memd may be taken over."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_desk import Desk


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    return shared


def direct(desk: Desk, name: str, text: str) -> str:
    """An agent that is started without memd; its session."""
    subprocess.run(
        [desk.fakes.folder / name],
        env={**desk.home.environment, "FAKE_DO": f"say:{text}"},
        cwd=desk.checkout,
        check=True,
    )
    desk.fakes.clear()
    assert desk.home.memctl("import", "--wait").returncode == 0
    return str(desk.json("sessions", "--cwd", str(desk.checkout))[0]["id"])


@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_enter_takes_over_the_newest(desk: Desk, term: str) -> None:
    desk.ok("claude")  # nothing is said: adoption stays possible
    direct(desk, "claude", "older_words")
    newest = direct(desk, "claude", "newer_words")
    screen = desk.screen("claude", do="say:more", TERM=term)
    screen.until("newer words")
    screen.until("older words")
    screen.type("\r")
    assert screen.wait() == 0, screen.text()
    assert desk.args() == ["--resume", newest]
    assert desk.words() == ["newer words", "re newer words", "more", "re more"]


@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_zero_begins_a_new_one(desk: Desk, term: str) -> None:
    direct(desk, "claude", "old_words")
    screen = desk.screen("claude", do="say:hello", TERM=term)
    screen.until("old words")
    screen.type("0" if term != "dumb" else "9\r")
    if term == "dumb":
        screen.until("Enter 0 through 1.")
        screen.type("0\r")
    assert screen.wait() == 0, screen.text()
    assert desk.args()[0] == "--session-id"


@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_an_interrupt_ends_it_without_enter_and_frees_the_workstream(desk: Desk, term: str) -> None:
    direct(desk, "claude", "old_words")
    screen = desk.screen("claude", do="say:hello", TERM=term)
    screen.until("old words")
    screen.type("\x03")
    assert screen.wait() == 130
    assert "interrupted before the agent started" in screen.text()
    assert desk.fakes.starts() == []
    assert desk.workstreams() == []
    assert desk.run("claude", do="say:next").returncode == 0


def test_the_end_of_the_input_begins_a_new_one(desk: Desk) -> None:
    direct(desk, "claude", "old_words")
    screen = desk.screen("claude", do="say:hello", TERM="dumb")
    screen.until("Go on in")
    screen.type("\x04")
    assert screen.wait() == 0
    assert desk.args()[0] == "--session-id"


def test_a_terminal_that_is_hung_up_starts_nothing(desk: Desk) -> None:
    direct(desk, "claude", "old_words")
    screen = desk.screen("claude", do="say:hello", TERM="dumb")
    screen.until("Go on in")
    screen.hang_up()
    assert screen.wait() != 0
    assert desk.fakes.starts() == []
    assert desk.workstreams() == []


@pytest.mark.parametrize(
    "words",
    [
        ["claude", "--resume", "11111111-0000-4000-8000-000000000000"],
        ["claude", "-p"],
        ["claude", "--version"],
        ["claude", "--fresh"],
        ["--new", "other", "claude"],
    ],
)
def test_nobody_is_asked_when_the_words_say_it(desk: Desk, words: list[str]) -> None:
    session = direct(desk, "claude", "old_words")
    screen = desk.screen(*words, do="say:hello", TERM="dumb")
    assert screen.wait() == 0, screen.text()
    assert "Go on in" not in screen.text()
    assert session not in desk.args()


def test_nobody_is_asked_in_a_workstream_in_which_something_was_said(desk: Desk) -> None:
    session = direct(desk, "claude", "old_words")
    desk.ok("codex", do="say:by_codex")
    screen = desk.screen("claude", do="say:hello", TERM="dumb")
    assert screen.wait() == 0, screen.text()
    assert "Go on in" not in screen.text()
    assert session not in desk.args()
    assert desk.args()[0] == "--session-id"


def test_nobody_is_asked_without_a_terminal(desk: Desk) -> None:
    direct(desk, "claude", "old_words")
    assert desk.ok("claude", do="say:hello")["args"][0] == "--session-id"


def test_what_another_workstream_has_is_not_offered(desk: Desk) -> None:
    session = direct(desk, "claude", "old_words")
    desk.ok("claude", "--resume", session, do="say:linked")
    desk.ok("--new", "side", "codex", "--version")
    screen = desk.screen("claude", do="say:hello", TERM="dumb")
    assert screen.wait() == 0, screen.text()
    assert session not in desk.args()
