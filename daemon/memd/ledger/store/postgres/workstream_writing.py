"""The statements that change workstreams, their sessions, runs and handoffs. Implements `Work`.

Inside a transaction that has the lock of the ledger. Its moment is the server's: no clock of a machine
matters. A process of this machine is written down with this machine's boot, as its number means nothing after
the next one.
"""

from __future__ import annotations

import msgspec

from memd import processes
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.values import key_of
from memd.ledger.store.postgres.view import View
from memd.ledger.store.postgres.workstream_reading import KINDS, SHOWN, WorkstreamReading
from memd.ledger.store.workstreams import Delivery, Handoff, Linked, Moment, Place, Run, Workstream

_encode = msgspec.json.Encoder().encode


class Working(WorkstreamReading):
    """Belongs to one transaction of the writer."""

    def __init__(self, link: Link, machine: str, moment: Moment) -> None:
        super().__init__(link, machine)
        self._is_inside = True
        self._moment = moment
        self._view = View(link)

    @property
    def moment(self) -> Moment:
        return self._moment

    def _next(self, table: str) -> int:
        found: int = self._link.value(f"select coalesce(max(n), 0) + 1 from {table}")
        return found

    # ----------------------------------------------------------------------------- workstreams

    def put_workstream(self, row: Workstream) -> None:
        place = row.place
        number = self._number(row.id)
        if not number:
            number = self._next("workstreams")
            self._link.run(
                "insert into workstreams(n, id, name, cwd, created_ms, selected_ms, updated_ms)"
                " values(%s,%s,%s,%s,%s,%s,%s)",
                number,
                row.id,
                row.name,
                row.cwd,
                row.created_ms,
                row.selected_ms,
                row.updated_ms,
            )
            self._put_place(number, place, row.name)
            return
        self._link.run(
            "update workstreams set name = %s, cwd = %s, created_ms = %s, selected_ms = %s, updated_ms = %s"
            " where n = %s",
            row.name,
            row.cwd,
            row.created_ms,
            row.selected_ms,
            row.updated_ms,
            number,
        )
        self._link.run(
            "update workstream_places set name = %s where workstream = %s and name <> %s",
            row.name,
            number,
            row.name,
        )

    def _put_place(self, number: int, place: Place, name: str) -> None:
        self._link.run(
            "insert into workstream_places(workstream, machine, workspace, project, repository, worktree,"
            " name, bound_ms) values(%s,%s,%s,%s,%s,%s,%s,%s)",
            number,
            self._machine,
            place.workspace,
            place.project,
            place.repository,
            place.worktree,
            name,
            self._moment.wall_ms,
        )

    def bind(self, workstream: str, place: Place) -> None:
        number = self._number(workstream)
        name = self._link.value("select name from workstreams where n = %s", number)
        self._link.run(
            "delete from workstream_places where workstream = %s and machine = %s and worktree = %s",
            number,
            self._machine,
            place.worktree,
        )
        self._put_place(number, place, name)

    def move_scope(self, old: tuple[str, str], new: tuple[str, str]) -> tuple[int, int]:
        count = self._link.value(
            "select count(distinct workstream) from workstream_places where workspace = %s and project = %s",
            *old,
        )
        self._link.run(
            "update workstream_places set workspace = %s, project = %s where workspace = %s and project = %s",
            *new,
            *old,
        )
        handoffs = self._link.run(
            "update handoffs set workspace = %s, project = %s where workspace = %s and project = %s",
            *new,
            *old,
        )
        return count, handoffs

    def drop_workstream(self, workstream: str) -> None:
        self._link.run("delete from workstreams where id = %s", workstream)

    def put_linked(self, workstream: str, row: Linked) -> None:
        number = self._number(workstream)
        key = key_of(row.session)
        if row.is_current:
            self._link.run(
                "update workstream_sessions set is_current = false"
                " where workstream = %s and harness = %s and native_key <> %s",
                number,
                row.harness,
                key,
            )
        self._link.run(
            "insert into workstream_sessions(workstream, harness, native_key, native, flavor, is_current,"
            " told, linked_ms) values(%s,%s,%s,%s,%s,%s,%s,%s)"
            " on conflict(workstream, harness, native_key) do update set flavor = excluded.flavor,"
            " is_current = excluded.is_current, told = excluded.told, linked_ms = excluded.linked_ms",
            number,
            row.harness,
            key,
            row.session,
            row.flavor,
            row.is_current,
            row.told,
            row.linked_ms,
        )
        self._view.join(number, row.harness, row.session)

    def drop_linked(self, workstream: str, harness: str, session: str) -> None:
        self._link.run(
            "delete from workstream_sessions where workstream = %s and harness = %s and native_key = %s",
            self._number(workstream),
            harness,
            key_of(session),
        )

    def told_further(self, workstream: str, harness: str, session: str, told: int) -> int:
        condition, bindings = self._foreign(harness, session)
        number, parts = self._number(workstream), self._parts(workstream)
        first: int | None = self._link.value(
            "select sequence from workstream_events w where workstream = %s and sequence > %s"
            f" and {condition} and {SHOWN} order by sequence limit 1",
            number,
            told,
            *bindings,
            parts,
            parts,
        )
        if first is not None:
            return first - 1
        last: int = self._link.value("select last_sequence from workstreams where n = %s", number)
        return max(told, last)

    def has_spoken(self, workstream: str, harness: str, session: str, after: int) -> bool:
        return bool(
            self._link.value(
                "select exists(select 1 from workstream_events w join events on events.n = w.event"
                f" where workstream = %s and sequence > %s and kind in ({KINDS}) and exists(select 1 from"
                " session_events e join sessions s on s.n = e.session where e.event = w.event"
                " and s.key = %s))",
                self._number(workstream),
                after,
                key_of(harness, session),
            )
        )

    # ------------------------------------------------------------------------------------ runs

    def put_run(self, run: Run) -> None:
        agent = run.agent
        known = self._link.row("select n, machine from runs where id = %s", run.id)
        fields: dict[str, object] = {
            "harness": run.harness,
            "flavor": run.flavor,
            "state": run.state,
            "phase": run.phase,
            "cwd": run.cwd,
            "boot": run.boot,
            "expires_ms": run.expires_ms,
            "ended_ms": run.ended_ms,
            "expected": run.expected,
            "native": run.session,
            "made_link": run.made_link,
            "is_confirmed": run.is_confirmed,
            "is_passing": run.is_passing,
            "sync_after": run.sync_after,
            "sync_through": run.sync_through,
            "is_told": run.is_told,
            "exit_code": run.exit_code,
        }
        if known is None or known[1] == self._machine:
            # who holds a run of another machine is for that one to say
            fields |= {
                "launcher_pid": run.launcher.pid,
                "launcher_start": run.launcher.start,
                "agent_pid": None if agent is None else agent.pid,
                "agent_start": "" if agent is None else agent.start,
            }
        if known is not None:
            names = ", ".join(f"{name} = %s" for name in fields)
            self._link.run(f"update runs set {names} where n = %s", *fields.values(), known[0])
            return
        fields |= {
            "n": self._next("runs"),
            "id": run.id,
            "workstream": self._number(run.workstream),
            "machine": self._machine,
            "machine_boot": processes.boot_id(),
            "began_ms": run.began_ms,
        }
        marks = ",".join("%s" for _ in fields)
        self._link.run(f"insert into runs({', '.join(fields)}) values({marks})", *fields.values())

    def put_delivery(self, row: Delivery) -> None:
        self.drop_delivery(row.run)
        self._link.run(
            "insert into deliveries(run, harness, native, after, through, shown, omitted, first, at_ms)"
            " values((select n from runs where id = %s),%s,%s,%s,%s,%s,%s,%s,%s)",
            row.run,
            row.harness,
            row.session,
            row.after,
            row.through,
            row.shown,
            row.omitted,
            row.first,
            row.at_ms,
        )

    def drop_delivery(self, run: str) -> None:
        self._link.run("delete from deliveries where run = (select n from runs where id = %s)", run)

    # -------------------------------------------------------------------------------- handoffs

    def put_handoff(self, row: Handoff) -> None:
        changed = self._link.run(
            "update handoffs set workspace = %s, project = %s, state = %s, ended_ms = %s, expires_ms = %s,"
            " taken_harness = %s, taken_session = %s, taken_run = %s where id = %s",
            row.workspace,
            row.project,
            row.state,
            row.ended_ms,
            row.expires_ms,
            row.taken_harness,
            row.taken_session,
            row.taken_run,
            row.id,
        )
        if changed:
            return
        self._link.run(
            "insert into handoffs(n, id, workspace, project, cwd, workstream, harness, from_harness,"
            " from_session, from_run, is_automatic, summary, lists, state, created_ms, expires_ms,"
            " ended_ms, taken_harness, taken_session, taken_run)"
            " values(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)",
            self._next("handoffs"),
            row.id,
            row.workspace,
            row.project,
            row.cwd,
            row.workstream,
            row.harness,
            row.from_harness,
            row.from_session,
            row.from_run,
            row.is_automatic,
            row.summary,
            _encode((row.questions, row.steps, row.files)).decode(),
            row.state,
            row.created_ms,
            row.expires_ms,
            row.ended_ms,
            row.taken_harness,
            row.taken_session,
            row.taken_run,
        )
