"""What the server knows of the things that a batch names: asked for in a few statements, for `planning`.

Holds for one transaction: it has the lock of the ledger, so nothing changes but by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memd.ledger.store import scope
from memd.ledger.store.forget_record import Record
from memd.ledger.store.interface import Batch
from memd.ledger.store.planning import Facts, Plan
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.values import key_of, named, stored
from memd.ledger.store.schema import LIVE
from memd.ledger.store.scope import Stored, key

FACTS = (
    "select s.n, native, checkout, coalesce(path, ''), title, title_from, started, last_activity, version,"
    " is_side, parent, forked_from, forked_at, last_position, events, side_events"
    " from sessions s left join checkouts c on c.n = s.checkout"
)


class Forgotten(Record):
    """Read anew when somebody has forgotten something since; ids are asked for batch by batch."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self._version = -1
        self._there: frozenset[bytes] = frozenset()

    def load(self, version: int) -> None:
        """version: how often something was forgotten, as `ledger` says"""
        if version == self._version:
            return
        secret = self._link.value("select forget_secret from ledger")
        rules = self._link.rows("select what, hash, until from forget_rules")
        self.take(
            bytes(secret),
            [(what, bytes(digest), until) for what, digest, until in rules],
            has_ids=bool(self._link.value("select exists(select 1 from forget_ids)")),
        )
        self._version = version

    def reset(self) -> None:
        self._version = -1

    def look_up(self, event_ids: Iterable[str]) -> None:
        """Ask once for all ids of a batch."""
        if self._has_ids:
            hashes = [self.hash_of("event", one) for one in event_ids]
            rows = self._link.rows("select hash from forget_ids where hash = any(%s)", hashes)
            self._there = frozenset(bytes(one) for (one,) in rows)

    def _holds(self, digest: bytes) -> bool:
        return digest in self._there

    def has(self, event_id: str) -> bool:
        """Of one event alone."""
        self.look_up([event_id])
        return self.is_id(event_id)


class Known:
    """Implements `planning.Known` for the batches of one transaction."""

    def __init__(self, link: Link, machine: str) -> None:
        self._link = link
        self._machine = machine
        self._sessions: dict[tuple[str, str], Facts | None] = {}
        self._checkouts: dict[str, int] = {}
        self._tokens: dict[tuple[str, int | None, str, str], str] = {}
        self._losses: dict[tuple[str, str], tuple[int, str, int]] = {}
        row = link.row(
            "select (select coalesce(max(n), 0) from events where n < %s),"
            " (select coalesce(max(n), %s) from events where n >= %s),"
            " (select coalesce(max(n), 0) from sessions), (select coalesce(max(n), 0) from checkouts)",
            LIVE,
            LIVE - 1,
            LIVE,
        )
        assert row is not None
        self.history, self.live, self.session, self.checkout = row

    def prepare(self, batch: Batch) -> None:
        """Ask for all that this batch names."""
        names = {one.id for one in batch.sessions}
        names.update(one.session for one in batch.entries)
        names.update(one.session for one in batch.turns)
        names.update(one.session for one in batch.losses)
        missing = [name for name in names if (batch.harness, name) not in self._sessions]
        if missing:
            keys = [key_of(batch.harness, name) for name in missing]
            self._sessions.update({(batch.harness, name): None for name in missing})
            for row in self._link.rows(FACTS + " where s.key = any(%s)", keys):
                self._sessions[batch.harness, row[1]] = Facts(*row)
        paths = {one.cwd for one in batch.sessions if one.cwd} - self._checkouts.keys()
        if paths:
            rows = self._link.rows(
                "select n, path from checkouts where key = any(%s)", [key_of(path) for path in paths]
            )
            self._checkouts.update({path: n for n, path in rows})
        if batch.losses or batch.is_restart:
            self._losses = {
                (native, what): (session, sentence, count)
                for native, what, sentence, session, count in self._link.rows(
                    "select native, what, sentence, session, count from losses"
                    " join sessions s on s.n = session"
                    " where machine = %s and source_key = %s and harness = %s",
                    self._machine,
                    key_of(batch.source),
                    batch.harness,
                )
            }

    def remember(self, batch: Batch, plan: Plan) -> None:
        """What the batch has made of it."""
        for native, facts in plan.touched.items():
            self._sessions[batch.harness, native] = facts

    # ------------------------------------------------------------------------------- asked

    def facts(self, harness: str, native: str) -> Facts | None:
        if (harness, native) not in self._sessions:
            row = self._link.row(FACTS + " where s.key = %s", key_of(harness, native))
            self._sessions[harness, native] = None if row is None else Facts(*row)
        return self._sessions[harness, native]

    def checkout_of(self, path: str, new: list[tuple[int, str]]) -> int:
        n = self._checkouts.get(path)
        if n is None:
            self.checkout += 1
            n = self._checkouts[path] = self.checkout
            new.append((n, path))
        return n

    def scope(self, harness: str, checkout: int | None, kind: str, role: str) -> str:
        asked = (harness, checkout, kind, role)
        found = self._tokens.get(asked)
        if found is None:
            parts = [scope.harness(harness), scope.kind(kind), scope.role(role)]
            if checkout is not None:
                parts.append(f"c{checkout}")
            found = self._tokens[asked] = " ".join(parts)
        return found

    def known(self, keys: Sequence[Stored]) -> dict[Stored, tuple[int, str]]:
        rows = self._link.rows(
            "select n, id, kind from events where id = any(%s)", [stored(one) for one in keys]
        )
        return {key(named(id)): (n, kind) for n, id, kind in rows}

    def standing(self, events: Sequence[int]) -> set[tuple[int, int]]:
        rows = self._link.rows(
            "select session, event from session_events where event = any(%s)", list(events)
        )
        return {(session, event) for session, event in rows}

    def at(self, session: int, at: int) -> list[tuple[int, int, int]]:
        rows = self._link.rows(
            "select is_side, position, event from session_events where session = %s and at = %s", session, at
        )
        return [(int(side), position, event) for side, position, event in rows]

    def between(self, session: int, first: int, last: int) -> list[tuple[int, int]]:
        rows = self._link.rows(
            "select position, is_side from session_events where session = %s and at between %s and %s",
            session,
            first,
            last,
        )
        return [(position, int(side)) for position, side in rows]

    def lost(self, harness: str, source: bytes) -> list[tuple[str, str, str]]:
        return [(native, what, sentence) for (native, what), (_n, sentence, _c) in self._losses.items()]

    def counted(self, session: int, what: str, source: bytes) -> int:
        for (_native, lost), (number, _sentence, count) in self._losses.items():
            if (number, lost) == (session, what):
                return count
        return 0
