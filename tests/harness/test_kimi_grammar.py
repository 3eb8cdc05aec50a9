"""The records of a Kimi journal, one rule at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memd.harness.kimi import ADAPTER, begin, beside, identify
from memd.harness.model import Event, Parsed, Session, event_id
from memd.harness.packets import PACKET_MARKER

SESSION = "session_demo-1"
PATH = b"wd_x/session_demo-1/agents/main/wire.jsonl"
FIRST_MS = 1_770_000_000_000


class Journal:
    """A journal as it is written, one record after another, a second apart."""

    def __init__(self) -> None:
        self.data = b""
        self.count = 0
        self.raw({"type": "metadata", "protocol_version": "1.5", "created_at": FIRST_MS})

    def raw(self, record: object) -> None:
        self.data += (
            record if isinstance(record, bytes) else json.dumps(record, separators=(",", ":")).encode()
        )
        self.data += b"\n"

    def put(self, kind: str, **fields: Any) -> Journal:
        self.count += 1
        self.raw({"type": kind, "agentId": "main", "time": FIRST_MS + 1000 * self.count, **fields})
        return self

    def message(self, role: str, content: object, kind: str | None = "user", **fields: Any) -> Journal:
        origin = {"origin": {"kind": kind}} if kind else {}
        return self.put(
            "context.append_message",
            message={"role": role, "content": content, "toolCalls": [], **origin, **fields},
        )

    def loop(self, kind: str, **fields: Any) -> Journal:
        return self.put("context.append_loop_event", event={"type": kind, **fields})

    def parsed(self) -> Parsed:
        parsed = ADAPTER.parse(self.data, 0, begin(Session(id=SESSION), ""))  # type: ignore[misc]
        assert parsed.consumed == len(self.data)
        return parsed

    def events(self) -> list[Event]:
        return list(self.parsed().events)

    def told(self) -> list[tuple[str, str, str]]:
        return [(event.kind, event.role, event.content) for event in self.events()]

    def lost(self) -> dict[str, int]:
        return {loss.what: loss.count for loss in self.parsed().losses}


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def test_all_that_the_reference_lists() -> None:
    journal = Journal()
    journal.put("config.update", systemPrompt="SECRET-SYSTEM")
    journal.message("user", text("OLD WORDS"), "hook_result")
    journal.message("user", text("Add a retry"))
    journal.loop("content.part", part={"type": "think", "think": "SECRET-THOUGHT"})
    journal.loop("content.part", part={"type": "text", "text": "Retry added."})
    journal.loop("tool.call", toolCallId="t1", name="Shell", args={"command": "pytest -q"})
    journal.loop("tool.result", toolCallId="t1", result={"output": "3 passed", "isError": False})
    journal.message("assistant", text("half"), None, partial=True)
    journal.put("context.apply_compaction", summary="Retry added and tested.")
    assert journal.told() == [
        ("message", "user", "Add a retry"),
        ("message", "assistant", "Retry added."),
        ("tool_call", "assistant", 'Shell: {"command":"pytest -q"}'),
        ("tool_result", "tool", "3 passed"),
        ("compaction", "assistant", "Retry added and tested."),
    ]
    assert journal.lost() == {"system-prompt": 1, "attachment": 1, "reasoning": 1}
    call, result = journal.events()[2:4]
    assert call.metadata == {"tool": "Shell", "tool_call_id": "t1"}
    assert result.metadata == {"tool_call_id": "t1", "is_error": False}


def test_messages_of_the_older_generation_are_read_with_their_calls() -> None:
    journal = Journal()
    calls: list[dict[str, Any]] = [
        {"id": "c1", "name": "Read", "arguments": '{"path": "a.py", "n": 2}'},
        {"type": "function", "id": "c2", "function": {"name": "Bash", "arguments": "not json"}},
    ]
    journal.message("assistant", [{"type": "text", "text": "Looking."}, "and more"], None, toolCalls=calls)
    journal.message("tool", [{"type": "text", "text": "one"}, "two"], None, toolCallId="c1")
    assert journal.told() == [
        ("message", "assistant", "Looking."),
        ("message", "assistant", "and more"),
        ("tool_call", "assistant", 'Read: {"path":"a.py","n":2}'),
        ("tool_call", "assistant", "Bash: not json"),
        ("tool_result", "tool", "one\ntwo"),
    ]
    assert [event.block for event in journal.events()] == [0, 1, 2, 3, 0]
    assert journal.events()[-1].metadata == {"tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("plain", ["plain"]),
        ({"type": "text", "text": "one piece"}, ["one piece"]),
        ([{"type": "text", "content": "by its other name"}], ["by its other name"]),
        ([{"text": "without a type"}], []),
        (["  \n"], []),
        ([], []),
        (None, []),
    ],
)
def test_every_form_of_content(content: object, told: list[str]) -> None:
    journal = Journal().message("user", content)
    assert [event.content for event in journal.events()] == told
    assert journal.lost() == {}


def test_calls_after_a_message_without_content_begin_at_block_one() -> None:
    journal = Journal()
    message = {"role": "assistant", "toolCalls": [{"id": "c", "name": "Bash", "arguments": "{}"}]}
    journal.put("context.append_message", message=message)
    journal.put("context.append_message", message={**message, "content": []})
    assert [event.block for event in journal.events()] == [1, 0]


def test_what_is_not_text_is_counted_by_its_class() -> None:
    journal = Journal()
    parts = [{"type": "image_url", "url": "x"}, {"type": "hologram"}, {"type": "thinking", "thinking": "no"}]
    journal.message("user", parts)
    journal.message("system", "rules", None)
    journal.message("oracle", "words", None)
    journal.message("user", text("<system-reminder>"), "injection")
    journal.put("hologram")
    journal.loop("hologram")
    assert journal.told() == []
    assert journal.lost() == {
        "image": 1,
        "unknown-block": 2,
        "reasoning": 1,
        "system-prompt": 1,
        "role": 1,
        "synthetic": 1,
        "unknown-type": 1,
    }


def test_message_without_an_origin_is_the_users() -> None:
    assert Journal().message("user", "hello", None).told() == [("message", "user", "hello")]


def test_a_packet_that_comes_back_is_one_loss_wherever_it_stands() -> None:
    packet = f"{PACKET_MARKER}\nwhat was said before"
    journal = Journal()
    hooked = f'<hook_result hook_event="UserPromptSubmit">\n{packet}\n</hook_result>'
    journal.message("user", text(hooked), "hook_result")
    journal.message("user", text(packet))
    journal.loop("tool.result", toolCallId="t", result={"output": packet})
    journal.message("user", text(f"look at this: {PACKET_MARKER}"))
    assert [event.content for event in journal.events()] == [f"look at this: {PACKET_MARKER}"]
    assert journal.lost() == {"own-packet": 3}


def test_prompts_that_were_taken_back_stay_beside_the_main_line() -> None:
    journal = Journal()
    for number in range(1, 4):
        journal.message("user", f"prompt {number}")
        journal.loop("content.part", part={"type": "text", "text": f"answer {number}"})
    journal.put("context.undo", count=2)
    journal.message("user", "prompt 4")
    (turn,) = journal.parsed().turns
    left = [event.content for event in journal.events() if turn.first <= event.at <= turn.last]
    assert turn.is_side
    assert left == ["prompt 2", "answer 2", "prompt 3", "answer 3"]
    assert journal.lost() == {"branch": 1}


@pytest.mark.parametrize("count", [0, -1, 3, True, "2", None, 1.0])
def test_an_undo_that_kimi_would_not_do_changes_nothing(count: object) -> None:
    journal = Journal().message("user", "one").message("user", "two").put("context.undo", count=count)
    assert not journal.parsed().turns


def test_nobody_goes_back_behind_a_compaction_or_a_clear() -> None:
    for kind in ("context.apply_compaction", "context.clear"):
        journal = Journal().message("user", "one").put(kind, summary="so far").message("user", "two")
        assert not journal.put("context.undo", count=2).parsed().turns


def test_the_same_words_at_different_times_are_different_events() -> None:
    journal = Journal().message("user", "yes").message("user", "yes")
    first, second = (event_id("kimi", event) for event in journal.events())
    assert first != second


def test_without_times_it_counts_how_often_something_was_said() -> None:
    journal = Journal()
    for _ in range(2):
        journal.raw({"type": "context.append_message", "message": {"role": "user", "content": "yes"}})
    ids = [event_id("kimi", event) for event in journal.events()]
    assert len(set(ids)) == 2
    assert [event_id("kimi", event) for event in journal.events()] == ids


def test_summary_may_be_a_message_or_stand_elsewhere() -> None:
    journal = Journal()
    journal.put("context.apply_compaction", summary={"role": "user", "content": text("as a message")})
    journal.put("context.apply_compaction", contextSummary="elsewhere")
    journal.put("context.apply_compaction")
    assert [event.content for event in journal.events()] == ["as a message", "elsewhere"]


def test_a_sub_agents_journal_is_one_loss_of_its_session_and_nothing_else() -> None:
    path = b"wd_x/session_demo-1/agents/agent-3/wire.jsonl"
    session = identify(path, b'{"cwd":"/w"}', "")
    assert session is not None
    assert (session.id, session.is_side, session.parent) == ("session_demo-1/agent-3", True, SESSION)
    data = Journal().message("user", "task").data
    state, losses = begin(session, ""), []
    for _ in range(2):
        parsed = ADAPTER.parse(data, 0, state)  # type: ignore[misc]
        assert not parsed.events
        state = parsed.state
        losses += [(loss.session, loss.what, loss.count) for loss in parsed.losses]
    assert losses == [(SESSION, "sidechain", 1)]


@pytest.mark.parametrize(
    ("state", "cwd"),
    [
        ({"id": SESSION, "cwd": "/w"}, "/w"),
        ({"cwd": "/w"}, "/w"),
        ({"workDir": "/w"}, "/w"),
        ({"cwd": "/w", "workDir": "/w/"}, "/w"),
        ({"cwd": "/w", "workDir": "/other"}, None),
        ({"id": "session_other", "cwd": "/w"}, None),
        ({"id": 7, "cwd": "/w"}, None),
        ({"cwd": 7}, None),
        ({"cwd": "/w", "workDir": None}, None),
        ({"cwd": ""}, None),
        ({}, None),
        ([], None),
    ],
)
def test_state_decides_whether_it_is_a_session_and_where_it_was_begun(state: object, cwd: str | None) -> None:
    session = identify(PATH, json.dumps(state).encode(), "")
    assert (session.cwd if session else None) == cwd


def test_only_journals_of_agents_are_sessions() -> None:
    for path in (b"b/s/wire.jsonl", b"b/s/agents/main/wire.jsonl.bak", b"b/s/other/main/wire.jsonl", b""):
        assert identify(path, b'{"cwd":"/w"}', "") is None
    assert beside(PATH) == b"wd_x/session_demo-1/state.json"


def test_torn_record_is_a_loss_and_the_one_glued_to_it_is_read() -> None:
    journal = Journal().message("user", "before")
    whole = Journal().message("assistant", "after", None).data.split(b"\n")[1]
    journal.raw(b'{"type":"context.append_message","mess' + whole)
    assert [event.content for event in journal.events()] == ["before", "after"]
    assert journal.lost() == {"malformed": 1}
