"""Searching the index: the newest hits of the words within a scope, ranked.

The scope is part of the index (`events.scope`), so narrowing a search to a harness, a directory, a kind or a
role makes it faster. Only `since`, `session` and `workstream` look at rows. Three statements, each bounded:
the newest `NEWEST` hits with their relevance, the facts of the best of these, and texts with snippets of
those shown.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import apsw
from msgspec.structs import replace

from memd.errors import UsageError
from memd.ledger import search
from memd.ledger.store import database, scope
from memd.ledger.store.interface import MAX_LIMIT, Filter, Hit
from memd.ledger.store.reading import Reading, below
from memd.ledger.store.relevance import CONTENT, FUNCTION, Relevance
from memd.ledger.store.scope import spelled
from memd.ledger.store.workstream_reading import WorkstreamReading

MAX_PLACES: Final = 500
"""Directories below the one that a search names; with more, only the newest of them count."""

SNIPPET_TOKENS: Final = 24
_OFFSET_S: Final = 14 * 3600  # no zone is further from UTC: what a comparison of texts may be off by


_HIT = (
    f"select snippet(event_text, {CONTENT}, ?1, ?2, '…', ?3), id, kind, role, occurred_at, harness, native,"
    " coalesce(path, ''), position, forked_at, events.content"
    " from event_text join events on events.n = event_text.rowid"
    " join session_events e on e.event = events.n join sessions s on s.n = e.session"
    " left join checkouts c on c.n = s.checkout"
    " where event_text match ?8 and event_text.rowid = ?9"
    " order by ?4 <> '' and native <> ?4, ?5 and not (path = ?6 or substr(path, 1, length(?7)) = ?7),"
    " e.is_side, s.is_side, s.n limit 1"
)


class Finder:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._reading = Reading(connection)
        self._workstreams = WorkstreamReading(connection)
        self._relevance = Relevance(connection)
        self._tokenizer = connection.fts5_tokenizer("unicode61", ["remove_diacritics", "2"])

    # ------------------------------------------------------------------------- matching

    def match(self, query: str, where: Filter) -> str:
        """The expression for the index; empty when nothing can match."""
        words = [self._term(term) for term in search.parse(query)]
        words = [word for word in words if word]
        if not words:
            return ""
        narrowed = self._scope(where)
        if narrowed is None:
            return ""
        return " AND ".join([f"content : ({' AND '.join(words)})", *narrowed])

    def _term(self, term: search.Term) -> str:
        if not self._tokens(term):
            return ""
        quoted = '"' + term.text.replace('"', '""') + '"'
        return quoted + " *" if term.is_prefix else quoted

    def _tokens(self, term: search.Term) -> list[str]:
        found = self._tokenizer(
            term.text.encode("utf-8"),
            apsw.FTS5_TOKENIZE_QUERY,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return [str(token) for token in found]

    def _scope(self, where: Filter) -> list[str] | None:
        """Conditions on the scope; None when no event can meet them."""
        wanted = [
            f'"{token(word)}"'
            for token, word in (
                (scope.harness, where.harness),
                (scope.kind, where.kind),
                (scope.role, where.role),
            )
            if word
        ]
        conditions = [f"scope : ({' AND '.join(wanted)})"] if wanted else []
        if where.workstream:
            began = self._workstreams.checkouts(where.workstream)
            if began is not None and len(began) <= MAX_PLACES:
                if not began:
                    return None
                conditions.append(_in_places(began))
        if where.cwd:
            condition, paths = below(search.clean(where.cwd))
            found = self._connection.execute(
                f"select n from checkouts where {condition} order by n desc limit {MAX_PLACES}", paths
            ).fetchall()
            if not found:
                return None
            conditions.append(_in_places(n for (n,) in found))
        return conditions

    # ------------------------------------------------------------------------ searching

    def search(
        self,
        query: str,
        where: Filter,
        limit: int,
        marks: tuple[str, str],
        go_on: Callable[[], None] = lambda: None,
    ) -> list[Hit]:
        """`go_on` is called between statements and may raise."""
        if where.since and search.instant(where.since) is None:
            raise UsageError(f"{where.since!r} is not a time", remedy="Write it as 2026-02-03T10:00:00Z.")
        with database.snapshot(self._connection):
            expression = self.match(query, where)
            if not expression or limit < 1:
                return []
            phrases = (self._tokens(term) for term in search.parse(query))
            self._relevance.weigh([words for words in phrases if words])
            found = self._best(expression, where, min(limit, MAX_LIMIT), marks, go_on)
            if where.workstream:
                sequences = self._workstreams.sequences(where.workstream, [hit.event_id for hit in found])
                found = [replace(hit, sequence=sequences[hit.event_id]) for hit in found]
            return found

    def _best(
        self,
        expression: str,
        where: Filter,
        limit: int,
        marks: tuple[str, str],
        go_on: Callable[[], None],
    ) -> list[Hit]:
        newest = max(search.NEWEST, limit)
        candidates = self._newest(expression, where, newest)
        go_on()
        candidates.sort(key=_by_relevance)
        best = self._facts(_within_reach(candidates, limit))
        relevance = dict(candidates)
        now = time.time()
        since = search.instant(where.since)
        ranked = []
        for n, occurred_at in best.items():
            moment = search.instant(occurred_at)
            if since is not None and (moment is None or moment < since):
                continue
            age = now - moment if moment is not None else search.HALF_LIFE_S * 24
            ranked.append((-search.score(-relevance[n], age), -n))
        ranked.sort()
        return self._hits(expression, where, [-n for _score, n in ranked[:limit]], marks)

    def _newest(self, expression: str, where: Filter, count: int) -> list[tuple[int, float]]:
        """Numbers and relevance (lower is better) of the newest hits."""
        joins, bindings = "", [expression]
        since = search.instant(where.since)
        if since is not None:
            joins += " and (select occurred_at from events where n = event_text.rowid) >= ?"
            bindings.append(_text(since - _OFFSET_S))
        if where.session:
            joins += (
                " and exists(select 1 from session_events join sessions on sessions.n = session"
                " where event = event_text.rowid and native = ?)"
            )
            bindings.append(search.clean(where.session))
        if where.workstream:
            joins += (
                " and exists(select 1 from workstream_events e join workstreams w on w.n = workstream"
                " where event = event_text.rowid and w.id = ?)"
            )
            bindings.append(search.clean(where.workstream))
        rows = database.fetch(
            self._connection,
            f"select rowid, {FUNCTION}(event_text) from event_text where event_text match ?"
            f"{joins} order by rowid desc limit {int(count)}",
            bindings,
        )
        return [(n, relevance) for n, relevance in rows]

    def _facts(self, numbers: Sequence[int]) -> dict[int, str]:
        facts: dict[int, str] = dict(
            self._connection.executemany(
                "select n, occurred_at from events where n = ?", ((n,) for n in numbers)
            )
        )
        return facts

    def _hits(
        self, expression: str, where: Filter, numbers: Sequence[int], marks: tuple[str, str]
    ) -> list[Hit]:
        """Of several places of an event one that the filter names is shown, else the first main line."""
        place = search.clean(where.cwd).rstrip("/")
        session = search.clean(where.session)
        bindings = (*marks, SNIPPET_TOKENS, session, bool(where.cwd), place, place + "/")
        hits = []
        for n in numbers:
            for row in self._connection.execute(_HIT, (*bindings, expression, n)):
                sequence = row[8]
                if row[9]:
                    sequence += self._reading.shift(row[5], row[6])
                hits.append(
                    Hit(
                        harness=row[5],
                        session=row[6],
                        cwd=row[7],
                        sequence=sequence,
                        event_id=spelled(row[1]),
                        kind=row[2],
                        role=row[3],
                        occurred_at=row[4],
                        snippet=row[0],
                        content=row[10],
                    )
                )
        return hits


def _by_relevance(candidate: tuple[int, float]) -> tuple[float, int]:
    return candidate[1], -candidate[0]


def _within_reach(candidates: Sequence[tuple[int, float]], limit: int) -> list[int]:
    """Of candidates by relevance (lower is better) those that being new may lift into the first `limit`."""
    if len(candidates) <= limit:
        return [n for n, _relevance in candidates]
    bound = candidates[limit - 1][1] / (1.0 + search.RECENCY_WEIGHT)
    return [n for n, relevance in candidates[: limit * 3] if relevance <= bound]


def _in_places(checkouts: Iterable[object]) -> str:
    places = " OR ".join(f'"c{n}"' for n in checkouts)
    return f"scope : ({places})"


def _text(moment: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return ""
