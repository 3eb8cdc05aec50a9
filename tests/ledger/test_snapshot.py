"""Reading another program's database: every state its folder can be in, and no trace left in any of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memd.harness.model import Query
from memd.ledger import snapshot
from memd.ledger.snapshot import SnapshotError, Unreadable, fetch, fingerprint, open_snapshot, read_snapshot

WRITER = """
import sys, apsw
c = apsw.Connection(sys.argv[1])
c.execute("pragma journal_mode=wal"); c.execute("pragma wal_autocheckpoint=0")
for line in sys.stdin:
    if line.strip() == "close":
        c.close()
    else:
        c.execute(line).fetchall()
    print("done", flush=True)
"""


class Writer:
    """Another process that has the database open, and does what it is told."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.do("create table if not exists words(text)")

    def do(self, sql: str) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder / "x.db"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def writer(store: Path) -> Iterator[Writer]:
    process = Writer(store)
    yield process
    process.kill()


def words(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in connection.execute("select text from words order by rowid")]


def take(store: Path, scratch: Path) -> list[str] | Unreadable:
    return read_snapshot(os.fsencode(store), os.fsencode(scratch), words)


def trace(folder: Path) -> dict[str, tuple[str, int]]:
    """Every name in a folder with the hash of its bytes and the time of its last change."""
    return {
        entry.name: (hashlib.sha256(entry.read_bytes()).hexdigest(), entry.stat().st_mtime_ns)
        for entry in sorted(folder.iterdir())
    }


def left_alone(store: Path, scratch: Path, read: Callable[[], object]) -> object:
    before = trace(store.parent)
    found = read()
    assert trace(store.parent) == before
    assert not scratch.exists() or not any(scratch.iterdir())
    return found


def test_rows_of_a_live_log_are_seen_and_no_byte_changes(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("insert into words values('in the log')")
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["in the log"]
    writer.do("insert into words values('later')")
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["in the log", "later"]


def test_rows_of_a_killed_writer_are_seen_and_no_byte_changes(
    store: Path, scratch: Path, writer: Writer
) -> None:
    writer.do("insert into words values('last words')")
    writer.kill()
    assert {"x.db-wal", "x.db-shm"} < set(os.listdir(store.parent))
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["last words"]


def test_a_store_that_was_closed_is_read_without_side_files(
    store: Path, scratch: Path, writer: Writer
) -> None:
    writer.do("insert into words values('at rest')")
    writer.do("close")
    assert os.listdir(store.parent) == ["x.db"]
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["at rest"]


def test_a_log_without_its_index_is_read_from_a_private_copy(
    store: Path, scratch: Path, writer: Writer
) -> None:
    writer.do("insert into words values('copied')")
    writer.kill()
    (store.parent / "x.db-shm").unlink()
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["copied"]


def test_an_empty_log_without_its_index_is_no_log(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("insert into words values('whole')")
    writer.do("close")
    (store.parent / "x.db-wal").touch()
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["whole"]


def test_a_torn_transaction_is_rolled_back_in_a_private_copy(store: Path, scratch: Path) -> None:
    with apsw.Connection(os.fspath(store)) as connection:
        connection.execute("create table words(text); insert into words values('committed')")
    connection.close()
    half = """
import os, sys, apsw
c = apsw.Connection(sys.argv[1])
c.execute("pragma cache_size=1; pragma cache_spill=1; begin; update words set text='torn'")
many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000) "
c.execute(many + "insert into words select i from n")
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", half, store], check=False).returncode == 9
    assert (store.parent / "x.db-journal").stat().st_size > 0
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["committed"]


def test_a_store_with_a_rollback_journal_mode_is_read(store: Path, scratch: Path) -> None:
    with apsw.Connection(os.fspath(store)) as connection:
        connection.execute("create table words(text); insert into words values('plain')")
    connection.close()
    assert left_alone(store, scratch, lambda: take(store, scratch)) == ["plain"]


def test_any_path_can_be_read(tmp_path: Path, scratch: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"we?rd%20#\xff & 100%")
    os.mkdir(folder)
    plain = tmp_path / "plain.db"
    with apsw.Connection(os.fspath(plain)) as connection:
        connection.execute("create table words(text); insert into words values('found')")
    connection.close()
    path = os.path.join(folder, b"x.db")
    os.rename(plain, path)
    os.symlink(path, os.path.join(folder, b"link.db"))
    for name in (b"x.db", b"link.db"):
        assert read_snapshot(os.path.join(folder, name), os.fsencode(scratch), words) == ["found"]
    assert sorted(os.listdir(folder)) == [b"link.db", b"x.db"]


def test_every_statement_of_one_snapshot_sees_the_same_state(
    store: Path, scratch: Path, writer: Writer
) -> None:
    writer.do("insert into words values('before')")
    with open_snapshot(os.fsencode(store), os.fsencode(scratch)) as connection:
        assert words(connection) == ["before"]
        writer.do("insert into words values('meanwhile')")
        assert words(connection) == ["before"]
    assert take(store, scratch) == ["before", "meanwhile"]


def test_a_log_that_appears_while_an_unlocked_store_is_read_spoils_the_reading(
    store: Path, scratch: Path
) -> None:
    writer = Writer(store)
    writer.do("close")
    writer.kill()
    late: list[Writer] = []

    def work(connection: apsw.Connection) -> list[str]:
        found = words(connection)
        if not late:
            late.append(Writer(store))
            late[0].do("insert into words values('new')")
        return found

    try:
        assert read_snapshot(os.fsencode(store), os.fsencode(scratch), work) == ["new"]
    finally:
        late[0].kill()


def test_a_store_that_never_stands_still_is_an_answer_and_not_an_exception(
    store: Path, scratch: Path
) -> None:
    with apsw.Connection(os.fspath(store)) as connection:
        connection.execute("create table words(text)")
    connection.close()

    def work(connection: apsw.Connection) -> list[str]:
        with apsw.Connection(os.fspath(store)) as other:
            other.execute("insert into words values('again')")
        other.close()
        return words(connection)

    found = read_snapshot(os.fsencode(store), os.fsencode(scratch), work)
    assert isinstance(found, Unreadable)
    assert found.reason == "moved"


def test_a_harness_can_quit_cleanly_after_a_reading(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("insert into words values('one')")
    assert take(store, scratch) == ["one"]
    writer.do("close")
    assert os.listdir(store.parent) == ["x.db"]
    assert take(store, scratch) == ["one"]


def test_a_store_that_vanishes_between_two_looks_gets_no_side_files(
    store: Path, scratch: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness quits after memd saw the log and before memd opens the database."""
    writer.do("insert into words values('kept')")
    first = snapshot._way
    looks: list[str] = []

    def look(real: bytes) -> object:
        looks.append(first(real))
        if len(looks) == 1:
            writer.do("close")
        return looks[-1]

    monkeypatch.setattr(snapshot, "_way", look)
    assert take(store, scratch) == ["kept"]
    assert looks[:2] == ["live", "still"]
    assert os.listdir(store.parent) == ["x.db"]


def test_the_log_cannot_be_taken_away_while_it_is_read(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("insert into words values('one')")
    with open_snapshot(os.fsencode(store), os.fsencode(scratch)) as connection:
        writer.do("close")
        assert words(connection) == ["one"]
    assert take(store, scratch) == ["one"]


def test_a_missing_store_is_an_answer(store: Path, scratch: Path) -> None:
    found = take(store, scratch)
    assert isinstance(found, Unreadable)
    assert found.reason == "missing"
    assert not os.listdir(store.parent)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 99, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_store_is_an_answer(store: Path, scratch: Path, content: bytes) -> None:
    store.write_bytes(content)
    found = left_alone(store, scratch, lambda: take(store, scratch))
    assert isinstance(found, Unreadable)
    assert found.reason in ("corrupt", "schema")


def test_a_page_that_is_damaged_half_way_is_an_answer(store: Path, scratch: Path) -> None:
    with apsw.Connection(os.fspath(store)) as connection:
        connection.execute("create table words(text)")
        connection.executemany("insert into words values(?)", [(f"word {n}" * 50,) for n in range(500)])
    connection.close()
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xde\xad" * 8000)
    found = left_alone(store, scratch, lambda: take(store, scratch))
    assert isinstance(found, Unreadable)
    assert found.reason == "corrupt"


def test_a_folder_in_place_of_the_store_is_an_answer(store: Path, scratch: Path) -> None:
    store.mkdir()
    found = take(store, scratch)
    assert isinstance(found, Unreadable)


def test_a_locked_store_is_an_answer(
    store: Path, scratch: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "BUSY_MS", 20)
    writer.do("insert into words values('one')")
    writer.do("pragma locking_mode=exclusive")
    writer.do("insert into words values('two')")
    found = take(store, scratch)
    assert isinstance(found, Unreadable)
    assert found.reason == "locked"


def test_a_store_too_large_to_copy_is_an_answer(
    store: Path, scratch: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.kill()
    (store.parent / "x.db-shm").unlink()
    monkeypatch.setattr(snapshot, "MAX_COPY_BYTES", 100)
    found = left_alone(store, scratch, lambda: take(store, scratch))
    assert isinstance(found, Unreadable)
    assert found.reason == "too-large"


def test_a_statement_without_end_is_interrupted(store: Path, scratch: Path) -> None:
    with apsw.Connection(os.fspath(store)) as connection:
        connection.execute("create table words(text)")
    connection.close()
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    found = read_snapshot(
        os.fsencode(store), os.fsencode(scratch), lambda c: c.execute(endless).fetchall(), seconds=0.05
    )
    assert isinstance(found, Unreadable)
    assert found.reason == "slow"


def test_a_snapshot_cannot_write(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("insert into words values('mine')")
    before = trace(store.parent)
    with (
        pytest.raises(SnapshotError),
        open_snapshot(os.fsencode(store), os.fsencode(scratch)) as connection,
    ):
        connection.execute("delete from words")
    assert trace(store.parent) == before


def test_rows_are_fetched_past_the_cursor_within_bounds(store: Path, scratch: Path, writer: Writer) -> None:
    writer.do("create table t(updated, id, text)")
    for n in range(5):
        writer.do(f"insert into t values({n // 2}, 'r{n}', '{'x' * 100}')")
    sql = "select updated, id, text from t where (updated, id) > (:updated, :id) order by 1, 2 limit :limit"
    query = Query(name="t", sql=sql, columns=("updated", "id", "text"))
    with open_snapshot(os.fsencode(store), os.fsencode(scratch)) as connection:
        rows, cut = fetch(connection, query)
        assert [row[1] for row in rows] == ["r0", "r1", "r2", "r3", "r4"]
        assert not cut
        rows, cut = fetch(connection, query, updated=0, row_id="r1", limit=2)
        assert [row[1] for row in rows] == ["r2", "r3"]
        assert cut
        rows, cut = fetch(connection, query, max_bytes=150)
        assert [row[1] for row in rows] == ["r0", "r1"]
        assert cut


def test_the_fingerprint_changes_with_every_commit_and_nothing_else(
    store: Path, scratch: Path, writer: Writer
) -> None:
    path = os.fsencode(store)
    seen = [fingerprint(path)]
    for n in range(20):
        writer.do(f"insert into words values('{n}')")
        seen.append(fingerprint(path))
    writer.do("pragma wal_checkpoint(truncate)")
    seen.append(fingerprint(path))
    writer.do("insert into words values('in a fresh log')")
    seen.append(fingerprint(path))
    assert len(set(seen)) == len(seen)
    assert take(store, scratch)
    assert fingerprint(path) == seen[-1]


def test_the_fingerprint_notices_a_log_that_starts_over_in_place(store: Path, writer: Writer) -> None:
    path = os.fsencode(store)
    writer.do("insert into words values('a')")
    writer.do("insert into words values('b')")
    writer.do("pragma wal_checkpoint(full)")
    seen = set()
    facts = (store.parent / "x.db-wal").stat()
    for n in range(2):
        writer.do(f"update words set text = '{n}' where rowid = 1")
        os.utime(store.parent / "x.db-wal", ns=(facts.st_atime_ns, facts.st_mtime_ns))
        seen.add(fingerprint(path))
    assert len(seen) == 2


def test_the_fingerprint_notices_a_commit_without_a_log(store: Path) -> None:
    path = os.fsencode(store)
    assert fingerprint(path) == b""
    connection = apsw.Connection(os.fspath(store))
    connection.execute("create table words(text)")
    facts = store.stat()
    seen = set()
    for n in range(3):
        connection.execute("insert into words values(?)", (str(n),))
        os.utime(store, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        seen.add(fingerprint(path))
    connection.close()
    assert len(seen) == 3
