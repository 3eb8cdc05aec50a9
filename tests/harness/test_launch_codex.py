"""How Codex is started, as codex-cli 0.171.0 takes it.

Conformance 3, 4, 5, 10, 11, 13, 52; acceptance 2.
"""

from __future__ import annotations

import pytest

from support_launch import LINKED, line, said, started, yolo

UUID = "019f0000-1234-7000-8000-def012345678"
YOLO = "--dangerously-bypass-approvals-and-sandbox"


@pytest.mark.parametrize("typed", ["", "-m x 'fix it'", "exec --json go", "e go", "-i a.png fix"])
def test_new_session_is_started_as_it_was_typed(typed: str) -> None:
    argv = started("codex", typed)
    assert line("codex", typed, session="") == typed
    assert argv.session == ""


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("", "resume LINKED"),
        ("-m x 'fix it'", "resume LINKED -m x 'fix it'"),
        ("-i a.png", "resume LINKED -i a.png"),
        ("-- --odd", "resume LINKED -- --odd"),
        ("exec --json go", "exec resume LINKED --json go"),
        ("exec", "exec resume LINKED"),
        ("e go", "e resume LINKED go"),
        ("-m x exec go", "-m x exec resume LINKED go"),
        ("exec -- --odd", "exec resume LINKED -- --odd"),
        ("exec -", "exec resume LINKED -"),
        ("exec -i a.png go", "exec resume LINKED -i a.png go"),
    ],
)
def test_resume_goes_first_or_behind_exec(typed: str, resumed: str) -> None:
    assert line("codex", typed) == resumed
    assert started("codex", typed, session=LINKED).session == LINKED


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ("exec -s read-only go", "exec -s read-only resume LINKED go"),
        ("exec -sread-only go", "exec -sread-only resume LINKED go"),
        ("exec --sandbox=read-only --json go", "exec --sandbox=read-only resume LINKED --json go"),
        ("exec --json -C /x -m y go", "exec --json -C /x resume LINKED -m y go"),
        ("exec --oss --profile p go", "exec --oss --profile p resume LINKED go"),
        ("exec go -s read-only --json", "exec go -s read-only resume LINKED --json"),
        ("exec -i a.png --color never go", "exec -i a.png --color never resume LINKED go"),
        ("-s read-only exec go", "-s read-only exec resume LINKED go"),
        ("exec go -- -s x", "exec resume LINKED go -- -s x"),
    ],
)
def test_options_that_resume_does_not_know_stay_before_it(typed: str, resumed: str) -> None:
    assert line("codex", typed) == resumed


@pytest.mark.parametrize(
    ("typed", "session"),
    [
        (f"resume {UUID}", UUID),
        (f"resume {UUID} 'go on'", UUID),
        (f"-m x resume {UUID}", UUID),
        (f"resume -m x {UUID}", UUID),
        (f"-c a=b --search resume {UUID}", UUID),
        (f"--odd v resume {UUID}", UUID),
        (f"exec resume {UUID} go", UUID),
        (f"exec -s read-only resume {UUID} go", UUID),
        (f"exec go resume {UUID}", UUID),
        (f"e resume --json {UUID}", UUID),
        ("resume", ""),
        ("resume --last", ""),
        (f"resume --last {UUID}", ""),
        ("resume my-name", ""),
        ("resume -- x", ""),
        (f"fork {UUID}", ""),
        (f"exec fork {UUID} go", ""),
        ("fork --last", ""),
        ("--last", ""),  # refused by Codex, and not to be made into something else
    ],
)
def test_session_that_a_person_names_is_not_named_again(typed: str, session: str) -> None:
    assert said("codex", typed).has_selector
    assert line("codex", typed) == typed
    assert started("codex", typed, session=LINKED).session == session


@pytest.mark.parametrize(
    "typed",
    [
        "'resume the work'",
        "exec 'resume it'",
        "-m resume",
        "-- resume x",
        "exec -- resume x",
        "exec -i resume x",
        "first second resume",
    ],
)
def test_word_resume_in_another_place_selects_nothing(typed: str) -> None:
    assert not said("codex", typed).has_selector


@pytest.mark.parametrize(
    "typed",
    [
        "--version",
        "-V",
        "--help",
        "exec --help",
        "exec review",
        "exec --json review",
        "exec help",
        "exec --ephemeral go",
        "review",
        "login",
        "logout",
        "mcp list",
        "plugin",
        "mcp-server",
        "app-server",
        "remote-control",
        "completion bash",
        "update",
        "doctor",
        "sandbox ls",
        "debug",
        "apply",
        "a",
        "archive x",
        "delete x",
        "unarchive x",
        "cloud",
        "exec-server",
        "features",
        "help",
        "agents",
        "queue x",
        "-m x login",
        "-c a=b mcp list",
        "-m",
    ],
)
def test_utility_is_passed_through(typed: str) -> None:
    assert said("codex", typed).is_passing
    assert yolo("codex", typed, LINKED) == typed


@pytest.mark.parametrize(
    "typed", ["'fix it' doctor", "exec go review", "-m doctor", "exec doctor", "-- login", "review-it"]
)
def test_word_of_a_utility_in_another_place_is_none(typed: str) -> None:
    assert not said("codex", typed).is_passing
    assert "resume LINKED" in line("codex", typed)


@pytest.mark.parametrize(("typed", "is_batch"), [("exec go", True), ("-m x e go", True), ("go", False)])
def test_run_without_a_person_is_known(typed: str, is_batch: bool) -> None:
    assert said("codex", typed).is_batch is is_batch


@pytest.mark.parametrize(
    ("typed", "unrestrained"),
    [
        ("-m M 'two words'", f"-m M 'two words' {YOLO}"),
        ("exec go", f"exec go {YOLO}"),
        (f"resume {UUID}", f"resume {UUID} {YOLO}"),
        (f"exec fork {UUID}", f"exec fork {UUID} {YOLO}"),
        (YOLO, YOLO),
        (f"{YOLO}=true", f"{YOLO}=true"),
        ("-s read-only", f"-s read-only {YOLO}"),
        ("exec -- go", f"exec {YOLO} -- go"),
    ],
)
def test_yolo_is_the_last_word_and_comes_once(typed: str, unrestrained: str) -> None:
    assert yolo("codex", typed) == unrestrained


@pytest.mark.parametrize("typed", ["-a on-request", "--ask-for-approval=never", "exec --approve-for-me go"])
def test_yolo_does_not_overrule_approvals_that_were_asked_for(typed: str) -> None:
    argv = started("codex", typed, is_yolo=True)
    assert yolo("codex", typed) == typed
    assert "--yolo is left out" in argv.notices[0]


def test_both_words_of_ours_keep_the_order_of_what_was_typed() -> None:
    assert yolo("codex", "exec -C /x --json 'a b' -- c", LINKED) == (
        f"exec -C /x resume LINKED --json 'a b' {YOLO} -- c"
    )
