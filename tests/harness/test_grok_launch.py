"""How Grok Build is started and told, as Grok Build 0.2.111 takes it."""

from __future__ import annotations

import pytest

from memd.harness.launching import Delivered
from support_launch import LINKED, NEW, delivered, launch_of, line, said, started, yolo

PACKET = "<!-- memd:workstream-packet:v1 -->\nwords of before"


@pytest.mark.parametrize(
    ("typed", "fresh"),
    [
        ("", "--session-id NEW"),
        ("-p go", "-p go --session-id NEW"),
        ("'fix it' -m m", "'fix it' -m m --session-id NEW"),
        ("-- x", "--session-id NEW -- x"),
    ],
)
def test_new_session_gets_an_id_of_ours(typed: str, fresh: str) -> None:
    assert line("grok", typed, session="") == fresh
    assert started("grok", typed).session == NEW


@pytest.mark.parametrize(("typed", "resumed"), [("", "--resume LINKED"), ("-p go", "-p go --resume LINKED")])
def test_linked_session_is_resumed_by_another_option(typed: str, resumed: str) -> None:
    assert line("grok", typed) == resumed
    assert started("grok", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        (f"--resume {LINKED}", LINKED),
        (f"--resume={LINKED}", LINKED),
        (f"-r {LINKED}", LINKED),
        (f"-r{LINKED}", LINKED),
        (f"--session-id {NEW}", NEW),
        (f"-s {NEW} -p go", NEW),
        (f"--resume {LINKED} --fork-session", ""),
        (f"--resume {LINKED} --fork-session --session-id {NEW}", NEW),
        ("--resume ../x", ""),
        *((word, "") for word in ("--resume", "-r", "--continue", "-c", "--fork-session")),
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("grok", typed).has_selector
    assert started("grok", typed, session=LINKED).arguments == tuple(typed.split())
    assert started("grok", typed, session=LINKED).session == session


@pytest.mark.parametrize(
    "typed",
    [
        *("agent", "completions bash", "dashboard", "doctor", "export", "help", "inspect", "leader list"),
        *("login", "logout", "mcp list", "memory", "models", "plugin list", "sessions list", "setup"),
        *("trace", "update", "version", "v", "worktree list", "wrap ls", "-m x models", "hello models"),
        *("--help", "-h", "--version", "-v", "-V", "--no-session", "-p", "--rules", "-s"),
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("grok", typed).is_passing
    assert yolo("grok", typed, LINKED) == typed


@pytest.mark.parametrize("typed", ["-p models", "-m models", "'the models'", "-- models", "--rules help"])
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("grok", typed).is_passing


@pytest.mark.parametrize("typed", ["-p go", "--single go", "-pgo", "--prompt-file f", "--prompt-json []"])
def test_run_without_a_person_is_known(typed: str) -> None:
    assert said("grok", typed).is_batch
    assert not said("grok", "go").is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("", "--session-id NEW --yolo"),
        ("-c", "-c --yolo"),
        ("--always-approve", "--always-approve --session-id NEW"),  # twice is an error
        ("--permission-mode plan", "--permission-mode plan --session-id NEW"),
    ],
)
def test_yolo_comes_once_and_widens_no_narrower_choice(typed: str, unrestrained: str) -> None:
    assert yolo("grok", typed) == unrestrained


def test_what_the_launcher_must_know() -> None:
    launch = launch_of("grok")
    assert (launch.executables, launch.is_pooled, launch.is_bound) == (("grok",), False, False)
    assert launch.variables == ("GROK_HOME",)


# ------------------------------------------------------------------------------- telling


def told(typed: str, text: str = PACKET, session: str = "") -> Delivered:
    return delivered("grok", typed, text, session)


def test_new_session_has_the_packet_among_its_rules_as_the_last_two_arguments() -> None:
    done = told("-p go")
    assert done.is_told
    assert done.argv.arguments == ("-p", "go", "--session-id", NEW, "--rules", PACKET)
    assert (done.argv.session, done.argv.notices, done.files) == (NEW, (), {})
    assert told("-- go").argv.arguments == ("--session-id", NEW, "--rules", PACKET, "--", "go")


@pytest.mark.parametrize("typed", ["--rules mine", "--append-system-prompt=mine"])
def test_rules_of_a_persons_own_stay_the_only_ones(typed: str) -> None:
    done = told(typed)
    assert not done.is_told
    assert PACKET not in done.argv.arguments
    assert len(done.argv.notices) == 1


@pytest.mark.parametrize(
    ("typed", "session"),
    [("", LINKED), ("-c", ""), (f"--resume {LINKED}", ""), (f"-r {LINKED} --fork-session", "")],
)
def test_session_that_goes_on_counts_as_not_told(typed: str, session: str) -> None:
    done = told(typed, session=session)
    assert not done.is_told
    assert PACKET not in done.argv.arguments
    assert "after its first answer" in done.argv.notices[0]


def test_rules_that_grok_would_take_for_an_option_are_none() -> None:
    assert told("", "-dash\0").argv.arguments[-1] == "\n-dash"
