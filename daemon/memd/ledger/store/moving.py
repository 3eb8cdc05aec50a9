"""What a copy of a whole ledger asks of an engine besides: numbers of views, all runs, what was forgotten.

Only `copying` needs it. `Moving` asks of a reader or of a transaction; `put_*` only inside one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from memd.errors import Refused
from memd.ledger.store import database, values
from memd.ledger.store.schema import BY_ID
from memd.ledger.store.scope import key, probe, spelled
from memd.ledger.store.workstream_reading import RUN, WorkstreamReading
from memd.ledger.store.workstreams import Handoff, Run


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What must never come back, as it is written down. rules: what, hash, until; ids: hashes of events"""

    secret: bytes = b""
    rules: Sequence[tuple[str, bytes, str]] = ()
    ids: Sequence[bytes] = ()


class Moving(Protocol):
    def numbers(self, workstream: str) -> list[tuple[int, str]]:
        """The sequences of a view with the ids of their events, also of what is not shown."""

    def runs_of(self, workstream: str) -> list[Run]:
        """All its runs, oldest first."""

    def all_handoffs(self) -> list[Handoff]:
        """Those of every scope, oldest first."""

    def record(self) -> Record: ...

    def put_numbers(self, workstream: str, rows: Sequence[tuple[int, str]]) -> None:
        """Give these events these sequences, where neither is taken. The events are there."""

    def put_record(self, record: Record) -> None:
        """Add to what must never come back. raises Refused when it is kept under another secret here"""


class SqliteMoving:
    def __init__(self, looking: WorkstreamReading) -> None:
        self._looking = looking
        self._connection = looking._connection

    def numbers(self, workstream: str) -> list[tuple[int, str]]:
        rows = database.fetch(
            self._connection,
            "select sequence, id from workstream_events join events on events.n = event where workstream = ?"
            " order by sequence",
            (self._looking._number(workstream),),
        )
        return [(sequence, spelled(stored)) for sequence, stored in rows]

    def runs_of(self, workstream: str) -> list[Run]:
        rows = self._connection.execute(RUN + " where w.id = ? order by r.n", (workstream,))
        return [values.run(row) for row in rows]

    def all_handoffs(self) -> list[Handoff]:
        return [values.handoff(row) for row in self._connection.execute(values.HANDOFF + " order by n")]

    def record(self) -> Record:
        connection = self._connection
        rules = database.fetch(connection, "select what, hash, until from forget_rules")
        return Record(
            secret=connection.execute("select value from meta where key = 'forget_secret'").get or b"",
            rules=[(what, digest, until) for what, digest, until in rules],
            ids=[digest for (digest,) in database.fetch(connection, "select hash from forget_ids")],
        )

    def put_numbers(self, workstream: str, rows: Sequence[tuple[int, str]]) -> None:
        number = self._looking._number(workstream)
        for sequence, event in rows:
            self._connection.execute(
                "insert or ignore into workstream_events(workstream, sequence, event)"
                f" select ?, ?, n from events where {BY_ID}",
                (number, sequence, *probe(key(event))),
            )
        self._connection.execute(
            "update workstreams set last_sequence = max(last_sequence, coalesce((select max(sequence)"
            " from workstream_events where workstream = n), 0)) where n = ?",
            (number,),
        )

    def put_record(self, record: Record) -> None:
        connection = self._connection
        mine = connection.execute("select value from meta where key = 'forget_secret'").get
        if not may_take(record, mine or b""):
            return
        connection.execute("insert or ignore into meta values('forget_secret', ?)", (record.secret,))
        connection.executemany("insert or ignore into forget_rules values(?, ?, ?)", record.rules)
        connection.executemany("insert or ignore into forget_ids values(?)", ((one,) for one in record.ids))


def may_take(record: Record, mine: bytes) -> bool:
    """Whether there is something to take. raises Refused for what is kept under another secret than `mine`"""
    if not record.rules and not record.ids:
        return False
    if mine and mine != record.secret:
        raise Refused(
            "both ledgers have forgotten something, each under its own secret: neither can read the other's",
            remedy="Forget the same in the ledger that you migrate to, then give --without-forgotten.",
        )
    return True
