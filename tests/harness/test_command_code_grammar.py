"""The entries of a Command Code session, one rule at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memd.harness.command_code import ADAPTER, MAX_HEADER_BYTES, begin, identify
from memd.harness.model import Event, Parsed, Session
from memd.harness.packets import PACKET_MARKER

SESSION = "0b7c3d1e-0000-4000-8000-000000000001"
OTHER = "0b7c3d1e-0000-4000-8000-000000000002"
PATH = f"home-dev/{SESSION}.jsonl".encode()


def header(**fields: Any) -> dict[str, Any]:
    made = {"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-02-01T10:00:00Z", "cwd": "/w"}
    return {**made, **fields}


def one(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class File:
    """A session as it is written: each entry follows the one before unless it names another."""

    def __init__(self) -> None:
        self.data = one(header())
        self.count = 0
        self.leaf: str | None = None

    def entry(self, kind: str, *, parent: Any = ..., **fields: Any) -> File:
        self.count += 1
        name = f"r{self.count}"
        before = self.leaf if parent is ... else parent
        stamp = f"2026-02-01T10:00:{self.count:02d}Z"
        self.data += one({"type": kind, "id": name, "parentId": before, "timestamp": stamp, **fields})
        self.leaf = name
        return self

    def message(
        self, role: str, content: object, source: str | None = "", *, parent: Any = ..., **meta: Any
    ) -> File:
        source = ("model" if role == "assistant" else "user") if source == "" else source
        about = {**({"source": source} if source else {}), **meta}
        return self.entry("message", parent=parent, message={"role": role, "content": content, "meta": about})

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


def result(call: object, content: object, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **fields}


def test_all_that_the_reference_lists() -> None:
    file = File()
    file.message("user", text("Rename the flag"))
    use = {"type": "tool_use", "id": "u1", "name": "edit", "input": {"file": "cli.py"}}
    file.message("assistant", [{"type": "thinking", "thinking": "SECRET"}, *text("Renaming."), use])
    file.message("user", [result("u1", [*text("ok"), {"type": "image", "data": "AAAA"}])])
    file.message("user", text("injected"), isMeta=True)
    file.entry("branch_summary", parent="r1", summary="Tried another name.")
    file.entry("compaction", summary="Flag renamed.")
    assert file.told() == [
        ("message", "user", "Rename the flag"),
        ("message", "assistant", "Renaming."),
        ("tool_call", "assistant", 'edit: {"file":"cli.py"}'),
        ("tool_result", "tool", "ok"),
        ("message", "assistant", "Tried another name."),
        ("compaction", "assistant", "Flag renamed."),
    ]
    assert file.lost() == {"reasoning": 1, "image": 1, "synthetic": 1}
    assert [event.metadata for event in file.events()] == [
        {},
        {"parent_id": "r1"},
        {"tool": "edit", "tool_use_id": "u1", "parent_id": "r1"},
        {"tool_use_id": "u1", "is_error": False, "parent_id": "r2"},
        {"summary_type": "branch-summary", "parent_id": "r1"},
        {"summary_type": "compaction", "parent_id": "r5"},
    ]
    assert [event.block for event in file.events()] == [0, 1, 2, 0, 0, 0]


def test_what_a_person_typed_while_the_model_worked_is_theirs() -> None:
    file = File().message("user", text("first"))
    file.message("user", text("faster"), "steering").message("user", text("then this"), "followup")
    assert [event.content for event in file.events()] == ["first", "faster", "then this"]
    assert file.lost() == {}


def test_converted_messages_that_name_no_source_are_read() -> None:
    file = File().message("user", text("old"), None).message("assistant", text("reply"), None)
    file.entry("message", message={"role": "user", "content": text("bare")})
    assert [event.content for event in file.events()] == ["old", "reply", "bare"]


@pytest.mark.parametrize(
    ("role", "source", "meta", "what"),
    [
        ("user", "stop_hook", {}, "synthetic"),
        ("user", "user", {"isAutomated": True}, "synthetic"),
        ("user", "mod:memory", {}, "attachment"),
        ("user", "model", {}, "synthetic"),
        ("assistant", "user", {}, "synthetic"),
        ("assistant", "tool", {}, "synthetic"),
        ("system", "user", {}, "role"),
    ],
)
def test_what_nobody_said_is_left_out(role: str, source: str, meta: dict[str, Any], what: str) -> None:
    file = File().message(role, text("words"), source, **meta)
    assert file.told() == []
    assert file.lost() == {what: 1}


def test_tools_results_come_in_the_users_name_and_nothing_else_with_them() -> None:
    file = File().message("user", [result("c", text("done"), is_error=True), *text("a note")], "tool")
    assert file.told() == [("tool_result", "tool", "done")]
    assert file.events()[0].metadata["is_error"] is True
    assert file.lost() == {"synthetic": 1}


def test_an_old_summary_in_the_users_name_is_a_compaction() -> None:
    file = File().message("user", text("so far: nothing"), None, isSummary=True)
    assert file.told() == [("compaction", "assistant", "so far: nothing")]


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (None, "unknown-shape"),
        ("text", "unknown-shape"),
        ({"role": "user", "content": "plain", "meta": {"source": "user"}}, "unknown-shape"),
        ({"role": "user", "meta": {"source": "user"}}, "unknown-shape"),
        ({"content": []}, "role"),
    ],
)
def test_odd_messages_are_counted(message: object, what: str) -> None:
    file = File().message("user", text("before")).entry("message", message=message)
    assert [event.content for event in file.events()] == ["before"]
    assert file.lost() == {what: 1}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": 7},
        {"type": "text"},
        {"type": "tool_use", "id": "u", "name": "edit", "input": "text"},
        {"type": "tool_use", "name": "edit", "input": {}},
        {"type": "tool_use", "id": "u", "input": {}},
    ],
)
def test_one_odd_block_costs_nothing_but_itself(block: dict[str, Any]) -> None:
    file = File().message("assistant", [block, *text("after")])
    assert [(event.content, event.block) for event in file.events()] == [("after", 1)]
    assert file.lost() == {"unknown-shape": 1}


def test_odd_results_are_counted() -> None:
    file = File()
    file.message("user", [result(7, []), result("c", "text"), {"type": "tool_result", "content": []}], "tool")
    file.message("user", [result("c", [{"type": "hologram"}, *text("rest"), {"type": "text", "text": 1}])])
    assert [event.content for event in file.events()] == ["rest"]
    assert file.lost() == {"unknown-shape": 4, "unknown-block": 1}


def test_a_parent_that_is_no_id_costs_its_record() -> None:
    file = File().message("user", text("bad"), parent=7).message("user", text("good"), parent=None)
    assert [event.content for event in file.events()] == ["good"]
    assert file.lost() == {"unknown-shape": 1}


def test_what_hooks_added_is_counted_and_a_packet_is_known_as_one() -> None:
    packet = f"{PACKET_MARKER}\nwords of before"
    file = File()
    file.message("user", text("one"), injected={"sessionStartHookContext": "<hook_context>x</hook_context>"})
    file.message("user", text("two"), injected={"sessionStartHookContext": f"<hook_context>{packet}"})
    file.message("user", text("three"), injected={})
    file.message("user", text(packet))
    file.message("user", [result("c", text(packet))], "tool")
    file.entry("custom_message", customType="m", content=packet)
    file.entry("custom_message", customType="m", content=text("note"))
    assert [event.content for event in file.events()] == ["one", "two", "three"]
    assert file.lost() == {"attachment": 2, "own-packet": 4}


def test_bookkeeping_is_silent_and_the_name_is_the_title() -> None:
    file = File()
    for kind in ("custom", "label", "model_change", "effort_change"):
        file.entry(kind)
    file.entry("session_info", name="renaming")
    file.entry("hologram")
    assert file.lost() == {"unknown-type": 1}
    assert [session.title for session in file.parsed().sessions] == ["", "renaming"]


def test_summaries_without_text_are_counted() -> None:
    file = File().entry("compaction").entry("branch_summary", summary="  ")
    assert file.told() == []
    assert file.lost() == {"unknown-shape": 1}


# ---------------------------------------------------------------------------- headers


def found(path: bytes = PATH, **fields: Any) -> Session | None:
    return identify(path, one(header(**fields)), "")


def test_plain_session_is_what_its_name_and_header_say() -> None:
    assert found() == Session(id=SESSION, cwd="/w", started="2026-02-01T10:00:00Z")


def test_fork_keeps_its_parents_id_in_the_header() -> None:
    session = found(id=OTHER, sessionId=SESSION)
    assert session is not None
    assert (session.id, session.forked_from) == (SESSION, OTHER)


def test_clone_names_its_parents_file() -> None:
    session = found(parentSession=f"/home/dev/.commandcode/projects/w/{OTHER}.jsonl")
    assert session is not None
    assert (session.id, session.forked_from) == (SESSION, OTHER)


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 4},
        {"version": 2},
        {"version": "3"},
        {"version": 3.0},
        {"version": None},
        {"id": OTHER},
        {"id": OTHER, "sessionId": OTHER},
        {"sessionId": OTHER},
        {"cwd": "relative"},
        {"cwd": ""},
        {"cwd": 7},
        {"timestamp": "yesterday"},
        {"timestamp": "2026-02-01T10:00:00"},
        {"timestamp": None},
        {"type": "message"},
        {"more": "x" * MAX_HEADER_BYTES},
    ],
)
def test_a_header_that_says_something_else_is_no_session(fields: dict[str, Any]) -> None:
    assert found(**fields) is None


def test_only_files_named_by_an_id_are_sessions() -> None:
    for name in (f"{SESSION}.checkpoints.jsonl", "notes.jsonl", "no-uuid.jsonl", f"{SESSION}x.jsonl"):
        assert found(f"b/{name}".encode()) is None


def test_a_header_that_is_still_being_written_is_no_session_yet() -> None:
    whole = one(header())
    for size in range(len(whole)):
        assert identify(PATH, whole[:size], "") is None
    assert identify(PATH, b"\n" + whole, "") is None
    assert identify(PATH, b"\xff\n" + whole, "") is None
