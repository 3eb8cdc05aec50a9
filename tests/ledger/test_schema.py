"""A ledger of every released version opens; a later one is left alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from memd.ledger.store import schema
from memd.ledger.store.interface import Filter, Selection, TooNew
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from support_ledger import S1, S2, Ledger, entry
from support_workstreams import Lines

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ledger"


def released() -> list[str]:
    return sorted(path.name for path in FIXTURES.iterdir())


def test_there_is_a_ledger_of_every_version() -> None:
    assert released() == [f"v{number}" for number in range(1, schema.VERSION + 1)]


def tables(root: Path) -> dict[str, str]:
    """Every table and index, and the statement that made it."""
    connection = apsw.Connection(str(root / "ledger.sqlite3"))
    found = dict(connection.execute("select name, sql from sqlite_schema where sql is not null"))
    connection.close()
    return found


@pytest.mark.parametrize("name", released())
def test_a_ledger_of_an_older_version_is_taken_over(name: str, tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    shutil.copytree(FIXTURES / name, root)
    with Ledger(root) as ledger:
        assert ledger.texts() == ["what does the cache do", "it keeps parsed files", "parsed files: 12"]
        assert ledger.texts(S2) == ["what does the cache do", "make it smaller"]
        assert [hit.sequence for hit in ledger.reader.search("smaller", Filter(cwd="/home/dev/other"))] == [2]
        assert [(row.what, row.count) for row in ledger.reader.losses("claude", S1)] == [("reasoning", 3)]
        assert ledger.reader.cursor(b"claude\0/one.jsonl") == b"cursor-2"
        assert ledger.problems() == []
        ledger.put(entry("a new one"))
        assert ledger.sequences() == [1, 2, 3, 4]
        assert ledger.problems() == []
    with Ledger(tmp_path / "fresh"):
        pass
    assert tables(root) == tables(tmp_path / "fresh")


@pytest.mark.parametrize("name", released())
def test_what_was_forgotten_before_stays_forgotten(name: str, tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    shutil.copytree(FIXTURES / name, root)
    with Ledger(root) as ledger:
        assert ledger.put(entry("a word to forget")).forgotten == 1


def test_workstreams_of_an_older_version_are_taken_over(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    shutil.copytree(FIXTURES / "v2", root)
    with Lines(root) as lines:
        assert lines.view() == ["what does the cache do", "make it smaller"]
        assert [(one.session, one.told) for one in lines.reader.workstreams.linked("w1")] == [(S2, 1)]
        kept = lines.reader.workstreams.run("run-1")
        assert kept is not None
        assert (kept.state, kept.session, kept.exit_code) == ("finished", S2, 0)
        told = lines.reader.workstreams.delivery("run-1")
        assert told is not None
        assert (told.through, told.shown) == (1, 1)
        assert [row.summary for row in lines.reader.workstreams.handoffs("default", "proj")] == ["go on"]
        lines.put(entry("go on", session=S2))
        assert lines.sequences_of() == [1, 2, 3]


def test_a_later_version_is_refused_untouched(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
    path = root / "ledger.sqlite3"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    before = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    for engine in (SqliteWriter, SqliteReader):
        with pytest.raises(TooNew, match=f"version {schema.VERSION + 1}"):
            engine(bytes(root))
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == before


def test_a_kill_between_two_migrations_leaves_one_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
    broken = (*schema.MIGRATIONS, "create table fresh(n integer primary key) strict; select broken;")
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    monkeypatch.setattr(schema, "VERSION", len(broken))
    with pytest.raises(apsw.SQLError):
        SqliteWriter(bytes(root))
    monkeypatch.undo()
    with Ledger(root) as ledger:
        assert ledger.texts() == ["a"]
        assert ledger.problems() == []


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
    (root / "ledger.sqlite3").write_bytes(b"not a database at all" * 400)
    with pytest.raises(Exception, match="damaged") as raised:
        SqliteWriter(bytes(root))
    assert "memctl ledger check" in raised.value.remedy  # type: ignore[attr-defined]


def make_fixture(root: Path) -> None:
    """What the ledgers below `fixtures/ledger` hold; run once, when a version is released."""
    from memd.harness.model import Session
    from memd.ledger.store.workstreams import Delivery
    from support_ledger import batch, loss
    from support_workstreams import handoff, run

    with Lines(root) as ledger:
        ledger.put(
            entry("what does the cache do", at=0, record="r1"),
            entry("it keeps parsed files", at=100, role="assistant", record="r2"),
            source=b"claude\0/one.jsonl",
            cursor=b"cursor-1",
            losses=[loss("reasoning", 2)],
        )
        ledger.writer.append(
            batch(
                entry("what does the cache do", session=S2, record="r1"),
                entry("make it smaller", session=S2, at=90, record="r3"),
                sessions=[Session(id=S2, cwd="/home/dev/other", title="the cache")],
            )
        )
        ledger.writer.seal_all()
        ledger.put(
            entry("parsed files: 12", at=200, kind="tool_result", role="tool", metadata={"is_error": False}),
            entry("a word to forget", session="gone"),
            source=b"claude\0/one.jsonl",
            cursor=b"cursor-2",
            losses=[loss("reasoning")],
        )
        ledger.forget(Selection(session="gone"))
        ledger.workstream()
        ledger.link(S2, told=1)
        ledger.work(lambda work: work.put_run(run(session=S2, state="finished", exit_code=0)))
        told = Delivery(
            run="run-1",
            harness="claude",
            session=S2,
            after=0,
            through=1,
            shown=1,
            omitted=0,
            first=1,
            at_ms=1,
        )
        ledger.work(lambda work: work.put_delivery(told))
        ledger.work(lambda work: work.put_handoff(handoff(summary="go on", questions=("why?",))))
