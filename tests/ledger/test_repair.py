"""Whatever was broken, a repair makes segments, rows and index agree, and keeps what either still knows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memd.harness.model import Session, Turn
from memd.ledger.store.interface import Filter, Selection
from support_ledger import S1, S2, Ledger, entry, holding, loss


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        made.put(
            entry("alpha", at=0, record="r1"),
            entry("beta", at=1, role="assistant", metadata={"tool": "Bash"}),
            entry("aside", at=2, is_side=True),
            source=b"s",
            cursor=b"1",
            losses=[loss("image", 2)],
        )
        made.put(entry("delta", at=9, replaces=1), turns=[Turn(session=S1, first=9, last=9, is_side=True)])
        made.writer.seal_all()
        made.put(
            entry("alpha", session=S2),
            entry("gamma", session=S2),
            sessions=[Session(id=S2, cwd="/two")],
        )
        made.put(entry("epsilon", at=12))
        yield made


def state(ledger: Ledger) -> object:
    sessions = [(row.id, row.cwd, row.events, row.side_events) for row in ledger.reader.sessions(Filter())]
    lines = [
        [
            (event.sequence, event.content, event.metadata)
            for event in ledger.reader.export("claude", name, side=True)
        ]
        for name in (S1, S2)
    ]
    found = [len(ledger.reader.search(word, Filter())) for word in ("alpha", "beta", "gamma", "epsilon")]
    return sorted(sessions), lines, found, ledger.reader.losses("claude", S1)


def change(ledger: Ledger, *statements: str) -> None:
    connection = apsw.Connection(str(ledger.root / "ledger.sqlite3"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def first_segment(ledger: Ledger) -> Path:
    return ledger.root / "segments" / "claude" / "00000001.jsonl.zst"


DAMAGES: dict[str, Callable[[Ledger], None]] = {
    "a changed row": lambda ledger: change(ledger, "update events set content = 'x', role = 'y'"),
    "lost places": lambda ledger: change(ledger, "delete from session_events where position = 1"),
    "lost events": lambda ledger: change(
        ledger, "delete from session_events", "delete from events where content <> 'gamma'"
    ),
    "changed sides": lambda ledger: change(ledger, "update session_events set is_side = 1 - is_side"),
    "lost losses": lambda ledger: change(ledger, "delete from losses"),
    "wrong counts": lambda ledger: change(ledger, "update sessions set events = 70, side_events = 1"),
    "an empty index": lambda ledger: change(
        ledger, "insert into event_text(event_text) values('delete-all')"
    ),
    "a lost segment": lambda ledger: first_segment(ledger).unlink(),
    "a damaged segment": lambda ledger: first_segment(ledger).write_bytes(b"\x28\xb5\x2f\xfd junk"),
    "a segment cut short": lambda ledger: (ledger.root / "segments/claude/00000002.jsonl").write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_repair_restores(ledger: Ledger, damage: str) -> None:
    before = state(ledger)
    DAMAGES[damage](ledger)
    assert ledger.problems() != []
    assert ledger.writer.repair() > 0
    assert ledger.problems() == []
    assert state(ledger) == before
    ledger.put(entry("later"))
    ledger.writer.seal_all()
    assert ledger.problems() == []


def test_rows_are_made_from_segments_alone(ledger: Ledger, tmp_path: Path) -> None:
    before = state(ledger)
    copy = tmp_path / "copy"
    shutil.copytree(ledger.root, copy)
    with Ledger(copy) as other:
        change(
            other,
            "delete from session_events",
            "delete from events",
            "delete from sessions",
            "delete from losses",
            "delete from checkouts",
        )
        other.writer.repair()
        assert other.problems() == []
        assert state(other) == before


def test_segments_are_made_from_rows_alone(ledger: Ledger) -> None:
    before = state(ledger)
    shutil.rmtree(ledger.root / "segments" / "claude")
    (ledger.root / "segments" / "claude").mkdir()
    root = ledger.root
    ledger.close()
    with Ledger(root) as again:
        again.writer.repair()
        assert [problem for problem in again.problems() if problem[0] != "loss"] == []
        assert state(again) == before
    ledger.__init__(root)  # type: ignore[misc]


def test_a_repair_brings_nothing_back_that_was_forgotten(ledger: Ledger) -> None:
    ledger.forget(Selection(session=S2))
    first_segment(ledger).unlink()
    ledger.writer.repair()
    assert ledger.texts(S2) == []
    assert ledger.texts(side=True) == ["aside", "delta", "epsilon"]
    assert holding(ledger.root, [b"gamma", b"alpha"]) == []


def test_nothing_broken_is_left_as_it_is(ledger: Ledger) -> None:
    before = state(ledger)
    assert ledger.writer.repair() == 0
    assert state(ledger) == before
    assert ledger.problems() == []
