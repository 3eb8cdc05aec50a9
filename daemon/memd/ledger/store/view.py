"""The ordered views of workstreams: which events join, and in what order. Inside the writer's transactions.

`take` follows each batch: what now stands in the main line of a linked session, and had no sequence, gets the
next one. `join` does the same for a session as a whole, when it is linked. Both may be repeated at any time:
an event that has a sequence keeps it. A session that was forked from another one shows that one's beginning
too, so what comes to that one below the fork joins as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import apsw
import msgspec

from memd.ledger.store import database
from memd.ledger.store.interface import Batch
from memd.ledger.store.planning import Facts, Plan
from memd.ledger.store.reading import Reading
from memd.ledger.store.workstreams import RunGone


class _Interest(msgspec.Struct, frozen=True):
    """A workstream with a linked session that shows another session up to a place in its source.

    until  0: it is the linked session itself, all of it
    """

    workstream: int
    linked: str
    until: int


class View:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._reading = Reading(connection)
        self._watched: dict[tuple[str, str], list[_Interest]] | None = None
        self._stitched: set[tuple[str, str]] = set()

    def reset(self) -> None:
        """Links have changed, or a transaction has not come to its end."""
        self._watched = None
        self._stitched.clear()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """What is remembered stays only if the transaction inside comes to its end."""
        is_in = False
        try:
            yield
            is_in = True
        finally:
            if not is_in:
                self.reset()

    def take(self, batch: Batch, plan: Plan) -> None:
        """Give sequences to what a batch brought into linked sessions, and to all that is said of a run.

        The batch's rows are in. raises RunGone
        """
        run = self._workstream_of(batch.run) if batch.run else 0
        for facts in plan.touched.values():
            known = self._watchers().get((batch.harness, facts.native), [])
            if known and facts.forked_from and (batch.harness, facts.native) not in self._stitched:
                self._watched = None  # where it comes from may not have been known before
                for one in known:
                    self.join(one.workstream, batch.harness, one.linked)
                self._stitched.add((batch.harness, facts.native))
            if not known and not run:
                continue
            places = self._places(plan, facts)
            for one in known:
                self._add(one.workstream, [event for event, at in places if not one.until or at < one.until])
            if run:
                self._add(run, [event for event, _at in places])

    def join(self, workstream: int, harness: str, native: str) -> None:
        """All that stands in the main line of a session, what it shares with its ancestors first."""
        for session, _name, until in self._reading.parts(harness, native):
            rows = database.fetch(
                self._connection,
                "select event from session_events where session = ? and is_side = 0"
                " and (? = 0 or at < ?) order by position",
                (session, until, until),
            )
            self._add(workstream, [event for (event,) in rows])

    def join_all(self) -> None:
        """Every linked session once more, for when rows were made anew; a transaction of its own."""
        with self.kept(), database.transaction(self._connection):
            for workstream, harness, native in self._links():
                self.join(workstream, harness, native)

    # ------------------------------------------------------------------------------------------

    def _workstream_of(self, run: str) -> int:
        """The workstream of an active run."""
        found: int | None = self._connection.execute(
            "select workstream from runs where id = ? and state = 'active'", (run,)
        ).get
        if found is None:
            raise RunGone(f"run {run} is over")
        return found

    def _links(self) -> list[tuple[int, str, str]]:
        return [
            (workstream, harness, native)
            for workstream, harness, native in database.fetch(
                self._connection,
                "select workstream, harness, native from workstream_sessions order by workstream, linked_ms",
            )
        ]

    def _watchers(self) -> dict[tuple[str, str], list[_Interest]]:
        """Who is to be told when something comes to a session."""
        if self._watched is None:
            self._watched = {}
            for workstream, harness, native in self._links():
                ancestors = [
                    (name, until) for _n, name, until in self._reading.parts(harness, native) if until
                ]
                for name, until in [(native, 0), *ancestors]:
                    interest = _Interest(workstream, native, until)
                    self._watched.setdefault((harness, name), []).append(interest)
        return self._watched

    def _places(self, plan: Plan, facts: Facts) -> list[tuple[int, int]]:
        """What of a session a batch put into its main line, in order: event and place in the source."""
        positions = {position for session, position, *_rest in plan.standings if session == facts.n}
        positions.update(
            position for side, session, position in plan.turned if session == facts.n and not side
        )
        found: list[tuple[int, int]] = []
        for position in sorted(positions):
            rows = database.fetch(
                self._connection,
                "select event, at from session_events where session = ? and position = ? and is_side = 0",
                (facts.n, position),
            )
            found += [(event, at) for event, at in rows]
        return found

    def _add(self, workstream: int, events: Iterable[int]) -> None:
        connection = self._connection
        last: int = connection.execute("select last_sequence from workstreams where n = ?", (workstream,)).get
        sequence = last
        for event in events:
            known = connection.execute(
                "select 1 from workstream_events where event = ? and workstream = ?", (event, workstream)
            ).get
            if known is None:
                sequence += 1
                connection.execute(
                    "insert into workstream_events(workstream, sequence, event) values(?, ?, ?)",
                    (workstream, sequence, event),
                )
        if sequence != last:
            connection.execute("update workstreams set last_sequence = ? where n = ?", (sequence, workstream))
