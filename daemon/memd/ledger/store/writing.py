"""What the writer of SQLite knows without asking again, and how it asks; `planning` works with it.

First a batch is planned, which looks only. From that come the lines for the segment, which are on the disk
before the rows are committed. Nothing can change in between, since there is one writer. All that is
remembered from batch to batch is what the database says anyway; after any error it is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw

from memd.ledger.store import database, scope
from memd.ledger.store.planning import Facts
from memd.ledger.store.schema import BY_ID, LIVE
from memd.ledger.store.scope import Stored

MAX_REMEMBERED: Final = 4096


class Memory:
    """What the writer need not ask the database again."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._sessions: dict[tuple[str, str], Facts] = {}
        self._checkouts: dict[str, int] = {}
        self._tokens: dict[tuple[str, int | None, str, str], str] = {}
        self.reset()

    def reset(self) -> None:
        self._sessions.clear()
        self._checkouts.clear()
        one = self._connection.execute(
            "select (select coalesce(max(n), 0) from events where n < ?1),"
            " (select coalesce(max(n), ?1 - 1) from events where n >= ?1),"
            " (select coalesce(max(n), 0) from sessions), (select coalesce(max(n), 0) from checkouts)",
            (LIVE,),
        ).get
        self.history, self.live, self.session, self.checkout = one

    def total(self) -> int:
        """How many events there were ever, as far as the numbers given out tell."""
        total: int = self.history + self.live - LIVE + 1
        return total

    def facts(self, harness: str, native: str) -> Facts | None:
        known = self._sessions.get((harness, native))
        if known is None:
            row = self._connection.execute(
                "select s.n, native, checkout, coalesce(path, ''), title, title_from, started, last_activity,"
                " version, is_side, parent, forked_from, forked_at, last_position, events,"
                " side_events from sessions s left join checkouts c on c.n = s.checkout"
                " where harness = ? and native = ?",
                (harness, native),
            ).fetchone()
            if row is None:
                return None
            if len(self._sessions) >= MAX_REMEMBERED:
                self._sessions.clear()
            known = Facts(*row)
            known.is_side = bool(known.is_side)
            self._sessions[harness, native] = known
        return known

    def remember(self, harness: str, facts: Facts) -> None:
        self._sessions[harness, facts.native] = facts

    def checkout_of(self, path: str, new: list[tuple[int, str]]) -> int:
        n = self._checkouts.get(path)
        if n is None:
            row = self._connection.execute("select n from checkouts where path = ?", (path,)).get
            if row is None:
                self.checkout += 1
                row = self.checkout
                new.append((row, path))
            if len(self._checkouts) >= MAX_REMEMBERED:
                self._checkouts.clear()
            n = self._checkouts[path] = row
        return n

    def scope(self, harness: str, checkout: int | None, kind: str, role: str) -> str:
        key = (harness, checkout, kind, role)
        found = self._tokens.get(key)
        if found is None:
            parts = [scope.harness(harness), scope.kind(kind), scope.role(role)]
            if checkout is not None:
                parts.append(f"c{checkout}")
            if len(self._tokens) >= MAX_REMEMBERED:
                self._tokens.clear()
            found = self._tokens[key] = " ".join(parts)
        return found

    # ------------------------------------------------------------------------------- of one batch

    def known(self, keys: Sequence[Stored]) -> dict[Stored, tuple[int, str]]:
        return {
            stored: (n, kind)
            for n, stored, kind in self._connection.executemany(
                f"select n, id, kind from events where {BY_ID}", (scope.probe(one) for one in keys)
            )
        }

    def standing(self, events: Sequence[int]) -> set[tuple[int, int]]:
        return set(
            self._connection.executemany(
                "select session, event from session_events where event = ?", ((n,) for n in events)
            )
        )

    def at(self, session: int, at: int) -> list[tuple[int, int, int]]:
        sql = "select is_side, position, event from session_events where session = ? and at = ?"
        return [(side, position, event) for side, position, event in self._fetch(sql, session, at)]

    def _fetch(self, sql: str, *bindings: object) -> Iterable[tuple[Any, ...]]:
        return database.fetch(self._connection, sql, bindings)

    def between(self, session: int, first: int, last: int) -> Iterable[tuple[int, int]]:
        return self._connection.execute(
            "select position, is_side from session_events where session = ? and at between ? and ?",
            (session, first, last),
        )

    def lost(self, harness: str, source: bytes) -> Iterable[tuple[str, str, str]]:
        return self._connection.execute(
            "select native, what, sentence from losses join sessions on n = session"
            " where source = ? and harness = ?",
            (source, harness),
        )

    def counted(self, session: int, what: str, source: bytes) -> int:
        count: int | None = self._connection.execute(
            "select count from losses where session = ? and what = ? and source = ?", (session, what, source)
        ).get
        return count or 0
