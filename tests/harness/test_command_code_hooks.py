"""What Command Code's hooks carry and are answered, as Command Code 1.64.0 was seen to send and take it."""

from __future__ import annotations

import json

import pytest

from memd.harness.command_code_hooks import HOOKS
from memd.harness.model import Environment

PAYLOAD: dict[str, object] = {
    "session_id": "e7285153-6221-4f3a-aa70-57866fc21a34",
    "transcript_path": "/home/dev/.commandcode/projects/home-dev-proj/e7285153.jsonl",
    "cwd": "/home/dev/proj",
    "hook_event_name": "SessionStart",
    "permission_mode": "standard",
    "source": "startup",
}


@pytest.mark.parametrize(("event", "role"), [("SessionStart", "start"), ("Stop", "prompt")])
def test_what_each_event_is_for_and_that_an_empty_object_is_harmless(event: str, role: str) -> None:
    known = HOOKS.event(event)
    assert known is not None
    assert (known.role, known.harmless, HOOKS.answer(event, "")) == (role, "{}", "{}")
    assert known.matcher is None


def test_names_that_command_code_would_show_as_mistakes_are_not_installed() -> None:
    assert {event.name for event in HOOKS.events} <= {"SessionStart", "PreToolUse", "PostToolUse", "Stop"}


def test_a_text_is_told_at_the_start_and_nowhere_else() -> None:
    printed = json.loads(HOOKS.answer("SessionStart", 'two\n"lines"'))
    assert printed == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'two\n"lines"'}
    }
    assert HOOKS.answer("Stop", "text") == "{}"
    assert not HOOKS.is_escaped  # its limit counts the text


def test_what_a_start_says() -> None:
    heard = HOOKS.hear("SessionStart", PAYLOAD)
    assert (heard.session, heard.cwd) == (PAYLOAD["session_id"], "/home/dev/proj")
    assert heard.transcript == PAYLOAD["transcript_path"]
    assert not (heard.is_inner or heard.is_clear or heard.is_again)
    assert HOOKS.hear("SessionStart", {**PAYLOAD, "source": "clear"}).is_clear
    resumed = HOOKS.hear("SessionStart", {**PAYLOAD, "source": "resume"})  # a fork and a clone say so too
    assert (resumed.is_clear, resumed.is_new) == (False, True)
    assert not HOOKS.hear("Stop", {key: value for key, value in PAYLOAD.items() if key != "source"}).is_new


def test_no_variable_moves_the_settings() -> None:
    (found,) = HOOKS.settings(Environment(home=b"/h/", variables={"XDG_CONFIG_HOME": b"/x"}))
    assert (found.path, found.form) == (b"/h/.commandcode/settings.json", "json-hooks")
