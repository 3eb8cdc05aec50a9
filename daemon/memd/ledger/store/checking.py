"""Comparing what the segments say with what the rows say, and the index with both.

    files     every segment is there, whole, and its lines can be read
    rows      every line has its row, field by field; every row has its line; places are not taken twice
    counts    what a session says of itself is what stands in it
    index     SQLite's own comparison of index and text, on a copy, so that the writer is not held up
    database  `integrity_check` and `foreign_key_check`

What a person has forgotten is gone from both sides. A line of it that is still there, because the forgetting
is under way, is no disagreement.
"""

from __future__ import annotations

import os
from typing import Final

import apsw
import msgspec

from memd import disk
from memd.errors import MemdError
from memd.ledger.check import Numbers, Places
from memd.ledger.segments import (
    AnyLine,
    Codec,
    EventLine,
    GoneLine,
    LossLine,
    Segments,
    SessionLine,
    StandingLine,
    TurnLine,
)
from memd.ledger.store import database, values
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.interface import Problem, Report
from memd.ledger.store.schema import BY_ID, LIVE
from memd.ledger.store.scope import key, probe, spelled

MAX_PROBLEMS: Final = 1000
COPY_NAME: Final = b"ledger-check.sqlite3"


def drop_copy(root: bytes) -> None:
    """Take away what a check made, or a check that was killed left: it holds every text."""
    with disk.open_folder(root) as folder:
        for suffix in (b"", b"-journal", b"-wal", b"-shm"):
            folder.remove(COPY_NAME + suffix)


class Checker:
    def __init__(self, connection: apsw.Connection, segments: Segments) -> None:
        self._connection = connection
        self._segments = segments
        self._forgotten = Forgotten(connection)
        self._places = Places()
        self._seen = Numbers(LIVE)
        self._problems: list[Problem] = []
        self._count = 0
        self._losses: dict[tuple[str, str, str, bytes], int] = {}

    def run(self) -> Report:
        connection = self._connection
        self._check_database()
        self._check_index()
        with database.snapshot(connection):
            numbers = list(
                database.fetch(connection, "select n, harness, bytes, state from segments order by n")
            )
            for number, harness, size, state in numbers:
                self._check_segment(number, harness, size, is_sealed=state == "sealed")
            self._check_rows()
            self._check_counts()
            events, standings = connection.execute(
                "select (select count(*) from events), (select count(*) from session_events)"
            ).get
        return Report(
            events=events,
            standings=standings,
            segments=len(numbers),
            problem_count=self._count,
            problems=self._problems,
        )

    def _say(self, what: str, where: str, sentence: str) -> None:
        self._count += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(Problem(what, where, sentence))

    # ------------------------------------------------------------------------- database

    def _check_database(self) -> None:
        for (said,) in self._connection.execute("pragma integrity_check(100)").fetchall():
            if said != "ok":
                self._say("database", "ledger.sqlite3", str(said))
        for table, *_rest in self._connection.execute("pragma foreign_key_check").fetchall():
            self._say("database", str(table), "A row refers to one that is not there.")

    def _check_index(self) -> None:
        """SQLite compares only when it may write; a copy is one consistent state and in nobody's way."""
        path = os.path.join(os.path.dirname(os.fsencode(self._connection.filename)), COPY_NAME)
        drop_copy(os.path.dirname(path))
        with disk.open_folder(os.path.dirname(path)) as folder:
            try:
                folder.create(COPY_NAME, b"")
                self._connection.execute("vacuum into ?", (os.fsdecode(path),))
                copy = apsw.Connection(os.fsdecode(path))
                try:
                    copy.execute("insert into event_text(event_text, rank) values('integrity-check', 1)")
                finally:
                    copy.close()
            except apsw.CorruptError:
                self._say("index", "event_text", "The index does not say what the texts say.")
            except apsw.FullError:
                self._say("index", "event_text", "The index was not compared: no room for a copy.")
            finally:
                drop_copy(folder.path)

    # ------------------------------------------------------------------------- segments

    def _check_segment(self, number: int, harness: str, size: int, *, is_sealed: bool) -> None:
        name = self._segments.path(harness, number)
        try:
            data = self._segments.read(harness, number, size, is_sealed=is_sealed)
            lines = Codec().decode(data)
        except MemdError as error:
            self._say("segment", name, str(error))
            return
        except (msgspec.MsgspecError, UnicodeError):
            self._say("segment", name, "A line of it is not one of the ledger's.")
            return
        for line in lines:
            self._check_line(harness, number, name, line)

    def _check_line(self, harness: str, number: int, name: str, line: AnyLine) -> None:
        if isinstance(line, EventLine | StandingLine):
            if not self._forgotten.is_id(line.id):
                self._check_standing(harness, number, name, line)
        elif isinstance(line, GoneLine):
            self._places.give_back(harness, line.session, line.position)
        elif isinstance(line, TurnLine):
            for first, last in line.ranges:
                for position in range(first, last + 1):
                    self._places.turn(harness, line.session, position, is_side=line.is_side)
        elif isinstance(line, LossLine):
            self._losses[harness, line.session, line.what, line.source] = line.count
        elif isinstance(line, SessionLine):
            row = self._connection.execute(
                "select coalesce(path, '') from sessions s left join checkouts c on c.n = s.checkout"
                " where harness = ? and native = ?",
                (harness, line.session),
            ).get
            if row is None:
                self._say("row", name, "A session that it tells of is not there.")
            elif line.cwd and row != line.cwd:
                self._say("row", name, "A session began in another directory than its row says.")

    def _check_standing(self, harness: str, number: int, name: str, line: EventLine | StandingLine) -> None:
        where = f"{name} {line.id}"
        if not self._places.take(harness, line.session, line.position, is_side=line.is_side):
            self._say("place", where, "Its place in the session is taken twice.")
        row = self._connection.execute(
            f"select n, kind, role, occurred_at, metadata, content from events where {BY_ID}",
            probe(key(line.id)),
        ).fetchone()
        if row is None:
            if self._is_replaced(harness, line):
                return
            self._say("row", where, "The event has no row.")
            return
        if isinstance(line, EventLine):
            self._seen.add(row[0])
            told = (line.kind, line.role, line.occurred_at, dict(line.metadata), line.content)
            if (*row[1:4], values.unpack(row[4]), row[5]) != told:
                self._say("row", where, "The row of the event says something else.")

    def _is_replaced(self, harness: str, line: EventLine | StandingLine) -> bool:
        """Whether something later took its place, so that it stands nowhere: its row went too."""
        return not self._connection.execute(
            "select exists(select 1 from session_events e join sessions s on s.n = e.session"
            " where harness = ? and native = ? and position = ?)",
            (harness, line.session, line.position),
        ).get

    # ----------------------------------------------------------------------------- rows

    def _check_rows(self) -> None:
        for harness, native, side, position in database.fetch(
            self._connection,
            "select harness, native, e.is_side, position from session_events e"
            " join sessions s on s.n = e.session",
        ):
            where = f"{harness} {native} {position}"
            if not self._places.give_back(harness, native, position):
                self._say("place", where, "No segment tells of this place.")
            elif self._places.is_side(harness, native, position) != bool(side):
                self._say("place", where, "The segments put it on the other side of the main line.")
        for harness, native, position in self._places.left():
            self._say("place", f"{harness} {native} {position}", "No row tells of this place.")
        for n, stored in database.fetch(self._connection, "select n, id from events"):
            if n not in self._seen:
                self._say("row", spelled(stored), "No segment tells of this event.")
        twice = "select min(id) from events group by id having count(*) > 1"
        for (stored,) in database.fetch(self._connection, twice):
            self._say("row", spelled(stored), "The event is there twice.")
        rows = {
            (harness, native, what, source): count
            for harness, native, what, source, count in database.fetch(
                self._connection,
                "select harness, native, what, source, count from losses join sessions on n = session",
            )
        }
        for (harness, native, what, _source), count in rows.items() - self._losses.items():
            self._say("loss", f"{harness} {native}", f"No segment counts {count} of {what}.")
        for harness, native, what, source in self._losses.keys() - rows.keys():
            if self._losses[harness, native, what, source]:
                self._say("loss", f"{harness} {native}", f"No row counts what was lost as {what}.")

    def _check_counts(self) -> None:
        for harness, native in self._connection.execute(
            "select harness, native from sessions s where events <> (select count(*) from session_events e"
            " where e.session = s.n and e.is_side = 0) or side_events <> (select count(*) from"
            " session_events e where e.session = s.n and e.is_side = 1) or last_position < coalesce((select"
            " max(position) from session_events e where e.session = s.n), 0)"
        ):
            self._say("count", f"{harness} {native}", "The session counts its events wrongly.")
