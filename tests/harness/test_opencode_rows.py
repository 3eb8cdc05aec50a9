"""The grammar of OpenCode's parts, row by row."""

from __future__ import annotations

import json

import pytest

from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES, MAX_STATE_BYTES, Event, Parsed, event_id
from memd.harness.opencode_rows import MAX_WAITING, UNFINISHED, parse_rows, unquoted
from support_opencode import T0, row, tool

MARKER = "<!-- memd:workstream-packet:v1 -->"


def read(*rows: tuple[object, ...], name: str = "messages", state: bytes = b"") -> Parsed:
    return parse_rows(name, rows, state)


def lost(parsed: Parsed) -> dict[str, int]:
    return {loss.what: loss.count for loss in parsed.losses}


def only(parsed: Parsed) -> Event:
    (event,) = parsed.events
    return event


def test_a_reply_is_a_message_with_its_time() -> None:
    event = only(read(row({"type": "text", "text": "hello", "time": {"start": T0 + 2, "end": T0 + 3}})))
    assert (event.kind, event.role, event.content) == ("message", "assistant", "hello")
    assert (event.session, event.record, event.occurred_at) == ("ses_1", "prt_1", "2026-11-30T00:53:20.002Z")


def test_a_completed_tool_is_a_call_and_a_result() -> None:
    parsed = read(row(tool("completed", "ok", metadata={"exit": 0}, time={"start": T0, "end": T0 + 9})))
    call, result = parsed.events
    assert (call.kind, call.block, call.content) == ("tool_call", 0, 'bash: {"command":"make"}')
    assert call.metadata == {"tool": "bash", "tool_call_id": "call_1", "status": "completed"}
    assert (result.kind, result.block, result.role, result.content) == ("tool_result", 1, "tool", "ok")
    assert result.metadata["exit_code"] == 0
    assert result.metadata["is_error"] is False


def test_a_failed_tool_keeps_its_error() -> None:
    _, result = read(row(tool("error", error="no such file"))).events
    assert (result.content, result.metadata["is_error"], result.metadata["status"]) == (
        "no such file",
        True,
        "error",
    )


def test_a_tool_without_output_has_an_empty_result() -> None:
    call, result = read(row(tool("completed"))).events
    assert call.metadata["status"] == "completed"
    assert (result.kind, result.content) == ("tool_result", "")


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_tool_at_work_waits(status: str) -> None:
    assert not read(row(tool(status), completed=None)).events


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_tool_that_never_ended_is_an_unfinished_call(status: str) -> None:
    waiting = row(tool(status), completed=None)
    for parsed in (
        read(waiting, name=UNFINISHED),
        read(row(tool(status), completed=None, settled=T0 + 99)),
        read(row(tool(status), completed=None, failed="MessageAbortedError")),
    ):
        event = only(parsed)
        assert (event.kind, event.metadata["status"]) == ("tool_call", "unfinished")


def test_a_text_at_work_waits_until_it_or_its_message_ends() -> None:
    open_ = {"type": "text", "text": "half", "time": {"start": T0}}
    assert not read(row(open_, completed=None)).events
    ended = {"type": "text", "text": "whole", "time": {"start": T0, "end": T0 + 1}}
    assert only(read(row(ended, completed=None))).content == "whole"
    untimed = {"type": "text", "text": "no times at all"}
    assert not read(row(untimed, completed=None)).events
    assert only(read(row(untimed))).content == "no times at all"


def test_a_reply_that_was_cut_off_says_so() -> None:
    cut = {"type": "text", "text": "half an ans", "time": {"start": T0}}
    event = only(read(row(cut, completed=None), name=UNFINISHED))
    assert event.metadata == {"status": "unfinished"}


def test_nothing_is_read_past_the_first_part_that_waits() -> None:
    done = {"type": "text", "text": "first", "time": {"start": T0, "end": T0}}
    late = {"type": "text", "text": "third", "time": {"start": T0, "end": T0}}
    rows = [
        row(done, id="prt_1", completed=None, ordinal=0),
        row(tool("running"), id="prt_2", completed=None, ordinal=1),
        row(late, id="prt_3", completed=None, ordinal=2),
    ]
    assert [event.content for event in read(*rows).events] == ["first"]
    first = read(*rows[:2])
    assert not read(rows[2], state=first.state).events
    changed = [
        row(done, id="prt_1", completed=None, ordinal=0, updated=T0 + 50),
        row(tool("completed", "ok"), id="prt_2", completed=None, ordinal=1, updated=T0 + 50),
        row(late, id="prt_3", completed=None, ordinal=2, updated=T0 + 50),
    ]
    again = read(*changed, state=first.state)
    assert [event.content for event in again.events] == ["first", 'bash: {"command":"make"}', "ok", "third"]


def test_another_message_does_not_wait() -> None:
    rows = [
        row(tool("running"), id="prt_2", completed=None),
        row({"type": "text", "text": "other"}, id="prt_3", message="msg_2"),
    ]
    assert only(read(*rows)).content == "other"


def test_what_a_user_typed_never_waits() -> None:
    event = only(read(row({"type": "text", "text": "hi"}, role="user", completed=None)))
    assert (event.role, event.content) == ("user", "hi")


def test_the_summary_of_a_compaction_is_no_reply() -> None:
    event = only(read(row({"type": "text", "text": "so far"}, summary=1)))
    assert (event.kind, event.content) == ("compaction", "so far")
    assert not read(row({"type": "compaction", "auto": False}, role="user")).events


def test_a_fork_gives_the_same_ids_under_its_own_session() -> None:
    part = {"type": "text", "text": "same", "time": {"start": T0 + 2, "end": T0 + 3}}
    first = only(read(row(part)))
    copy = only(read(row(part, session="ses_2", id="prt_9", message="msg_9", updated=T0 + 99999, ordinal=0)))
    assert event_id("opencode", copy) == event_id("opencode", first)
    assert (copy.session, copy.at) == ("ses_2", first.at)


def test_two_equal_calls_of_one_reply_are_two() -> None:
    one, two = tool("completed", "ok"), tool("completed", "ok")
    two["callID"] = "call_2"
    parsed = read(row(one), row(two, id="prt_2", ordinal=1))
    assert len({event_id("opencode", event) for event in parsed.events}) == 4


@pytest.mark.parametrize(
    ("part", "values", "what"),
    [
        ({"type": "reasoning", "text": "secret thought"}, {}, "reasoning"),
        ({"type": "text", "text": "notice", "synthetic": True}, {"role": "user"}, "synthetic"),
        ({"type": "text", "text": "notice", "ignored": True}, {"role": "user"}, "synthetic"),
        ({"type": "text", "text": f"{MARKER}\nold words"}, {"role": "user"}, "own-packet"),
        ({"type": "text", "text": f"{MARKER}\nold words", "synthetic": True}, {}, "own-packet"),
        ({"type": "file", "mime": "image/png", "url": "data:..."}, {"role": "user"}, "image"),
        ({"type": "hologram", "text": "?"}, {}, "unknown-type"),
        ({"type": "text", "text": {"not": "text"}}, {}, "unknown-shape"),
        ({"type": "text", "text": "?"}, {"role": "system"}, "role"),
        (b'{"type":"text","te', {}, "malformed"),
        (b"\0" * 64, {}, "malformed"),
        (b"", {}, "malformed"),
    ],
)
def test_what_is_left_out_is_counted_once_however_often_it_is_read(
    part: object, values: dict[str, object], what: str
) -> None:
    first = read(row(part, **values))
    assert not first.events
    assert lost(first) == {what: 1}
    assert not read(row(part, **values, updated=T0 + 500), state=first.state).losses
    second = read(row(part, **values, id="prt_2", message="msg_2"), state=first.state)
    assert lost(second) == {what: 1}


@pytest.mark.parametrize(
    "kind", ["step-start", "step-finish", "snapshot", "patch", "agent", "retry", "subtask"]
)
def test_bookkeeping_is_silent(kind: str) -> None:
    parsed = read(row({"type": kind, "hash": "x", "files": []}))
    assert not parsed.events
    assert not parsed.losses


def test_a_reply_that_failed_is_counted() -> None:
    parsed = read(row(None, failed="APIError", completed=None))
    assert lost(parsed) == {"api-error": 1}
    assert not read(row(None, failed="MessageAbortedError")).losses


def test_an_own_packet_that_a_tool_read_is_left_out_and_the_call_stays() -> None:
    parsed = read(row(tool("completed", f"     1\t{MARKER}\n     2\told words")))
    assert only(parsed).kind == "tool_call"
    assert lost(parsed) == {"own-packet": 1}
    quoted = f"docs/format.md:12: the marker looks like {MARKER}"
    assert len(read(row(tool("completed", quoted))).events) == 2


def test_a_large_text_is_shortened_and_counted() -> None:
    parsed = read(row({"type": "text", "text": "é" * MAX_EVENT_BYTES}))
    assert len(only(parsed).content.encode()) <= MAX_EVENT_BYTES
    assert lost(parsed) == {"shortened": 1}


def test_a_part_that_was_shortened_or_left_out_on_the_way_is_counted() -> None:
    parsed = read(row({"type": "text", "text": "beginning"}, size=MAX_RECORD_BYTES + 1))
    assert only(parsed).content == "beginning"
    assert lost(parsed) == {"shortened": 1}
    assert lost(read(row(None, size=99 << 20))) == {"oversized": 1}


def test_half_characters_and_foreign_bytes_are_replaced() -> None:
    half = only(read(row(b'{"type":"text","text":"cut \\ud83d here \\ud83d\\ude00"}')))
    assert half.content == "cut \ufffd here \U0001f600"
    parsed = read(row(b'{"type":"text","text":"byte \xff here"}'))
    assert only(parsed).content == "byte \ufffd here"
    assert lost(parsed) == {"encoding": 1}


def test_line_separators_in_a_text_stay() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    assert only(read(row({"type": "text", "text": text}))).content == text


def test_seconds_and_milliseconds_are_told_apart() -> None:
    part = {"type": "text", "text": "x"}
    seconds, milliseconds = 1_796_000_000, 1_796_000_000_000
    one = only(read(row(part, created=seconds)))
    two = only(read(row(part, created=milliseconds)))
    assert one.occurred_at == two.occurred_at == "2026-11-30T00:53:20.000Z"
    assert one.at == two.at


def test_the_state_stays_small_and_any_state_will_do() -> None:
    state = b""
    for n in range(9000):
        parsed = read(
            row({"type": "reasoning", "text": "x"}, id=f"prt_{n}", message=f"msg_{n}"),
            row(tool("running"), id=f"prt_t{n}", message=f"msg_t{n}" + "x" * 400, completed=None),
            state=state,
        )
        state = parsed.state
    assert len(state) <= MAX_STATE_BYTES
    assert MAX_WAITING > 16
    for odd in (b"\xff", b"not a state", b"\x93\x01\x02\x03"):
        assert only(read(row({"type": "text", "text": "x"}), state=odd)).content == "x"


def test_rows_of_any_value_give_no_exception() -> None:
    parsed = parse_rows("messages", [(), (1, 2), tuple([None] * 18), tuple([float("nan")] * 18)], b"")
    assert parsed.consumed == 4
    assert not parsed.events


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ('"fix the build"', "fix the build"),
        ('"say \\"hi\\" twice"', 'say "hi" twice'),
        ('"say \\"hi\\""', 'say "hi"'),
        ('"a" and "b"', '"a" and "b"'),
        ('"word"', '"word"'),
        ('"', '"'),
        ('" "', " "),
        ('"ends in a backslash \\"', '"ends in a backslash \\"'),
        ("plain words", "plain words"),
    ],
)
def test_the_quotes_that_opencode_run_puts_round_a_prompt_are_taken_off(stored: str, typed: str) -> None:
    assert unquoted(stored) == typed


def test_a_session_says_where_it_was_and_who_spawned_it() -> None:
    (session,) = read(row(None, parent="ses_0", directory="/wörk dir".encode())).sessions
    assert (session.cwd, session.parent, session.is_side) == ("/wörk dir", "ses_0", True)
    assert session.started == "2026-11-30T00:53:20.000Z"


def test_a_sub_agents_events_are_side_and_counted_once_for_the_parent() -> None:
    first = read(row({"type": "text", "text": "x"}, parent="ses_0"))
    assert only(first).is_side
    assert [(loss.session, loss.what, loss.count) for loss in first.losses] == [("ses_0", "sub-agent", 1)]
    assert not read(row({"type": "text", "text": "y"}, parent="ses_0", id="prt_2"), state=first.state).losses


def test_arguments_that_came_as_text_stay_text() -> None:
    part = tool("completed", "ok")
    part["state"]["input"] = '{"command":"ma'
    assert read(row(json.dumps(part).encode())).events[0].content == 'bash: {"command":"ma'
