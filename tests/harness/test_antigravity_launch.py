"""How Antigravity is started."""

from __future__ import annotations

import pytest

from memd.harness.antigravity_launch import LAUNCH
from memd.harness.launching import Intent
from memd.workstream.launch import chosen
from support_launch import LINKED, line, said, yolo


def test_every_word_of_it_starts_the_same_program_and_none_is_started_unasked() -> None:
    assert {chosen(word)[0].name for word in ("antigravity", "antigravity-cli", "agy", "AGY")} == {
        "antigravity"
    }
    assert LAUNCH.executables == ("agy",)
    assert not LAUNCH.is_pooled


def test_the_linked_conversation_is_named_at_the_end() -> None:
    assert line("antigravity", "") == "--conversation LINKED"
    assert line("antigravity", "-p go") == "-p go --conversation LINKED"
    assert line("antigravity", "-i go -- more") == "-i go --conversation LINKED -- more"
    assert line("antigravity", "-i go", session="") == "-i go"


@pytest.mark.parametrize(
    "typed", [f"--conversation {LINKED}", f"--conversation={LINKED}", "--continue", "-c"]
)
def test_a_person_s_own_selector_stays_alone(typed: str) -> None:
    assert said("antigravity", typed).has_selector
    assert line("antigravity", typed) == typed.replace(LINKED, "LINKED")


def test_only_a_uuid_is_a_conversation() -> None:
    assert said("antigravity", f"--conversation {LINKED}").session == LINKED
    assert said("antigravity", "--conversation mine").session == ""
    made = LAUNCH.compose((), Intent(session="mine"))
    assert (made.arguments, made.session) == ((), "")
    assert "new conversation" in made.notices[0]


@pytest.mark.parametrize("typed", ["--print go", "-p go", "--prompt go", "-p"])
def test_a_run_without_a_screen_asks_nothing(typed: str) -> None:
    assert said("antigravity", typed).is_batch
    assert not said("antigravity", typed).is_passing


@pytest.mark.parametrize("typed", ["-i go", "--prompt-interactive go"])
def test_a_first_prompt_is_no_run_without_a_screen(typed: str) -> None:
    assert not said("antigravity", typed).is_batch


@pytest.mark.parametrize(
    "typed", ["agent list", "agents", "changelog", "help", "install", "models", "plugin x", "plugins",
              "update", "--help", "-h", "--version", "-v", "--no-session", "--conversation"],
)  # fmt: skip
def test_utilities_pass_as_they_are(typed: str) -> None:
    assert said("antigravity", typed).is_passing
    assert yolo("antigravity", typed, session=LINKED) == typed


def test_a_utility_s_name_further_on_is_a_word() -> None:
    assert not said("antigravity", "-i update").is_passing
    assert not said("antigravity", "please update").is_passing


@pytest.mark.parametrize(
    ("typed", "started"),
    [
        ("", "--dangerously-skip-permissions"),
        ("-i go", "-i go --dangerously-skip-permissions"),
        ("--dangerously-skip-permissions", "--dangerously-skip-permissions"),
    ],
)
def test_yolo_is_said_once(typed: str, started: str) -> None:
    assert yolo("antigravity", typed) == started


def test_yolo_follows_the_selector() -> None:
    assert yolo("antigravity", "", LINKED) == "--conversation LINKED --dangerously-skip-permissions"
