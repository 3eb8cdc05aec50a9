"""The statements that change workstreams, their sessions, runs and handoffs. Implements `Work`."""

from __future__ import annotations

import time
from collections.abc import Callable

import apsw
import msgspec

from memd import processes
from memd.errors import Refused
from memd.ledger.store.view import View
from memd.ledger.store.workstream_reading import SHOWN, WorkstreamReading
from memd.ledger.store.workstreams import (
    ESTABLISHING,
    Delivery,
    Handoff,
    Linked,
    Moment,
    Place,
    Run,
    Workstream,
)

_encode = msgspec.json.Encoder().encode


def present() -> Moment:
    """The present of this machine."""
    return Moment(boot=processes.boot_id(), ms=processes.boot_ms(), wall_ms=time.time_ns() // 1_000_000)


class Working(WorkstreamReading):
    """Belongs to one transaction of the writer."""

    def __init__(self, connection: apsw.Connection, view: View, clock: Callable[[], Moment]) -> None:
        super().__init__(connection)
        self._view = view
        self._moment = clock()

    @property
    def moment(self) -> Moment:
        return self._moment

    # ----------------------------------------------------------------------------- workstreams

    def put_workstream(self, row: Workstream) -> None:
        place = row.place
        self._connection.execute(
            "insert into workstreams(id, workspace, project, repository, worktree, name, cwd, created_ms,"
            " selected_ms, updated_ms) values(?,?,?,?,?,?,?,?,?,?) on conflict(id) do update set"
            " workspace = excluded.workspace, project = excluded.project, repository = excluded.repository,"
            " worktree = excluded.worktree, name = excluded.name, cwd = excluded.cwd,"
            " created_ms = excluded.created_ms, selected_ms = excluded.selected_ms,"
            " updated_ms = excluded.updated_ms",
            (
                row.id,
                place.workspace,
                place.project,
                place.repository,
                place.worktree,
                row.name,
                row.cwd,
                row.created_ms,
                row.selected_ms,
                row.updated_ms,
            ),
        )

    def bind(self, workstream: str, place: Place) -> None:
        raise Refused(
            "a ledger of one machine keeps a workstream in the checkout that it began in",
            remedy="Go on there, or keep the ledger on a PostgreSQL server: docs/several-machines.md.",
        )

    def move_scope(self, old: tuple[str, str], new: tuple[str, str]) -> tuple[int, int]:
        moved = []
        for table in ("workstreams", "handoffs"):
            self._connection.execute(
                f"update {table} set workspace = ?, project = ? where workspace = ? and project = ?",
                (*new, *old),
            )
            moved.append(self._connection.changes())
        return moved[0], moved[1]

    def drop_workstream(self, workstream: str) -> None:
        self._view.reset()
        self._connection.execute("delete from workstreams where id = ?", (workstream,))

    def put_linked(self, workstream: str, row: Linked) -> None:
        number = self._number(workstream)
        connection = self._connection
        if row.is_current:
            connection.execute(
                "update workstream_sessions set is_current = 0"
                " where workstream = ? and harness = ? and native <> ?",
                (number, row.harness, row.session),
            )
        connection.execute(
            "insert into workstream_sessions(workstream, harness, native, flavor, is_current, told,"
            " linked_ms) values(?,?,?,?,?,?,?) on conflict do update set flavor = excluded.flavor,"
            " is_current = excluded.is_current, told = excluded.told, linked_ms = excluded.linked_ms",
            (number, row.harness, row.session, row.flavor, row.is_current, row.told, row.linked_ms),
        )
        self._view.reset()
        self._view.join(number, row.harness, row.session)

    def drop_linked(self, workstream: str, harness: str, session: str) -> None:
        self._view.reset()
        self._connection.execute(
            "delete from workstream_sessions where workstream = ? and harness = ? and native = ?",
            (self._number(workstream), harness, session),
        )

    def told_further(self, workstream: str, harness: str, session: str, told: int) -> int:
        condition, bindings = self._foreign(harness, session)
        number = self._number(workstream)
        first: int | None = self._connection.execute(
            "select sequence from workstream_events w where workstream = ? and sequence > ?"
            f" and {condition} and {SHOWN.format(parts=self._parts(workstream))} order by sequence limit 1",
            (number, told, *bindings),
        ).get
        if first is not None:
            return first - 1
        last: int = self._connection.execute(
            "select last_sequence from workstreams where n = ?", (number,)
        ).get
        return max(told, last)

    def has_spoken(self, workstream: str, harness: str, session: str, after: int) -> bool:
        kinds = ", ".join(f"'{kind}'" for kind in ESTABLISHING)
        return bool(
            self._connection.execute(
                "select exists(select 1 from workstream_events w join events on events.n = w.event"
                f" where workstream = ? and sequence > ? and kind in ({kinds}) and exists(select 1 from"
                " session_events e join sessions s on s.n = e.session where e.event = w.event"
                " and harness = ? and native = ?))",
                (self._number(workstream), after, harness, session),
            ).get
        )

    # ------------------------------------------------------------------------------------ runs

    def put_run(self, run: Run) -> None:
        agent = run.agent
        self._connection.execute(
            "insert into runs(id, workstream, harness, flavor, state, phase, cwd, launcher_pid,"
            " launcher_start, agent_pid, agent_start, boot, expires_ms, began_ms, ended_ms,"
            " expected, native, made_link,"
            " is_confirmed, is_passing, sync_after, sync_through, is_told, exit_code)"
            " values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) on conflict(id) do update set"
            " harness = excluded.harness, flavor = excluded.flavor, state = excluded.state,"
            " phase = excluded.phase, cwd = excluded.cwd, launcher_pid = excluded.launcher_pid,"
            " launcher_start = excluded.launcher_start, agent_pid = excluded.agent_pid,"
            " agent_start = excluded.agent_start, boot = excluded.boot, expires_ms = excluded.expires_ms,"
            " ended_ms = excluded.ended_ms, expected = excluded.expected, native = excluded.native,"
            " made_link = excluded.made_link, is_confirmed = excluded.is_confirmed,"
            " is_passing = excluded.is_passing, sync_after = excluded.sync_after,"
            " sync_through = excluded.sync_through, is_told = excluded.is_told,"
            " exit_code = excluded.exit_code",
            (
                run.id,
                self._number(run.workstream),
                run.harness,
                run.flavor,
                run.state,
                run.phase,
                run.cwd,
                run.launcher.pid,
                run.launcher.start,
                None if agent is None else agent.pid,
                "" if agent is None else agent.start,
                run.boot,
                run.expires_ms,
                run.began_ms,
                run.ended_ms,
                run.expected,
                run.session,
                run.made_link,
                run.is_confirmed,
                run.is_passing,
                run.sync_after,
                run.sync_through,
                run.is_told,
                run.exit_code,
            ),
        )

    def put_delivery(self, row: Delivery) -> None:
        self._connection.execute(
            "insert or replace into deliveries(run, harness, native, after, through, shown, omitted, first,"
            " at_ms) values((select n from runs where id = ?),?,?,?,?,?,?,?,?)",
            (
                row.run,
                row.harness,
                row.session,
                row.after,
                row.through,
                row.shown,
                row.omitted,
                row.first,
                row.at_ms,
            ),
        )

    def drop_delivery(self, run: str) -> None:
        self._connection.execute(
            "delete from deliveries where run = (select n from runs where id = ?)", (run,)
        )

    # -------------------------------------------------------------------------------- handoffs

    def put_handoff(self, row: Handoff) -> None:
        self._connection.execute(
            "insert into handoffs(id, workspace, project, cwd, workstream, harness, from_harness,"
            " from_session, from_run, is_automatic, summary, lists, state, created_ms, expires_ms,"
            " ended_ms, taken_harness,"
            " taken_session, taken_run) values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
            " on conflict(id) do update set workspace = excluded.workspace, project = excluded.project,"
            " state = excluded.state, ended_ms = excluded.ended_ms,"
            " expires_ms = excluded.expires_ms, taken_harness = excluded.taken_harness,"
            " taken_session = excluded.taken_session, taken_run = excluded.taken_run",
            (
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
            ),
        )
