"""What Grok's hooks carry and are answered, as Grok Build 0.2.111 was seen to send and take it."""

from __future__ import annotations

import json

import pytest

from memd.harness import claude_hooks
from memd.harness.grok_hooks import HOOKS
from memd.harness.model import Environment

SESSION = "01a22f4e-b9b5-7cd3-9d1f-f58781616f37"
LOG = f"/home/dev/.grok/sessions/%2Fhome%2Fdev%2Fproj/{SESSION}/updates.jsonl"
STOP: dict[str, object] = {
    "hookEventName": "stop",
    "sessionId": SESSION,
    "cwd": "/home/dev/proj",
    "workspaceRoot": "/home/dev/proj/",
    "transcriptPath": LOG,
    "reason": "end_turn",
    "stopHookActive": False,
    "lastAssistantMessage": "one",
}


@pytest.mark.parametrize(
    ("event", "role"), [("SessionStart", "link"), ("Stop", "prompt"), ("SessionEnd", "end")]
)
def test_what_each_event_is_for_and_that_an_empty_object_is_harmless(event: str, role: str) -> None:
    known = HOOKS.event(event)
    assert known is not None
    assert (known.role, known.harmless, HOOKS.answer(event, "")) == (role, "{}", "{}")


def test_prompts_are_not_listened_to_for_those_of_sub_agents_bear_no_mark() -> None:
    assert HOOKS.event("UserPromptSubmit") is None


def test_a_text_is_told_after_a_turn_and_nowhere_else() -> None:
    printed = json.loads(HOOKS.answer("Stop", "text"))
    assert printed == {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "text"}}
    for event in ("SessionStart", "SessionEnd"):
        assert HOOKS.answer(event, "text") == "{}"
    assert [event.name for event in HOOKS.events if event.may_tell] == ["Stop"]
    assert not any(event.role == "start" for event in HOOKS.events)


def test_what_a_stop_says() -> None:
    heard = HOOKS.hear("Stop", STOP)
    assert (heard.session, heard.cwd, heard.transcript) == (SESSION, "/home/dev/proj", LOG)
    assert heard.variables == {"GROK_HOME": b"/home/dev/.grok"}
    assert not (heard.is_inner or heard.harness)


@pytest.mark.parametrize(
    "change",
    [
        {"stopHookActive": True},  # the round that our own answer caused
        {"stop_hook_active": True},
        {"reason": "error"},
        {"reason": "cancelled"},
        {"reason": None},
        {"subagentType": "explore"},
        {"parentSessionId": "other"},
    ],
)
def test_nothing_is_told_where_it_would_come_again_or_reach_somebody_else(change: dict[str, object]) -> None:
    plain = {key: value for key, value in STOP.items() if key != "stopHookActive"}
    assert not HOOKS.hear("Stop", plain).is_inner
    assert HOOKS.hear("Stop", {**plain, **change}).is_inner


def test_names_with_underscores_are_understood() -> None:
    heard = HOOKS.hear("SessionStart", {"session_id": "s", "workspaceRoot": "/w", "source": "load"})
    assert (heard.session, heard.cwd, heard.is_inner) == ("s", "/w", False)
    assert heard.variables == {}


def test_a_start_names_its_session_before_there_is_a_transcript() -> None:
    payload = {key: value for key, value in STOP.items() if key != "transcriptPath"}
    assert HOOKS.hear("SessionStart", payload).session == SESSION
    assert HOOKS.hear("SessionStart", {**payload, "source": "new"}).is_new
    assert not HOOKS.hear("SessionStart", {**payload, "source": "load"}).is_new


def test_the_hooks_of_claude_that_grok_runs_too_leave_its_sessions_alone() -> None:
    for name in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        assert claude_hooks.HOOKS.hear(name, STOP).harness == "grok"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, b"/h/.grok/hooks/memd.json"),
        (b"/g/", b"/g/hooks/memd.json"),
        (b"g", b"/h/.grok/hooks/memd.json"),
    ],
)
def test_hooks_have_a_file_of_their_own_in_the_grok_home(value: bytes | None, path: bytes) -> None:
    variables = {} if value is None else {"GROK_HOME": value}
    (found,) = HOOKS.settings(Environment(home=b"/h", variables=variables))
    assert (found.path, found.form) == (path, "json-own")
