"""The statements that ask about workstreams, their sessions, runs, views and handoffs: `Looking`."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import apsw

from memd.ledger.store import database, values
from memd.ledger.store.interface import StoredEvent
from memd.ledger.store.reading import Reading
from memd.ledger.store.schema import BY_ID
from memd.ledger.store.scope import key, probe, spelled
from memd.ledger.store.workstreams import (
    ESTABLISHING,
    UNRESOLVED,
    Delivery,
    Elsewhere,
    Handoff,
    Known,
    Linked,
    Place,
    Run,
    Untold,
    Workstream,
)

_WORKSTREAM = (
    "select id, workspace, project, repository, worktree, name, cwd, created_ms, selected_ms, updated_ms,"
    " last_sequence from workstreams"
)

RUN = (
    "select r.id, w.id, r.harness, r.flavor, state, phase, r.cwd, launcher_pid, launcher_start, agent_pid,"
    " agent_start, boot, expires_ms, began_ms, ended_ms, expected, native, made_link, is_confirmed,"
    " is_passing, sync_after, sync_through, is_told,"
    " exit_code from runs r join workstreams w on w.n = r.workstream"
)

# An event of a view is shown while it stands in the main line of a linked session (or of what that one was
# forked from); one that joined by itself, or whose session is linked no more, while it stands in any.
SHOWN: Final = (
    "iif(exists(select 1 from session_events e where e.event = w.event and e.session in {parts}),"
    " exists(select 1 from session_events e where e.event = w.event and e.is_side = 0"
    "  and e.session in {parts}),"
    " exists(select 1 from session_events e where e.event = w.event and e.is_side = 0))"
)

_PLACE: Final = (
    "select harness, native, at from session_events e join sessions s on s.n = e.session where e.event = ?"
    " order by e.session in {parts} desc, e.is_side, s.is_side, s.n limit 1"
)

P = ParamSpec("P")
T = TypeVar("T")


def _told(
    method: Callable[Concatenate[WorkstreamReading, P], T],
) -> Callable[Concatenate[WorkstreamReading, P], T]:
    """SQLite's errors in memd's words."""

    @functools.wraps(method)
    def asked(self: WorkstreamReading, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with database.saying("read", self._path):
            return method(self, *args, **kwargs)

    return asked


class WorkstreamReading:
    is_shared = False

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._path = os.fsencode(connection.filename)
        self._reading = Reading(connection)

    # ----------------------------------------------------------------------------- workstreams

    @_told
    def workstreams(self, place: Place) -> list[Workstream]:
        rows = self._connection.execute(
            _WORKSTREAM + " where workspace = ? and project = ? and repository = ? and worktree = ?"
            " order by selected_ms desc, n desc",
            (place.workspace, place.project, place.repository, place.worktree),
        )
        return [values.workstream(row) for row in rows]

    @_told
    def in_scope(self, workspace: str, project: str) -> list[Workstream]:
        rows = self._connection.execute(
            _WORKSTREAM + " where workspace = ? and project = ? order by updated_ms desc, n desc",
            (workspace, project),
        )
        return [values.workstream(row) for row in rows]

    @_told
    def scopes(self) -> list[Known]:
        rows = self._connection.execute(
            "select workspace, project, count(*),"
            " sum((select count(*) from workstream_events e where e.workstream = w.n)),"
            " max(iif(updated_ms > 0, updated_ms, created_ms)) as used"
            " from workstreams w group by workspace, project order by used desc, max(n) desc"
        )
        return [
            Known(workspace=workspace, project=project, workstreams=count, events=events, used_ms=used)
            for workspace, project, count, events, used in rows
        ]

    @_told
    def workstream(self, workstream: str) -> Workstream | None:
        row = self._connection.execute(_WORKSTREAM + " where id = ?", (workstream,)).fetchone()
        return None if row is None else values.workstream(row)

    @_told
    def elsewhere(self, place: Place) -> list[Elsewhere]:
        rows = list(
            database.fetch(
                self._connection,
                _WORKSTREAM + " where repository = ? and worktree <> ? order by updated_ms desc, n desc",
                (place.repository, place.worktree),
            )
        )
        return [self._elsewhere(values.workstream(row)) for row in rows]

    def _elsewhere(self, row: Workstream) -> Elsewhere:
        checkpoint = self._connection.execute(
            "select content from workstream_events w join events on events.n = w.event"
            " where workstream = ? and kind = 'checkpoint' order by sequence desc limit 1",
            (self._number(row.id),),
        ).get
        return Elsewhere(
            workstream=row, machine="", cwd=row.cwd, used_ms=row.updated_ms, checkpoint=checkpoint or ""
        )

    @_told
    def linked(self, workstream: str) -> list[Linked]:
        rows = self._connection.execute(
            "select k.harness, native, is_current, told, linked_ms, flavor from workstream_sessions k"
            " join workstreams w on w.n = workstream where id = ? order by linked_ms desc, native",
            (workstream,),
        )
        return [values.linked(row) for row in rows]

    @_told
    def workstreams_of(self, harness: str, session: str) -> list[str]:
        rows = self._connection.execute(
            "select id from workstream_sessions k join workstreams w on w.n = workstream"
            " where k.harness = ? and native = ? order by w.n",
            (harness, session),
        )
        return [workstream for (workstream,) in rows]

    @_told
    def is_established(self, workstream: str) -> bool:
        number = self._number(workstream)
        kinds = ", ".join(f"'{kind}'" for kind in ESTABLISHING)
        return bool(
            self._connection.execute(
                "select exists(select 1 from workstream_sessions where workstream = ?1)"
                " or exists(select 1 from workstream_events w join events on events.n = w.event"
                f" where w.workstream = ?1 and kind in ({kinds}))",
                (number,),
            ).get
        )

    def _number(self, workstream: str) -> int:
        """The row of a workstream; 0 for one that there is not."""
        return self._connection.execute("select n from workstreams where id = ?", (workstream,)).get or 0

    # ------------------------------------------------------------------------------------ runs

    @_told
    def run(self, run: str) -> Run | None:
        row = self._connection.execute(RUN + " where r.id = ?", (run,)).fetchone()
        return None if row is None else values.run(row)

    @_told
    def active(self, workstream: str) -> Run | None:
        row = self._connection.execute(RUN + " where w.id = ? and state = 'active'", (workstream,)).fetchone()
        return None if row is None else values.run(row)

    @_told
    def active_runs(self) -> list[Run]:
        return [
            values.run(row) for row in self._connection.execute(RUN + " where state = 'active' order by r.n")
        ]

    @_told
    def delivery(self, run: str) -> Delivery | None:
        row = self._connection.execute(
            "select d.harness, d.native, after, through, shown, omitted, first, at_ms from deliveries d"
            " join runs r on r.n = run where r.id = ?",
            (run,),
        ).fetchone()
        return None if row is None else values.delivery(run, row)

    # -------------------------------------------------------------------------------- handoffs

    @_told
    def handoff(self, handoff: str) -> Handoff | None:
        row = self._connection.execute(values.HANDOFF + " where id = ?", (handoff,)).fetchone()
        return None if row is None else values.handoff(row)

    @_told
    def handoffs(self, workspace: str, project: str, limit: int = 20) -> list[Handoff]:
        rows = self._connection.execute(
            values.HANDOFF + " where workspace = ? and project = ? order by state <> 'open', n desc limit ?",
            (workspace, project, limit),
        )
        return [values.handoff(row) for row in rows]

    @_told
    def has_open_handoff(self) -> bool:
        return self._connection.execute("select 1 from handoffs where state = 'open' limit 1").get is not None

    # ----------------------------------------------------------------------------------- views

    @_told
    def untold(
        self,
        workstream: str,
        harness: str,
        session: str,
        *,
        after: int,
        through: int,
        limit: int,
        max_characters: int,
    ) -> Untold:
        with self._one_state():
            parts = self._parts(workstream)
            condition, bindings = self._foreign(harness, session)
            rows = list(
                database.fetch(
                    self._connection,
                    f"select sequence, event from workstream_events w where workstream = ? and sequence > ?"
                    f" and sequence <= ? and {condition} and {SHOWN.format(parts=parts)}"
                    " order by sequence desc",
                    (self._number(workstream), after, through, *bindings),
                )
            )
            newest = rows[:limit]
            newest.reverse()
            return Untold(
                count=len(rows),
                events=[self._event(sequence, event, parts, max_characters) for sequence, event in newest],
            )

    @_told
    def tail(
        self, workstream: str, *, limit: int = 20, before: int = 0, max_characters: int = 0
    ) -> list[StoredEvent]:
        with self._one_state():
            parts = self._parts(workstream)
            rows = list(
                database.fetch(
                    self._connection,
                    "select sequence, event from workstream_events w where workstream = ?1"
                    f" and (?2 = 0 or sequence < ?2) and {SHOWN.format(parts=parts)}"
                    " order by sequence desc limit ?3",
                    (self._number(workstream), before, limit),
                )
            )
            return [self._event(sequence, event, parts, max_characters) for sequence, event in rows]

    def checkouts(self, workstream: str) -> list[int] | None:
        """The directories that the events of a view are indexed under; None: not known of all of them."""
        found = {
            checkout
            for (checkout,) in database.fetch(
                self._connection,
                f"select distinct checkout from sessions where n in {self._parts(workstream)} union"
                " select distinct checkout from runs r join sessions s on s.harness = r.harness"
                " and s.native = ? || r.id where workstream = ?",
                (UNRESOLVED, self._number(workstream)),
            )
        }
        return None if None in found else sorted(found)

    def sequences(self, workstream: str, events: Sequence[str]) -> dict[str, int]:
        """The sequences that events have in a view, by their ids."""
        number = self._number(workstream)
        return {
            spelled(stored): sequence
            for stored, sequence in self._connection.executemany(
                "select id, sequence from events join workstream_events on event = events.n"
                f" where {BY_ID} and workstream = ?",
                ((*probe(key(event)), number) for event in events),
            )
        }

    def _one_state(self) -> contextlib.AbstractContextManager[None]:
        """All statements inside see one state; a transaction does already."""
        connection = self._connection
        return contextlib.nullcontext() if connection.in_transaction else database.snapshot(connection)

    def _parts(self, workstream: str) -> str:
        """The sessions whose main lines make the view, as a list for SQL: numbers only."""
        numbers = {
            number
            for linked in self.linked(workstream)
            for number, _name, _until in self._reading.parts(linked.harness, linked.session)
        }
        return f"({', '.join(str(number) for number in sorted(numbers))})"

    def _foreign(self, harness: str, session: str) -> tuple[str, list[int]]:
        """The condition that an event does not stand in that session, nor in what it shares with others."""
        mine = (
            [(number, until) for number, _name, until in self._reading.parts(harness, session)]
            if session
            else []
        )
        if not mine:
            return "1", []
        places = " or ".join("(e.session = ? and (? = 0 or e.at < ?))" for _ in mine)
        bindings = [value for number, until in mine for value in (number, until, until)]
        return f"not exists(select 1 from session_events e where e.event = w.event and ({places}))", bindings

    def _event(self, sequence: int, event: int, parts: str, max_characters: int) -> StoredEvent:
        row: Sequence[Any] = self._connection.execute(
            "select id, kind, role, iif(?1 > 0, substr(content, 1, ?1), content), occurred_at, metadata"
            " from events where n = ?2",
            (max_characters, event),
        ).get
        harness, session, at = self._connection.execute(_PLACE.format(parts=parts), (event,)).get
        return StoredEvent(
            sequence=sequence,
            event_id=spelled(row[0]),
            harness=harness,
            session=session,
            kind=row[1],
            role=row[2],
            content=row[3],
            occurred_at=row[4],
            metadata=values.unpack(row[5]),
            at=at,
        )
