"""The statements behind `Reader.history` in SQLite.

Counting events of all times reads the table of events once, without the long texts (they lie on pages of
their own): about three seconds for a million events. With a moment it takes a tenth of that. No index serves
this, since every import would pay for it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw

from memd.ledger import search
from memd.ledger.store import database, scope, values
from memd.ledger.store.history import SLACK_S, Bounds, Count, History, Native, named_workstreams
from memd.ledger.store.interface import SessionRow
from memd.ledger.store.reading import SESSIONS, THERE
from memd.ledger.store.workstream_reading import RUN, WorkstreamReading
from memd.ledger.store.workstreams import Handoff, Run

_LATELY: Final = "(?1 is null or unixepoch(last_activity) >= ?1)"

# A time that names an offset keeps it: the ten minutes then begin there.
_AT: Final = (
    "iif(substr(occurred_at, -6, 1) in ('+', '-'),"
    " substr(occurred_at, 1, 15) || '0' || substr(occurred_at, -6), substr(occurred_at, 1, 15) || '0Z')"
)
_COUNTS: Final = (
    f"select {_AT} as at, substr(scope, 1, instr(scope, ' ') - 1) as harness, count(*),"
    " sum(octet_length(content)) from events where occurred_at >= ? group by at, harness"
)


class HistoryReading:
    def __init__(self, connection: apsw.Connection, workstreams: WorkstreamReading) -> None:
        self._connection = connection
        self._workstreams = workstreams

    def history(self, since: str, bounds: Bounds) -> History:
        since_s = search.instant(since)
        with database.snapshot(self._connection):
            sessions = self._sessions(since_s, bounds.sessions)
            shown = {(row.harness, row.id) for row in sessions}
            harnesses = self._harnesses(since_s)
            links, sides = self._links(shown), self._sides(shown)
            runs, run_count = self._runs(since_s, bounds.runs)
            handoffs, handoff_count = self._handoffs(since_s, bounds.handoffs)
            looked_up = (
                (id, self._workstreams.workstream(id)) for id in named_workstreams(links, runs, handoffs)
            )
            return History(
                sessions=sessions,
                session_count=sum(harnesses.values()),
                harnesses=harnesses,
                side_count=self._value(
                    f"select count(*) from sessions s where is_side and {THERE} and {_LATELY}", since_s
                ),
                sides=sides,
                links=links,
                runs=runs,
                run_count=run_count,
                handoffs=handoffs,
                handoff_count=handoff_count,
                workstreams={id: row for id, row in looked_up if row is not None},
                counts=self._counts(since_s),
                event_count=self._value("select count(*) from events"),
            )

    def _rows(self, sql: str, *bindings: Any) -> Sequence[tuple[Any, ...]]:
        return list(database.fetch(self._connection, sql, bindings))

    def _value(self, sql: str, *bindings: Any) -> int:
        return int(self._connection.execute(sql, bindings).get)

    def _sessions(self, since_s: float | None, limit: int) -> list[SessionRow]:
        rows = self._rows(
            f"{SESSIONS} where not is_side and {THERE} and {_LATELY}"
            " order by last_activity desc, s.n desc limit ?2",
            since_s,
            limit,
        )
        return [values.session(row) for row in rows]

    def _harnesses(self, since_s: float | None) -> Mapping[str, int]:
        rows = self._rows(
            f"select harness, count(*) from sessions s where not is_side and {THERE} and {_LATELY}"
            " group by harness order by count(*) desc, harness",
            since_s,
        )
        return dict(rows)

    def _links(self, shown: set[Native]) -> dict[Native, list[str]]:
        found: dict[Native, list[str]] = {}
        for harness, native, id in self._rows(
            "select k.harness, native, w.id from workstream_sessions k join workstreams w"
            " on w.n = workstream order by w.n"
        ):
            if (harness, native) in shown:
                found.setdefault((harness, native), []).append(id)
        return found

    def _sides(self, shown: set[Native]) -> dict[Native, int]:
        rows = self._rows("select harness, parent, count(*) from sessions where is_side group by 1, 2")
        return {(harness, parent): count for harness, parent, count in rows if (harness, parent) in shown}

    def _runs(self, since_s: float | None, limit: int) -> tuple[list[Run], int]:
        where = (
            " where state <> 'cancelled' and not is_passing"
            " and (?1 is null or state = 'active' or ended_ms >= ?1 * 1000)"
        )
        rows = self._rows(RUN + where + " order by began_ms desc, r.n desc limit ?2", since_s, limit)
        return [values.run(row) for row in rows], self._value(f"select count(*) from runs{where}", since_s)

    def _handoffs(self, since_s: float | None, limit: int) -> tuple[list[Handoff], int]:
        where = " where (?1 is null or state = 'open' or max(created_ms, ended_ms) >= ?1 * 1000)"
        rows = self._rows(
            values.HANDOFF + where + " order by created_ms desc, n desc limit ?2", since_s, limit
        )
        count = self._value(f"select count(*) from handoffs{where}", since_s)
        return [values.handoff(row) for row in rows], count

    def _counts(self, since_s: float | None) -> list[Count]:
        known = {scope.harness(name): name for (name,) in self._rows("select distinct harness from sessions")}
        return [
            Count(at, known.get(harness, harness[1:]), events, size)
            for at, harness, events, size in self._rows(_COUNTS, earliest(since_s))
        ]


def earliest(since_s: float | None) -> str:
    """A text that no time from that moment on is below, whatever its zone."""
    if since_s is None:
        return ""
    moment = datetime.datetime.fromtimestamp(max(since_s - SLACK_S, 0.0), datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
