"""How Claude Code is started, as Claude Code 2.1.197 takes it.

Conformance 1, 2, 10, 11, 12, 13, 14, 52.
"""

from __future__ import annotations

import pytest

from support_launch import LINKED, NEW, line, said, started, yolo

UUID = "0b1c2d3e-4f50-4678-9abc-def012345678"


@pytest.mark.parametrize(
    ("typed", "fresh"),
    [
        ("", "--session-id NEW"),
        ("--model opus", "--model opus --session-id NEW"),
        ("-p go", "-p go --session-id NEW"),
        ("'fix it'", "'fix it' --session-id NEW"),
        ("--fork-session", "--fork-session --session-id NEW"),
    ],
)
def test_new_session_gets_an_id_of_ours(typed: str, fresh: str) -> None:
    assert line("claude", typed, session="") == fresh
    assert started("claude", typed).session == NEW


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "--resume LINKED"),
        ("--model opus", "--model opus --resume LINKED"),
        ("-p go", "-p go --resume LINKED"),
        ("--print --output-format json go", "--print --output-format json go --resume LINKED"),
        ("--allowedTools Bash Edit", "--allowedTools Bash Edit --resume LINKED"),
    ],
)
def test_linked_session_is_resumed_behind_all_that_was_typed(typed: str, resumed: str) -> None:
    assert line("claude", typed) == resumed
    assert started("claude", typed, session=LINKED).session == LINKED


def test_fork_of_the_linked_session_gets_an_id_of_ours() -> None:
    assert line("claude", "--fork-session") == "--fork-session --resume LINKED --session-id NEW"
    assert started("claude", "--fork-session", session=LINKED).session == NEW


SELECTORS = [
    ("-c", ""),
    ("--continue", ""),
    ("-r", ""),
    ("--resume", ""),
    (f"-r {UUID}", UUID),
    (f"--resume {UUID}", UUID),
    (f"--resume={UUID}", UUID),
    (f"-r{UUID}", UUID),
    (f"-pr {UUID}", UUID),
    ("--resume 'a title'", ""),
    ("--resume /tmp/x.jsonl", ""),
    ("--resume=", ""),
    (f"--session-id {UUID}", UUID),
    ("--session-id none", ""),
    (f"--resume {UUID} --fork-session", ""),
    (f"--resume {LINKED} --fork-session --session-id {UUID}", UUID),
    ("-c --fork-session", ""),
    ("-pc go", ""),
    ("--from-pr 12", ""),
    ("--teleport", ""),
]


@pytest.mark.parametrize(("typed", "session"), SELECTORS)
def test_selector_of_a_person_is_left_as_it_is(typed: str, session: str) -> None:
    argv = started("claude", typed, session=LINKED)
    assert argv == started("claude", typed)
    assert line("claude", typed) == line("claude", typed, session="")
    assert said("claude", typed).has_selector
    assert argv.session == session
    assert len(argv.arguments) == len(typed.replace("'a title'", "x").split())


@pytest.mark.parametrize(
    "typed",
    [
        "--help",
        "-h",
        "--version",
        "-v",
        "-p --help",
        "--no-session",
        "--no-session-persistence -p go",
        "agents",
        "auth login",
        "auto-mode",
        "doctor",
        "install",
        "mcp list",
        "plugin list",
        "plugins",
        "project",
        "setup-token",
        "ultrareview",
        "update",
        "upgrade",
        "attach 1a2b3c4d",
        "logs 1a2b3c4d",
        "daemon",
        "remote-control",
        "--model opus mcp list",
        "--verbose doctor",
        "--bg go",
        "--background --resume go",
        "--init-only",
        "--model",
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("claude", typed).is_passing
    assert yolo("claude", typed, LINKED) == typed


@pytest.mark.parametrize(
    "typed",
    [
        "'fix it' mcp",
        "mcps",
        "-p mcp",  # with -p it is a prompt
        "mcp -p",
        "--model mcp",
        "--append-system-prompt doctor",
        "--allowedTools mcp",
        "'about mcp'",
        "--verbose attach",  # looked for in the first place only
        "-- mcp",
        "-- --help",
        "--append-system-prompt --help",
    ],
)
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("claude", typed).is_passing
    assert "--resume LINKED" in line("claude", typed)


@pytest.mark.parametrize(
    ("typed", "is_batch"),
    [("-p go", True), ("--print", True), ("go", False), ("-- -p", False), ("-pv", True)],
)
def test_run_without_a_person_is_known(typed: str, is_batch: bool) -> None:
    assert said("claude", typed).is_batch is is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--session-id NEW --dangerously-skip-permissions"),
        ("-c", "-c --dangerously-skip-permissions"),
        ("-r", "-r --dangerously-skip-permissions"),
        ("--dangerously-skip-permissions", "--dangerously-skip-permissions --session-id NEW"),
        ("--dangerously-skip-permissions=x", "--dangerously-skip-permissions=x --session-id NEW"),
        (
            "--permission-mode plan",
            "--permission-mode plan --session-id NEW --dangerously-skip-permissions",
        ),
    ],
)
def test_yolo_is_the_last_word_and_comes_once(typed: str, unrestrained: str) -> None:
    assert yolo("claude", typed) == unrestrained


def test_nothing_of_ours_lands_behind_a_terminator() -> None:
    typed = "-p -- --resume x --yolo"
    assert yolo("claude", typed, LINKED) == (
        "-p --resume LINKED --dangerously-skip-permissions -- --resume x --yolo"
    )
