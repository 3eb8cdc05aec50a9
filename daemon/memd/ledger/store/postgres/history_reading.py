"""The statements behind `Reader.history` on the server. Inside one snapshot of the reader's."""

from __future__ import annotations

from typing import Any, Final

from memd.ledger import search
from memd.ledger.store import scope, values
from memd.ledger.store.history import Bounds, Count, History, Native, named_workstreams
from memd.ledger.store.history_reading import earliest
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.reading import SESSIONS, THERE
from memd.ledger.store.postgres.workstream_reading import (
    RUN,
    WORKSTREAM,
    WorkstreamReading,
)
from memd.ledger.store.workstreams import Handoff, Run, Workstream

_AT: Final = (
    "case when left(right(occurred_at, 6), 1) in ('+', '-')"
    " then left(occurred_at, 15) || '0' || right(occurred_at, 6) else left(occurred_at, 15) || '0Z' end"
)


class HistoryReading:
    """workstreams: of a reader whose snapshot this is inside of."""

    def __init__(self, link: Link, machine: str, workstreams: WorkstreamReading) -> None:
        self._link = link
        self._machine = machine
        self._workstreams = workstreams

    def history(self, since: str, bounds: Bounds) -> History:
        since_s = search.instant(since)
        lately, when = ("true", []) if since_s is None else ("last_s >= %s", [since_s])
        rows = self._link.rows(
            f"{SESSIONS} where not is_side and {THERE} and {lately} order by last_s desc, s.n desc limit %s",
            *when,
            bounds.sessions,
        )
        sessions = [values.session(row) for row in rows]
        shown = {(row.harness, row.id) for row in sessions}
        harnesses = dict(
            self._link.rows(
                f"select harness, count(*) from sessions s where not is_side and {THERE} and {lately}"
                " group by harness order by count(*) desc, harness",
                *when,
            )
        )
        sides = f"select count(*) from sessions s where is_side and {THERE} and {lately}"
        links = self._links(shown)
        runs, run_count = self._runs(since_s, bounds.runs)
        handoffs, handoff_count = self._handoffs(since_s, bounds.handoffs)
        return History(
            sessions=sessions,
            session_count=sum(harnesses.values()),
            harnesses=harnesses,
            side_count=self._link.value(sides, *when),
            sides=self._sides(shown),
            links=links,
            runs=runs,
            run_count=run_count,
            handoffs=handoffs,
            handoff_count=handoff_count,
            workstreams=self._named(named_workstreams(links, runs, handoffs)),
            counts=self._counts(since_s),
            event_count=self._link.value("select count(*) from events"),
        )

    def _links(self, shown: set[Native]) -> dict[Native, list[str]]:
        found: dict[Native, list[str]] = {}
        for harness, native, id in self._link.rows(
            "select k.harness, native, w.id from workstream_sessions k join workstreams w"
            " on w.n = workstream order by w.n"
        ):
            if (harness, native) in shown:
                found.setdefault((harness, native), []).append(id)
        return found

    def _sides(self, shown: set[Native]) -> dict[Native, int]:
        rows = self._link.rows("select harness, parent, count(*) from sessions where is_side group by 1, 2")
        return {(harness, parent): count for harness, parent, count in rows if (harness, parent) in shown}

    def _runs(self, since_s: float | None, limit: int) -> tuple[list[Run], int]:
        where, when = " where state <> 'cancelled' and not is_passing", list[Any]()
        if since_s is not None:
            where, when = where + " and (state = 'active' or ended_ms >= %s)", [since_s * 1000]
        rows = self._link.rows(RUN + where + " order by began_ms desc, r.n desc limit %s", *when, limit)
        count = self._link.value(f"select count(*) from runs{where}", *when)
        return [self._workstreams.made_run(row) for row in rows], count

    def _handoffs(self, since_s: float | None, limit: int) -> tuple[list[Handoff], int]:
        where, when = "", list[Any]()
        if since_s is not None:
            where = " where (state = 'open' or greatest(created_ms, ended_ms) >= %s)"
            when = [since_s * 1000]
        rows = self._link.rows(
            values.HANDOFF + where + " order by created_ms desc, n desc limit %s", *when, limit
        )
        count = self._link.value(f"select count(*) from handoffs{where}", *when)
        return [values.handoff(row) for row in rows], count

    def _named(self, ids: list[str]) -> dict[str, Workstream]:
        """Where a workstream belongs to several checkouts, with one of this machine's."""
        found: dict[str, Workstream] = {}
        for row in self._link.rows(
            WORKSTREAM + " where w.id = any(%s) order by p.machine <> %s, p.bound_ms", ids, self._machine
        ):
            made = values.workstream(row)
            found.setdefault(made.id, made)
        return found

    def _counts(self, since_s: float | None) -> list[Count]:
        known = {
            scope.harness(name): name for (name,) in self._link.rows("select distinct harness from sessions")
        }
        return [
            Count(at, known.get(harness, harness[1:]), events, size)
            for at, harness, events, size in self._link.rows(
                f"select {_AT} as at, split_part(scope, ' ', 1) as token, count(*),"
                ' sum(octet_length(content))::bigint from events where occurred_at collate "C" >= %s'
                " group by at, token",
                earliest(since_s),
            )
        ]
