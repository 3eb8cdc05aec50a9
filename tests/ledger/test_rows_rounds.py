"""Rounds over another program's database: nothing is left behind however many rows share a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.harness.model import Environment, Event
from memd.harness.opencode import ADAPTER
from memd.ledger import rows, snapshot
from memd.ledger.cursor import RowCursor
from memd.ledger.reading import Unreadable
from memd.ledger.sources import Source, walk
from support_opencode import T0, Store, tool

NOW_MS = T0 + 365 * 24 * 3600 * 1000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home" / "opencode.db")
    store.session()
    return store


def source(store: Store) -> Source:
    environment = Environment(home=b"/nobody", variables={"OPENCODE_DB": os.fsencode(store.path)})
    (found,) = walk(ADAPTER, ADAPTER.stores(environment)[0]).sources
    return found


def rounds(store: Store, tmp_path: Path, known: RowCursor, limit: int = 60) -> tuple[list[Event], RowCursor]:
    """Rounds until one says that no more is there."""
    events: list[Event] = []
    for _ in range(limit):
        read = rows.read_database(ADAPTER, source(store), known, os.fsencode(tmp_path / "scratch"), NOW_MS)
        events += read.parsed.events
        known = read.cursor
        if not read.is_more:
            return events, known
    raise AssertionError("rounds without end")


def test_more_rows_than_a_round_takes_with_one_stamp_are_all_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long session that was forked or carried over from files: all its rows were written at once."""
    monkeypatch.setattr(rows, "ROWS", 10)
    store.say("msg_0", "first")
    stamp = store.now
    for number in range(57):
        store.now = stamp
        store.say(f"msg_{number:03}", f"turn {number}")
    events, known = rounds(store, tmp_path, RowCursor())
    assert {event.content for event in events} == {"first", *(f"turn {number}" for number in range(57))}
    _, known = rounds(store, tmp_path, known)
    store.say("msg_new", "one more")
    later, _ = rounds(store, tmp_path, known)
    assert "one more" in {event.content for event in later}


def test_a_row_that_was_committed_late_is_read_in_a_busy_moment(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROWS", 10)
    for number in range(40):
        store.now = T0 + 5000
        store.say(f"msg_{number:03}", f"turn {number}")
    _, known = rounds(store, tmp_path, RowCursor())
    store.now = T0 + 3000
    store.say("msg_late", "late")
    events, _ = rounds(store, tmp_path, known)
    assert "late" in {event.content for event in events}


def test_a_store_that_comes_to_rest_is_looked_at_once_more(store: Store) -> None:
    """A turn that was killed is never written to again: only time tells that it will not end."""
    found = source(store)
    written = found.mtime_ns // 1_000_000
    soon, late, later = written + 1000, written + rows.REST_MS + 1, written + 3 * rows.REST_MS
    assert rows.look_of(found, soon) == rows.look_of(found, soon + 1)
    assert rows.look_of(found, late) != rows.look_of(found, soon)
    assert rows.look_of(found, late) == rows.look_of(found, later)


def test_a_turn_that_was_killed_is_read_when_its_store_has_rested(store: Store, tmp_path: Path) -> None:
    store.message("msg_1", "assistant")
    store.part("prt_1", "msg_1", **tool("running"))
    scratch = os.fsencode(tmp_path / "scratch")
    at_once = rows.read_database(ADAPTER, source(store), RowCursor(), scratch, store.now + 1000)
    assert not at_once.parsed.events
    rested = rows.read_database(ADAPTER, source(store), at_once.cursor, scratch, store.now + rows.REST_MS + 1)
    assert [event.metadata["status"] for event in rested.parsed.events] == ["unfinished"]


def test_a_lock_is_a_trouble_that_passes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "BUSY_MS", 20)
    store.db.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, store.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin and holder.stdout
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Unreadable) as caught:
            rows.read_database(ADAPTER, source(store), RowCursor(), os.fsencode(tmp_path / "s"), NOW_MS)
        assert caught.value.is_passing
    finally:
        holder.kill()
        holder.communicate()


_HOLDER = """
import sys, apsw
c = apsw.Connection(sys.argv[1])
c.execute("insert into credential values('2', '')")
c.execute("pragma locking_mode=exclusive")
c.execute("insert into credential values('3', '')")
print("held", flush=True)
sys.stdin.read()
"""
