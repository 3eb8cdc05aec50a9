"""A file whose first bytes are rewritten in place is read on from where it was left."""

from __future__ import annotations

import json
import os
from pathlib import Path

from memd.harness.model import Environment
from memd.harness.omp import ADAPTER, TITLE_BYTES
from memd.ledger.reading import Reader, Slice
from memd.ledger.sources import Source, walk
from support_pi import Tree


def slot(title: str) -> bytes:
    plain = json.dumps({"type": "title", "v": 1, "title": title, "updatedAt": "t", "pad": ""})
    return plain[:-2].encode() + b" " * (TITLE_BYTES - len(plain) - 1) + b'"}\n'


def write(home: Path, data: bytes) -> Source:
    folder = home / ".omp/agent/sessions/-demo"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "2026-11-30T00-00-00-000Z_some.jsonl"
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate()
    (found,) = walk(ADAPTER, ADAPTER.stores(Environment(home=os.fsencode(home)))[0]).sources
    return found


def read(source: Source, known: Slice | None = None) -> Slice | None:
    return Reader({"omp": ADAPTER}).read(source, known.cursor if known else None)


def test_a_new_title_is_no_new_file(tmp_path: Path) -> None:
    assert len(slot("a")) == len(slot("a longer title")) == TITLE_BYTES
    tree = Tree()
    tree.say("one")
    first = read(write(tmp_path, slot("") + tree.data))
    assert first is not None
    assert [event.content for event in first.events] == ["one"]
    assert read(write(tmp_path, slot("now it has one") + tree.data), first) is None
    tree.say("two")
    second = read(write(tmp_path, slot("and another") + tree.data), first)
    assert second is not None
    assert not second.is_restart
    assert [event.content for event in second.events] == ["two"]


def test_a_rewrite_behind_the_title_is_noticed(tmp_path: Path) -> None:
    tree, other = Tree(), Tree()
    tree.say("one")
    other.say("eno")
    first = read(write(tmp_path, slot("") + tree.data))
    assert first is not None
    other.say("two")
    second = read(write(tmp_path, slot("") + other.data), first)
    assert second is not None
    assert second.is_restart
    assert [event.content for event in second.events] == ["eno", "two"]


def test_a_file_shorter_than_the_title_is_read(tmp_path: Path) -> None:
    tree = Tree()
    first = read(write(tmp_path, tree.data))
    assert first is not None
    assert first.cursor.offset == len(tree.data) < TITLE_BYTES
    tree.say("one")
    second = read(write(tmp_path, tree.data), first)
    assert second is not None
    assert [event.content for event in second.events] == ["one"]
