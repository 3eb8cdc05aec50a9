"""How Kimi Code is started, as Kimi Code 2.1.0 takes it."""

from __future__ import annotations

import pytest

from support_launch import LINKED, launch_of, line, said, started, yolo


@pytest.mark.parametrize("typed", ["", "-p go", "--model m --add-dir ../x", "-- x"])
def test_new_session_is_started_as_it_was_typed(typed: str) -> None:
    assert line("kimi", typed, session="") == typed
    assert started("kimi", typed).session == ""


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "--session LINKED"),
        ("-p go", "-p go --session LINKED"),
        ("-m m --plan", "-m m --plan --session LINKED"),
        ("-- x", "--session LINKED -- x"),
    ],
)
def test_linked_session_is_named_behind_what_was_typed(typed: str, resumed: str) -> None:
    assert line("kimi", typed) == resumed
    assert started("kimi", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        ("--session session_x", "session_x"),
        ("--session=session_x", "session_x"),
        ("-S session_x", "session_x"),
        ("-Ssession_x", "session_x"),
        ("--resume session_x", "session_x"),
        ("-r session_x", "session_x"),
        ("--session ../x", ""),
        ("-r -m x", ""),
        *((word, "") for word in ("--session", "-S", "--resume", "-r", "--continue", "-c", "-C")),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("kimi", typed).has_selector
    assert started("kimi", typed, session=LINKED).arguments == tuple(typed.split())
    assert started("kimi", typed, session=LINKED).session == session


@pytest.mark.parametrize("typed", ["--agent reviewer", "--agent-file a.md", "--agent=reviewer -p go"])
def test_an_agent_needs_a_new_session_and_a_person_is_told(typed: str) -> None:
    argv = started("kimi", typed, session=LINKED)
    assert (argv.arguments, argv.session) == (tuple(typed.split()), "")
    assert "new session" in argv.notices[0]
    assert started("kimi", typed).notices == ()


@pytest.mark.parametrize(
    "typed",
    [
        *("export", "fork session_x -y", "provider list", "session list", "acp", "web", "server", "rc"),
        *("remote", "login", "doctor", "vis", "install-desktop", "migrate", "upgrade", "update"),
        *("__plugin_run_node x", "-m m export", "--help", "-h", "--version", "-v", "-V"),
        *("--no-session", "--no-session-persistence", "-p go --help", "-p", "--model"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("kimi", typed).is_passing
    assert yolo("kimi", typed, LINKED) == typed


@pytest.mark.parametrize(
    "typed", ["-p export", "-m export", "--prompt=export", "-- export", "--session update"]
)
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("kimi", typed).is_passing


def test_run_without_a_person_is_known() -> None:
    assert said("kimi", "-p go").is_batch
    assert said("kimi", "--prompt=go").is_batch
    assert not said("kimi", "--yolo").is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--yolo"),
        ("-c", "-c --yolo"),
        ("--plan", "--plan --yolo"),
        *((word, word) for word in ("-y", "--yes", "--auto-approve", "--auto")),
        ("-ym x", "-ym x"),
        ("-p go", "-p go"),  # asks nothing, and refuses the word
        ("-- -y", "--yolo -- -y"),
    ],
)
def test_yolo_comes_once_and_not_where_it_is_refused(typed: str, unrestrained: str) -> None:
    assert yolo("kimi", typed) == unrestrained


def test_yolo_comes_behind_the_session() -> None:
    assert yolo("kimi", "-m x", LINKED) == "-m x --session LINKED --yolo"


def test_what_the_launcher_must_know() -> None:
    launch = launch_of("kimi")
    assert (launch.executables, launch.is_pooled, launch.is_bound) == (("kimi",), True, True)
    assert launch.variables == ("KIMI_CODE_HOME",)
