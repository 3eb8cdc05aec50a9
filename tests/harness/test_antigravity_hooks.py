"""What Antigravity's hooks carry and print, and the texts that only they carry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memd.harness.antigravity_hooks import AFTER_TOOL, BEFORE_TOOL, HOOKS, START, STOP, events_of
from memd.harness.hooking import Heard
from memd.harness.model import Event, Parsed, event_id

ME = "7c0d5c1e-2222-4222-8333-000000000001"
CALL = {"name": "run_command", "args": {"b": "é", "a": [1, 2.5]}}


def payload(**more: Any) -> dict[str, Any]:
    return {"conversationId": ME, "workspacePaths": ["/w", "/v"], "stepIdx": 4, **more}


def told(event: str, at_ms: int = 1_770_000_000_000, **more: Any) -> Parsed:
    return events_of(event, payload(**more), at_ms)


def ids(*parsed: Parsed) -> list[str]:
    return [event_id("antigravity", event) for one in parsed for event in one.events]


@pytest.mark.parametrize("number", [None, "0", 1, -1, 0.0, True, False, [0], ""])
def test_only_the_number_0_begins_anything(number: object) -> None:
    assert HOOKS.hear(START, payload(invocationNum=number)) == Heard()
    assert HOOKS.hear(START, payload()) == Heard()


def test_a_start_names_conversation_and_directory() -> None:
    assert HOOKS.hear(START, payload(invocationNum=0)) == Heard(session=ME, cwd="/w")
    assert HOOKS.hear(START, {"invocationNum": 0, "conversationId": "../x"}) == Heard()
    start = HOOKS.event(START)
    assert start is not None
    assert start.is_each_turn


def test_a_tool_is_allowed_whatever_is_told() -> None:
    for text in ("", "anything"):
        assert json.loads(HOOKS.answer(BEFORE_TOOL, text)) == {"decision": "allow"}
    before = HOOKS.event(BEFORE_TOOL)
    assert before is not None
    assert json.loads(before.harmless) == {"decision": "allow"}


def test_a_text_is_an_injected_step_and_everything_else_is_empty() -> None:
    assert json.loads(HOOKS.answer(START, 'a "text"')) == {"injectSteps": [{"ephemeralMessage": 'a "text"'}]}
    assert [HOOKS.answer(event, "text") for event in (AFTER_TOOL, STOP)] == ["{}", "{}"]
    assert HOOKS.answer(START, "") == "{}"


def test_a_call_is_one_event_before_and_after_it_ran_and_however_often_it_is_told() -> None:
    before, after = told(BEFORE_TOOL, toolCall=CALL), told(AFTER_TOOL, at_ms=9, toolCall=CALL)
    (event,) = before.events
    assert (event.kind, event.content) == ("tool_call", 'run_command: {"b":"é","a":[1,2.5]}')
    assert event.metadata == {"tool": "run_command"}
    assert event.occurred_at == "2026-02-02T02:40:00.000Z"
    assert ids(before) == ids(after)
    assert [(one.id, one.cwd, one.also) for one in before.sessions] == [(ME, "/w", ("/v",))]


def test_another_step_conversation_or_content_is_another_event() -> None:
    found = ids(
        told(BEFORE_TOOL, toolCall=CALL),
        told(BEFORE_TOOL, toolCall=CALL, stepIdx=5),
        told(BEFORE_TOOL, toolCall={**CALL, "args": {}}),
        told(BEFORE_TOOL, toolCall=CALL, conversationId=ME.replace("1", "2")),
    )
    assert len(set(found)) == 4


def test_a_failed_call_says_why() -> None:
    call, result = told(AFTER_TOOL, toolCall=CALL, error="no such file").events
    assert (result.kind, result.content, result.role) == ("tool_result", "no such file", "tool")
    assert result.metadata == {"tool": "run_command", "is_error": True}
    assert (call.at, result.at, call.block, result.block) == (4, 4, 0, 1)
    assert len(told(BEFORE_TOOL, toolCall=CALL, error="x").events) == 1


@pytest.mark.parametrize(
    "odd", [{"conversationId": "../x"}, {"conversationId": None}, {"conversationId": ME + "/.."}]
)
def test_a_payload_that_names_no_conversation_says_nothing(odd: dict[str, Any]) -> None:
    assert told(BEFORE_TOOL, toolCall=CALL, **odd) == Parsed()


def test_nothing_is_taken_of_other_events_and_of_transcripts() -> None:
    assert told(STOP, toolCall=CALL, terminationReason="SECRET") == Parsed()
    assert told(START, toolCall=CALL, invocationNum=0) == Parsed()
    assert "SECRET" not in repr(told(BEFORE_TOOL, toolCall=CALL, transcriptPath="/SECRET", note="SECRET"))


def test_odd_calls_are_named_or_counted() -> None:
    assert [event.content for event in told(AFTER_TOOL, toolCall={"name": 7}).events] == ["tool: "]
    assert [loss.what for loss in told(BEFORE_TOOL, toolCall=[CALL]).losses] == ["unknown-shape"]
    assert told(AFTER_TOOL).losses == ()
    events: list[Event] = list(told(BEFORE_TOOL, toolCall=CALL, stepIdx="4").events)
    assert (events[0].record, events[0].at) == ("", 0)
