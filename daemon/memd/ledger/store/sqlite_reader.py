"""The ledger on SQLite as others read it: implements `interface.Reader`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import apsw

from memd.ledger.segments import Segments
from memd.ledger.store import database
from memd.ledger.store.checking import Checker
from memd.ledger.store.finding import Finder
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.history import USUAL, Bounds, History
from memd.ledger.store.history_reading import HistoryReading
from memd.ledger.store.interface import (
    Filter,
    Hit,
    Interrupted,
    LossRow,
    Report,
    SessionRow,
    Stats,
    StoredEvent,
)
from memd.ledger.store.reading import Reading
from memd.ledger.store.workstream_reading import WorkstreamReading


class SqliteReader:
    """A look at the ledger. Belongs to one thread at a time; `interrupt` may come from any."""

    def __init__(self, root: bytes, *, vfs: str | None = None) -> None:
        """raises  DiskError, Damaged, TooNew; the writer has made the database before."""
        self._root = root
        self._path = os.path.join(root, database.FILE)
        self._connection = database.open_reader(self._path, vfs)
        self._reading = Reading(self._connection)
        self._finder = Finder(self._connection)
        self.workstreams = WorkstreamReading(self._connection)
        self._history = HistoryReading(self._connection, self.workstreams)
        self._is_called_off = False

    def close(self) -> None:
        with database.saying("close", self._path):
            self._connection.close()

    def interrupt(self) -> None:
        self._is_called_off = True
        self._connection.interrupt()

    def cursors(self, after: bytes = b"", limit: int = -1) -> dict[bytes, bytes]:
        with database.saying("read", self._path):
            return self._reading.cursors(after, limit)

    def cursor(self, source: bytes) -> bytes:
        with database.saying("read", self._path):
            return self._reading.cursor(source)

    def sessions(self, where: Filter, limit: int = 0, offset: int = 0) -> list[SessionRow]:
        with database.saying("read", self._path):
            return self._reading.sessions(where, limit, offset)

    def find(self, session: str, harness: str = "") -> list[SessionRow]:
        return self.sessions(Filter(session=session, harness=harness))

    def losses(self, harness: str, session: str) -> list[LossRow]:
        with database.saying("read", self._path):
            return self._reading.losses(harness, session)

    def search(
        self, query: str, where: Filter, limit: int = 20, marks: tuple[str, str] = ("", "")
    ) -> list[Hit]:
        self._is_called_off = False
        try:
            with database.saying("search", self._path):
                return self._finder.search(query, where, limit, marks, self._go_on)
        except apsw.SQLError as error:  # what an interrupt looks like while the index is being opened
            if self._is_called_off:
                raise Interrupted("the query was called off") from error
            raise

    def _go_on(self) -> None:
        """Between two statements an interrupt finds nothing to call off."""
        if self._is_called_off:
            raise Interrupted("the query was called off")

    def export(
        self, harness: str, session: str, *, side: bool = False, after: int = 0
    ) -> Iterator[StoredEvent]:
        with database.saying("read", self._path):
            yield from self._reading.export(harness, session, side=side, after=after)

    def history(self, since: str = "", bounds: Bounds = USUAL) -> History:
        with database.saying("read", self._path):
            return self._history.history(since, bounds)

    def has_forgotten(self, event_id: str) -> bool:
        with database.saying("read", self._path):
            return Forgotten(self._connection).is_id(event_id)

    def check(self) -> Report:
        segments = Segments(self._root)
        try:
            with database.saying("check", self._path):
                return Checker(self._connection, segments).run()
        finally:
            segments.close()

    def stats(self) -> Stats:
        segments = Segments(self._root)
        try:
            with database.saying("read", self._path):
                return self._reading.stats(self._path, segments)
        finally:
            segments.close()
