"""How OMP is started, as OMP 18.2.3 takes it.

Conformance 9, 10, 11, 12, 13, 15, 52.
"""

from __future__ import annotations

import pytest

from support_launch import LINKED, launch_of, line, said, started, yolo

TODAY = ("--auto-approve",)


@pytest.mark.parametrize("typed", ["", "-p go", "launch go"])
def test_new_session_is_started_as_it_was_typed(typed: str) -> None:
    assert line("omp", typed, session="") == typed
    assert started("omp", typed).session == ""


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "--resume=LINKED"),
        ("-p go", "-p go --resume=LINKED"),
        ("launch --model x go", "launch --model x go --resume=LINKED"),
        ("-- --odd", "--resume=LINKED -- --odd"),
    ],
)
def test_linked_session_is_resumed_in_one_argument(typed: str, resumed: str) -> None:
    assert line("omp", typed) == resumed
    assert started("omp", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        ("--resume", ""),
        ("-r", ""),
        (f"--resume {LINKED}", LINKED),
        (f"--resume={LINKED}", LINKED),
        (f"--session {LINKED}", LINKED),
        ("--resume 019f", ""),
        ("-c", ""),
        ("--continue", ""),
        (f"--fork {LINKED}", ""),
        ("--from-claude", ""),
        ("--from-codex", ""),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("omp", typed).has_selector
    assert started("omp", typed, session=LINKED).arguments == tuple(typed.split())
    assert started("omp", typed, session=LINKED).session == session


@pytest.mark.parametrize(
    "typed",
    [
        *("acp", "agents", "auth-broker", "auth-gateway", "bench", "commit", "config", "gc", "git", "grep x"),
        *("grievances", "install x", "join x", "models", "plugin list", "ps", "q x", "read x", "render x"),
        *("search x", "setup", "share", "shell", "ssh", "stats", "token", "update", "usage", "worktree"),
        *("--cwd /x update", "--approval-mode=yolo acp", "list", "help", "--help", "-h", "--version", "-v"),
        *("-p stats", "--no-session", "--export a.jsonl", "--profile work --alias omp-work", "--model"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("omp", typed).is_passing
    assert yolo("omp", typed, LINKED, TODAY) == typed


@pytest.mark.parametrize(
    "typed",
    ["'fix it' stats", "launch stats", "list all files", "--model stats", "-- acp"],
)
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("omp", typed).is_passing


@pytest.mark.parametrize(
    ("typed", "is_batch"),
    [("-p go", True), ("--print go", True), ("--mode rpc-ui", True), ("--mode text", False), ("go", False)],
)
def test_run_without_a_person_is_known(typed: str, is_batch: bool) -> None:
    assert said("omp", typed).is_batch is is_batch


def test_session_folder_is_told_to_the_reader_and_left_to_the_child() -> None:
    assert said("omp", "--session-dir=/s go").folders == {"PI_CODING_AGENT_SESSION_DIR": "/s"}
    assert line("omp", "--session-dir=/s go") == "--session-dir=/s go --resume=LINKED"


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--auto-approve"),
        ("-c", "-c --auto-approve"),
        ("--auto-approve", "--auto-approve"),
        ("--approval-mode write", "--approval-mode write"),
        ("--approval-mode=always-ask", "--approval-mode=always-ask"),
    ],
)
def test_yolo_comes_once_and_widens_no_narrower_choice(typed: str, unrestrained: str) -> None:
    assert yolo("omp", typed, supports=TODAY) == unrestrained


def test_version_without_a_word_for_yolo_is_started_without_it() -> None:
    argv = started("omp", "", session=LINKED, is_yolo=True)
    assert argv.arguments == (f"--resume={LINKED}",)
    assert "--yolo is left out" in argv.notices[0]


def test_omp_is_never_started_unasked() -> None:
    assert not launch_of("omp").is_pooled
    assert all(launch_of(name).is_pooled for name in ("claude", "codex", "opencode", "pi"))
