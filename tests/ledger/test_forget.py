"""What a person forgets is gone from rows, index, segments and log, and does not come back."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.errors import DiskError
from memd.harness.model import Session
from memd.ledger.segments import Segments
from memd.ledger.store import sqlite
from memd.ledger.store.interface import Filter, Selection
from support_ledger import S1, S2, Ledger, entry, holding, loss


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        yield made


def fill(ledger: Ledger) -> None:
    ledger.put(
        entry("zebrafish in the first session"),
        entry("quagga result", kind="tool_result", role="tool", occurred_at="2026-02-05T00:00:00Z"),
        sessions=[Session(id=S1, cwd="/w/one", title="about zebrafish")],
        source=b"s1",
        cursor=b"1",
    )
    ledger.put(
        entry("okapi in the second", session=S2),
        sessions=[Session(id=S2, cwd="/w/two")],
        source=b"s2",
        cursor=b"1",
        losses=[loss("image", session=S2)],
    )


def test_a_session_is_gone_everywhere(ledger: Ledger) -> None:
    fill(ledger)
    ledger.writer.seal_all()
    plan = ledger.writer.plan_forget(Selection(session=S1))
    assert (plan.events, plan.session_count, plan.elsewhere) == (2, 1, 0)
    assert ledger.texts() != []
    assert ledger.forget(Selection(session=S1)) == plan
    assert ledger.texts() == []
    assert ledger.reader.search("zebrafish", Filter()) == []
    assert [row.id for row in ledger.reader.sessions(Filter())] == [S2]
    assert holding(ledger.root, [b"zebrafish", b"quagga"]) == []
    assert ledger.texts(S2) == ["okapi in the second"]
    assert ledger.problems() == []


def test_it_never_comes_back(ledger: Ledger) -> None:
    fill(ledger)
    ledger.forget(Selection(session=S1))
    fill(ledger)
    ledger.put(entry("zebrafish in the first session", session="a copy of it"))
    assert ledger.texts() == []
    assert ledger.texts("a copy of it") == []
    assert ledger.reader.cursor(b"s1") == b"1"
    assert holding(ledger.root, [b"zebrafish", b"quagga"]) == []


def test_everything_before_a_date(ledger: Ledger) -> None:
    fill(ledger)
    ledger.forget(Selection(before="2026-02-04"))
    assert ledger.texts() == ["quagga result"]
    assert ledger.sequences() == [2]
    assert ledger.texts(S2) == []
    assert ledger.put(entry("old", occurred_at="2025-01-01T00:00:00Z")).forgotten == 1
    assert ledger.put(entry("new", occurred_at="2026-02-06T00:00:00Z")).stored == 1
    assert ledger.sequences() == [2, 3]
    assert holding(ledger.root, [b"zebrafish", b"okapi"]) == []
    assert ledger.problems() == []


def test_what_matches_a_query(ledger: Ledger) -> None:
    fill(ledger)
    ledger.forget(Selection(matching="zebrafish"))
    assert ledger.texts() == ["quagga result"]
    [row] = ledger.reader.find(S1)
    assert row.title == ""
    assert holding(ledger.root, [b"zebrafish"]) == []
    ledger.put(sessions=[Session(id=S1, title="about zebrafish again")])
    assert holding(ledger.root, [b"zebrafish"]) == []
    assert ledger.problems() == []


def test_an_open_segment_is_rewritten_and_appended_to_no_more(ledger: Ledger) -> None:
    fill(ledger)
    ledger.forget(Selection(session=S1))
    ledger.put(entry("after", session=S2))
    ledger.writer.seal_all()
    assert ledger.problems() == []
    assert ledger.texts(S2) == ["okapi in the second", "after"]


def test_a_damaged_segment_is_made_anew_without_it(ledger: Ledger) -> None:
    fill(ledger)
    ledger.writer.seal_all()
    [path] = ledger.root.rglob("*.zst")
    path.write_bytes(b"damaged")
    ledger.forget(Selection(session=S1))
    assert ledger.texts(S2) == ["okapi in the second"]
    assert [problem for problem in ledger.problems() if problem[0] != "loss"] == []


def test_one_among_many_leaves_no_trace(ledger: Ledger) -> None:
    """The index keeps words in many pieces, and pages keep what was moved: all of that must go."""
    words = [b"xq%04dzv" % number for number in range(0, 3000, 60)]
    for part in range(10):
        entries = []
        for at in range(300):
            number = part * 300 + at
            session = "secret" if number % 60 == 0 else S1
            text = f"common words xq{number:04d}zv and more of them " * 3
            old = number % 7 == 0
            moment = "2020-01-01T00:00:00Z" if old else "2199-01-01T00:00:00Z"
            entries.append(entry(text, session=session, at=number, occurred_at=moment))
        ledger.put(*entries)
        ledger.writer.checkpoint()
    assert holding(ledger.root, words) != []
    ledger.forget(Selection(session="secret"))
    assert holding(ledger.root, words) == []
    assert ledger.reader.stats().events == 2950
    assert ledger.problems() == []
    assert (ledger.root / "ledger.sqlite3-wal").stat().st_size < 64 * 1024


def test_housekeeping_goes_on_with_a_forgetting_and_does_not_hammer_a_full_disk(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ledger)
    ledger.writer.begin_forget(Selection(session=S1))
    tries = []

    def full(self: Segments, *_args: object) -> None:
        tries.append(self)
        raise DiskError("replace", b"segment", OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr(Segments, "seal", full)
        with pytest.raises(DiskError):
            while ledger.writer.tidy():
                pass
        for _ in range(5):
            ledger.writer.tidy()
        assert len(tries) == 1
    monkeypatch.setattr(sqlite, "FORGET_AGAIN_S", 0.0)
    ledger.writer._forget_at = 0.0
    while ledger.writer.tidy():
        pass
    assert holding(ledger.root, [b"zebrafish", b"quagga"]) == []
    assert ledger.problems() == []
