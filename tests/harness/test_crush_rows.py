"""Crush's database as it is written, and what a row of it gives."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from memd.harness.crush import ADAPTER, LOOK_BACK_MS, MESSAGES
from memd.harness.crush_rows import parse_rows, visible
from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES, Event, event_id
from memd.harness.model import Store as Place
from support_crush import FINISH, FIXTURES, PACKET, RECIPE, T0, Store, dump, part, row, text, write_fixtures
from support_rows import RowImport, trace


def place(cwd: Path, *shared: Path) -> Place:
    return Place(
        root=b"/",
        patterns=("crush.db",),
        database=True,
        cwd=os.fsencode(cwd) if cwd.name else b"",
        shared=tuple(os.fsencode(one) for one in shared),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "w" / ".crush")
    made.session()
    return made


@pytest.fixture
def reader(store: Store, tmp_path: Path) -> RowImport:
    return RowImport(ADAPTER, store.path, tmp_path / "scratch", place(tmp_path / "w"))


def contents(reader: RowImport) -> list[str]:
    return [event.content for event in reader.round()]


def said(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.role, event.content) for event in events]


def test_the_fixture_holds_what_the_generator_writes(tmp_path: Path) -> None:
    write_fixtures(tmp_path)
    fresh = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert fresh == {path.relative_to(FIXTURES) for path in FIXTURES.rglob("*") if path.is_file()}
    database = "recipe/demo/.crush/crush.db"
    assert dump(tmp_path / database) == dump(FIXTURES / database)
    manifest = "recipe/MANIFEST.json"
    assert (tmp_path / manifest).read_bytes() == (FIXTURES / manifest).read_bytes()


def test_the_recipe_gives_five_events_and_two_losses_once_it_rests(tmp_path: Path) -> None:
    database = FIXTURES / "recipe/demo/.crush/crush.db"
    before = trace(database.parent)
    reader = RowImport(ADAPTER, database, tmp_path / "scratch", place(Path("/home/dev/demo")))
    assert [event.record for event in reader.round()] == ["m1", "m2", "m2", "m3"]
    reader.at_rest()
    events = reader.events("s-top")
    assert said(events) == [
        ("message", "user", "Why does the lexer loop?"),
        ("message", "assistant", "It never consumes EOF."),
        ("tool_call", "assistant", 'view: {"path":"lex.py"}'),
        ("tool_result", "tool", "def lex(): ..."),
        ("compaction", "assistant", "Summary: lexer fixed."),
    ]
    assert [event.block for event in events] == [0, 1, 2, 0, 0]
    assert events[2].metadata == {"tool": "view", "tool_call_id": "c1"}
    assert events[3].metadata == {"tool": "view", "tool_call_id": "c1", "is_error": False}
    assert reader.losses == {("s-top", "reasoning"): 1, ("s-top", "unfinished"): 1}
    assert reader.cursors["unfinished"] == (1770000004000, "m4")
    assert (reader.sessions["s-top"].cwd, reader.sessions["s-top"].title) == ("/home/dev/demo", "Parser")
    assert trace(database.parent) == before


def test_a_reply_is_imported_once_and_whole(store: Store, reader: RowImport) -> None:
    store.say("m1", "build it")
    assert contents(reader) == ["build it"]
    store.message("m2", "assistant")
    store.change("m2", text("I w"))
    assert contents(reader) == []
    store.change("m2", text("I will"))
    assert contents(reader) == []
    store.change("m2", text("I will"), FINISH)
    assert contents(reader) == ["I will"]
    assert contents(reader) == []


def test_a_reply_without_an_end_is_complete_when_another_message_follows(
    store: Store, reader: RowImport
) -> None:
    call = part("tool_call", id="c", name="bash", input='{"command":"make"}', finished=True)
    store.message("m1", "assistant", text("running"), call)
    assert contents(reader) == []
    store.message("m2", "tool", part("tool_result", tool_call_id="c", content="made"))
    assert contents(reader) == ["running", 'bash: {"command":"make"}', "made"]


def test_a_killed_reply_comes_when_the_store_rests(store: Store, reader: RowImport) -> None:
    store.say("m1", "build it")
    store.message("m2", "assistant", text("I will be"))
    assert contents(reader) == ["build it"]
    assert [event.content for event in reader.at_rest(until=store.now * 1000 - 1)] == []
    assert [event.content for event in reader.at_rest(session="other")] == []
    assert [event.content for event in reader.at_rest(session="s1")] == ["I will be"]


def test_appended_rows_come_alone_and_nothing_is_written_beside_the_store(
    store: Store, reader: RowImport
) -> None:
    store.say("m1", "one")
    assert contents(reader) == ["one"]
    before = trace(store.path.parent)
    assert contents(reader) == []
    assert trace(store.path.parent) == before
    store.say("m2", "two")
    assert contents(reader) == ["two"]
    assert reader.cursors["messages"] == (store.now * 1000, "m2")


def test_messages_of_one_second_keep_the_order_in_which_they_were_written(
    store: Store, reader: RowImport
) -> None:
    for name, words in (("zz", "first"), ("aa", "second"), ("mm", "third")):
        store.say(name, words)
        store.now -= 1
    assert [event.content for event in reader.round()] == ["first", "second", "third"]


def test_a_page_may_end_anywhere(store: Store, reader: RowImport) -> None:
    for number in range(9):
        store.say(f"m{number}", f"text {number}")
        store.now -= number % 2
    reader.round(limit=2)
    assert [event.content for event in reader.events()] == [f"text {number}" for number in range(9)]


def test_seconds_and_milliseconds_are_told_apart(store: Store, reader: RowImport) -> None:
    parts = json.dumps([text("a")])
    store.run(f"insert into messages values('m1','s1','user','{parts}',{(T0 + 5) * 1000 + 7},0)")
    store.now += 10
    store.say("m2", "b")
    first, second = reader.round()
    assert first.occurred_at == "2026-02-02T02:40:05.007Z"
    assert second.occurred_at == "2026-02-02T02:40:12.000Z"


def test_an_old_session_that_goes_on_is_found(store: Store, reader: RowImport) -> None:
    store.say("m1", "long ago")
    reader.round()
    store.session("s2")
    store.now += 3 * LOOK_BACK_MS // 1000
    store.say("n1", "much later", to="s2")
    assert contents(reader) == ["much later"]
    store.now += 3 * LOOK_BACK_MS // 1000
    store.say("m2", "and again", to="s1")
    assert contents(reader) == ["and again"]


def test_what_a_sub_agent_did_stands_beside_the_main_line(store: Store, reader: RowImport) -> None:
    store.session("s1-child", parent="s1")
    store.say("m1", "go")
    store.say("c1", "look around", to="s1-child")
    found = reader.round()
    assert [(event.session, event.is_side) for event in found] == [("s1", False), ("s1-child", True)]
    assert reader.sessions["s1-child"].is_side
    assert reader.losses == {("s1", "sub-agent"): 1}


class TestSharedStore:
    """A database outside of the project: only what edited a file of the project is its."""

    @pytest.fixture
    def shared(self, tmp_path: Path) -> Store:
        return Store(tmp_path / "far")

    def reader(self, shared: Store, tmp_path: Path, *projects: str) -> RowImport:
        places = [tmp_path / name for name in projects]
        return RowImport(ADAPTER, shared.path, tmp_path / "scratch", place(Path("/"), *places))

    def test_only_sessions_with_an_edit_below_the_project_count(self, shared: Store, tmp_path: Path) -> None:
        for name in ("mine", "other", "none", "near"):
            shared.session(name)
            shared.say(f"m-{name}", name, to=name)
        shared.edit(tmp_path / "w/a.py", "mine")
        shared.edit("/elsewhere/a.py", "other")
        shared.edit(tmp_path / "w-not/a.py", "near")
        shared.run(f"insert into read_files values('none', '{tmp_path}/w/a.py', 1)")
        reader = self.reader(shared, tmp_path, "w")
        assert contents(reader) == ["mine"]
        assert reader.sessions["mine"].cwd == str(tmp_path / "w")

    def test_an_edit_of_a_sub_agent_counts_at_any_depth(self, shared: Store, tmp_path: Path) -> None:
        shared.session("top")
        shared.session("child", parent="top")
        shared.session("grandchild", parent="child")
        shared.say("m1", "hello", to="top")
        shared.edit(tmp_path / "w/a.py", "grandchild")
        assert contents(self.reader(shared, tmp_path, "w")) == ["hello"]

    def test_what_was_said_before_the_first_edit_comes_with_it(self, shared: Store, tmp_path: Path) -> None:
        reader = self.reader(shared, tmp_path, "w")
        shared.session()
        shared.say("m1", "one")
        shared.answer("m2", "two")
        assert contents(reader) == []
        shared.now += 2 * LOOK_BACK_MS // 1000
        shared.session("s2")
        shared.edit(tmp_path / "w/a.py", "s2")
        shared.say("n1", "other", to="s2")
        assert contents(reader) == ["other"]
        shared.edit(tmp_path / "w/a.py", "s1")
        assert contents(reader) == ["one", "two"]
        shared.say("m3", "three")
        assert contents(reader) == ["three"]

    def test_a_session_is_the_innermost_project_s(self, shared: Store, tmp_path: Path) -> None:
        shared.session()
        shared.say("m1", "hello")
        shared.edit(tmp_path / "w/inner/a.py")
        shared.edit(tmp_path / "w/a.py")
        reader = self.reader(shared, tmp_path, "w", "w/inner", "x")
        reader.round()
        assert reader.sessions["s1"].cwd == str(tmp_path / "w/inner")

    def test_parents_in_a_circle_end(self, shared: Store, tmp_path: Path) -> None:
        shared.session("a", parent="b")
        shared.session("b", parent="a")
        shared.say("m1", "hello", to="a")
        shared.edit(tmp_path / "w/a.py", "a")
        assert contents(self.reader(shared, tmp_path, "w")) == []

    def test_the_owner_of_the_store_has_what_is_nobody_else_s(self, shared: Store, tmp_path: Path) -> None:
        for name in ("mine", "theirs"):
            shared.session(name)
            shared.say(f"m-{name}", name, to=name)
        shared.edit(tmp_path / "w/a.py", "theirs")
        place_ = place(tmp_path / "own", tmp_path / "w")
        reader = RowImport(ADAPTER, shared.path, tmp_path / "scratch", place_)
        assert contents(reader) == ["mine", "theirs"]
        assert {name: one.cwd for name, one in reader.sessions.items()} == {
            "mine": str(tmp_path / "own"),
            "theirs": str(tmp_path / "w"),
        }


# ------------------------------------------------------------------------------------------- one row


def events(*parts: object, **values: object) -> list[Event]:
    return list(parse_rows("messages", [row(list(parts), **values)], b"").events)


def losses(parts: object, **values: object) -> Counter[str]:
    counts: Counter[str] = Counter()
    for loss in parse_rows("messages", [row(parts, **values)], b"").losses:
        counts[loss.what] += loss.count
    return counts


def test_what_is_left_out_is_counted() -> None:
    parts = [
        part("reasoning", thinking="x"),
        part("binary", data="AAAA"),
        part("hologram"),
        part("tool_call", name="bash", input="{}", finished=False),
        text(PACKET),
        part("tool_result", content=PACKET),
        FINISH,
        text("   "),
        {"type": "text", "data": ["odd"]},
    ]
    assert events(*parts) == []
    assert losses(parts) == {
        "reasoning": 1,
        "image": 1,
        "unknown-block": 1,
        "unfinished": 1,
        "own-packet": 2,
        "unknown-shape": 1,
    }


def test_a_text_may_be_called_content_and_a_call_may_lack_its_name() -> None:
    assert said(events(part("text", content="hello"), part("tool_call", input={"a": [1, 2.5]}))) == [
        ("message", "assistant", "hello"),
        ("tool_call", "assistant", 'tool: {"a":[1,2.5]}'),
    ]


def test_a_call_without_finished_counts_as_finished() -> None:
    assert said(events(part("tool_call", name="ls", input="")))[0][2] == "ls: "


def test_a_text_of_another_role_is_a_loss() -> None:
    assert events(text("be nice"), role="system") == []
    assert losses([text("be nice")], role="system") == {"role": 1}


def test_a_result_says_what_its_value_says() -> None:
    (result,) = events(part("tool_result", data=[{"text": "a"}, {"type": "x", "text": ""}, "b"], name="ls"))
    assert (result.content, result.role, result.metadata) == ("a\nb", "tool", {"tool": "ls"})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"plain"', "plain"),
        ("null", ""),
        ("true", "true"),
        ("1.50", "1.50"),
        ('["a", "", null, ["b", 2]]', "a\nb\n2"),
        ('{"text": 1, "content": "c", "output": "o"}', "c"),
        ('{"output": "o"}', "o"),
        ('{"b": 1, "a": "é"}', '{"b":1,"a":"é"}'),
        ('{"text": {"x": 1}}', '{"text":{"x":1}}'),
        ("[" * 60 + "]" * 60, "[" * 52 + "]" * 52),
    ],
)
def test_what_a_value_says(value: str, says: str) -> None:
    assert visible(value.encode()) == says


@pytest.mark.parametrize(
    ("stored", "what"),
    [
        (b"not json", "malformed"),
        (b'{"type":"text"}', "unknown-shape"),
        (b"[1, 2]", "unknown-shape"),
        (b"[", "malformed"),
        (b"", "malformed"),
    ],
)
def test_parts_that_are_no_list_of_parts_are_a_loss(stored: bytes, what: str) -> None:
    assert losses(stored) == {what: 1}


def test_halves_of_pairs_and_odd_bytes_are_replaced() -> None:
    half = rb'[{"type":"text","data":{"text":"a\ud83d"}}]'
    assert parse_rows("messages", [row(half)], b"").events[0].content == "a\ufffd"
    assert losses(half) == {}
    odd = b'[{"type":"text","data":{"text":"a\xff"}}]'
    assert parse_rows("messages", [row(odd)], b"").events[0].content == "a\ufffd"
    assert losses(odd) == {"encoding": 1}


def test_a_giant_text_is_shortened_and_a_value_too_large_to_be_read_is_a_loss() -> None:
    parts = [text("x" * (MAX_RECORD_BYTES + 5))]
    (event,) = events(*parts)
    assert len(event.content) == MAX_EVENT_BYTES
    assert losses(parts) == {"shortened": 1}
    assert losses(None, size=1 << 30) == {"oversized": 1}


def test_equal_parts_of_one_message_are_two_events() -> None:
    first, second = events(text("yes"), text("yes"))
    assert event_id("crush", first) != event_id("crush", second)


def test_a_row_that_comes_again_is_not_counted_again() -> None:
    found = row([part("reasoning"), part("reasoning")])
    first = parse_rows("messages", [found], b"")
    assert [loss.count for loss in first.losses] == [2]
    assert not parse_rows("claimed", [found], first.state).losses


def test_the_first_query_reads_the_columns_it_says() -> None:
    assert MESSAGES.columns[:2] == ("updated", "id")
    assert len(RECIPE) == 6
