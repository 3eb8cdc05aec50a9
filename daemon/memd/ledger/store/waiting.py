"""What waits on this machine for a server that is not there: parsed and sanitised batches, in order, durable.

A small SQLite database in the ledger's folder. A group of batches is one row, under a token by which the
server knows whether it has had it; it goes when the server has. Beside them stands where every source of this
machine was left, so that the import goes on through an outage and through a restart in the middle of one.

A group that the server will not take whatever happens is set aside: it is kept, it is told of, and it holds
up nobody. When the queue is full nothing is read any more until there is room: nothing is dropped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import apsw
import msgspec
import zstandard

from memd import disk
from memd.errors import TryAgain
from memd.ledger.store import database
from memd.ledger.store.interface import Batch

FILE: Final = b"waiting.sqlite3"
MAX_BYTES: Final = 2 << 30
MAX_GROUP_BYTES: Final = 256 << 20
LEVEL: Final = 3

_SCHEMA: Final = """
create table if not exists waiting(
    n integer primary key,
    token text not null,
    at_ms integer not null,
    is_aside integer not null default 0,
    reason text not null default '',
    data blob not null
) strict;
create table if not exists cursors(
    source blob primary key,
    value blob not null
) strict, without rowid;
"""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """How much waits. oldest_ms: wall clock of the first, 0: nothing waits; aside: groups not taken"""

    groups: int = 0
    bytes: int = 0
    oldest_ms: int = 0
    aside: int = 0


class Group(msgspec.Struct, frozen=True, kw_only=True):
    n: int
    token: str
    batches: Sequence[Batch]


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Queue:
    """May be used from any thread."""

    def __init__(
        self, root: bytes, *, max_bytes: int = MAX_BYTES, wall_ms: Callable[[], int] = _wall_ms
    ) -> None:
        """Open it, or make it. raises DiskError, Damaged"""
        self._path = os.path.join(root, FILE)
        self._max_bytes = max_bytes
        self._wall_ms = wall_ms
        self._guard = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[Batch])
        self._noted: dict[bytes, bytes | None] = {}
        with disk.make_folders(root) as folder:
            if folder.look(FILE) is None:
                folder.create(FILE, b"")  # private: SQLite would go by the umask
        with database.saying("open", self._path):
            self._connection = apsw.Connection(os.fsdecode(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            self._connection.set_busy_timeout(database.BUSY_MS)
            for name, value in (
                ("journal_mode", "wal"),
                ("synchronous", "full"),
                ("secure_delete", True),
                ("journal_size_limit", database.LOG_BYTES),
            ):
                self._connection.pragma(name, value)
            self._connection.execute(_SCHEMA)
        self.state = self._look()

    def close(self) -> None:
        self.settle()
        with self._guard, database.saying("close", self._path):
            self._connection.close()

    def _look(self) -> Waiting:
        row = self._connection.execute(
            "select count(*), coalesce(sum(length(data)), 0), coalesce(min(at_ms), 0),"
            " (select count(*) from waiting where is_aside = 1) from waiting where is_aside = 0"
        ).fetchone()
        assert row is not None
        groups, size, oldest_ms, aside = row
        return Waiting(groups=groups, bytes=size, oldest_ms=oldest_ms, aside=aside)

    # ---------------------------------------------------------------------------------- batches

    def put(self, batches: Sequence[Batch], token: str) -> None:
        """Take them in; they are durable then, and so is how far their sources were read.

        raises  TryAgain when it is full, DiskError
        """
        data = zstandard.ZstdCompressor(level=LEVEL).compress(self._encoder.encode(list(batches)))
        with self._guard, database.saying("write", self._path):
            if self.state.bytes + len(data) > self._max_bytes:
                raise TryAgain(
                    f"{self.state.bytes >> 20} MiB wait for the ledger's server, which is all that may",
                    remedy="Bring the server back; the import goes on by itself.",
                )
            with database.transaction(self._connection):
                self._write_noted()
                self._connection.execute(
                    "insert into waiting(token, at_ms, data) values(?, ?, ?)", (token, self._wall_ms(), data)
                )
                for batch in batches:
                    if batch.source:
                        self._put_cursor(batch.source, batch.cursor)
            self._noted.clear()
            self.state = self._look()

    def first(self) -> Group | None:
        """The one that has waited longest; one that cannot be read any more is set aside."""
        while True:
            row = self._first()
            if row is None:
                return None
            try:
                plain = zstandard.ZstdDecompressor().decompress(row[2], max_output_size=MAX_GROUP_BYTES)
                return Group(n=row[0], token=row[1], batches=self._decoder.decode(plain))
            except (zstandard.ZstdError, msgspec.MsgspecError, UnicodeError) as reason:
                self.set_aside(row[0], f"it cannot be read: {type(reason).__name__}")

    def _first(self) -> tuple[int, str, bytes] | None:
        with self._guard, database.saying("read", self._path):
            sql = "select n, token, data from waiting where is_aside = 0 order by n limit 1"
            for n, token, data in database.fetch(self._connection, sql):
                return n, token, data
        return None

    def drop(self, n: int) -> None:
        """The server has it."""
        with self._guard, database.saying("write", self._path):
            with database.transaction(self._connection):
                self._connection.execute("delete from waiting where n = ?", (n,))
            self.state = self._look()
            if not self.state.groups:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def set_aside(self, n: int, reason: str) -> None:
        """The server will never take it."""
        with self._guard, database.saying("write", self._path):
            with database.transaction(self._connection):
                self._connection.execute(
                    "update waiting set is_aside = 1, reason = ? where n = ?", (reason[:500], n)
                )
            self.state = self._look()

    # ---------------------------------------------------------------------------------- cursors

    def note(self, cursors: Mapping[bytes, bytes | None]) -> None:
        """How far sources were read and taken; written with the next thing that is. None: it is gone."""
        with self._guard:
            self._noted.update(cursors)

    def settle(self) -> None:
        """Write down what was noted."""
        with self._guard:
            if self._noted:
                with database.saying("write", self._path), database.transaction(self._connection):
                    self._write_noted()
                self._noted.clear()

    def _write_noted(self) -> None:
        for source, value in self._noted.items():
            if value is None:
                self._connection.execute("delete from cursors where source = ?", (source,))
            else:
                self._put_cursor(source, value)

    def _put_cursor(self, source: bytes, value: bytes) -> None:
        self._connection.execute(
            "insert into cursors(source, value) values(?, ?)"
            " on conflict(source) do update set value = excluded.value",
            (source, value),
        )

    def cursors(self, after: bytes, limit: int) -> dict[bytes, bytes]:
        """Where the sources of this machine were left; a page from `after`."""
        self.settle()
        with self._guard, database.saying("read", self._path):
            return dict(
                database.fetch(
                    self._connection,
                    "select source, value from cursors where source > ? order by source limit ?",
                    (after, limit),
                )
            )

    def cursor(self, source: bytes) -> bytes:
        self.settle()
        with self._guard, database.saying("read", self._path):
            return (
                self._connection.execute("select value from cursors where source = ?", (source,)).get or b""
            )
