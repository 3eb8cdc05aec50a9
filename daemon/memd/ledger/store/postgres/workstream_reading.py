"""The statements that ask about workstreams, their sessions, runs, views and handoffs: `Looking`.

What belongs to another machine is told as such: its processes bear that machine's name, so that nobody here
takes them for processes of this one, and its checkouts are no checkouts of this one, whatever their paths.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from memd import processes
from memd.ledger.store import values
from memd.ledger.store.interface import StoredEvent
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.reading import Reading
from memd.ledger.store.postgres.values import id_of, key_of, named
from memd.ledger.store.workstreams import (
    ESTABLISHING,
    UNRESOLVED,
    Delivery,
    Elsewhere,
    Handoff,
    Known,
    Linked,
    Place,
    Process,
    Run,
    Untold,
    Workstream,
)

WORKSTREAM = (
    "select w.id, p.workspace, p.project, p.repository, p.worktree, w.name, w.cwd, w.created_ms,"
    " w.selected_ms, w.updated_ms, w.last_sequence from workstreams w"
    " join workstream_places p on p.workstream = w.n"
)

RUN = (
    "select r.id, w.id, r.harness, r.flavor, state, phase, r.cwd, launcher_pid, launcher_start, agent_pid,"
    " agent_start, boot, expires_ms, began_ms, ended_ms, expected, native, made_link, is_confirmed,"
    " is_passing, sync_after, sync_through, is_told, exit_code, r.machine, machine_boot, coalesce(host, '')"
    " from runs r join workstreams w on w.n = r.workstream left join machines m on m.id = r.machine"
)

# As in the engine of one machine: an event is shown while it stands in the main line of a linked session, or
# of what that one was forked from; one that joined by itself while it stands in any.
SHOWN: Final = (
    "case when exists(select 1 from session_events e where e.event = w.event and e.session = any(%s))"
    " then exists(select 1 from session_events e where e.event = w.event and not e.is_side"
    "  and e.session = any(%s))"
    " else exists(select 1 from session_events e where e.event = w.event and not e.is_side) end"
)

_PLACE: Final = (
    "select distinct on (e.event) e.event, harness, native, at from session_events e"
    " join sessions s on s.n = e.session where e.event = any(%s)"
    " order by e.event, (e.session = any(%s)) desc, e.is_side, s.is_side, s.n"
)

KINDS: Final = ", ".join(f"'{kind}'" for kind in ESTABLISHING)
OTHER_BOOT: Final = "another boot"


class WorkstreamReading:
    """machine: the id of this one."""

    is_shared = True

    def __init__(self, link: Link, machine: str) -> None:
        self._link = link
        self._machine = machine
        self._reading = Reading(link)
        self._is_inside = False

    def _asked(self) -> contextlib.AbstractContextManager[None]:
        """All statements of one answer see one state; those inside a transaction do already."""
        return contextlib.nullcontext() if self._is_inside else self._once()

    @contextlib.contextmanager
    def _once(self) -> Any:
        self._link.begin_question()
        with self._link.snapshot():
            self._is_inside = True
            try:
                yield
            finally:
                self._is_inside = False

    # ----------------------------------------------------------------------------- workstreams

    def workstreams(self, place: Place) -> list[Workstream]:
        with self._asked():
            rows = self._link.rows(
                WORKSTREAM + " where p.machine = %s and p.workspace = %s and p.project = %s"
                " and p.repository = %s and p.worktree = %s order by w.selected_ms desc, w.n desc",
                self._machine,
                place.workspace,
                place.project,
                place.repository,
                place.worktree,
            )
        return [values.workstream(row) for row in rows]

    def in_scope(self, workspace: str, project: str) -> list[Workstream]:
        with self._asked():
            rows = self._link.rows(
                WORKSTREAM + " where p.workspace = %s and p.project = %s"
                " order by w.updated_ms desc, w.n desc, p.machine <> %s, p.bound_ms",
                workspace,
                project,
                self._machine,
            )
        found = [values.workstream(row) for row in rows]
        return list({row.id: row for row in reversed(found)}.values())[::-1]

    def scopes(self) -> list[Known]:
        with self._asked():
            rows = self._link.rows(
                "select p.workspace, p.project, count(distinct w.n), count(v.sequence),"
                " max(case when w.updated_ms > 0 then w.updated_ms else w.created_ms end) as used"
                " from workstreams w join (select distinct workstream, workspace, project"
                " from workstream_places) p on p.workstream = w.n"
                " left join workstream_events v on v.workstream = w.n"
                " group by p.workspace, p.project order by used desc, max(w.n) desc"
            )
        return [
            Known(workspace=workspace, project=project, workstreams=count, events=events, used_ms=used)
            for workspace, project, count, events, used in rows
        ]

    def workstream(self, workstream: str) -> Workstream | None:
        with self._asked():
            row = self._link.row(
                WORKSTREAM + " where w.id = %s order by p.machine <> %s, p.bound_ms limit 1",
                workstream,
                self._machine,
            )
        return None if row is None else values.workstream(row)

    def elsewhere(self, place: Place) -> list[Elsewhere]:
        with self._asked():
            rows = self._link.rows(
                WORKSTREAM + " where p.repository = %s and w.n not in (select workstream from"
                " workstream_places where machine = %s and worktree = %s)"
                " order by w.updated_ms desc, w.n desc",
                place.repository,
                self._machine,
                place.worktree,
            )
            found = {row[0]: row for row in reversed(rows)}
            return [self._elsewhere(row) for row in reversed(found.values())]

    def _elsewhere(self, row: Sequence[Any]) -> Elsewhere:
        last = self._link.row(
            "select r.cwd, r.began_ms, r.machine, coalesce(host, r.machine) from runs r"
            " join workstreams w on w.n = r.workstream left join machines m on m.id = r.machine"
            " where w.id = %s order by r.began_ms desc limit 1",
            row[0],
        )
        origin = self._link.row(
            "select coalesce(host, p.machine), p.machine from workstream_places p"
            " join workstreams w on w.n = p.workstream left join machines m on m.id = p.machine"
            " where w.id = %s order by bound_ms limit 1",
            row[0],
        )
        checkpoint = self._link.value(
            "select content from workstream_events v join workstreams w on w.n = v.workstream"
            " join events on events.n = v.event where w.id = %s and kind = 'checkpoint'"
            " order by sequence desc limit 1",
            row[0],
        )
        host, machine = origin or ("", "")
        if last is not None:
            host, machine = last[3], last[2]
        return Elsewhere(
            workstream=values.workstream(row),
            machine="" if machine == self._machine else host,
            cwd=bytes(last[0] if last is not None else row[6]),
            used_ms=last[1] if last is not None else row[9],
            checkpoint=checkpoint or "",
        )

    def linked(self, workstream: str) -> list[Linked]:
        with self._asked():
            rows = self._link.rows(
                "select k.harness, native, is_current, told, linked_ms, flavor from workstream_sessions k"
                " join workstreams w on w.n = workstream where id = %s order by linked_ms desc, native",
                workstream,
            )
        return [values.linked(row) for row in rows]

    def workstreams_of(self, harness: str, session: str) -> list[str]:
        with self._asked():
            rows = self._link.rows(
                "select id from workstream_sessions k join workstreams w on w.n = workstream"
                " where k.harness = %s and native_key = %s order by w.n",
                harness,
                key_of(session),
            )
        return [workstream for (workstream,) in rows]

    def is_established(self, workstream: str) -> bool:
        with self._asked():
            number = self._number(workstream)
            return bool(
                self._link.value(
                    "select exists(select 1 from workstream_sessions where workstream = %s)"
                    " or exists(select 1 from workstream_events w join events on events.n = w.event"
                    f" where w.workstream = %s and kind in ({KINDS}))",
                    number,
                    number,
                )
            )

    def _number(self, workstream: str) -> int:
        """The row of a workstream; 0 for one that there is not."""
        return self._link.value("select n from workstreams where id = %s", workstream) or 0

    # ------------------------------------------------------------------------------------ runs

    def run(self, run: str) -> Run | None:
        with self._asked():
            row = self._link.row(RUN + " where r.id = %s", run)
        return None if row is None else self.made_run(row)

    def active(self, workstream: str) -> Run | None:
        with self._asked():
            row = self._link.row(RUN + " where w.id = %s and state = 'active'", workstream)
        return None if row is None else self.made_run(row)

    def active_runs(self) -> list[Run]:
        with self._asked():
            rows = self._link.rows(RUN + " where state = 'active' order by r.n")
        return [self.made_run(row) for row in rows]

    def delivery(self, run: str) -> Delivery | None:
        with self._asked():
            row = self._link.row(
                "select d.harness, d.native, after, through, shown, omitted, first, at_ms from deliveries d"
                " join runs r on r.n = run where r.id = %s",
                run,
            )
        return None if row is None else values.delivery(run, row)

    def made_run(self, row: Sequence[Any]) -> Run:
        machine, boot, host = row[24:27]
        return values.run(row, lambda pid, start: self._process(pid, start, machine, boot, host))

    def _process(self, pid: int, start: str, machine: str, boot: str, host: str) -> Process:
        if machine != self._machine:
            return Process(pid, start, host or machine)
        if boot != processes.boot_id():
            return Process(pid, OTHER_BOOT)  # no process of today began then
        return Process(pid, start)

    # -------------------------------------------------------------------------------- handoffs

    def handoff(self, handoff: str) -> Handoff | None:
        with self._asked():
            row = self._link.row(values.HANDOFF + " where id = %s", handoff)
        return None if row is None else values.handoff(row)

    def handoffs(self, workspace: str, project: str, limit: int = 20) -> list[Handoff]:
        with self._asked():
            rows = self._link.rows(
                values.HANDOFF + " where workspace = %s and project = %s"
                " order by (state <> 'open'), n desc limit %s",
                workspace,
                project,
                limit,
            )
        return [values.handoff(row) for row in rows]

    def has_open_handoff(self) -> bool:
        with self._asked():
            return bool(self._link.rows("select 1 from handoffs where state = 'open' limit 1"))

    # ----------------------------------------------------------------------------------- views

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
        with self._asked():
            parts = self._parts(workstream)
            condition, bindings = self._foreign(harness, session)
            rows = self._link.rows(
                "select sequence, event from workstream_events w where workstream = %s and sequence > %s"
                f" and sequence <= %s and {condition} and {SHOWN} order by sequence desc",
                self._number(workstream),
                after,
                through,
                *bindings,
                parts,
                parts,
            )
            newest = rows[: max(limit, 0)]
            newest.reverse()
            return Untold(count=len(rows), events=self._events(newest, parts, max_characters))

    def tail(
        self, workstream: str, *, limit: int = 20, before: int = 0, max_characters: int = 0
    ) -> list[StoredEvent]:
        with self._asked():
            parts = self._parts(workstream)
            rows = self._link.rows(
                "select sequence, event from workstream_events w where workstream = %s"
                f" and (%s = 0 or sequence < %s) and {SHOWN} order by sequence desc limit %s",
                self._number(workstream),
                before,
                before,
                parts,
                parts,
                limit,
            )
            return self._events(rows, parts, max_characters)

    def checkouts(self, workstream: str) -> list[int] | None:
        """The directories that the events of a view are indexed under; None: not known of all of them."""
        rows = self._link.rows(
            "select distinct checkout from sessions where n = any(%s) union"
            " select distinct checkout from runs r join sessions s on s.harness = r.harness"
            " and s.native = %s || r.id where workstream = %s",
            self._parts(workstream),
            UNRESOLVED,
            self._number(workstream),
        )
        found = {checkout for (checkout,) in rows}
        return None if None in found else sorted(found)

    def sequences(self, workstream: str, events: Sequence[str]) -> dict[str, int]:
        """The sequences that events have in a view, by their ids."""
        rows = self._link.rows(
            "select id, sequence from events join workstream_events on event = events.n"
            " where id = any(%s) and workstream = %s",
            [id_of(event) for event in events],
            self._number(workstream),
        )
        return {named(id): sequence for id, sequence in rows}

    def _parts(self, workstream: str) -> list[int]:
        """The sessions whose main lines make the view."""
        return sorted(
            {
                number
                for harness, session in self._link.rows(
                    "select k.harness, native from workstream_sessions k join workstreams w"
                    " on w.n = workstream where id = %s",
                    workstream,
                )
                for number, _name, _until in self._reading.parts(harness, session)
            }
        )

    def _foreign(self, harness: str, session: str) -> tuple[str, list[Any]]:
        """The condition that an event does not stand in that session, nor in what it shares with others."""
        mine = (
            [(number, until) for number, _name, until in self._reading.parts(harness, session)]
            if session
            else []
        )
        if not mine:
            return "true", []
        places = " or ".join("(e.session = %s and (%s = 0 or e.at < %s))" for _ in mine)
        bindings = [value for number, until in mine for value in (number, until, until)]
        return f"not exists(select 1 from session_events e where e.event = w.event and ({places}))", bindings

    def _events(
        self, rows: Sequence[tuple[Any, ...]], parts: list[int], max_characters: int
    ) -> list[StoredEvent]:
        """The events of a view, in the order of the rows (sequence, event)."""
        if not rows:
            return []
        numbers = [event for _sequence, event in rows]
        content = "left(content, %s)" if max_characters > 0 else "content"
        facts = {
            row[0]: row
            for row in self._link.rows(
                f"select n, id, kind, role, {content}, occurred_at, metadata from events where n = any(%s)",
                *((max_characters,) if max_characters > 0 else ()),
                numbers,
            )
        }
        places = {row[0]: row for row in self._link.rows(_PLACE, numbers, parts)}
        return [
            StoredEvent(
                sequence=sequence,
                event_id=named(facts[event][1]),
                harness=places[event][1],
                session=places[event][2],
                kind=facts[event][2],
                role=facts[event][3],
                content=facts[event][4],
                occurred_at=facts[event][5],
                metadata=values.unpack(facts[event][6]),
                at=places[event][3],
            )
            for sequence, event in rows
        ]
