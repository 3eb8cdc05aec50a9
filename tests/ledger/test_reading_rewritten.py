"""Files that are rewritten in place: read on when they grew, anew with the same ids when they changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.harness.model import Environment, event_id
from memd.harness.registry import resolve
from memd.ledger import messages
from memd.ledger.reading import Reader, Slice
from memd.ledger.sources import Source, walk
from support_antigravity import T0, Antigravity
from support_antigravity import U as A
from support_kiro import CWD, Second, Third, U
from support_worker import Worker, entries

Say = Callable[[str], None]


def second(home: Path) -> tuple[str, Path, Say]:
    made = Second(home / ".kiro", U.format(1), CWD)
    return "kiro", made.path, made.prompt


def third(home: Path) -> tuple[str, Path, Say]:
    made = Third(home / ".kiro", f"sess_{U.format(1)}", CWD)
    return "kiro", made.path, made.prompt


def prompts(home: Path) -> tuple[str, Path, Say]:
    made = Antigravity(home)
    count = iter(range(1000))
    return "antigravity", made.history, lambda text: made.prompt(text, A.format(1), time=T0 + next(count))


stores = pytest.mark.parametrize("store", [second, third, prompts])


def read(home: Path, harness: str, path: Path, known: Slice | None = None) -> Slice | None:
    adapter = resolve(harness)
    found: list[Source] = []
    for store in adapter.stores(Environment(home=os.fsencode(home))):
        found += [one for one in walk(adapter, store).sources if one.path == os.fsencode(path)]
    (source,) = found
    return Reader({harness: adapter}).read(source, known.cursor if known else None)


def ids(harness: str, made: Slice | None) -> list[str]:
    assert made is not None
    return [event_id(harness, event) for event in made.events]


@stores
def test_an_append_is_read_on_and_a_rewrite_anew_with_the_same_ids(
    store: Callable[[Path], tuple[str, Path, Say]], tmp_path: Path
) -> None:
    harness, path, say = store(tmp_path)
    say("one")
    say("two")
    first = read(tmp_path, harness, path)
    assert first is not None
    assert read(tmp_path, harness, path, first) is None
    say("three")
    more = read(tmp_path, harness, path, first)
    assert more is not None
    assert (more.is_restart, [event.content for event in more.events]) == (False, ["three"])

    whole = ids(harness, first) + ids(harness, more)
    lines = path.read_bytes().splitlines(keepends=True)
    inode = path.stat().st_ino
    path.write_bytes(b"".join([lines[0].replace(b"one", b"eno"), *lines[1:]]))  # as long as before
    assert path.stat().st_ino == inode
    anew = read(tmp_path, harness, path, more)
    assert anew is not None
    assert anew.is_restart
    assert ids(harness, anew)[1:] == whole[1:]
    assert ids(harness, anew)[0] != whole[0]

    path.write_bytes(lines[1])
    shorter = read(tmp_path, harness, path, anew)
    assert shorter is not None
    assert shorter.is_restart
    assert ids(harness, shorter) == whole[1:2]


def test_a_session_whose_name_comes_after_its_records_is_read_when_it_comes(tmp_path: Path) -> None:
    made = Third(tmp_path / ".kiro", f"sess_{U.format(1)}", CWD)
    made.prompt("hello")
    about = made.folder / "session.json"
    content = about.read_bytes()
    about.unlink()
    worker = Worker(tmp_path)
    try:
        worker.begin()
        worker.tell(messages.Watched(is_watched=True))
        worker.tell(messages.Flush(token=1))
        while not isinstance(news := worker.news(), messages.Flushed):
            assert news is not None
            if isinstance(news, messages.Read):  # that it was looked at in vain
                assert entries(news) == []
                worker.tell(messages.Acknowledge(number=news.number))
        about.write_bytes(content)
        worker.tell(messages.Look(paths=(os.fsencode(about),)))
        told = worker.read()
        assert told is not None
        assert [entry.content for entry in entries(told)] == ["hello"]
    finally:
        worker.end()
