"""The statements that list: sessions, their losses, their events in order, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

from memd import disk
from memd.ledger import search
from memd.ledger.segments import Segments
from memd.ledger.store import database, values
from memd.ledger.store.interface import Filter, LossRow, SessionRow, Stats, StoredEvent
from memd.ledger.store.scope import spelled
from memd.ledger.store.workstreams import UNRESOLVED

MAX_FORKS: Final = 32
"""Sessions that one export is stitched from."""

SESSIONS = (
    "select native, harness, coalesce(path, ''), title, started, last_activity, events, side_events,"
    " (select coalesce(sum(count), 0) from losses where session = s.n), version, is_side, parent,"
    " forked_from, forked_at from sessions s left join checkouts c on c.n = s.checkout"
)

HOLDING: Final = "(events > 0 or side_events > 0 or exists(select 1 from losses where session = s.n))"
THERE: Final = f"{HOLDING} and native not glob '{UNRESOLVED}*'"
"""What a list of sessions shows and every count of them counts: not where memd notes what it says itself of
runs that were on no session it knows."""

_EVENTS = (
    "select position, id, kind, role, content, occurred_at, metadata, at, is_side"
    " from session_events join events on events.n = event where session = ?"
)


def below(cwd: str) -> tuple[str, tuple[str, str, str]]:
    """A condition on `path` for a directory and all below it, and its bindings."""
    place = cwd.rstrip("/") or "/"
    inside = place if place == "/" else place + "/"
    return "(path = ? or (path >= ? and path < ?))", (place, inside, inside[:-1] + "0")


class Reading:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def cursors(self, after: bytes, limit: int) -> dict[bytes, bytes]:
        page = "select source, value from cursors where source > ? order by source limit ?"
        return dict(database.fetch(self._connection, page, (after, limit)))

    def cursor(self, source: bytes) -> bytes:
        return self._connection.execute("select value from cursors where source = ?", (source,)).get or b""

    def sessions(self, where: Filter, limit: int, offset: int) -> list[SessionRow]:
        conditions = [HOLDING if where.session else THERE]
        bindings: list[object] = []
        if where.harness:
            conditions.append("harness = ?")
            bindings.append(where.harness)
        if where.session:
            conditions.append("native = ?")
            bindings.append(where.session)
        if where.cwd:
            condition, paths = below(search.clean(where.cwd))
            conditions.append(condition)
            bindings.extend(paths)
        bindings += [limit or -1, offset]
        rows = self._connection.execute(
            f"{SESSIONS} where {' and '.join(conditions)}"
            " order by last_activity desc, s.n desc limit ? offset ?",
            bindings,
        )
        since = search.instant(where.since)
        return [
            values.session(row) for row in rows if since is None or (search.instant(row[5]) or 0.0) >= since
        ]

    def losses(self, harness: str, session: str) -> list[LossRow]:
        rows = self._connection.execute(
            "select what, max(sentence), sum(count) from losses join sessions on n = session"
            " where harness = ? and native = ? group by what order by what",
            (harness, session),
        )
        return [LossRow(what=what, sentence=sentence, count=count) for what, sentence, count in rows]

    def export(self, harness: str, session: str, *, side: bool, after: int) -> Iterator[StoredEvent]:
        """The parent's events up to the fork, its parent's before them, and so on; then the session's own."""
        shift = 0
        for number, name, until in self.parts(harness, session):
            is_own = name == session and not until
            if after < shift + self._length(number, until) or is_own:
                yield from self._part(harness, number, name, until, shift, after - shift, side=side)
            shift += self._length(number, until)

    def parts(self, harness: str, session: str) -> list[tuple[int, str, int]]:
        """What a session is stitched from, oldest first: number, id, the `at` that ends the part or 0."""
        found: list[tuple[int, str, int]] = []
        native, until = session, 0
        while native and len(found) < MAX_FORKS and native not in (part[1] for part in found):
            row = self._connection.execute(
                "select n, forked_from, forked_at from sessions where harness = ? and native = ?",
                (harness, native),
            ).fetchone()
            if row is None:
                break
            found.append((row[0], native, until))
            if not row[2]:
                break
            native, until = row[1], row[2]
        found.reverse()
        return found

    def shift(self, harness: str, session: str) -> int:
        """How many events of other sessions come before a session's own."""
        return sum(self._length(number, until) for number, _name, until in self.parts(harness, session)[:-1])

    def _length(self, number: int, until: int) -> int:
        """How many sequences a part takes: none twice, also where something was taken out of it."""
        if not until:
            return 0
        found = self._connection.execute(
            "select max(position) from session_events where session = ? and at < ?",
            (number, until),
        ).get
        return found or 0

    def _part(
        self, harness: str, number: int, native: str, until: int, shift: int, after: int, *, side: bool
    ) -> Iterator[StoredEvent]:
        sql, bindings = _EVENTS + " and position > ?", [number, after]
        if not side:
            sql += " and is_side = 0"
        if until:
            sql += " and at < ?"
            bindings.append(until)
        for row in self._connection.execute(sql + " order by position", bindings):
            yield StoredEvent(
                sequence=row[0] + shift,
                event_id=spelled(row[1]),
                harness=harness,
                session=native,
                kind=row[2],
                role=row[3],
                content=row[4],
                occurred_at=row[5],
                metadata=values.unpack(row[6]),
                at=row[7],
                is_side=bool(row[8]),
            )

    def stats(self, path: bytes, segments: Segments) -> Stats:
        events, sessions, losses, sources, count, unsealed = self._connection.execute(
            f"select (select count(*) from events), (select count(*) from sessions s where {THERE}),"
            " (select coalesce(sum(count), 0) from losses), (select count(*) from cursors),"
            " (select count(*) from segments), (select count(*) from segments where state <> 'sealed')"
        ).get
        return Stats(
            events=events,
            sessions=sessions,
            losses=losses,
            sources=sources,
            segments=count,
            unsealed=unsealed,
            database_bytes=_size(path),
            log_bytes=_size(path + b"-wal"),
            segment_bytes=segments.total_bytes(),
        )


def _size(path: bytes) -> int:
    facts = disk.follow(path)
    return 0 if facts is None else facts.st_size
