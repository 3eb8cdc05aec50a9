"""Making segments, rows and index agree again. The segments are believed; the rows where a segment cannot be.

    files    a segment that is lost or damaged is made anew from the rows that say they stand in it
    rows     an event, a place or a session that a line tells of and that has no row gets one; a row that says
             something else is set right
    lines    what only rows tell of is written into a segment of its own
    counts   made anew
    index    built anew from the texts

What took another event's place in a segment that is lost leaves both there: nothing is thrown away.

Each part is one transaction; a kill between two of them leaves a ledger that can be repaired again. What was
forgotten stays so. Nothing else can be written meanwhile, and what the lines tell is held in memory.
"""

from __future__ import annotations

import apsw
import msgspec

from memd.errors import MemdError
from memd.ledger.segments import (
    AnyLine,
    Codec,
    EventLine,
    GoneLine,
    Line,
    LossLine,
    Segments,
    SessionLine,
    StandingLine,
    TurnLine,
)
from memd.ledger.store import database, derived, rows
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.planning import packed
from memd.ledger.store.schema import BY_ID
from memd.ledger.store.scope import key, probe
from memd.ledger.store.writing import Memory

_TOLD = """
drop table if exists temp.told;
drop table if exists temp.told_events;
drop table if exists temp.told_losses;
create temp table told(
    harness text, session text, position integer, is_side integer, id any, at integer, segment integer,
    primary key(harness, session, position)
) without rowid;
create temp table told_events(event integer primary key);
create temp table told_losses(
    harness text, session text, what text, source blob, sentence text, count integer,
    primary key(harness, session, what, source)
) without rowid;
"""


class Repairer:
    def __init__(
        self,
        connection: apsw.Connection,
        segments: Segments,
        codec: Codec,
        forgotten: Forgotten,
        memory: Memory,
    ) -> None:
        self._connection = connection
        self._segments = segments
        self._codec = codec
        self._forgotten = forgotten
        self._memory = memory

    def run(self, new_segment: int) -> None:
        """`new_segment` is a number that no segment has; it is used where rows tell of more than lines do."""
        self._memory.reset()
        connection = self._connection
        connection.execute(_TOLD)
        try:
            numbers = list(
                database.fetch(connection, "select n, harness, bytes, state from segments order by n")
            )
            for number, harness, size, state in numbers:
                lines = self._lines(number, harness, size, state)
                with database.transaction(connection):
                    for line in lines:
                        self._believe(harness, number, line)
            with database.transaction(connection):
                self._place()
            for (harness,) in list(database.fetch(connection, "select distinct harness from sessions")):
                new_segment += self._write_untold(harness, new_segment)
            with database.transaction(connection):
                self._recount()
                connection.execute("insert into event_text(event_text) values('rebuild')")
        finally:
            connection.execute(
                "drop table temp.told; drop table temp.told_events; drop table temp.told_losses"
            )
            self._memory.reset()

    # ------------------------------------------------------------------------- segments

    def _lines(self, number: int, harness: str, size: int, state: str) -> list[AnyLine]:
        try:
            return self._codec.decode(self._segments.read(harness, number, size, is_sealed=state == "sealed"))
        except (MemdError, msgspec.MsgspecError, UnicodeError):
            data = self._codec.encode(derived.lines(self._connection, harness, number))
        self._segments.seal(harness, number, self._codec.compress(data))
        with database.transaction(self._connection):
            self._connection.execute(
                "update segments set bytes = ?, state = 'sealed' where n = ?", (len(data), number)
            )
        self._segments.drop_plain(harness, number)
        return self._codec.decode(data)

    # ---------------------------------------------------------------------------- lines

    def _believe(self, harness: str, number: int, line: AnyLine) -> None:
        connection = self._connection
        if isinstance(line, EventLine | StandingLine):
            if self._forgotten.is_id(line.id):
                return
            if isinstance(line, EventLine):
                self._event(harness, line)
            connection.execute(
                "insert or ignore into temp.told values(?,?,?,?,?,?,?)",
                (
                    harness,
                    line.session,
                    line.position,
                    int(line.is_side),
                    key(line.id),
                    line.at,
                    number,
                ),
            )
        elif isinstance(line, GoneLine):
            connection.execute(
                "delete from temp.told where harness = ? and session = ? and position = ?",
                (harness, line.session, line.position),
            )
        elif isinstance(line, TurnLine):
            connection.executemany(
                "update temp.told set is_side = ? where harness = ? and session = ?"
                " and position between ? and ?",
                ((int(line.is_side), harness, line.session, *pair) for pair in line.ranges),
            )
        elif isinstance(line, LossLine):
            connection.execute(
                "insert or replace into temp.told_losses values(?,?,?,?,?,?)",
                (harness, line.session, line.what, line.source, line.sentence, line.count),
            )
        elif isinstance(line, SessionLine):
            session = self._session(harness, line.session)
            if line.cwd:
                connection.execute("insert or ignore into checkouts(path) values(?)", (line.cwd,))
                connection.execute(
                    "update sessions set checkout = (select n from checkouts where path = ?) where n = ?",
                    (line.cwd, session),
                )

    def _session(self, harness: str, native: str) -> int:
        self._connection.execute(
            "insert or ignore into sessions(harness, native) values(?, ?)", (harness, native)
        )
        found: int = self._connection.execute(
            "select n from sessions where harness = ? and native = ?", (harness, native)
        ).get
        return found

    def _event(self, harness: str, line: EventLine) -> None:
        connection = self._connection
        told = (line.kind, line.role, line.occurred_at, packed(line.metadata), line.content)
        row = connection.execute(
            f"select n, kind, role, occurred_at, metadata, content from events where {BY_ID}",
            probe(key(line.id)),
        ).fetchone()
        if row is None:
            checkout = connection.execute(
                "select checkout from sessions where harness = ? and native = ?", (harness, line.session)
            ).get
            self._memory.history += 1
            number = self._memory.history
            scope = self._memory.scope(harness, checkout, line.kind, line.role)
            connection.execute(
                "insert into events(n, id, kind, role, occurred_at, metadata, scope, content)"
                " values(?,?,?,?,?,?,?,?)",
                (number, key(line.id), *told[:4], scope, line.content),
            )
        else:
            number = row[0]
            if row[1:] != told:
                connection.execute(
                    "update events set kind = ?, role = ?, occurred_at = ?, metadata = ?,"
                    " content = ? where n = ?",
                    (*told, number),
                )
        connection.execute("insert or ignore into temp.told_events values(?)", (number,))

    # --------------------------------------------------------------------------- places

    def _place(self) -> None:
        """Give every place that lines tell of its row, and every loss its count."""
        connection = self._connection
        connection.execute(
            "insert or ignore into sessions(harness, native) select distinct harness, session from temp.told"
        )
        connection.execute(
            "insert into session_events(session, position, is_side, event, at, segment)"
            " select s.n, t.position, t.is_side, e.n, t.at, t.segment from temp.told t"
            " join sessions s on s.harness = t.harness and s.native = t.session join events e on"
            " iif(typeof(e.id) = 'blob', substr(e.id, 1, 8), e.id) ="
            " iif(typeof(t.id) = 'blob', substr(t.id, 1, 8), t.id) and e.id = t.id"
            " where true on conflict do update set event = excluded.event, at = excluded.at,"
            " is_side = excluded.is_side, segment = excluded.segment"
        )
        connection.execute(
            "insert or ignore into sessions(harness, native) select distinct harness, session"
            " from temp.told_losses where count > 0"
        )
        connection.execute(
            "insert into losses(session, what, source, sentence, count)"
            " select s.n, what, source, sentence, count from temp.told_losses t"
            " join sessions s on s.harness = t.harness and s.native = t.session"
            " where true on conflict do update set sentence = excluded.sentence, count = excluded.count"
        )
        # what stands nowhere, and nobody tells of, is nothing
        connection.execute(
            "delete from events where not exists(select 1 from session_events where event = events.n)"
        )
        wider = database.fetch(
            connection,
            "select distinct event, checkout from session_events e join sessions s on s.n = e.session"
            " where checkout is not null and not exists(select 1 from events where n = event and"
            " ' ' || scope || ' ' like '% c' || checkout || ' %')",
        )
        for event, checkout in list(wider):
            rows.rescope(connection, event, (checkout,))

    def _write_untold(self, harness: str, number: int) -> int:
        """Lines of their own for what only rows tell of; how many segments that took (0 or 1)."""
        connection = self._connection
        with database.transaction(connection):
            connection.execute(
                "insert into segments(n, harness, bytes, state) values(?, ?, 0, 'closed')", (number, harness)
            )
            connection.execute(
                "update session_events as e set segment = ? where session in (select n from sessions where"
                " harness = ?) and (not exists(select 1 from temp.told t join sessions s on s.native ="
                " t.session and s.harness = t.harness where s.n = e.session and "
                " t.position = e.position) or event not in (select event from temp.told_events))",
                (number, harness),
            )
            lines: list[Line] = derived.lines(
                connection, harness, number, lambda event: not self._is_told(event)
            )
            lines += [
                LossLine(session=native, what=what, sentence=sentence, source=source, count=count)
                for native, what, sentence, source, count in database.fetch(
                    connection,
                    "select native, what, sentence, source, count from losses l join sessions s on"
                    " s.n = l.session where harness = ?1 and not exists(select 1 from temp.told_losses t"
                    " where t.harness = ?1 and t.session = native and t.what = l.what and"
                    " t.source = l.source)",
                    (harness,),
                )
            ]
            if len(lines) == 1:  # the head
                connection.execute("delete from segments where n = ?", (number,))
                return 0
            data = self._codec.encode(lines)
            self._segments.seal(harness, number, self._codec.compress(data))
            connection.execute(
                "update segments set bytes = ?, state = 'sealed' where n = ?", (len(data), number)
            )
        return 1

    def _is_told(self, event: int) -> bool:
        found = self._connection.execute("select 1 from temp.told_events where event = ?", (event,)).get
        return found is not None

    # --------------------------------------------------------------------------- counts

    def _recount(self) -> None:
        self._connection.execute(
            "update sessions as s set"
            " events = (select count(*) from session_events e where e.session = s.n and e.is_side = 0),"
            " side_events = (select count(*) from session_events e where e.session = s.n and e.is_side = 1),"
            " last_position = max(last_position, coalesce((select max(position) from session_events e"
            "  where e.session = s.n), 0))"
        )
