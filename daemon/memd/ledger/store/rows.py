"""The statements that write. Each expects to be inside a transaction of the writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from memd.ledger.store import database
from memd.ledger.store.interface import GROUP_BYTES, Batch
from memd.ledger.store.planning import Facts, Plan

TOGETHER: Final = GROUP_BYTES
"""Characters that the index takes at once: some ten milliseconds, in which nobody else gets the writer."""

_BEGUN = (
    "insert into sessions(n, harness, native, checkout, title, title_from, started, last_activity, version,"
    " is_side, parent, forked_from, forked_at, last_position, events, side_events)"
    " values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_CHANGED = (
    "update sessions set title = ?, title_from = ?, started = ?, last_activity = ?, version = ?, is_side = ?,"
    " parent = ?, forked_from = ?, forked_at = ?, last_position = ?, events = ?, side_events = ? where n = ?"
)


class Words:
    """What goes into the index, put there many at a time: it works in the processor's cache then."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[int, str, str]] = []
        self._size = 0

    def add(self, rows: Sequence[tuple[int, str, str]]) -> None:
        """rows: number, text, scope"""
        self._waiting += rows
        self._size += sum([len(content) for _n, content, _scope in rows])
        if self._size >= TOGETHER:
            self.put()

    def put(self) -> None:
        """To be called before anything in the index changes, and at the end."""
        if self._waiting:
            self._waiting.sort()  # a step back makes the index write what it has gathered
            self._connection.executemany(
                "insert into event_text(rowid, content, scope) values(?,?,?)", self._waiting
            )
            self._waiting.clear()
            self._size = 0


def put(connection: apsw.Connection, batch: Batch, plan: Plan, segment: int, words: Words) -> None:
    """Everything a batch comes to, but for `place` and what is left in `words`."""
    many = connection.executemany
    many("insert into checkouts(n, path) values(?, ?)", plan.checkouts)
    _put_sessions(connection, batch.harness, plan)
    if plan.events:
        many("insert into events values(?,?,?,?,?,?,?,?)", plan.events)
        words.add([(row[0], row[7], row[6]) for row in plan.events])
    if plan.gone or plan.moved or plan.widened:
        words.put()
    many(
        "insert into session_events(session, position, is_side, event, at, segment) values(?,?,?,?,?,?)",
        ((*standing, segment) for standing in plan.standings),
    )
    if plan.turned:
        many("update session_events set is_side = ? where session = ? and position = ?", plan.turned)
    if plan.gone:
        take_out(connection, plan.gone)
    for session, checkout in plan.moved:
        _learn_checkout(connection, session, checkout)
    for event, checkouts in plan.widened.items():
        widen(connection, event, checkouts)
    if plan.told:
        many(
            "insert or ignore into session_lines(session, segment) values(?, ?)",
            ((plan.touched[native].n, segment) for native in plan.told),
        )
    if batch.is_restart:
        connection.execute(
            "delete from losses where source = ? and session in (select n from sessions where harness = ?)",
            (batch.source, batch.harness),
        )
    if plan.losses:
        many(
            "insert into losses(session, what, source, sentence, count) values(?,?,?,?,?)"
            " on conflict do update set sentence = excluded.sentence, count = excluded.count",
            plan.losses,
        )
    if batch.source:
        connection.execute(
            "insert into cursors(source, value) values(?, ?)"
            " on conflict do update set value = excluded.value",
            (batch.source, batch.cursor),
        )


def _put_sessions(connection: apsw.Connection, harness: str, plan: Plan) -> None:
    begun, changed = [], []
    for native, facts in plan.touched.items():
        if native in plan.begun:
            begun.append((facts.n, harness, native, facts.checkout, *_session_row(facts)))
        else:
            changed.append((*_session_row(facts), facts.n))
    connection.executemany(_BEGUN, begun)
    connection.executemany(_CHANGED, changed)


def place(connection: apsw.Connection, places: Sequence[tuple[int, int]]) -> None:
    """Note the directories (checkout, session) that were learnt of sessions known before; after all batches
    of a transaction.

    A statement that changes what refers to another table can be taken back alone, and before it the index
    writes what it has gathered, as one more piece.
    """
    if places:
        connection.executemany("update sessions set checkout = ? where n = ?", places)


def _session_row(facts: Facts) -> tuple[object, ...]:
    return (
        facts.title,
        facts.title_from,
        facts.started,
        facts.last_activity,
        facts.version,
        int(facts.is_side),
        facts.parent,
        facts.forked_from,
        facts.forked_at,
        facts.last_position,
        facts.events,
        facts.side_events,
    )


def take_out(connection: apsw.Connection, places: Iterable[tuple[int, int, int]]) -> None:
    """Take events from places (session, position, event); what stands nowhere any more goes."""
    for session, position, event in places:
        connection.execute(
            "delete from session_events where session = ? and position = ?", (session, position)
        )
        if not connection.execute(
            "select exists(select 1 from session_events where event = ?)", (event,)
        ).get:
            drop_event(connection, event)


def drop_event(connection: apsw.Connection, event: int) -> None:
    """Take one event out of index and table. It must stand nowhere."""
    row = connection.execute("select scope, content from events where n = ?", (event,)).fetchone()
    if row is None:
        return
    unindex(connection, event, *row)
    connection.execute("delete from events where n = ?", (event,))


def unindex(connection: apsw.Connection, event: int, scope: str, content: str) -> None:
    """An external-content index must be told the very text it was given."""
    connection.execute(
        "insert into event_text(event_text, rowid, scope, content) values('delete', ?, ?, ?)",
        (event, scope, content),
    )


def widen(connection: apsw.Connection, event: int, checkouts: Iterable[int]) -> None:
    """Let a search in these directories find the event too."""
    row = connection.execute("select scope, content from events where n = ?", (event,)).fetchone()
    if row is None:
        return
    scope, content = row
    wider = rescope(connection, event, checkouts)
    if wider == scope:
        return
    unindex(connection, event, scope, content)
    connection.execute(
        "insert into event_text(rowid, scope, content) values(?, ?, ?)", (event, wider, content)
    )


def rescope(connection: apsw.Connection, event: int, checkouts: Iterable[int]) -> str:
    """Add checkouts to the scope of an event, but not to the index; gives the scope it has now."""
    scope: str = connection.execute("select scope from events where n = ?", (event,)).get
    missing = [f"c{checkout}" for checkout in sorted(checkouts) if f"c{checkout}" not in scope.split()]
    if missing:
        scope = " ".join([scope, *missing])
        connection.execute("update events set scope = ? where n = ?", (scope, event))
    return scope


def _learn_checkout(connection: apsw.Connection, session: int, checkout: int) -> None:
    """The directory of a session came after its first events."""
    events = list(
        database.fetch(
            connection,
            "select distinct event from session_events where session = ? order by event",
            (session,),
        )
    )
    for (event,) in events:
        widen(connection, event, (checkout,))


def put_segment(connection: apsw.Connection, number: int, harness: str) -> None:
    """Make a segment known; how far it reaches is for `mark_segment` to say."""
    connection.execute(
        "insert or ignore into segments(n, harness, bytes, state) values(?, ?, 0, 'open')", (number, harness)
    )


def mark_segment(connection: apsw.Connection, number: int, size: int, *, is_full: bool) -> None:
    """Note how far a segment reaches now."""
    connection.execute(
        "update segments set bytes = ?, state = ? where n = ?",
        (size, "closed" if is_full else "open", number),
    )


def close_segment(connection: apsw.Connection, number: int) -> None:
    """Nothing is appended to it any more; it waits to be sealed."""
    connection.execute("update segments set state = 'closed' where n = ? and state = 'open'", (number,))
