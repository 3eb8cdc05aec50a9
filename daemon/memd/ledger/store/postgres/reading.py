"""The statements that list: sessions, their losses, their events in order, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from memd.ledger import search
from memd.ledger.store import values
from memd.ledger.store.interface import Filter, LossRow, SessionRow, Stats, StoredEvent
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.values import key_of, named
from memd.ledger.store.reading import HOLDING
from memd.ledger.store.workstreams import UNRESOLVED

MAX_FORKS: Final = 32
PAGE: Final = 200
"""Events that are fetched at a time: a session may be larger than memory likes."""

SESSIONS = (
    "select native, harness, coalesce(path, ''), title, started, last_activity, events, side_events,"
    " (select coalesce(sum(count), 0)::bigint from losses where session = s.n), version, is_side, parent,"
    " forked_from, forked_at from sessions s left join checkouts c on c.n = s.checkout"
)

THERE: Final = f"{HOLDING} and left(native, {len(UNRESOLVED)}) <> '{UNRESOLVED}'"

_EVENTS = (
    "select position, id, kind, role, content, occurred_at, metadata, at, is_side"
    " from session_events join events on events.n = event where session = %s and position > %s"
)


def below(cwd: str) -> tuple[str, tuple[Any, ...]]:
    """A condition on `path` for a directory and all below it, and its bindings."""
    place = cwd.rstrip("/") or "/"
    inside = place if place == "/" else place + "/"
    return "(path = %s or left(path, %s) = %s)", (place, len(inside), inside)


class Reading:
    def __init__(self, link: Link) -> None:
        self._link = link

    def cursors(self, machine: str, after: bytes, limit: int) -> dict[bytes, bytes]:
        sql = "select source, value from cursors where machine = %s and source > %s order by source"
        bindings: list[Any] = [machine, after]
        if limit >= 0:
            sql += " limit %s"
            bindings.append(limit)
        return {bytes(source): bytes(value) for source, value in self._link.rows(sql, *bindings)}

    def cursor(self, machine: str, source: bytes) -> bytes:
        found = self._link.value(
            "select value from cursors where machine = %s and source_key = %s", machine, key_of(source)
        )
        return b"" if found is None else bytes(found)

    def sessions(self, where: Filter, limit: int, offset: int) -> list[SessionRow]:
        conditions = [HOLDING if where.session else THERE]
        bindings: list[Any] = []
        if where.harness:
            conditions.append("harness = %s")
            bindings.append(search.clean(where.harness))
        if where.session:
            conditions.append("native_key = %s")
            bindings.append(key_of(search.clean(where.session)))
        if where.cwd:
            condition, paths = below(search.clean(where.cwd))
            conditions.append(condition)
            bindings.extend(paths)
        sql = f"{SESSIONS} where {' and '.join(conditions)} order by last_s desc, s.n desc"
        if limit:
            sql += " limit %s"
            bindings.append(limit)
        sql += " offset %s"
        bindings.append(offset)
        since = search.instant(where.since)
        return [
            values.session(row)
            for row in self._link.rows(sql, *bindings)
            if since is None or (search.instant(row[5]) or 0.0) >= since
        ]

    def losses(self, harness: str, session: str) -> list[LossRow]:
        rows = self._link.rows(
            "select what, max(sentence), sum(count)::bigint from losses join sessions s on s.n = session"
            " where s.key = %s group by what order by what",
            key_of(search.clean(harness), search.clean(session)),
        )
        return [LossRow(what=what, sentence=sentence, count=int(count)) for what, sentence, count in rows]

    def export(self, harness: str, session: str, *, side: bool, after: int) -> Iterator[StoredEvent]:
        shift = 0
        for number, name, until in self.parts(harness, session):
            is_own = name == session and not until
            length = self._length(number, until)
            if after < shift + length or is_own:
                yield from self._part(harness, number, name, until, shift, after - shift, side=side)
            shift += length

    def parts(self, harness: str, session: str) -> list[tuple[int, str, int]]:
        """What a session is stitched from, oldest first: number, id, the `at` that ends the part or 0."""
        found: list[tuple[int, str, int]] = []
        native, until = search.clean(session), 0
        while native and len(found) < MAX_FORKS and native not in (part[1] for part in found):
            row = self._link.row(
                "select n, forked_from, forked_at from sessions where key = %s",
                key_of(search.clean(harness), native),
            )
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
        if not until:
            return 0
        found: int | None = self._link.value(
            "select max(position) from session_events where session = %s and at < %s", number, until
        )
        return found or 0

    def _part(
        self, harness: str, number: int, native: str, until: int, shift: int, after: int, *, side: bool
    ) -> Iterator[StoredEvent]:
        sql = _EVENTS + ("" if side else " and not is_side") + (" and at < %s" if until else "")
        sql += f" order by position limit {PAGE}"
        while True:
            rows = self._link.rows(sql, number, after, *((until,) if until else ()))
            for row in rows:
                after = row[0]
                yield StoredEvent(
                    sequence=row[0] + shift,
                    event_id=named(row[1]),
                    harness=harness,
                    session=native,
                    kind=row[2],
                    role=row[3],
                    content=row[4],
                    occurred_at=row[5],
                    metadata=values.unpack(row[6]),
                    at=row[7],
                    is_side=row[8],
                )
            if len(rows) < PAGE:
                return

    def stats(self, machine: str) -> Stats:
        row = self._link.row(
            f"select (select count(*) from events), (select count(*) from sessions s where {THERE}),"
            " (select coalesce(sum(count), 0)::bigint from losses),"
            " (select count(*) from cursors where machine = %s)",
            machine,
        )
        assert row is not None
        return Stats(
            events=row[0],
            sessions=row[1],
            losses=int(row[2]),
            sources=row[3],
            segments=0,
            unsealed=0,
            database_bytes=self._size(),
            log_bytes=0,
            segment_bytes=0,
        )

    def _size(self) -> int:
        found: int | None = self._link.value(
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c"
            " join pg_namespace s on s.oid = c.relnamespace"
            " where s.nspname = current_schema() and c.relkind = 'r'"
        )
        return int(found or 0)
