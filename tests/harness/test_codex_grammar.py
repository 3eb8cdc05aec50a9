"""What each kind of record of a Codex rollout becomes."""

from __future__ import annotations

from typing import Any

import pytest

from memd.harness import codex as adapter
from memd.harness import registry
from memd.harness.model import MAX_EVENT_BYTES, Environment, Parsed
from support_order import arrange, conversation
from support_records import CWD, SESSION, codex, events, line, losses, message, meta, parse, texts

NAMED = b"2026/02/03/rollout-2026-02-03T10-00-00-" + SESSION.encode() + b".jsonl"


def note(kind: str, **fields: Any) -> dict[str, Any]:
    return codex("event_msg", type=kind, **fields)


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return codex("response_item", type=kind, **fields)


def done(kind: str, text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "Text", "text": text}]
    return note("item_completed", item={"type": kind, "content": content, **fields})


def test_example_of_every_visible_kind() -> None:
    parsed = parse(
        "codex",
        meta(),
        message("user", "list files"),
        item("function_call", name="shell", arguments='{"cmd":"ls"}', call_id="call-7"),
        item("function_call_output", call_id="call-7", output="a.py"),
        item("web_search_call", id="ws_1", status="in_progress", action={"type": "search", "query": "q"}),
        item(
            "local_shell_call",
            call_id="call-8",
            status="completed",
            action={"type": "exec", "command": ["ls"]},
        ),
        codex("compacted", message="Summary so far", replacement_history=[message("user", "list files")]),
    )
    assert [(one.kind, one.role, one.content) for one in parsed.events] == [
        ("message", "user", "list files"),
        ("tool_call", "assistant", 'shell: {"cmd":"ls"}'),
        ("tool_result", "tool", "a.py"),
        ("tool_call", "assistant", 'web_search: {"type":"search","query":"q"}'),
        ("tool_call", "assistant", 'shell: {"type":"exec","command":["ls"]}'),
        ("compaction", "assistant", "Summary so far"),
    ]
    assert [one.metadata for one in parsed.events][1:4] == [
        {"tool": "shell", "tool_call_id": "call-7"},
        {"tool_call_id": "call-7"},
        {"tool": "web_search", "tool_call_id": "ws_1", "status": "in_progress"},
    ]
    assert not parsed.losses
    assert [(one.id, one.cwd, one.version) for one in parsed.sessions] == [(SESSION, CWD, "0.171.0")]


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (message("developer", "stay in the sandbox"), "system-prompt"),
        (message("system", "be brief"), "system-prompt"),
        (message("tool", "?"), "role"),
        (message("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"), "synthetic"),
        (message("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nrules"), "synthetic"),
        (message("user", "<permissions instructions>none"), "synthetic"),
        (message("user", "<INSTRUCTIONS>\nrules"), "synthetic"),
        (message("developer", "<!-- memd:workstream-packet:v1 -->\nwords"), "own-packet"),
        (
            item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="g"),
            "reasoning",
        ),
        (item("compaction", encrypted_content="g"), "encrypted"),
        (item("agent_message", author="a", recipient="b", content=[]), "sub-agent"),
        (item("image_generation_call", result="QUJD"), "image"),
        (item("message", role="user", content=[{"type": "input_image", "image_url": "data:"}]), "image"),
        (item("message", role="user", content=[{"type": "hologram"}]), "unknown-block"),
        (item("hologram"), "unknown-type"),
        (note("hologram"), "unknown-type"),
        (codex("hologram"), "unknown-type"),
        (item("message", role="user", content=7), "unknown-shape"),
        ({"timestamp": "t", "type": "response_item"}, "unknown-shape"),
        ({"timestamp": "t", "type": "response_item", "payload": 7}, "unknown-shape"),
    ],
)
def test_excluded_record_is_one_counted_loss(record: dict[str, Any], what: str) -> None:
    parsed = parse("codex", meta(), message("user", "before"), record, record, message("assistant", "after"))
    assert losses(parsed) == {what: 2}
    assert [one.content for one in parsed.events] == ["before", "after"]


@pytest.mark.parametrize(
    "record",
    [
        codex("turn_context", cwd="/x", summary="none"),
        codex("world_state", full=True, message={"odd": 1}),
        codex("token_usage_record", id=7),
        note("token_count", info=None),
        note("exec_command_end", output={"odd": [1]}, status=4, name=[]),
        note("agent_reasoning", text="thinking about it"),
        done("CommandExecution", "x"),
        done("Reasoning", "HIDDEN"),
        item("ghost_snapshot", id={"odd": 1}),
    ],
)
def test_bookkeeping_is_silent(record: dict[str, Any]) -> None:
    parsed = parse("codex", meta(), record)
    assert not parsed.events
    assert not parsed.losses


@pytest.mark.parametrize(
    "text",
    [
        "what is <environment_context>?",
        "AGENTS.md instructions are wrong",
        "see # AGENTS.md instructions",
        "<b>",
    ],
)
def test_words_that_only_mention_instructions_are_kept(text: str) -> None:
    assert texts("codex", meta(), message("user", text)) == [("message", "user", text)]


def test_provenance_decides_over_the_looks_of_a_text() -> None:
    def told(*kinds: str) -> dict[str, Any]:
        notes = [{"provenance": {"type": kind}} for kind in kinds]
        return {"internal_chat_message_metadata_passthrough": {"content_item_metadata": notes}}

    parsed = parse(
        "codex",
        meta(),
        message("user", "<environment_context> is what I typed", **told("user")),
        message("user", "looks typed", "is typed", **told("harness", "user")),
        message("user", "<subagent_notification>done", **told("tool")),
    )
    assert [one.content for one in parsed.events] == ["<environment_context> is what I typed", "is typed"]
    assert losses(parsed) == {"synthetic": 2}


MIRRORED = {
    "item, event": [message("user", "sort"), note("user_message", message="sort")],
    "event, item": [note("user_message", message="sort"), message("user", "sort")],
    "item only": [message("user", "sort")],
    "event only": [note("user_message", message="sort")],
    "completed, item": [done("UserMessage", "sort"), message("user", "sort")],
    "item, completed": [message("user", "sort"), done("UserMessage", "sort", id="other")],
    "parts, event": [message("user", "so", "rt"), note("user_message", message="sort")],
}


@pytest.mark.parametrize("first", MIRRORED)
@pytest.mark.parametrize("second", MIRRORED)
def test_message_comes_once_in_whichever_forms_it_stands(first: str, second: str) -> None:
    records = [meta(), *MIRRORED[first], message("assistant", "sorted"), *MIRRORED[second]]
    said = ["".join(text) for role, text in conversation(events("codex", *records)) if role == "user"]
    assert "".join(said) == "sortsort"


def test_equal_messages_of_two_turns_are_both_there() -> None:
    turn = [note("task_started"), message("user", "continue"), note("user_message", message="continue")]
    said = conversation(events("codex", meta(), *turn, message("assistant", "ok"), *turn))
    assert said == [["user", "continue"], ["assistant", "ok"], ["user", "continue"]]


def test_reply_that_only_the_event_has_is_taken() -> None:
    said = texts("codex", meta(), message("user", "stop"), done("AgentMessage", "stopped", id="item_0901"))
    assert said[-1] == ("message", "assistant", "stopped")


def cut(records: list[object], where: int) -> list[Parsed]:
    parse_one = registry.resolve("codex").parse
    assert parse_one is not None
    head = b"".join(line(record) for record in records[:where])
    tail = b"".join(line(record) for record in records[where:])
    first = parse_one(head, 0, b"")
    return [first, parse_one(tail, len(head), first.state)]


@pytest.mark.parametrize("where", range(1, 6))
def test_summary_written_as_a_reply_is_taken_back(where: int) -> None:
    records: list[object] = [
        meta(),
        message("user", "go on"),
        message("assistant", "SUMMARY of all that was done"),
        note("token_count"),
        codex("compacted", message="Another model began. Here it is:\nSUMMARY of all that was done"),
        message("assistant", "went on"),
    ]
    parts = cut(records, where)
    assert [(one.kind, one.content[:7]) for one in arrange(parts)] == [
        ("message", "go on"),
        ("compaction", "Another"),
        ("message", "went on"),
    ]
    replaced = [one.replaces for part in parts for one in part.events if one.replaces >= 0]
    assert len(replaced) == (1 if where in (3, 4) else 0)


def test_reply_that_was_shown_is_no_summary() -> None:
    records = [
        message("assistant", "SUMMARY of all that was done"),
        note("agent_message", message="SUMMARY of all that was done"),
        codex("compacted", message="So far: SUMMARY of all that was done"),
    ]
    assert [one.kind for one in events("codex", meta(), *records)] == ["message", "compaction"]


def test_compaction_without_words_is_still_told() -> None:
    assert texts("codex", meta(), codex("compacted", message=""))[0][:2] == ("compaction", "assistant")


def test_turns_taken_back_stay_beside_the_main_line() -> None:
    rolled = [meta()]
    for number in range(3):
        rolled += [message("user", f"q{number}"), message("assistant", f"a{number}")]
    parsed = parse("codex", *rolled, note("thread_rolled_back", num_turns=2), message("user", "q9"))
    (turn,) = parsed.turns
    aside = [one.content for one in parsed.events if turn.first <= one.at <= turn.last]
    assert turn.is_side
    assert aside == ["q1", "a1", "q2", "a2"]


@pytest.mark.parametrize(
    ("output", "content", "metadata"),
    [
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nno", None, {"exit_code": 2}),
        ('{"output":"a\\n","metadata":{"exit_code":127,"duration_seconds":0.1}}', None, {"exit_code": 127}),
        ("the Process exited with code 99999999999", None, {}),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", {}),
        ({"content": "denied", "success": False}, "denied", {"is_error": True}),
        ({"content": [{"type": "input_text", "text": "fine"}], "success": True}, "fine", {}),
        ({"odd": 1}, '{"odd":1}', {}),
        (None, "", {}),
    ],
)
def test_output_is_flattened_and_its_outcome_kept(
    output: object, content: str | None, metadata: dict[str, Any]
) -> None:
    parsed = parse("codex", meta(), item("function_call_output", call_id="c", output=output))
    (event,) = parsed.events
    assert event.content == (output if content is None else content)
    assert event.metadata == {"tool_call_id": "c", **metadata}


def test_own_packet_read_by_a_command_is_left_out() -> None:
    header = "Chunk ID: dff626\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n"
    packet = "<!-- memd:workstream-packet:v1 -->\nwords"
    parsed = parse(
        "codex",
        meta(),
        item("function_call_output", call_id="c", output=header + packet),
        item("function_call_output", call_id="d", output=header + "docs/a.md: " + packet),
    )
    assert [one.metadata["tool_call_id"] for one in parsed.events] == ["d"]
    assert losses(parsed) == {"own-packet": 1}


def test_giant_output_is_shortened_and_noted() -> None:
    parsed = parse("codex", meta(), item("function_call_output", call_id="c", output="é" * (1 << 20)))
    assert 0 < len(parsed.events[0].content.encode()) <= MAX_EVENT_BYTES
    assert losses(parsed) == {"shortened": 1}


def test_record_ids_that_count_from_one_are_not_shared_by_sessions() -> None:
    one = events("codex", meta(), message("user", "hi", id="item_0001"))
    other = events(
        "codex", codex("session_meta", id="other-session", cwd=CWD), message("user", "hi", id="item_0001")
    )
    alike = [events("codex", meta(), message("user", "hi", id="msg_01a22de7b38f7d81")) for _ in range(2)]
    assert one[0].origin != other[0].origin
    assert alike[0][0].origin == alike[1][0].origin == "msg_01a22de7b38f7d81"


def test_call_and_output_of_one_id_are_two_events() -> None:
    pair = events(
        "codex",
        meta(),
        item("function_call", name="shell", arguments="x", call_id="call_0123456789abcdef"),
        item("function_call_output", output="shell: x", call_id="call_0123456789abcdef"),
    )
    assert [one.kind for one in pair] == ["tool_call", "tool_result"]


def test_sub_agent_is_told_by_its_header() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p-1", "depth": 1}}}
    found = adapter.identify(NAMED, line(meta(source=source, session_id="p-1")), "")
    assert found is not None
    assert (found.id, found.is_side, found.parent) == (SESSION, True, "p-1")
    parsed = parse("codex", meta(source=source), message("user", "hi"), state=adapter.begin(found, ""))
    assert [(loss.session, loss.what) for loss in parsed.losses] == [("p-1", "sub-agent")]
    assert all(one.is_side for one in parsed.events)


def test_fork_names_where_it_goes_on_from() -> None:
    base = {"thread_id": "p-1", "end_ordinal_exclusive": 14, "end_byte_offset": 35081}
    found = adapter.identify(NAMED, line(meta(forked_from_id="p-1", history_base=base)), "")
    assert found is not None
    assert (found.forked_from, found.forked_at, found.is_side) == ("p-1", 35081, False)


def test_name_stands_in_for_a_damaged_header() -> None:
    found = adapter.identify(NAMED + b".zst", b'{"type":"session_meta","payl\n', "")
    assert found is not None
    assert (found.id, found.cwd) == (SESSION, "")
    parsed = parse(
        "codex", b'{"type":"session_meta","payl\n', message("user", "hi"), state=adapter.begin(found, "")
    )
    assert [one.session for one in parsed.events] == [SESSION]
    assert losses(parsed) == {"malformed": 1}


@pytest.mark.parametrize(
    ("path", "head"), [(NAMED, b""), (NAMED, b'{"type":"sess'), (b"notes.jsonl", b"{}\n")]
)
def test_file_without_a_header_is_none_yet(path: bytes, head: bytes) -> None:
    assert adapter.identify(path, head, "") is None


def test_stores_follow_the_codex_home() -> None:
    plain = adapter.stores(Environment(home=b"/h"))
    moved = adapter.stores(Environment(home=b"/h", variables={"CODEX_HOME": b"/elsewhere/"}))
    assert [store.root for store in plain] == [b"/h/.codex/sessions", b"/h/.codex/archived_sessions"]
    assert [store.root for store in moved] == [b"/elsewhere/sessions", b"/elsewhere/archived_sessions"]
