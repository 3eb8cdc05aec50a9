"""The records of Grok's two logs, one rule at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memd.harness.grok import ADAPTER, begin, beside, identify, instead
from memd.harness.model import Event, Parsed, Session, event_id
from memd.harness.packets import PACKET_MARKER

SESSION = "01a22ddd-b3f4-7a42-ad0c-bf6a380ef92f"
FIRST_MS = 1_796_065_834_000


def one(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class Log:
    """Either log as it is written."""

    def __init__(self, *, is_side: bool = False) -> None:
        self.data = b""
        self.count = 0
        self.begun = begin(Session(id=SESSION, is_side=is_side), "")

    def update(self, kind: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> Log:
        """A line of `updates.jsonl`."""
        self.count += 1
        made = {"eventId": f"{SESSION}-{self.count}", "agentTimestampMs": FIRST_MS + self.count}
        params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **fields}}
        self.data += one(
            {
                "timestamp": FIRST_MS // 1000,
                "method": "session/update",
                "params": {**params, "_meta": made if meta is None else meta},
            }
        )
        return self

    def chat(self, which: str, **fields: Any) -> Log:
        """A line of `chat_history.jsonl`."""
        self.data += one({"type": which, **fields})
        return self

    def parsed(self) -> Parsed:
        parsed = ADAPTER.parse(self.data, 0, self.begun)  # type: ignore[misc]
        assert parsed.consumed == len(self.data)
        return parsed

    def events(self) -> list[Event]:
        return list(self.parsed().events)

    def told(self) -> list[tuple[str, str, str]]:
        return [(event.kind, event.role, event.content) for event in self.events()]

    def lost(self) -> dict[str, int]:
        return {loss.what: loss.count for loss in self.parsed().losses}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def shown(words: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": text(words)}]


# ------------------------------------------------------------------------- updates.jsonl


def test_what_was_said_and_thought_and_done() -> None:
    log = Log().update("user_message_chunk", content=text("hello"))
    log.update("agent_thought_chunk", content=text("SECRET"))
    log.update("agent_message_chunk", content=text("hi"))
    log.update("tool_call", toolCallId="c", title="shown", rawInput={"b": 1, "a": [2]})
    log.update("turn_completed", stop_reason="end_turn")
    assert log.told() == [
        ("message", "user", "hello"),
        ("message", "assistant", "hi"),
        ("tool_call", "assistant", 'shown: {"b":1,"a":[2]}'),
    ]
    assert log.lost() == {"reasoning": 1}


def test_a_call_has_the_tools_own_name_where_it_is_given() -> None:
    tool = {"x.ai/tool": {"version": 1, "name": "run_terminal_command"}}
    log = Log().update("tool_call", toolCallId="c", title="Run Command", rawInput={}, _meta=tool)
    assert log.events()[0].metadata == {"tool": "run_terminal_command", "tool_call_id": "c"}


def test_a_result_is_taken_once_when_the_call_is_finished() -> None:
    log = Log()
    for status in (None, "pending", "in_progress", "completed"):
        log.update("tool_call_update", toolCallId="c", status=status, content=shown("out\n"))
    log.update("tool_call_update", toolCallId="d", status="failed", content=shown("no such tool"))
    assert [event.content for event in log.events()] == ["out\n", "no such tool"]
    assert [event.metadata for event in log.events()] == [
        {"tool_call_id": "c", "is_error": False},
        {"tool_call_id": "d", "is_error": True},
    ]


@pytest.mark.parametrize(
    ("output", "content", "code"),
    [
        ({"type": "Bash", "output": [1], "output_for_prompt": "exit: 3\n", "exit_code": 3}, "exit: 3\n", 3),
        ({"type": "Edit", "EditsApplied": {"tool_output_for_prompt": "created"}}, "created", None),
        ({"exit_code": True}, "", None),
        ({"exit_code": 1 << 40}, "", None),
        ("text", "", None),
        (None, "", None),
    ],
)
def test_a_result_that_shows_nothing_says_what_the_model_was_told(
    output: object, content: str, code: int | None
) -> None:
    change = [{"type": "diff", "path": "a", "oldText": "", "newText": "b"}]
    log = Log().update(
        "tool_call_update", toolCallId="c", status="completed", content=change, rawOutput=output
    )
    (event,) = log.events()
    assert (event.content, event.metadata.get("exit_code")) == (content, code)


def test_what_was_taken_back_stays() -> None:
    log = Log().update("user_message_chunk", content=text("one"))
    log.update("user_message_chunk", content=text("two"))
    log.update("rewind_marker", target_prompt_index=1)
    log.update("user_message_chunk", content=text("three"))
    assert [event.content for event in log.events()] == ["one", "two", "three"]
    assert not log.parsed().turns
    assert log.lost() == {}


def test_what_is_not_conversation_is_counted_by_its_class() -> None:
    log = Log().update("user_message_chunk", content={"type": "image", "data": "AAAA"})
    log.update("agent_message_chunk", content={"type": "hologram"})
    log.update("agent_message_chunk", content=[])
    log.update("hook_annotation", message="feedback, continuing: notes")
    log.update("turn_completed", stop_reason="error", agent_result="API error")
    log.update("subagent_spawned", child_session_id="x")
    log.update("hologram")
    log.data += one({"timestamp": 1, "method": "session/update", "params": {}})
    assert log.told() == []
    assert log.lost() == {
        "image": 1,
        "unknown-block": 1,
        "unknown-shape": 2,
        "attachment": 1,
        "api-error": 1,
        "sub-agent": 1,
        "unknown-type": 1,
    }


def test_a_compaction_is_one_event() -> None:
    log = Log().update("auto_compact_started").update("compaction_checkpoint")
    log.update("auto_compact_completed", summary_preview=None)
    log.update("auto_compact_completed", summary_preview="so far: nothing")
    assert log.told() == [
        ("compaction", "assistant", "Context compacted"),
        ("compaction", "assistant", "so far: nothing"),
    ]


def test_a_packet_that_comes_back_is_one_loss_wherever_it_stands() -> None:
    packet = f"{PACKET_MARKER}\nwords of before"
    log = Log().update("user_message_chunk", content=text(packet))
    log.update("tool_call_update", toolCallId="c", status="completed", content=shown(packet))
    log.update("hook_annotation", message=f"Stop hook feedback, continuing: {packet}")
    log.chat("user", content=[text(f"<user_query>\n{packet}\n</user_query>")])
    log.chat("user", content=[text(packet)], synthetic_reason="stop_hook_feedback")
    log.update("user_message_chunk", content=text(f"what is {PACKET_MARKER}?"))
    assert [event.content for event in log.events()] == [f"what is {PACKET_MARKER}?"]
    assert log.lost() == {"own-packet": 5}


def test_updates_without_ids_are_told_apart_by_how_often_they_were_said() -> None:
    for meta in ({}, {"eventId": "x"}, {"agentTimestampMs": FIRST_MS}):
        log = Log()
        for _ in range(2):
            log.update("user_message_chunk", meta=meta, content=text("yes"))
        ids = [event_id("grok", event) for event in log.events()]
        assert len(set(ids)) == 2
        assert log.events()[0].occurred_at == "2026-11-30T19:10:34.000Z"


def test_all_of_a_sub_agents_session_is_beside_the_main_line() -> None:
    log = Log(is_side=True).update("user_message_chunk", content=text("task"))
    assert [event.is_side for event in log.events()] == [True]


# ------------------------------------------------------------------- chat_history.jsonl


def test_all_that_the_reference_lists_of_the_second_log() -> None:
    log = Log().chat("system", content="SECRET-SYSTEM")
    info, rules = "  <user_info>\nOS: linux\n</user_info>", "<system-reminder>rules</system-reminder>"
    question = "<user_query>\nWhy is CI red?\n</user_query>"
    log.chat("user", content=[text(info), text(rules), text(question)])
    log.chat("reasoning", encrypted_content="SECRET-THOUGHT")
    calls = [{"id": "g1", "name": "run_terminal", "arguments": '{"cmd": "make test"}'}]
    log.chat("assistant", content="Checking the log.", tool_calls=calls)
    log.chat("tool_result", tool_call_id="g1", content="2 failed")
    log.chat("backend_tool_call", kind={"tool_type": "web_search", "action": {"query": "pytest 2"}})
    assert [(*event, block) for event, block in zip(log.told(), (2, 0, 1, 0, 0), strict=True)] == [
        ("message", "user", question, 2),
        ("message", "assistant", "Checking the log.", 0),
        ("tool_call", "assistant", 'run_terminal: {"cmd":"make test"}', 1),
        ("tool_result", "tool", "2 failed", 0),
        ("tool_call", "assistant", 'web_search: {"query":"pytest 2"}', 0),
    ]
    assert [event.block for event in log.events()] == [2, 0, 1, 0, 0]
    assert log.lost() == {"system-prompt": 1, "reasoning": 1}


def test_calls_without_words_begin_at_block_nought() -> None:
    log = Log().chat("assistant", tool_calls=[{"id": "a", "name": "read", "arguments": {"p": 1}}])
    assert [(event.block, event.content) for event in log.events()] == [(0, 'read: {"p":1}')]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("plain", "plain"),
        (
            ["one", {"text": "two"}, {"content": "three"}, {"output": "four"}, None, ""],
            "one\ntwo\nthree\nfour",
        ),
        ({"odd": [1]}, '{"odd":[1]}'),
        (7, "7"),
        (True, "true"),
        (None, ""),
    ],
)
def test_visible_text_of_a_result(content: object, told: str) -> None:
    assert [event.content for event in Log().chat("tool_result", content=content).events()] == [told]


def test_what_grok_says_in_the_users_name_is_not_the_users() -> None:
    log = Log().chat("user", content=[text("rules of the project")], synthetic_reason="project_instructions")
    log.chat("user", content=[text("<user_info>x</user_info>")], synthetic_reason="compaction_meta")
    log.chat("user", content=[text("Summary: so far")], synthetic_reason="compaction_meta")
    log.chat("user", content="typed")
    assert log.told() == [("compaction", "assistant", "Summary: so far"), ("message", "user", "typed")]
    assert log.lost() == {"synthetic": 1}


def test_blocks_of_other_kinds_in_the_users_name() -> None:
    blocks = [
        {"type": "input_text", "content": "by its other name"},
        {"type": "tool_use", "id": "c", "name": "read", "input": {"p": 1}},
        {"type": "tool_result", "tool_use_id": "c", "content": [text("out")], "is_error": True},
        {"type": "image"},
        {"type": "hologram"},
        7,
        {"type": "text", "text": 7},
    ]
    log = Log().chat("user", content=blocks)
    assert [(event.kind, event.content, event.block) for event in log.events()] == [
        ("message", "by its other name", 0),
        ("tool_call", 'read: {"p":1}', 1),
        ("tool_result", "out", 2),
    ]
    assert log.events()[2].metadata == {"tool_call_id": "c", "is_error": True}
    assert log.lost() == {"image": 1, "unknown-block": 1, "unknown-shape": 2}


def test_the_same_prompt_twice_is_two_events_and_a_replay_gives_the_same() -> None:
    log = Log().chat("user", content="yes").chat("assistant", content="ok").chat("user", content="yes")
    ids = [event_id("grok", event) for event in log.events()]
    assert len(set(ids)) == 3
    assert [event_id("grok", event) for event in log.events()] == ids


# ------------------------------------------------------------------------------ sessions


def summary(**fields: Any) -> bytes:
    made = {"info": {"id": SESSION, "cwd": "/w"}, "created_at": "2026-11-30T19:10:33.979319403Z", **fields}
    return json.dumps(made).encode()


def test_session_is_what_its_summary_says() -> None:
    session = identify(b"%2Fany/x/updates.jsonl", summary(generated_title="a title", num_messages=3), "")
    assert session == Session(id=SESSION, cwd="/w", title="a title", started="2026-11-30T19:10:33.979319403Z")


def test_forks_and_sub_agents_say_so() -> None:
    fork = identify(b"b/s/updates.jsonl", summary(session_kind="fork", parent_session_id="p"), "")
    side = identify(b"b/s/updates.jsonl", summary(session_kind="subagent", parent_session_id="p"), "")
    assert fork is not None and side is not None
    assert (fork.forked_from, fork.is_side, fork.parent) == ("p", False, "")
    assert (side.forked_from, side.is_side, side.parent) == ("", True, "p")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[]",
        b"{}",
        b'{"info":null}',
        b'{"info":{"id":"","cwd":"/w"}}',
        b'{"info":{"id":"x"}}',
        b'{"info":{"id":7,"cwd":"/w"}}',
        b'{"info":{"id":"x","cwd":"/w"',
    ],
)
def test_without_an_id_and_a_directory_there_is_no_session(head: bytes) -> None:
    assert identify(b"b/s/updates.jsonl", head, "") is None


def test_only_the_two_logs_are_sessions_and_one_goes_before_the_other() -> None:
    for name in (b"events.jsonl", b"rewind_points.jsonl", b"prompt_history.jsonl"):
        assert identify(b"b/s/" + name, summary(), "") is None
    assert beside(b"b/s/updates.jsonl") == b"b/s/summary.json"
    assert instead(b"b/s/chat_history.jsonl") == b"b/s/updates.jsonl"
    assert instead(b"b/s/updates.jsonl") == b""


def test_the_second_log_is_not_read_while_the_first_is_about_to_begin() -> None:
    path = b"b/s/chat_history.jsonl"
    assert identify(path, summary(num_messages=0), "") is None
    assert identify(path, summary(num_messages=3), "") is not None
    assert identify(path, summary(), "") is not None
    assert identify(b"b/s/updates.jsonl", summary(num_messages=0), "") is not None
