"""The pieces of the index: left alone during a back-fill, but not without an end, and merged at rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memd.ledger.store import pieces
from memd.ledger.store.interface import Batch, Filter
from memd.ledger.store.sqlite import SqliteWriter
from support_ledger import Ledger, batch, entry


class Looked(Ledger):
    """A ledger into whose index one can look."""

    def _ask(self, sql: str) -> int:
        connection = apsw.Connection(str(self.root / "ledger.sqlite3"))
        found: int = connection.execute(sql).get
        connection.close()
        return found

    @property
    def pieces(self) -> int:
        return self._ask("select count(distinct segid) from event_text_idx")

    @property
    def automerge(self) -> int:
        return self._ask("select v from event_text_config where k = 'automerge'")

    def fill(self, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            self.writer.append(large(number))


def large(number: int) -> Batch:
    return batch(*(entry(f"w{number} e{at} {'some words ' * 400}", at=number * 10 + at) for at in range(4)))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looked]:
    monkeypatch.setattr(pieces, "FILL_BYTES", 10_000)
    with Looked(tmp_path / "ledger") as made:
        yield made


def test_a_back_fill_leaves_its_pieces_alone_until_nothing_comes(ledger: Looked) -> None:
    ledger.fill(100)
    assert ledger.pieces == 100, "sixty-four of one size would have been merged"
    assert ledger.automerge == 0
    assert len(ledger.reader.search("w77", Filter())) == 4
    ledger.writer.rest()
    assert ledger.pieces < 5
    assert ledger.automerge == pieces.SETTINGS["automerge"]
    assert len(ledger.reader.search("w77", Filter())) == 4
    assert ledger.problems() == []


def test_there_are_never_very_many(ledger: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MANY", 80)
    ledger.fill(200)
    assert ledger.pieces < 80 + 64
    assert ledger.problems() == []


def test_what_comes_line_by_line_is_merged_on_the_way(ledger: Looked) -> None:
    for number in range(150):
        ledger.put(entry(f"line {number}", at=number))
    assert ledger.pieces < 100
    assert ledger.automerge == pieces.SETTINGS["automerge"]


def test_a_back_fill_that_was_cut_off_leaves_no_setting_behind(ledger: Looked) -> None:
    ledger.fill(3)
    ledger.close()
    ledger.writer = SqliteWriter(bytes(ledger.root))
    assert ledger.automerge == pieces.SETTINGS["automerge"]
    ledger.writer.close()


def test_a_ledger_opens_although_its_settings_cannot_be_written(
    ledger: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.fill(3)
    ledger.close()

    def full(_pieces: pieces.Pieces, name: str, value: int) -> None:
        raise apsw.FullError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(pieces.Pieces, "_set", full)
        ledger.writer = SqliteWriter(bytes(ledger.root))
    assert ledger.automerge == 0
    ledger.fill(2, first=3)
    ledger.writer.rest()
    assert ledger.automerge == pieces.SETTINGS["automerge"]
    ledger.writer.close()


def test_a_transaction_that_failed_does_not_change_how_it_goes_on(
    ledger: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SqliteWriter, "_put_lines", lambda *_args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.writer.append(large(0))
    assert ledger.automerge == pieces.SETTINGS["automerge"]
    ledger.fill(70)
    assert ledger.automerge == 0
    assert ledger.pieces == 70
    assert ledger.problems() == []
