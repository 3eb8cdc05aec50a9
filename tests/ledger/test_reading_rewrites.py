"""Sources that are rewritten in place: noticed wherever it happens, and not paid for with each slice."""

from __future__ import annotations

import json
import os
from pathlib import Path

from memd.harness.kimi import ADAPTER
from memd.harness.model import Environment
from memd.ledger.cursor import FileCursor, Prefix
from memd.ledger.reading import Reader, Slice
from memd.ledger.sources import Source, walk

SESSION = "session_1"


def record(number: int, text: str) -> bytes:
    message = {"role": "user", "content": text, "origin": {"kind": "user"}}
    made = {"type": "context.append_message", "time": 1_770_000_000_000 + number, "message": message}
    return json.dumps(made).encode() + b"\n"


def journal(home: Path, *texts: str) -> Path:
    folder = home / ".kimi-code" / "sessions" / "wd" / SESSION
    (folder / "agents" / "main").mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(json.dumps({"id": SESSION, "cwd": "/w"}))
    path = folder / "agents" / "main" / "wire.jsonl"
    path.write_bytes(b"".join(record(number, text) for number, text in enumerate(texts)))
    return path


def source(home: Path) -> Source:
    (store,) = ADAPTER.stores(Environment(home=os.fsencode(home)))
    (found,) = walk(ADAPTER, store).sources
    return found


def read_all(reader: Reader, home: Path, known: FileCursor | None, budget: int = 300) -> list[Slice]:
    slices = []
    while True:
        made = reader.read(source(home), known, budget)
        if made is None:
            return slices
        slices.append(made)
        known = made.cursor
        if not made.is_more:
            return slices


def said(slices: list[Slice]) -> list[str]:
    return [event.content for made in slices for event in made.events]


def test_what_is_appended_is_read_from_where_it_begins(tmp_path: Path) -> None:
    path = journal(tmp_path, *(f"word {number}" for number in range(20)))
    reader = Reader({"kimi": ADAPTER})
    first = read_all(reader, tmp_path, None)
    assert len(first) > 5
    assert [made.is_restart for made in first] == [True] + [False] * (len(first) - 1)
    with path.open("ab") as file:
        file.write(record(20, "one more"))
    then = read_all(reader, tmp_path, first[-1].cursor)
    assert (said(then), [made.is_restart for made in then]) == (["one more"], [False])


def test_a_change_anywhere_before_the_cursor_is_noticed_by_this_process_and_the_next(tmp_path: Path) -> None:
    words = [f"word {number:03d}" for number in range(200)]
    for changed in (0, 100, 199):
        home = tmp_path / str(changed)
        path = journal(home, *words)
        reader = Reader({"kimi": ADAPTER})
        last = read_all(reader, home, None, 5000)[-1].cursor
        other = [*words[:changed], "another!", *words[changed + 1 :]]
        path = journal(home, *other)  # as long as before
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
        for again in (reader, Reader({"kimi": ADAPTER})):
            slices = read_all(again, home, last, 5000)
            assert slices[0].is_restart
            assert said(slices) == other


def test_a_slice_costs_what_is_new_in_it() -> None:
    data = os.urandom(1 << 20)
    asked: list[int] = []

    def read_at(offset: int, size: int) -> bytes:
        asked.append(size)
        return data[offset : offset + size]

    prefix = Prefix()
    sums = [prefix.whole("as it is", read_at, offset) for offset in range(0, len(data) + 1, 1 << 16)]
    assert sum(asked) == len(data)
    assert sums == [Prefix().whole("", read_at, offset) for offset in range(0, len(data) + 1, 1 << 16)]


def test_a_beginning_is_hashed_anew_when_the_file_may_be_another() -> None:
    prefix = Prefix()
    one = prefix.whole("one", lambda offset, size: b"a" * size, 100)
    assert prefix.whole("other", lambda offset, size: b"b" * size, 100) != one
    assert prefix.whole("one", lambda offset, size: b"a" * size, 100) == one
    assert prefix.whole("one", lambda offset, size: b"a" * size, 50) != one
    assert prefix.whole("one", lambda offset, size: b"", 101) == b""
