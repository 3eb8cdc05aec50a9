"""Taking events out of the ledger on the server for good, in steps that a kill may fall between.

    written   the rules, and what is to go, in one transaction; handoffs are gone with it
    rows      events by the slice: hash noted, views, places and row deleted, in one transaction each
    sessions  what is left without events goes; the titles of the others are made anew
    pages     the server is asked to clean its pages (`vacuum`)

What the server keeps of rows that are gone, in its log and in backups, is for whoever runs it. A machine that
still holds something of it in its queue is told by the rules, and by the hashes, when it brings it.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import Any, Final

from memd.ledger import forget, search
from memd.ledger.store.interface import Forgetting, Selection
from memd.ledger.store.planning import title_of
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.finding import Finder
from memd.ledger.store.postgres.knowing import Forgotten
from memd.ledger.store.postgres.reading import below
from memd.ledger.store.postgres.values import key_of, named

SLICE_EVENTS: Final = 200
SLICE_SESSIONS: Final = 100
MAX_NAMED: Final = 1000

_JOINED = (
    "session_events e join sessions s on s.n = e.session left join checkouts c on c.n = s.checkout"
    " join events on events.n = e.event"
)


class Forgetter:
    """Works inside transactions of the writer, but for `clean`."""

    def __init__(self, link: Link, forgotten: Forgotten, finder: Finder) -> None:
        self._link = link
        self._forgotten = forgotten
        self._finder = finder

    def plan(self, selection: Selection) -> Forgetting:
        chosen = forget.checked(selection)
        return self._forgetting(chosen, self._chosen(chosen))

    def begin(self, selection: Selection) -> Forgetting:
        chosen = forget.checked(selection)
        link = self._link
        events = self._chosen(chosen)
        found = self._forgetting(chosen, events)
        if not bytes(link.value("select forget_secret from ledger")):
            link.run("update ledger set forget_secret = %s", secrets.token_bytes(32))
        link.run("update ledger set forgotten = forgotten + 1")
        self._forgotten.reset()
        self._forgotten.load(link.value("select forgotten from ledger"))
        link.many(
            "insert into forget_events(event) values(%s) on conflict(event) do nothing",
            ((event,) for event in events),
        )
        link.many(
            "insert into forget_rules(what, hash, until) values(%s,%s,%s)"
            " on conflict(what, hash, until) do nothing",
            (
                (rule.what, self._forgotten.hash_of(rule.what, *rule.parts), rule.until)
                for rule in forget.rules(chosen, time.time())
            ),
        )
        link.run(
            "insert into forget_sessions(session) select distinct session from session_events"
            " where event in (select event from forget_events) on conflict(session) do nothing"
        )
        if not chosen.matching and not chosen.before:
            condition, bindings = self._sessions(chosen)
            link.run(
                "insert into forget_sessions(session) select s.n from sessions s"
                f" left join checkouts c on c.n = s.checkout where {condition}"
                " on conflict(session) do nothing",
                *bindings,
            )
        link.run("delete from handoffs where n = any(%s)", self._handoffs(chosen))
        self._forgotten.reset()
        return found

    def _sessions(self, chosen: Selection) -> tuple[str, list[Any]]:
        conditions, bindings = ["true"], list[Any]()
        if chosen.harness:
            conditions.append("s.harness = %s")
            bindings.append(search.clean(chosen.harness))
        if chosen.session:
            conditions.append("s.native_key = %s")
            bindings.append(key_of(search.clean(chosen.session)))
        if chosen.project:
            condition, paths = below(chosen.project)
            conditions.append(f"path is not null and {condition}")
            bindings.extend(paths)
        return " and ".join(conditions), bindings

    def _chosen(self, chosen: Selection) -> list[int]:
        """The numbers of the events that all of it applies to."""
        condition, bindings = self._sessions(chosen)
        must_hold = None
        columns = "events.n"
        if chosen.matching:
            matching, words, must_hold = self._finder.matching(chosen.matching)
            condition += f" and {matching}"
            bindings += words
            columns += ", case when is_long then content else '' end, is_long"
        if chosen.before:
            condition += " and occurred_s < %s"
            bindings.append(search.instant(chosen.before))
        rows = self._link.rows(f"select distinct {columns} from {_JOINED} where {condition}", *bindings)
        if must_hold is not None:
            rows = [row for row in rows if not row[2] or must_hold(row[1])]
        return sorted(row[0] for row in rows)

    def _forgetting(self, chosen: Selection, events: list[int]) -> Forgetting:
        names = self._link.rows(
            "select distinct harness, native from session_events e join sessions s on s.n = e.session"
            " where event = any(%s)",
            events,
        )
        condition, bindings = self._sessions(chosen)
        elsewhere = self._link.value(
            f"select count(distinct events.n) from {_JOINED} where e.event = any(%s)"
            f" and not coalesce(({condition}), false)",
            events,
            *bindings,
        )
        return Forgetting(
            events=len(events),
            session_count=len(names),
            segments=0,
            sessions=sorted((harness, native) for harness, native in names)[:MAX_NAMED],
            elsewhere=elsewhere,
            handoffs=len(self._handoffs(chosen)),
        )

    def _handoffs(self, chosen: Selection) -> list[int]:
        conditions, bindings = ["true"], list[Any]()
        if chosen.harness:
            conditions.append("from_harness = %s")
            bindings.append(search.clean(chosen.harness))
        if chosen.session:
            conditions.append("from_session = %s")
            bindings.append(search.clean(chosen.session))
        if chosen.before:
            conditions.append("created_ms < %s")
            bindings.append((search.instant(chosen.before) or 0.0) * 1000)
        rows = self._link.rows(
            f"select n, cwd, summary, lists from handoffs where {' and '.join(conditions)}", *bindings
        )
        place = search.clean(chosen.project).encode("utf-8")
        inside = place.rstrip(b"/") + b"/"
        found = []
        for n, cwd, summary, lists in rows:
            if place and bytes(cwd) != place and not bytes(cwd).startswith(inside):
                continue
            if chosen.matching and not self._finder.holds(f"{summary}\n{lists}", chosen.matching):
                continue
            found.append(n)
        return found

    # ---------------------------------------------------------------------------- doing

    def is_pending(self) -> bool:
        return bool(
            self._link.value(
                "select exists(select 1 from forget_events) or exists(select 1 from forget_sessions)"
            )
        )

    def step(self) -> bool:
        """One slice; False when there is none left."""
        return self._drop_events() or self._settle_sessions()

    def _drop_events(self) -> bool:
        link = self._link
        rows = link.rows(
            "select f.event, id from forget_events f left join events on n = f.event"
            " order by f.event limit %s",
            SLICE_EVENTS,
        )
        if not rows:
            return False
        numbers = [n for n, _id in rows]
        link.many(
            "insert into forget_ids(hash) values(%s) on conflict(hash) do nothing",
            ((self._forgotten.hash_of("event", named(id)),) for _n, id in rows if id is not None),
        )
        for column, side in (("events", "not is_side"), ("side_events", "is_side")):
            link.run(
                f"update sessions set {column} = {column} - d.gone from (select session, count(*) as gone"
                f" from session_events where event = any(%s) and {side} group by session) d"
                " where sessions.n = d.session",
                numbers,
            )
        link.run("delete from session_events where event = any(%s)", numbers)
        link.run("delete from events where n = any(%s)", numbers)
        link.run("delete from forget_events where event = any(%s)", numbers)
        link.run("update ledger set forgotten = forgotten + 1")
        return True

    def _settle_sessions(self) -> bool:
        link = self._link
        rows = link.rows("select session from forget_sessions limit %s", SLICE_SESSIONS)
        for (session,) in rows:
            has_events = link.value("select exists(select 1 from session_events where session = %s)", session)
            if has_events:
                first = link.value(
                    "select content from session_events join events on events.n = event where session = %s"
                    " and not is_side and role = 'user' and kind = 'message' order by position limit 1",
                    session,
                )
                link.run(
                    "update sessions set title = %s, title_from = 'forgotten' where n = %s",
                    title_of(first or ""),
                    session,
                )
            else:
                link.run("delete from sessions where n = %s", session)
            link.run("delete from forget_sessions where session = %s", session)
        return bool(rows)

    def clean(self) -> None:
        """Outside a transaction. A server that cleans by itself, or forbids it, is left alone."""
        with contextlib.suppress(Exception):
            self._link.run("vacuum events")
