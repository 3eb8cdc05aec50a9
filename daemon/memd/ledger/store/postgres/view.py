"""The ordered views of workstreams on the server: which events join, and in what order.

The rules are those of one machine. Who looks at a session is asked anew for every batch, since another
machine may have linked it a moment ago. Inside a transaction that has the lock of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable

from memd.ledger.store.interface import Batch
from memd.ledger.store.planning import Facts, Plan
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.reading import MAX_FORKS, Reading
from memd.ledger.store.postgres.values import key_of
from memd.ledger.store.workstreams import RunGone

Interest = tuple[int, str, int]
"""A workstream, its linked session, and up to which place that one shows the session in question; 0: it is
the linked one itself."""


class View:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._reading = Reading(link)

    def take(self, batch: Batch, plan: Plan) -> None:
        """Give sequences to what a batch brought into linked sessions, and to all that is said of a run.

        The batch's rows are in. raises RunGone
        """
        run = self._workstream_of(batch.run) if batch.run else 0
        watchers = self._watchers(batch.harness, plan.touched.values())
        for facts in plan.touched.values():
            known = watchers.get(facts.native, [])
            if known and facts.forked_from and facts.native in plan.told:
                for workstream, linked, _until in known:
                    self.join(workstream, batch.harness, linked)
            if not known and not run:
                continue
            places = self._places(plan, facts)
            for workstream, _linked, until in known:
                self._add(workstream, [event for event, at in places if not until or at < until])
            if run:
                self._add(run, [event for event, _at in places])

    def join(self, workstream: int, harness: str, native: str) -> None:
        """All that stands in the main line of a session, what it shares with its ancestors first."""
        for session, _name, until in self._reading.parts(harness, native):
            rows = self._link.rows(
                "select event from session_events where session = %s and not is_side"
                " and (%s = 0 or at < %s) order by position",
                session,
                until,
                until,
            )
            self._add(workstream, [event for (event,) in rows])

    def _workstream_of(self, run: str) -> int:
        found: int | None = self._link.value(
            "select workstream from runs where id = %s and state = 'active'", run
        )
        if found is None:
            raise RunGone(f"run {run} is over")
        return found

    def _watchers(self, harness: str, touched: Iterable[Facts]) -> dict[str, list[Interest]]:
        """Who is to be told when something comes to these sessions."""
        natives = {facts.native for facts in touched}
        if not natives:
            return {}
        below: dict[str, tuple[str, int]] = {}  # of a fork where it comes from
        fresh = set(natives)
        for _ in range(MAX_FORKS):
            rows = self._link.rows(
                "select native, forked_from, forked_at from sessions where forked_key = any(%s)",
                [key_of(harness, native) for native in fresh],
            )
            fresh = {native for native, _from, _at in rows} - below.keys()
            below.update({native: (parent, at) for native, parent, at in rows})
            if not fresh:
                break
        linked = self._link.rows(
            "select workstream, native from workstream_sessions where harness = %s"
            " and native_key = any(%s) order by workstream, linked_ms",
            harness,
            [key_of(native) for native in natives | below.keys()],
        )
        found: dict[str, list[Interest]] = {}
        for workstream, native in linked:
            if native in natives:
                found.setdefault(native, []).append((workstream, native, 0))
            child, seen = native, {native}
            while child in below:
                parent, at = below[child]
                if parent in seen or not at:
                    break
                seen.add(parent)
                if parent in natives:
                    found.setdefault(parent, []).append((workstream, native, at))
                child = parent
        return found

    def _places(self, plan: Plan, facts: Facts) -> list[tuple[int, int]]:
        """What of a session a batch put into its main line, in order: event and place in the source."""
        positions = {position for session, position, *_rest in plan.standings if session == facts.n}
        positions.update(
            position for side, session, position in plan.turned if session == facts.n and not side
        )
        if not positions:
            return []
        rows = self._link.rows(
            "select event, at from session_events where session = %s and position = any(%s) and not is_side"
            " order by position",
            facts.n,
            sorted(positions),
        )
        return [(event, at) for event, at in rows]

    def _add(self, workstream: int, events: Iterable[int]) -> None:
        wanted = list(dict.fromkeys(events))
        if not wanted:
            return
        there = {
            event
            for (event,) in self._link.rows(
                "select event from workstream_events where workstream = %s and event = any(%s)",
                workstream,
                wanted,
            )
        }
        new = [event for event in wanted if event not in there]
        if not new:
            return
        last: int = self._link.value("select last_sequence from workstreams where n = %s", workstream)
        self._link.many(
            "insert into workstream_events(workstream, sequence, event) values(%s,%s,%s)",
            ((workstream, last + count, event) for count, event in enumerate(new, 1)),
        )
        self._link.run("update workstreams set last_sequence = %s where n = %s", last + len(new), workstream)
