"""How Command Code is started, as Command Code 1.64.0 takes it."""

from __future__ import annotations

import pytest

from support_launch import LINKED, delivered, launch_of, line, said, started, yolo


@pytest.mark.parametrize("typed", ["", "-p go", "'fix it'", "--odd -t", "-- x"])
def test_new_session_is_started_as_it_was_typed(typed: str) -> None:
    assert line("command-code", typed, session="") == typed
    assert started("command-code", typed).session == ""


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "--session LINKED"),
        ("-p go", "-p go --session LINKED"),
        ("-p -- go", "-p --session LINKED -- go"),
        ("-n name", "-n name --session LINKED"),
    ],
)
def test_linked_session_is_named_behind_what_was_typed(typed: str, resumed: str) -> None:
    assert line("command-code", typed) == resumed
    assert started("command-code", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        (f"--session {LINKED}", LINKED),
        (f"--resume={LINKED}", LINKED),
        (f"-r {LINKED} -p go", LINKED),
        ("--session 019f3c1e", ""),  # the beginning of an id
        ("--session /x/y.jsonl", ""),
        ("--resume 'auth refactor'", ""),
        (f"--resume {LINKED} --fork-session", ""),
        *((word, "") for word in ("--resume", "-r", "--sessions", "--continue", "-c", "--fork-session")),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("command-code", typed).has_selector
    assert line("command-code", typed) == typed.replace(LINKED, "LINKED")
    assert started("command-code", typed, session=LINKED).session == session


@pytest.mark.parametrize(
    "typed",
    [
        *("info", "status", "help", "whoami", "update", "feedback x", "taste learn .", "learn-taste", "mcp"),
        *("skills", "mods list", "login", "logout", "-m x status", "--skip-onboarding -t status"),
        *("-p 'SAY a' status", "--help", "-h", "--version", "-v", "--no-session", "-p go --no-session"),
        *("--list-models", "--ide-setup", "--session"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("command-code", typed).is_passing
    assert yolo("command-code", typed, LINKED) == typed


@pytest.mark.parametrize("typed", ["'fix it' status", "-m status", "-p status", "-- status", "-n help"])
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("command-code", typed).is_passing


def test_run_without_a_person_is_known() -> None:
    assert said("command-code", "-p").is_batch
    assert said("command-code", "--print go").is_batch
    assert said("command-code", "-tp go").is_batch
    assert not said("command-code", "go").is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--yolo"),
        ("-c", "-c --yolo"),
        ("--accept-edits", "--accept-edits --yolo"),
        ("--auto-accept", "--auto-accept --yolo"),
        ("--dangerously-skip-permissions", "--dangerously-skip-permissions"),
        ("--permission-mode plan", "--permission-mode plan"),
    ],
)
def test_yolo_comes_once_and_widens_no_narrower_choice(typed: str, unrestrained: str) -> None:
    assert yolo("command-code", typed) == unrestrained


def test_a_mode_that_goes_before_yolo_is_told() -> None:
    (notice,) = started("command-code", "--permission-mode plan", is_yolo=True).notices
    assert "--permission-mode" in notice
    assert started("command-code", "--permission-mode plan").notices == ()


def test_yolo_comes_behind_the_session() -> None:
    assert yolo("command-code", "", LINKED) == "--session LINKED --yolo"


def test_what_the_launcher_must_know() -> None:
    launch = launch_of("command-code")
    assert launch.executables[0] == "command-code"
    assert (launch.is_pooled, launch.is_bound, launch.variables) == (True, False, ())


@pytest.mark.parametrize("session", ["", LINKED])
def test_query_counts_as_not_told_and_that_is_said(session: str) -> None:
    done = delivered("command-code", "-p go", "words of before", session)
    assert not done.is_told
    assert done.argv.arguments == started("command-code", "-p go", session=session).arguments
    assert "until it is on the screen" in done.argv.notices[0]


def test_session_on_the_screen_is_left_to_the_hook() -> None:
    done = delivered("command-code", "go", "words of before")
    assert not done.is_told
    assert (done.argv, done.files) == (started("command-code", "go"), {})
