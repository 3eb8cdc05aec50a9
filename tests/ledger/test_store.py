"""What the engine of one machine promises besides: files, segments, housekeeping. The rest: tests/store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.harness.model import Session
from memd.ledger.store import checking, rows, sqlite
from memd.ledger.store.interface import Filter
from support_ledger import S1, S2, Ledger, batch, entry, loss


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        yield made


def test_everything_comes_back_after_a_restart(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"), entry("b", occurred_at="2031-01-01T00:00:00Z"), source=b"s", cursor=b"1")
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"), entry("c"), entry("d", occurred_at="2032-01-01T00:00:00Z"))
        assert ledger.texts() == ["a", "b", "c", "d"]
        assert ledger.sequences() == [1, 2, 3, 4]
        assert ledger.reader.cursor(b"s") == b"1"
        assert ledger.problems() == []


def test_files_are_private(tmp_path: Path) -> None:
    with Ledger(tmp_path / "data" / "ledger") as ledger:
        ledger.put(entry("a"))
        modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*") if path.is_file()}
        folders = {path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*") if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.tuples(st.sampled_from([S1, S2]), texts, st.booleans()), max_size=6), max_size=5))
def test_whatever_comes_segments_rows_and_index_agree(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[str, str, bool]]]
) -> None:
    root = tmp_path_factory.mktemp("ledger")
    with Ledger(root) as ledger:
        seen: dict[str, list[str]] = {S1: [], S2: []}
        for part in parts:
            ledger.put(*(entry(text, session=name, is_side=side) for name, text, side in part))
            for name, text, _side in part:
                if text not in seen[name]:
                    seen[name].append(text)
        for name, expected in seen.items():
            assert sorted(ledger.texts(name, side=True)) == sorted(expected)
            everything = list(ledger.reader.export("claude", name, side=True))
            assert [event.sequence for event in everything] == list(range(1, len(expected) + 1))
        assert ledger.problems() == []
        ledger.writer.seal_all()
        assert ledger.problems() == []


def test_batches_that_come_together_go_in_as_if_one_by_one(tmp_path: Path) -> None:
    coming = (
        batch(entry("a", at=1), entry("b", at=2), source=b"1", cursor=b"x", losses=[loss("image")]),
        batch(entry("c", at=3), harness="codex", source=b"2", cursor=b"y"),
        batch(entry("d", at=4, replaces=2), entry("a"), source=b"1", cursor=b"z", losses=[loss("image")]),
        batch(entry("b", session=S2, at=1), sessions=[Session(id=S2, cwd="/other")]),
    )
    with Ledger(tmp_path / "together") as together, Ledger(tmp_path / "apart") as apart:
        told = together.writer.append_all(coming)
        assert told == [apart.writer.append(one) for one in coming]
        assert [one.stored for one in told] == [2, 1, 1, 1]
        for ledger in (together, apart):
            assert ledger.texts() == ["a", "d"]
            assert ledger.texts(S1, "codex") == ["c"]
            assert ledger.reader.cursors() == {b"1": b"z", b"2": b"y"}
            assert [row.count for row in ledger.reader.losses("claude", S1)] == [2]
            assert [hit.session for hit in ledger.reader.search("b", Filter(cwd="/other"))] == [S2]
            assert ledger.problems() == []
            ledger.writer.seal_all()
            assert ledger.problems() == []


def test_of_batches_that_come_together_all_are_in_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = (batch(entry("b")), batch(entry("c"), harness="codex"), batch(entry("d")))
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"))
        with monkeypatch.context() as patch:
            patch.setattr(rows, "mark_segment", lambda *_args, **_more: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ledger.writer.append_all(coming)
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a"], [])
        assert [one.stored for one in ledger.writer.append_all(coming)] == [1, 1, 1]
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a", "b", "d"], ["c"])
        assert ledger.problems() == []
    with Ledger(tmp_path / "ledger") as ledger:
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a", "b", "d"], ["c"])
        assert ledger.problems() == []


def test_only_the_batches_so_far_go_in_when_somebody_needs_the_writer(tmp_path: Path) -> None:
    coming = [batch(entry(name), source=name.encode(), cursor=b"x") for name in ("a", "b", "c")]
    with Ledger(tmp_path / "ledger") as ledger:
        asked = iter((False, True))
        assert len(ledger.writer.append_all(coming, lambda: next(asked))) == 2
        assert ledger.texts() == ["a", "b"]
        assert ledger.reader.cursors() == {b"a": b"x", b"b": b"x"}
        assert ledger.problems() == []
        assert len(ledger.writer.append_all(coming[2:], lambda: True)) == 1  # the first goes in all the same
        assert ledger.texts() == ["a", "b", "c"]
        assert ledger.problems() == []


def test_batches_of_both_lanes_that_come_together_are_found_whole_in_the_index(tmp_path: Path) -> None:
    old = "2020-01-01T00:00:00Z"
    coming = [
        batch(entry("first old", at=1, occurred_at=old), entry("first new", at=2)),
        batch(entry("second new", at=3), entry("second old", at=4, occurred_at=old)),
    ]
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.writer.append_all(coming)
        for word in ("first", "second", "old", "new"):
            assert len(ledger.reader.search(word, Filter())) == 2
        assert ledger.problems() == []


def test_batches_that_come_together_make_one_piece_of_the_index(tmp_path: Path) -> None:
    """Also where each of them goes on with a session that is known, or says at last where it began."""

    def pieces() -> int:
        connection = apsw.Connection(str(ledger.root / "ledger.sqlite3"))
        found: int = connection.execute("select count(distinct segid) from event_text_idx").get
        connection.close()
        return found

    lost = (loss("torn", session=S2),)
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.writer.append_all([batch(entry("begun", at=1), losses=lost)])
        before = pieces()
        ledger.writer.append_all(
            [
                batch(entry("gone on", at=2), sessions=(Session(id=S2, cwd="/there"),), losses=lost),
                batch(entry("and said there", session=S2, at=1), source=b"a", cursor=b"1"),
                batch(entry("and elsewhere", session="s-3"), source=b"b", cursor=b"1", is_restart=True),
                batch(entry("and at last", at=3), source=b"a", cursor=b"2"),
            ]
        )
        assert pieces() == before + 1
        assert [hit.session for hit in ledger.reader.search("said", Filter(cwd="/there"))] == [S2]
        assert ledger.problems() == []
    with Ledger(tmp_path / "ledger") as ledger:  # what is asked of the database anew is the same
        ledger.put(entry("later", session=S2, at=2))
        assert [hit.session for hit in ledger.reader.search("later", Filter(cwd="/there"))] == [S2]


def test_a_check_finds_segments_that_are_sealed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_segment = checking.Checker._check_segment
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"), entry("b"))

        def while_it_is_sealed(checker: checking.Checker, *facts: object, is_sealed: bool) -> None:
            assert not is_sealed
            ledger.writer.seal_all()
            check_segment(checker, *facts, is_sealed=is_sealed)  # type: ignore[arg-type]

        monkeypatch.setattr(checking.Checker, "_check_segment", while_it_is_sealed)
        assert ledger.problems() == []


def test_an_idle_ledger_is_merged_and_gives_pages_back(ledger: Ledger) -> None:
    for part in range(40):
        ledger.put(*(entry(f"{part} {at} {part * at} word{at}" * 9, at=at) for at in range(150)))
    ledger.writer.rest()
    assert len(ledger.reader.search("word7", Filter(), limit=100)) == 40
    assert ledger.problems() == []
    connection = apsw.Connection(str(ledger.root / "ledger.sqlite3"))
    free = connection.pragma("freelist_count")
    pieces = connection.execute("select count(distinct segid) from event_text_idx").get
    connection.close()
    assert free < sqlite.MAX_FREE_PAGES
    assert pieces < 8
