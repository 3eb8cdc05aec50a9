"""How Pi is started, as Pi 1.6.0 and 0.73.1 take it.

Conformance 8, 10, 11, 12, 13, 15, 17, 52.
"""

from __future__ import annotations

import pytest

from support_launch import LINKED, NEW, launch_of, line, said, started, yolo

TODAY = ("--session-id", "--approve", "--help")
OLDER = ("--help",)  # its help was read and has neither of the two


@pytest.mark.parametrize(
    ("typed", "fresh"),
    [
        ("", "--session-id NEW"),
        ("-p go", "-p go --session-id NEW"),
        ("--mode json go", "--mode json go --session-id NEW"),
        ("-- --odd", "--session-id NEW -- --odd"),
    ],
)
def test_new_session_gets_an_id_of_ours(typed: str, fresh: str) -> None:
    assert line("pi", typed, session="", supports=TODAY) == fresh
    assert started("pi", typed, supports=TODAY).session == NEW


@pytest.mark.parametrize("supports", [OLDER, ()])
@pytest.mark.parametrize("typed", ["", "-p go"])
def test_version_that_takes_no_id_is_started_as_it_was_typed(typed: str, supports: tuple[str, ...]) -> None:
    assert line("pi", typed, session="", supports=supports) == typed
    assert started("pi", typed, supports=supports).session == ""


@pytest.mark.parametrize("supports", [TODAY, OLDER, ()])
def test_linked_session_is_resumed_by_another_option(supports: tuple[str, ...]) -> None:
    assert line("pi", "-p go", supports=supports) == "-p go --session LINKED"
    assert started("pi", "-p go", session=LINKED, supports=supports).session == LINKED


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        (f"--session {LINKED}", LINKED),
        ("--session abc", ""),  # may be the beginning of an id
        ("--session /x/y.jsonl", ""),
        ("--session=abc", ""),
        ("--session-id my.own", "my.own"),
        ("--session-id ../x", ""),
        ("-c", ""),
        ("--continue", ""),
        ("-r", ""),
        ("--resume", ""),
        ("--fork abc", ""),
        (f"--fork {LINKED}", ""),
        ("--fork abc --session-id my.own", "my.own"),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("pi", typed).has_selector
    assert started("pi", typed, session=LINKED, supports=TODAY).arguments == tuple(typed.split())
    assert started("pi", typed, session=LINKED, supports=TODAY).session == session


@pytest.mark.parametrize(
    "typed",
    [
        *("auth check", "config", "install x", "list", "mcp list", "remove x", "uninstall x", "update"),
        *("--help", "-h", "--version", "-v", "--no-session", "-p go --no-session"),
        "--no-session-persistence",
        *("--export a.jsonl", "--list-models", "--list-models x", "--model"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("pi", typed).is_passing
    assert yolo("pi", typed, LINKED, TODAY) == typed


@pytest.mark.parametrize(
    "typed", ["'fix it' list", "--model list", "-p list", "--verbose list", "-- list", "--name -h", "-- -h"]
)
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("pi", typed).is_passing


@pytest.mark.parametrize(
    ("typed", "is_batch"),
    [("-p go", True), ("--print", True), ("--mode json", True), ("--mode rpc", True), ("--mode text", False)],
)
def test_run_without_a_person_is_known(typed: str, is_batch: bool) -> None:
    assert said("pi", typed).is_batch is is_batch


def test_session_folder_is_told_to_the_reader_and_left_to_the_child() -> None:
    assert said("pi", "--session-dir ../s go").folders == {"PI_CODING_AGENT_SESSION_DIR": "../s"}
    assert said("pi", "go").folders == {}
    assert line("pi", "--session-dir ../s go") == "--session-dir ../s go --session LINKED"


@pytest.mark.parametrize(
    ("typed", "supports", "unrestrained"),
    [
        ("", TODAY, "--session-id NEW --approve"),
        ("-c", TODAY, "-c --approve"),
        ("go", (), "go --approve"),  # nobody could tell, and most have it
        ("-a", TODAY, "-a --session-id NEW"),
        ("--approve", TODAY, "--approve --session-id NEW"),
        ("--no-approve", TODAY, "--no-approve --session-id NEW"),
        ("-na", TODAY, "-na --session-id NEW"),
    ],
)
def test_yolo_comes_once_and_widens_no_narrower_choice(
    typed: str, supports: tuple[str, ...], unrestrained: str
) -> None:
    assert yolo("pi", typed, supports=supports) == unrestrained


def test_version_without_a_word_for_yolo_is_started_without_it() -> None:
    argv = started("pi", "go", is_yolo=True, supports=OLDER)
    assert argv.arguments == ("go",)
    assert "--yolo is left out" in argv.notices[0]


def test_session_belongs_to_its_directory() -> None:
    """`--session` from another one asks a question, and without a terminal does nothing."""
    assert launch_of("pi").is_bound
