"""What each kind of record of Claude Code becomes."""

from __future__ import annotations

from typing import Any

import pytest

from memd.harness import claude as adapter
from memd.harness.model import MAX_EVENT_BYTES, Environment, Session
from support_records import CWD, SESSION, assistant, claude, line, losses, parse, texts, user


def test_example_of_every_visible_kind() -> None:
    call = {"type": "tool_use", "id": "tu-1", "name": "Bash", "input": {"command": "pytest"}}
    result = {"type": "tool_result", "tool_use_id": "tu-1", "is_error": False}
    parsed = parse(
        "claude",
        user("u-1", "run the tests"),
        assistant(
            "a-1", [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "Running."}, call], "u-1"
        ),
        user("u-2", [{**result, "content": [{"type": "text", "text": "3 passed"}]}], "a-1"),
        claude("system", "s-1", "u-2", subtype="compact_boundary", content="Conversation compacted"),
    )
    assert [(one.kind, one.role, one.content, one.block) for one in parsed.events] == [
        ("message", "user", "run the tests", 0),
        ("message", "assistant", "Running.", 1),
        ("tool_call", "assistant", 'Bash: {"command":"pytest"}', 2),
        ("tool_result", "tool", "3 passed", 0),
        ("compaction", "assistant", "Conversation compacted", 0),
    ]
    assert [one.metadata for one in parsed.events][2:4] == [
        {"tool": "Bash", "tool_use_id": "tu-1"},
        {"tool_use_id": "tu-1", "is_error": False},
    ]
    assert losses(parsed) == {"reasoning": 1}
    assert [one.origin for one in parsed.events] == ["u-1", "a-1", "a-1", "u-2", "s-1"]
    assert {one.session for one in parsed.events} == {SESSION}


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (user("x", "Continue from where you left off.", isMeta=True), "synthetic"),
        (user("x", "<system-reminder>remember</system-reminder>"), "synthetic"),
        (user("x", [{"type": "text", "text": "[Request interrupted by user]"}]), "synthetic"),
        (user("x", "<command-name>/clear</command-name><command-args></command-args>"), "command"),
        (user("x", "<local-command-stdout>done</local-command-stdout>"), "command"),
        (assistant("x", [{"type": "text", "text": "overloaded"}], isApiErrorMessage=True), "api-error"),
        (assistant("x", [{"type": "redacted_thinking", "data": "zz"}]), "reasoning"),
        (user("x", [{"type": "image", "source": {"data": "QUJD"}}]), "image"),
        (user("x", [{"type": "hologram"}]), "unknown-block"),
        (claude("user", "x", message={"role": "system", "content": "be brief"}), "role"),
        (user("x", "side words", isSidechain=True), "sidechain"),
        (claude("attachment", "x", attachment={"type": "file", "content": "text"}), "attachment"),
        (claude("attachment", "x", attachment={"type": "hook_success", "content": 7}), "attachment"),
        (claude("hologram", "x"), "unknown-type"),
        (user("x", 7), "unknown-shape"),
        (claude("user", "x"), "unknown-shape"),
    ],
)
def test_excluded_record_is_one_counted_loss(record: dict[str, Any], what: str) -> None:
    parsed = parse("claude", user("u", "before"), record, record, user("v", "after"))
    assert losses(parsed) == {what: 2}
    assert [one.content for one in parsed.events] == ["before", "after"]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        {"type": "queue-operation", "operation": "enqueue", "content": [{"type": "text"}]},
        {"type": "file-history-snapshot", "message": "odd", "uuid": 5},
        {"type": "progress", "message": {"role": 4}, "uuid": "p-1"},
        claude("system", "x", subtype="turn_duration", durationMs=4),
        claude("system", "x", subtype="compact_boundary", content={"odd": True}),
        claude("attachment", "x", attachment={"type": "skill_listing", "content": "- run: runs"}),
    ],
)
def test_bookkeeping_is_silent(record: dict[str, Any]) -> None:
    parsed = parse("claude", record)
    assert not parsed.events
    assert not parsed.losses


def test_words_behind_a_command_are_kept() -> None:
    said = (
        "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the parser, please</command-args>"
    )
    assert texts("claude", user("u", said)) == [("message", "user", "/review the parser, please")]


def test_shell_line_of_the_person_and_its_output_are_kept() -> None:
    output = "<bash-stdout>a.py</bash-stdout><bash-stderr>warned</bash-stderr>"
    assert texts("claude", user("u", "<bash-input>ls</bash-input>"), user("v", output)) == [
        ("message", "user", "! ls"),
        ("tool_result", "tool", "a.py\nwarned"),
    ]


@pytest.mark.parametrize("tag", ["<command-name>", "<command-args>", "<bash-input>", "<bash-stdout>"])
def test_endless_opening_tags_are_read_once(tag: str) -> None:
    parsed = parse("claude", user("u", tag * 200_000), user("v", "after"))
    assert parsed.events[-1].content == "after"


@pytest.mark.parametrize("text", ["<div> is wrong here", "why <system-reminder>?", "[x] do this", "  <b>"])
def test_angle_brackets_alone_hide_nothing(text: str) -> None:
    assert texts("claude", user("u", text)) == [("message", "user", text)]


def test_prompt_typed_while_the_model_works_is_a_message() -> None:
    queued = {"type": "queued_command", "prompt": "and the docs too", "commandMode": "prompt"}
    notice = {"type": "queued_command", "prompt": "task done", "commandMode": "task-notification"}
    parsed = parse(
        "claude", claude("attachment", "q", attachment=queued), claude("attachment", "n", attachment=notice)
    )
    assert [(one.kind, one.role, one.content, one.origin) for one in parsed.events] == [
        ("message", "user", "and the docs too", "q")
    ]
    assert losses(parsed) == {"attachment": 1}


def test_summary_record_is_a_compaction() -> None:
    parsed = parse(
        "claude", {"type": "summary", "summary": "Parser work", "leafUuid": "l-1"}, user("u", "hi")
    )
    assert [(one.kind, one.role, one.content, one.origin) for one in parsed.events] == [
        ("compaction", "assistant", "Parser work", "summary:l-1"),
        ("message", "user", "hi", "u"),
    ]


def test_summary_written_as_blocks_is_a_compaction() -> None:
    blocks = [{"type": "text", "text": "SUMMARY"}, {"type": "text", "text": "two"}]
    assert texts("claude", user("u", blocks, isCompactSummary=True)) == [
        ("compaction", "assistant", "SUMMARY\ntwo")
    ]


def test_result_without_text_tells_that_the_call_was_finished() -> None:
    parsed = parse("claude", user("u", [{"type": "tool_result", "tool_use_id": "t", "content": ""}]))
    assert [(one.kind, one.content, one.metadata) for one in parsed.events] == [
        ("tool_result", "", {"tool_use_id": "t"})
    ]


def test_picture_in_a_result_is_a_loss_and_its_text_stays() -> None:
    parts = [{"type": "text", "text": "seen"}, {"type": "image", "source": {"data": "QUJD" * 9}}]
    parsed = parse("claude", user("u", [{"type": "tool_result", "tool_use_id": "t", "content": parts}]))
    assert [one.content for one in parsed.events] == ["seen"]
    assert losses(parsed) == {"image": 1}


def test_tool_input_is_compact_json_whatever_wrote_it() -> None:
    spaced = b'{"type": "assistant", "uuid": "a", "message": {"role": "assistant", "content": ['
    spaced += b'{"type": "tool_use", "id": "t", "name": "Bash", "input": {"c": "a: b", "n": [1, 2]}}]}}\n'
    assert texts("claude", spaced) == [("tool_call", "assistant", 'Bash: {"c":"a: b","n":[1,2]}')]


def test_giant_record_is_shortened_and_noted() -> None:
    parsed = parse("claude", user("u", "ä" * (1 << 20)), user("v", "next"))
    first, second = parsed.events
    assert 0 < len(first.content.encode()) <= MAX_EVENT_BYTES
    assert set(first.content) == {"ä"}
    assert second.content == "next"
    assert losses(parsed) == {"shortened": 1}


def test_giant_tool_input_is_shortened_and_noted() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "x" * (2 << 20)}}
    parsed = parse("claude", assistant("a", [call]))
    (event,) = parsed.events
    assert len(event.content) <= MAX_EVENT_BYTES
    assert losses(parsed) == {"shortened": 1}


def test_reply_written_before_its_prompt_waits_for_it() -> None:
    parsed = parse(
        "claude",
        assistant("a-1", "first answer", "s-2"),
        claude("system", "t-1", "a-1", subtype="turn_duration"),
        user("u-1", "first question"),
        claude("attachment", "s-1", "u-1", attachment={"type": "skill_listing"}),
        claude("attachment", "s-2", "s-1", attachment={"type": "skill_listing"}),
        user("u-2", "second question", "t-1"),
    )
    assert [one.content for one in parsed.events] == ["first answer", "first question", "second question"]
    assert [one.parent for one in parsed.events] == ["s-2", "", ""]
    said = texts(
        "claude",
        assistant("a-1", "first answer", "s-2"),
        user("u-1", "first question"),
        claude("attachment", "s-2", "u-1", attachment={"type": "skill_listing"}),
        user("u-2", "second question", "a-1"),
    )
    assert [text for _kind, _role, text in said] == ["first question", "first answer", "second question"]


def test_parent_is_told_only_where_it_is_not_the_record_before() -> None:
    parsed = parse("claude", user("u", "a"), user("v", "b", "u"), user("w", "c", "u"))
    assert [one.metadata for one in parsed.events] == [{}, {}, {"parent_id": "u"}]


def test_session_is_told_with_its_first_directory_and_its_last_title() -> None:
    parsed = parse(
        "claude",
        {"type": "last-prompt", "cwd": None, "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Parser", "sessionId": SESSION},
        user("u", "hi"),
        {**user("v", "elsewhere"), "cwd": "/somewhere/else"},
    )
    assert parsed.sessions == [
        Session(id=SESSION, title="Parser"),
        Session(id=SESSION, cwd=CWD, started="2026-02-03T10:00:00.000Z", version="2.1.197"),
    ]


def test_side_file_is_counted_and_never_read() -> None:
    side = adapter.identify(
        b"-key/" + SESSION.encode() + b"/subagents/agent-1.jsonl", line(user("u", "x")), ""
    )
    assert side is not None
    parsed = parse("claude", user("u", "secret"), b"{broken\n", user("v", "x"), state=adapter.begin(side, ""))
    assert not parsed.events
    assert [(loss.session, loss.what, loss.count) for loss in parsed.losses] == [(SESSION, "sidechain", 3)]


def test_file_name_is_the_session_even_when_copied_records_say_another() -> None:
    other = "0b7c3d1e-0000-4000-8000-00000000beef"
    found = adapter.identify(b"-key/" + other.encode() + b".jsonl", line(user("u", "hi")), "")
    assert found is not None
    assert (found.id, found.cwd) == (other, CWD)
    parsed = parse("claude", user("u", "hi"), state=adapter.begin(found, ""))
    assert [one.session for one in parsed.events] == [other]
    assert [session.id for session in parsed.sessions] == [other]


@pytest.mark.parametrize("head", [b"", b"garbage\n", b"{}\n", b'{"type":"summary","summary":"x"}\n'])
def test_file_without_a_session_is_none_yet(head: bytes) -> None:
    assert adapter.identify(b"-key/notes.jsonl", head, "") is None


def test_stores_are_those_of_every_login() -> None:
    plain = adapter.stores(Environment(home=b"/h"))
    several = adapter.stores(
        Environment(
            home=b"/h",
            variables={"CLAUDE_CONFIG_DIR": b"/h/.work/"},
            config_homes=(b"/h/.claude", b"/h/.work"),
        )
    )
    assert [store.root for store in plain] == [b"/h/.claude/projects"]
    assert [store.root for store in several] == [b"/h/.work/projects", b"/h/.claude/projects"]
