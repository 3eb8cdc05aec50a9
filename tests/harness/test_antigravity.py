"""Antigravity's conversations: what their metadata say, and nothing else of their databases."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from memd.harness.antigravity import ADAPTER, CONVERSATION, MAX_BLOB_BYTES, directory
from memd.harness.model import Environment, Parsed
from memd.ledger.cursor import RowCursor
from memd.ledger.reading import Unreadable
from memd.ledger.rows import read_database
from memd.ledger.sources import walk
from support_antigravity import (
    CWD,
    FIXTURES,
    T0,
    Antigravity,
    U,
    blob,
    dump,
    field1,
    uri,
    varint,
    write_fixtures,
)
from support_imports import losses_of, readings
from support_rows import trace

ME = U.format(1)


def conversations(home: Path, now_ms: int = T0) -> list[Parsed]:
    """What the databases of a home give, in the order of their names."""
    store = ADAPTER.stores(Environment(home=os.fsencode(home)))[0]
    found = sorted(walk(ADAPTER, store).sources, key=lambda source: source.path)
    scratch = os.fsencode(home / "scratch")
    return [read_database(ADAPTER, source, RowCursor(), scratch, now_ms).parsed for source in found]


def test_the_fixtures_are_what_the_generator_writes(tmp_path: Path) -> None:
    write_fixtures(tmp_path)
    fresh = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert fresh == {path.relative_to(FIXTURES) for path in FIXTURES.rglob("*") if path.is_file()}
    for path in fresh:
        if path.suffix == ".db":
            assert dump(tmp_path / path) == dump(FIXTURES / path)
        else:
            assert (tmp_path / path).read_bytes() == (FIXTURES / path).read_bytes()


@pytest.mark.parametrize("scenario", sorted(path.name for path in FIXTURES.iterdir()))
def test_what_must_be_there_is_there_and_what_must_not_is_not(scenario: str) -> None:
    judge = json.loads((FIXTURES / scenario / "MANIFEST.json").read_text())
    found = readings(FIXTURES / scenario, "antigravity")
    text = "\n".join(event.content for reading in found for event in reading.events)
    assert [mark for mark in judge["expect_in_ledger"] if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []


def test_the_recipe_gives_one_certain_prompt_and_says_what_is_left_out(tmp_path: Path) -> None:
    write_fixtures(tmp_path)
    found = readings(tmp_path / "recipe", "antigravity")
    mine = [event for reading in found for event in reading.events if event.session == ME]
    assert [(event.content, event.metadata) for event in mine] == [("now add an index", {})]
    assert losses_of(found, ME) == {"command": 1, "elsewhere": 1}
    (read,) = conversations(tmp_path / "recipe")
    assert next((session.id, session.cwd) for session in read.sessions) == (ME, CWD)
    assert [(loss.session, loss.what) for loss in read.losses] == [(ME, "undecoded")]
    assert not read.events


def test_reading_leaves_no_trace_and_takes_nothing_of_the_steps(tmp_path: Path) -> None:
    made = Antigravity(tmp_path)
    made.conversation(ME)
    before = trace(made.folder)
    assert "SECRET" not in repr(conversations(tmp_path))
    assert trace(made.folder) == before


def test_metadata_that_come_late_are_read_when_they_are_there(tmp_path: Path) -> None:
    made = Antigravity(tmp_path)
    made.conversation(ME, b"")
    store = ADAPTER.stores(Environment(home=os.fsencode(tmp_path)))[0]
    (source,) = walk(ADAPTER, store).sources
    first = read_database(ADAPTER, source, RowCursor(), b"/nowhere", T0)
    assert not first.parsed.sessions
    made.tell(ME, blob(uri(CWD)))
    second = read_database(ADAPTER, source, first.cursor, b"/nowhere", T0)
    assert next(session.cwd for session in second.parsed.sessions) == CWD
    third = read_database(ADAPTER, source, second.cursor, b"/nowhere", T0)
    assert not third.parsed.losses


@pytest.mark.parametrize("data", [b"", b"\x0a", b"not protobuf", "text", b"\x0a\x02\x0a\x00", bytes(1 << 21)])
def test_metadata_that_cannot_be_understood_name_no_session(data: bytes | str, tmp_path: Path) -> None:
    made = Antigravity(tmp_path)
    made.conversation(ME, data)  # type: ignore[arg-type]
    (read,) = conversations(tmp_path)
    assert (read.sessions, read.losses) == ([], [])


def test_a_database_of_another_shape_is_unreadable_and_no_file_but_a_conversation_is_asked(
    tmp_path: Path,
) -> None:
    made = Antigravity(tmp_path)
    made.path(ME).write_bytes(b"no database at all")
    with pytest.raises(Unreadable):
        conversations(tmp_path)
    assert ADAPTER.identify(b"conversations/notes.db", b"", CONVERSATION) is None
    assert ADAPTER.identify(f"conversations/{ME}.pb".encode(), b"", CONVERSATION) is None


def rows(state: bytes, *found: Sequence[object]) -> Parsed:
    assert ADAPTER.parse_rows is not None
    return ADAPTER.parse_rows("metadata", found, state)


def test_rows_without_a_name_are_nobody_s() -> None:
    parsed = rows(b"", (1, "main", blob(uri(CWD))))
    assert (parsed.sessions, parsed.losses, parsed.consumed) == ((), (), 1)


# -------------------------------------------------------------------------------- the metadata


@pytest.mark.parametrize("length", [1, 100, 127, 128, 129, 300, 20_000])
def test_a_path_of_any_length_is_read(length: int) -> None:
    path = "/" + "x" * length
    assert directory(blob(f"file://{path}")) == path
    assert len(blob(f"file://{path}")) < MAX_BLOB_BYTES


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///home/dev/demo", "/home/dev/demo"),
        ("file:///home/dev/demo/", "/home/dev/demo"),
        ("file://localhost/w", "/w"),
        ("file:/w", "/w"),
        ("FILE:///w", "/w"),
        ("file:///", "/"),
        ("file:///a%20b/%E6%9D%B1", "/a b/東"),
        ("file:///50%/a%2", "/50%/a%2"),
        ("file:///a%zz", "/a%zz"),
        ("file:///a%ff", "/a\ufffd"),
        ("file:///a%00b", ""),
        ("file://far/w", ""),
        ("file:w", ""),
        ("https://x/w", ""),
        ("vscode-remote://x/w", ""),
        ("", ""),
    ],
)
def test_only_paths_of_this_machine_count(text: str, path: str) -> None:
    assert directory(blob(text)) == path


def test_other_fields_are_skipped() -> None:
    inner = field1(b"file:///w")
    for other in (b"\x10\x96\x01", b"\x11" + bytes(8), b"\x12\x03abc", b"\x15abcd", b"\xf8\x07\x01", b""):
        assert directory(other + field1(other + inner) + other) == "/w"


@pytest.mark.parametrize(
    "odd",
    [
        b"\x13",  # a group
        b"\x16\x00",  # no such wire type
        b"\x02\x01x",  # field number 0
        b"\x10",  # a number that is not there
        b"\x10" + b"\x80" * 10 + b"\x01",  # one of more than ten bytes
        b"\x10" + b"\xff" * 9 + b"\x02",  # one of more than 64 bits
        b"\x11" + bytes(3),
        b"\x15ab",
        b"\x12" + varint(1 << 40) + b"abc",
        b"\x80",
    ],
)
def test_anything_odd_gives_nothing(odd: bytes) -> None:
    inner = field1(b"file:///w")
    assert directory(odd + field1(inner)) == ""
    assert directory(field1(odd + inner)) == ""


def test_a_field_that_says_it_is_longer_than_the_rest_gives_nothing() -> None:
    whole = blob("file:///w")
    assert [directory(whole[:cut]) for cut in range(whole.index(b"/w"))] == [""] * whole.index(b"/w")


def test_the_list_and_the_conversations_are_told_apart() -> None:
    conversation, prompts = ADAPTER.stores(Environment(home=b"/h"))
    assert (conversation.root, prompts.root) == (b"/h/.gemini/antigravity-cli",) * 2
    assert (conversation.database, conversation.is_index) == (True, False)
    assert (prompts.rewrites, prompts.is_index) == (True, True)
    many = ADAPTER.identify(b"history.jsonl", b"", prompts.flavor)
    assert many is not None
    assert many.id == ""
