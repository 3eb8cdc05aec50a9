"""How OpenCode is started, as OpenCode 1.18.33 takes it.

Conformance 6, 7, 10, 11, 13, 52.
"""

from __future__ import annotations

import pytest

from memd.workstream import launch
from support_launch import LINKED, launch_of, line, said, started, yolo


@pytest.mark.parametrize("typed", ["", "run go", "-m a/b", "../other"])
def test_new_session_is_started_as_it_was_typed(typed: str) -> None:
    assert line("opencode", typed, session="") == typed
    assert started("opencode", typed).session == ""


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "--session LINKED"),
        ("-m a/b", "--session LINKED -m a/b"),
        ("--prompt hi", "--session LINKED --prompt hi"),
        (".", "--session LINKED ."),
        ("./", "--session LINKED ./"),
        ("/home/dev/app", "--session LINKED /home/dev/app"),
        ("../app", "--session LINKED ../app"),
        ("run go", "run --session LINKED go"),
        ("run", "run --session LINKED"),
        ("run --dir . go", "run --session LINKED --dir . go"),
        ("run -f a.txt go", "run --session LINKED -f a.txt go"),
        ("--print-logs run go", "--print-logs run --session LINKED go"),
        ("run -- --odd", "run --session LINKED -- --odd"),
    ],
)
def test_selector_follows_run_and_otherwise_comes_first(typed: str, resumed: str) -> None:
    assert line("opencode", typed) == resumed
    assert started("opencode", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    "typed",
    ["..", "/srv/other", "app", "run --dir /srv/other go", "run --dir=.. go", "run --attach http://x:1 go"],
)
def test_session_is_not_resumed_where_it_does_not_belong(typed: str) -> None:
    argv = started("opencode", typed, session=LINKED)
    assert line("opencode", typed) == typed
    assert argv.session == ""
    assert "another place" in argv.notices[0]


def test_client_whose_directory_is_not_known_resumes_in_it() -> None:
    assert started("opencode", ".", session=LINKED, cwd="").session == LINKED
    assert started("opencode", "/x", session=LINKED, cwd="").session == ""


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        ("--session ses_1", "ses_1"),
        ("-s ses_1", "ses_1"),
        ("--session=ses_1", "ses_1"),
        ("run --session ses_1 go", "ses_1"),
        ("-s ses_1 run go", "ses_1"),
        ("run go -s ses_1", "ses_1"),
        ("-cs ses_1", "ses_1"),
        ("--session", ""),
        ("--session ../x", ""),
        ("-c", ""),
        ("run --continue go", ""),
        ("--fork", ""),
        ("--session ses_1 --fork", ""),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("opencode", typed).has_selector
    assert line("opencode", typed) == typed
    assert started("opencode", typed, session=LINKED).session == session


@pytest.mark.parametrize(
    "typed",
    [
        *("acp", "agent list", "attach http://x", "auth", "completion", "db path", "debug", "export"),
        *("github", "import x", "mcp", "models", "plug x", "plugin x", "pr 12", "providers", "serve"),
        *("session list", "stats", "uninstall", "upgrade", "web", "--help", "-h", "run --help"),
        *("--version", "-v", "--print-logs serve", "-m a/b stats", "--no-session"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("opencode", typed).is_passing
    assert yolo("opencode", typed, LINKED) == typed


@pytest.mark.parametrize("typed", ["run stats", "./stats", "--prompt stats", "run -- serve", "-m stats"])
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("opencode", typed).is_passing


@pytest.mark.parametrize(
    ("typed", "is_batch"),
    [("run go", True), ("--pure run go", True), ("run -i", False), ("", False), (".", False)],
)
def test_run_without_a_person_is_known(typed: str, is_batch: bool) -> None:
    assert said("opencode", typed).is_batch is is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--auto"),
        ("run go", "run go --auto"),
        ("run -- go", "run --auto -- go"),
        ("--auto", "--auto"),
        ("--auto=false", "--auto=false"),
        ("--no-auto", "--no-auto"),
        ("-c", "-c --auto"),
    ],
)
def test_yolo_is_the_last_word_and_comes_once(typed: str, unrestrained: str) -> None:
    assert yolo("opencode", typed) == unrestrained


def test_session_belongs_to_its_directory() -> None:
    """`run --session` from another one never returns."""
    assert launch_of("opencode").is_bound
    assert "OPENCODE_DB" in launch.variables()
