"""What a copy of a whole ledger asks of the server: implements `moving.Moving`."""

from __future__ import annotations

from collections.abc import Sequence

from memd.ledger.store import values
from memd.ledger.store.moving import Record, may_take
from memd.ledger.store.postgres.values import id_of, named
from memd.ledger.store.postgres.workstream_reading import (
    RUN,
    WorkstreamReading,
)
from memd.ledger.store.workstreams import Handoff, Run


class PostgresMoving:
    def __init__(self, looking: WorkstreamReading) -> None:
        self._looking = looking
        self._link = looking._link

    def numbers(self, workstream: str) -> list[tuple[int, str]]:
        with self._looking._asked():
            rows = self._link.rows(
                "select sequence, id from workstream_events join events on events.n = event"
                " where workstream = %s order by sequence",
                self._looking._number(workstream),
            )
        return [(sequence, named(id)) for sequence, id in rows]

    def runs_of(self, workstream: str) -> list[Run]:
        with self._looking._asked():
            rows = self._link.rows(RUN + " where w.id = %s order by r.n", workstream)
        return [self._looking.made_run(row) for row in rows]

    def all_handoffs(self) -> list[Handoff]:
        with self._looking._asked():
            return [values.handoff(row) for row in self._link.rows(values.HANDOFF + " order by n")]

    def record(self) -> Record:
        with self._looking._asked():
            rules = self._link.rows("select what, hash, until from forget_rules")
            return Record(
                secret=bytes(self._link.value("select forget_secret from ledger")),
                rules=[(what, bytes(digest), until) for what, digest, until in rules],
                ids=[bytes(one) for (one,) in self._link.rows("select hash from forget_ids")],
            )

    def put_numbers(self, workstream: str, rows: Sequence[tuple[int, str]]) -> None:
        number = self._looking._number(workstream)
        self._link.many(
            "insert into workstream_events(workstream, sequence, event) select %s, %s, n from events"
            " where id = %s on conflict do nothing",
            ((number, sequence, id_of(event)) for sequence, event in rows),
        )
        self._link.run(
            "update workstreams set last_sequence = greatest(last_sequence, coalesce((select max(sequence)"
            " from workstream_events v where v.workstream = workstreams.n), 0)) where n = %s",
            number,
        )

    def put_record(self, record: Record) -> None:
        if not may_take(record, bytes(self._link.value("select forget_secret from ledger"))):
            return
        self._link.run("update ledger set forget_secret = %s, forgotten = forgotten + 1", record.secret)
        self._link.many(
            "insert into forget_rules(what, hash, until) values(%s,%s,%s) on conflict do nothing",
            record.rules,
        )
        self._link.many(
            "insert into forget_ids(hash) values(%s) on conflict do nothing", ((one,) for one in record.ids)
        )
