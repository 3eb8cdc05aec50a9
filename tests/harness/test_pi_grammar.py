"""The entries of Pi and OMP, one by one, and files that are damaged."""

from __future__ import annotations

import pytest

from memd.harness import omp
from memd.harness.model import MAX_EVENT_BYTES, Environment, event_id
from memd.harness.pi import ADAPTER
from memd.harness.pi_tree import SILENT
from support_order import arrange
from support_pi import SESSION, Tree, cuts, lost, parse, told

MARKER = "<!-- memd:workstream-packet:v1 -->"


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


@pytest.mark.parametrize("role", ["toolResult", "tool_result", "tool"])
def test_every_spelling_of_a_result_is_a_result(role: str) -> None:
    tree = Tree()
    tree.message(role, text("x = 1"), toolCallId="t1", toolName="read", isError=True)
    (event,) = arrange(parse(tree.data))
    assert (event.kind, event.role, event.content) == ("tool_result", "tool", "x = 1")
    assert event.metadata == {"tool": "read", "tool_call_id": "t1", "is_error": True}


def test_a_result_without_text_is_still_a_result() -> None:
    tree = Tree()
    tree.message("toolResult", [], toolCallId="t1", toolName="write", isError=False)
    assert told(parse(tree.data)) == [["tool_result", ""]]


def test_a_picture_in_a_result_is_counted_and_its_text_kept() -> None:
    tree = Tree()
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    tree.message("toolResult", [picture, *text("seen")], toolCallId="t1", toolName="shot", isError=False)
    tree.message("user", [*text("look"), picture])
    parts = parse(tree.data)
    assert told(parts) == [["tool_result", "seen"], ["user", "look"]]
    assert lost(parts) == {"image": 2}


def test_the_blocks_of_a_reply_keep_their_places() -> None:
    tree = Tree()
    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}
    thought = {"type": "thinking", "thinking": "secret", "thinkingSignature": "s"}
    tree.message("assistant", [thought, *text("I look"), call, {**call, "id": "c2"}])
    parts = parse(tree.data)
    events = arrange(parts)
    assert [(event.block, event.kind) for event in events] == [
        (1, "message"), (2, "tool_call"), (3, "tool_call"),
    ]  # fmt: skip
    assert len({event_id("pi", event) for event in events}) == 3
    assert lost(parts) == {"reasoning": 1}


def test_a_reply_that_was_stopped_says_how() -> None:
    tree = Tree()
    tree.answer("half", stopReason="aborted", errorMessage="Operation aborted")
    tree.message("assistant", [], stopReason="error", errorMessage="overloaded")
    parts = parse(tree.data)
    (event,) = arrange(parts)
    assert event.metadata == {"status": "aborted"}
    assert lost(parts) == {"api-error": 1}


def test_what_a_person_ran_is_theirs_and_what_they_kept_from_the_model_stays_out() -> None:
    tree = Tree()
    tree.message("bashExecution", command="make test", output="ok\n", exitCode=0, cancelled=False)
    tree.message("pythonExecution", code="1 + 1", output="2", exitCode=None)
    tree.message("bashExecution", command="cat .env", output="KEY=1", exitCode=0, excludeFromContext=True)
    parts = parse(tree.data)
    assert told(parts) == [
        ["user", "! make test"], ["tool_result", "ok\n"], ["user", "$ 1 + 1"], ["tool_result", "2"],
    ]  # fmt: skip
    assert arrange(parts)[1].metadata == {"tool": "bash", "exit_code": 0}
    assert lost(parts) == {"command": 1}


@pytest.mark.parametrize(
    ("role", "fields", "what"),
    [
        ("system", {"sections": {"preamble": "You are"}}, "system-prompt"),
        ("developer", {}, "system-prompt"),
        ("custom", {"customType": "x", "display": True}, "attachment"),
        ("hookMessage", {"customType": "x"}, "attachment"),
        ("fileMention", {"files": [{"path": "a", "content": "b"}]}, "attachment"),
        ("narrator", {}, "role"),
        ("user", {"synthetic": True}, "synthetic"),
        ("user", {"attribution": "agent"}, "synthetic"),
    ],
)
def test_what_is_nobodys_word_is_counted(role: str, fields: dict[str, object], what: str) -> None:
    tree = Tree()
    tree.message(role, "not to be imported", **fields)
    parts = parse(tree.data)
    assert told(parts) == []
    assert lost(parts) == {what: 1}


@pytest.mark.parametrize("kind", sorted(SILENT))
def test_bookkeeping_is_silent(kind: str) -> None:
    tree = Tree()
    tree.entry(kind, customType="x", data={"a": 1}, name="n", title="t", replacement="not to be imported")
    parts = parse(tree.data)
    assert told(parts) == []
    assert lost(parts) == {}


@pytest.mark.parametrize(
    ("kind", "what"), [("session_init", "system-prompt"), ("hologram", "unknown-type"), ("", "unknown-type")]
)
def test_other_entries_are_counted(kind: str, what: str) -> None:
    tree = Tree()
    tree.entry(kind, systemPrompt="You are", task="do it")
    assert lost(parse(tree.data)) == {what: 1}


@pytest.mark.parametrize("kind", ["compaction", "compact", "summary"])
@pytest.mark.parametrize("field", ["summary", "content", "text"])
def test_every_spelling_of_a_compaction_is_one(kind: str, field: str) -> None:
    tree = Tree()
    tree.entry(kind, **{field: "so far", "systemMessage": {"role": "system", "content": "You are"}})
    tree.entry(kind, **{field: " \n"})
    assert told(parse(tree.data)) == [["compaction", "so far"]]


def test_an_own_packet_is_left_out_in_each_of_its_forms() -> None:
    packet = f"{MARKER}\nwords of an earlier run"
    tree = Tree()
    tree.say("go on")
    tree.entry("custom_message", customType="memd-handoff", content=packet, display=False)
    tree.entry("custom_message", customType="memd-handoff", content=text(packet), display=False)
    tree.message("custom", packet)
    tree.message("user", packet)
    tree.message("toolResult", text(f"     1\t{MARKER}\n     2\twords of an earlier run"), toolCallId="t")
    tree.message("toolResult", text(f"docs/format.md:12: it looks like {MARKER}"), toolCallId="t")
    tree.answer("As noted earlier, the port stays 8123.")
    parts = parse(tree.data)
    assert told(parts) == [
        ["user", "go on"],
        ["tool_result", f"docs/format.md:12: it looks like {MARKER}"],
        ["assistant", "As noted earlier, the port stays 8123."],
    ]
    assert lost(parts) == {"own-packet": 5}
    assert len([loss for part in parts for loss in part.losses]) == 1


def test_nul_padding_torn_records_and_glued_ones_cost_nothing_but_themselves() -> None:
    tree = Tree()
    tree.say("before")
    tree.raw(b"\0" * 512)
    tree.raw(
        b'{"type":"model_change","id":"a0","paren{"type":"label","id":"a1","parentId":"a0","timestamp":"x"}'
    )
    tree.say("between")
    tree.data += b'{"type":"message","id":"a9","parentId":"a8","message":{"role":"user","con'
    tree.say("after the torn one")
    tree.raw(b'{"type":"message","message":{"role":"user","content":"half lost wo')
    tree.say("after")
    parts = parse(tree.data)
    assert [words for _, words in told(parts)] == ["before", "between", "after the torn one", "after"]
    assert lost(parts) == {"malformed": 4}
    assert sum(part.consumed for part in parts) == len(tree.data)


def test_the_last_line_waits_until_it_is_whole() -> None:
    tree = Tree()
    tree.say("one")
    end = len(tree.data)
    tree.say("größer")
    for cut in range(end, len(tree.data)):
        first, second = parse(tree.data, cuts=[cut])
        assert len(first.events) == 1
        assert not first.losses
        assert [event.content for event in second.events] == ["größer"]


def test_odd_characters_are_kept_and_halves_replaced() -> None:
    tree = Tree()
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf\U0001f600"
    tree.say(odd)
    for number, words in enumerate((b"\\ud83d", b"\\ud83d\\ude00", b"\xff")):
        before = tree.leaf.encode() if tree.leaf else b""
        tree.leaf = f"b{number}"
        tree.raw(
            b'{"type":"message","id":"b%d","parentId":"%b","timestamp":"t",'
            b'"message":{"role":"user","content":"cut %b end"}}' % (number, before, words)
        )
    parts = parse(tree.data)
    assert [words for _, words in told(parts)] == [
        odd,
        "cut \ufffd end",
        "cut \U0001f600 end",
        "cut \ufffd end",
    ]
    assert lost(parts) == {"encoding": 1}


def test_a_giant_entry_is_shortened() -> None:
    tree = Tree()
    tree.say("before")
    tree.message("toolResult", text("A" * (3 << 20)), toolCallId="t1", toolName="bash", isError=False)
    tree.say("after")
    parts = parse(tree.data)
    assert [len(words) for _, words in told(parts)] == [6, MAX_EVENT_BYTES, 5]
    assert lost(parts) == {"shortened": 1}


def test_fields_of_another_kind_are_a_loss_and_no_exception() -> None:
    tree = Tree()
    tree.raw({"type": "message", "id": 7, "message": {"role": "user", "content": "x"}})
    tree.raw({"type": "message", "id": "a", "message": {"role": "user", "content": {"text": "x"}}})
    tree.raw({"type": "message", "id": "a", "message": None})
    tree.raw([1, 2, 3])
    tree.raw(b"7")
    tree.raw({"type": "label", "id": 7})
    assert told(parse(tree.data)) == []
    assert lost(parse(tree.data)) == {"unknown-shape": 5}


def test_times_in_numbers_are_told_apart() -> None:
    tree = Tree()
    for stamp in (1_796_000_000, 1_796_000_000_000):
        tree.raw({"type": "message", "timestamp": stamp, "message": {"role": "user", "content": f"{stamp}"}})
    tree.raw({"type": "message", "message": {"role": "user", "content": "x", "timestamp": 1_796_000_000_123}})
    times = [event.occurred_at for event in arrange(parse(tree.data))]
    assert times == ["2026-11-30T00:53:20.000Z"] * 2 + ["2026-11-30T00:53:20.123Z"]


def test_a_file_that_was_brought_to_version_3_keeps_its_event_ids() -> None:
    """Older files get ids when a newer program opens them; times and words stay."""
    records = [
        {"type": "message", "timestamp": f"2026-01-01T00:00:0{n}.000Z",
         "message": {"role": "user", "content": "same words", "timestamp": 1_767_225_600_000 + n}}
        for n in range(3)
    ]  # fmt: skip
    old, new = Tree(version=1), Tree(version=3)
    for number, record in enumerate(records):
        old.raw(record)
        new.raw({**record, "id": f"0000000{number}", "parentId": f"0000000{number - 1}" if number else None})
    ids = [[event_id("pi", event) for event in arrange(parse(tree.data))] for tree in (old, new)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


def test_an_entry_that_was_rewritten_in_place_keeps_its_record_and_place_of_block() -> None:
    tree, pruned = Tree(), Tree()
    for each, output in ((tree, "a long output"), (pruned, "[pruned]")):
        each.message("toolResult", text(output), toolCallId="t1", toolName="bash", isError=False)
    before, after = arrange(parse(tree.data))[0], arrange(parse(pruned.data))[0]
    assert (before.record, before.block, before.origin) == (after.record, after.block, after.origin)


def test_a_sub_agents_file_is_beside_its_session() -> None:
    tree = Tree(
        "01b00000-0000-7000-8000-000000000001", parentSession="/s/2026-11-30T00-00-00-000Z_parent.jsonl"
    )
    tree.entry("session_init", systemPrompt="You are", task="scout", tools=[])
    tree.message("user", "scout the code", attribution="agent")
    fork = tree.answer("found it")
    tree.say("more", parent=fork)
    tree.say("other", parent=fork)
    path = "-demo/2026-11-30T19-15-06-604Z_parent-id/scout/deeper.jsonl"
    parts = parse(tree.data, adapter=omp.ADAPTER, path=path)
    (session, *_) = parts[0].sessions
    assert (session.is_side, session.parent, session.forked_from) == (True, "parent-id", "")
    assert told(parts) == []
    assert [event.content for event in arrange(parts)] == ["scout the code", "found it", "more", "other"]
    losses = {(loss.session, loss.what): loss.count for part in parts for loss in part.losses}
    assert losses == {("parent-id", "sub-agent"): 1, (session.id, "system-prompt"): 1}


def test_the_losses_of_any_cut_add_up() -> None:
    tree = Tree()
    for number in range(40):
        tree.message("assistant", [{"type": "thinking", "thinking": "x"}, *text(f"reply {number}")])
        tree.raw(b"{torn")
    whole = lost(parse(tree.data))
    assert whole == {"reasoning": 40, "malformed": 40}
    for seed in range(10):
        assert lost(parse(tree.data, cuts=cuts(tree.data, seed))) == whole


def test_a_file_without_a_header_is_no_session_yet() -> None:
    assert ADAPTER.identify(b"x.jsonl", b"", "") is None
    assert ADAPTER.identify(b"x.jsonl", b'{"type":"title","v":1,"title":""}\n', "") is None
    assert ADAPTER.identify(b"x.jsonl", b'{"type":"session","id":', "") is None
    assert ADAPTER.identify(b"x.jsonl", b"\0\0\n\xff\n" + Tree().data, "") is not None


def test_a_state_that_makes_no_sense_is_no_exception() -> None:
    tree = Tree()
    tree.say("one")
    for state in (b"\xff", b"\x80", b"not a state", b"\x81\xa7session\x01"):
        assert ADAPTER.parse is not None
        parsed = ADAPTER.parse(tree.data, 0, state)
        assert [event.content for event in parsed.events] == ["one"]
        assert parsed.events[0].session == SESSION


def test_the_stores_follow_the_environment() -> None:
    def roots(adapter: object, **variables: bytes) -> list[bytes]:
        assert adapter in (ADAPTER, omp.ADAPTER)
        found = adapter.stores(Environment(home=b"/h\xff", variables=variables))  # type: ignore[attr-defined]
        return [store.root for store in found]

    assert roots(ADAPTER) == [b"/h\xff/.pi/agent/sessions"]
    assert roots(ADAPTER, PI_CODING_AGENT_DIR=b"/a/") == [b"/a/sessions"]
    assert roots(ADAPTER, PI_CODING_AGENT_DIR=b"/a", PI_CODING_AGENT_SESSION_DIR=b"/s/") == [b"/s"]
    assert roots(omp.ADAPTER) == [b"/h\xff/.omp/agent/sessions", b"/h\xff/.omp/profiles"]
    assert roots(omp.ADAPTER, PI_CODING_AGENT_DIR=b"/a")[0] == b"/a/sessions"
    assert (
        roots(omp.ADAPTER, PI_CODING_AGENT_DIR=b"/a", OMP_PROFILE=b"work")[-1]
        == b"/h\xff/.omp/agent/sessions"
    )
    assert roots(omp.ADAPTER, XDG_DATA_HOME=b"/d") == [
        b"/h\xff/.omp/agent/sessions",
        b"/d/omp/sessions",
        b"/h\xff/.omp/profiles",
        b"/d/omp/profiles",
    ]
    assert roots(omp.ADAPTER, PI_CODING_AGENT_SESSION_DIR=b"/s") == [b"/s"]
    assert roots(omp.ADAPTER, PI_CONFIG_DIR=b".other")[0] == b"/h\xff/.other/agent/sessions"
    assert all(store.head == 256 for store in omp.ADAPTER.stores(Environment(home=b"/h")))
