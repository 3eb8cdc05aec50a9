"""A source whose session is named by a small file beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from memd.harness.model import Adapter, Environment, Event, Parsed, Session, Store
from memd.harness.records import split
from memd.ledger.reading import BESIDE_BYTES, Reader, Slice
from memd.ledger.sources import Source, walk

CWD = "/home/dev/somewhere"


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    try:
        about = json.loads(head)
    except ValueError:
        return None
    return Session(id=about["id"], cwd=about["cwd"], title=about.get("title", ""))


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    lines, consumed = split(chunk)
    events, at = [], base
    for line in lines:
        text, name = line.decode(), state.decode()
        events.append(
            Event(session=name, origin=f"{name}@{at}", kind="message", role="user", content=text, at=at)
        )
        at += len(line) + 1
    return Parsed(events=events, consumed=consumed, state=state)


MADE_UP = Adapter(
    name="made-up",
    title="Made Up",
    stores=lambda environment: (Store(root=environment.home + b"/store", patterns=("*/log",)),),
    identify=identify,
    begin=lambda session, flavor: session.id.encode(),
    beside=lambda path: path.rsplit(b"/", 1)[0] + b"/about.json",
    parse=parse,
)


def write(home: Path, text: str, about: dict[str, str] | str | None = None) -> Source:
    folder = home / "store" / "s1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log").write_text(text)
    if about is not None:
        told = about if isinstance(about, str) else json.dumps({"cwd": CWD, **about})
        (folder / "about.json").write_text(told)
    return found(home)


def found(home: Path) -> Source:
    (one,) = walk(MADE_UP, MADE_UP.stores(Environment(home=os.fsencode(home)))[0]).sources
    return one


def read(source: Source, known: Slice | None = None) -> Slice | None:
    return Reader({"made-up": MADE_UP}).read(source, known.cursor if known else None)


def test_nothing_is_read_before_the_other_file_says_whose_it_is(tmp_path: Path) -> None:
    before = read(write(tmp_path, "one\n"))
    assert before is not None
    assert (before.session, before.events, before.size) == ("", [], 0)
    after = read(write(tmp_path, "one\n", {"id": "s1"}), before)
    assert after is not None
    assert after.session == "s1"
    assert [event.content for event in after.events] == ["one"]
    assert [session.cwd for session in after.sessions] == [CWD]


def test_a_source_looks_new_when_the_other_file_comes_after_it(tmp_path: Path) -> None:
    early = write(tmp_path, "one\n")
    late = write(tmp_path, "one\n", {"id": "s1"})
    os.utime(tmp_path / "store/s1/about.json", ns=(early.mtime_ns + 5, early.mtime_ns + 5))
    assert found(tmp_path).mtime_ns >= early.mtime_ns + 5
    assert late.size == early.size


def test_a_new_title_comes_without_a_new_record(tmp_path: Path) -> None:
    first = read(write(tmp_path, "one\n", {"id": "s1"}))
    assert first is not None
    assert read(write(tmp_path, "one\n", {"id": "s1"}), first) is None
    second = read(write(tmp_path, "one\n", {"id": "s1", "title": "named"}), first)
    assert second is not None
    assert (second.events, second.is_restart) == ([], False)
    assert [session.title for session in second.sessions] == ["named"]
    third = read(write(tmp_path, "one\ntwo\n"), second)
    assert third is not None
    assert [event.content for event in third.events] == ["two"]
    assert not third.sessions


def test_a_half_written_name_loses_no_place(tmp_path: Path) -> None:
    first = read(write(tmp_path, "one\n", {"id": "s1"}))
    assert first is not None
    assert read(write(tmp_path, "one\ntwo\n", '{"id": "s'), first) is None
    again = read(write(tmp_path, "one\ntwo\n", {"id": "s1"}), first)
    assert again is not None
    assert [event.content for event in again.events] == ["two"]


def test_another_session_under_the_name_is_read_from_its_start(tmp_path: Path) -> None:
    first = read(write(tmp_path, "one\n", {"id": "s1"}))
    assert first is not None
    second = read(write(tmp_path, "one\ntwo\n", {"id": "s2"}), first)
    assert second is not None
    assert second.is_restart
    assert [(event.session, event.content) for event in second.events] == [("s2", "one"), ("s2", "two")]


def test_what_is_no_small_file_of_its_own_names_nothing(tmp_path: Path) -> None:
    source = write(tmp_path, "one\n", {"id": "s1"})
    about = tmp_path / "store/s1/about.json"
    for replace in (
        lambda: about.write_bytes(b" " * BESIDE_BYTES + b"{}"),
        about.mkdir,
        lambda: about.symlink_to(tmp_path / "elsewhere"),
        lambda: os.mkfifo(about),
    ):
        about.rmdir() if about.is_dir() else about.unlink()  # also where a link leads
        replace()
        (tmp_path / "elsewhere").write_text('{"id": "s1", "cwd": "/w"}')
        made = read(source)
        assert made is not None
        assert made.session == ""
