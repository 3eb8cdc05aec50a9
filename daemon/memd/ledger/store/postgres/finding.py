"""Searching the index on the server: the newest hits of the words within a scope, ranked.

The language is that of `memd.ledger.search`, the words are folded as on one machine, and the scope is part of
the index, so that narrowing makes a search faster. A phrase whose places had no room in the index is looked
for in the text itself. Relevance is the server's `ts_rank`, divided by the length of the text (its
logarithm); age counts as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from memd.errors import UsageError
from memd.ledger import search
from memd.ledger.store import scope
from memd.ledger.store.interface import MAX_LIMIT, Filter, Hit
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.reading import Reading, below
from memd.ledger.store.postgres.values import key_of, named
from memd.ledger.store.postgres.words import Words, condition, scope_word
from memd.ledger.store.postgres.workstream_reading import WorkstreamReading

MAX_PLACES: Final = 500
"""Directories below the one that a search names; with more, only the newest of them count."""

BY_LENGTH: Final = 1

_HIT = (
    "select distinct on (e.event) e.event, id, kind, role, occurred_at, harness, native, coalesce(path, ''),"
    " position, s.forked_at, content from events join session_events e on e.event = events.n"
    " join sessions s on s.n = e.session left join checkouts c on c.n = s.checkout"
    " where events.n = any(%s) order by e.event, (%s <> '' and native <> %s),"
    " (%s and not (coalesce(path, '') = %s or left(coalesce(path, ''), %s) = %s)), e.is_side, s.is_side, s.n"
)


class Finder:
    def __init__(self, link: Link, words: Words, workstreams: WorkstreamReading) -> None:
        self._link = link
        self._words = words
        self._workstreams = workstreams
        self._reading = Reading(link)

    def narrowed(self, where: Filter) -> list[str] | None:
        """Conditions on the scope, for the index; None when no event can meet them."""
        found = [
            scope_word(token(word))
            for token, word in (
                (scope.harness, where.harness),
                (scope.kind, where.kind),
                (scope.role, where.role),
            )
            if word
        ]
        if where.workstream:
            began = self._workstreams.checkouts(search.clean(where.workstream))
            if began is not None and len(began) <= MAX_PLACES:
                if not began:
                    return None
                found.append(_in_places(began))
        if where.cwd:
            inside, paths = below(search.clean(where.cwd))
            rows = self._link.rows(
                f"select n from checkouts where {inside} order by n desc limit {MAX_PLACES}", *paths
            )
            if not rows:
                return None
            found.append(_in_places([n for (n,) in rows]))
        return found

    def search(
        self,
        query: str,
        where: Filter,
        limit: int,
        marks: tuple[str, str],
        go_on: Callable[[], None] = lambda: None,
    ) -> list[Hit]:
        """Inside a snapshot. `go_on` is called between statements and may raise."""
        since = search.instant(where.since)
        if where.since and since is None:
            raise UsageError(f"{where.since!r} is not a time", remedy="Write it as 2026-02-03T10:00:00Z.")
        terms = self._words.terms(query)
        narrowed = self.narrowed(where) if terms else None
        if narrowed is None or limit < 1:
            return []
        limit = min(limit, MAX_LIMIT)
        rows = self._newest(terms, narrowed, where, since, max(search.NEWEST, limit))
        go_on()
        now = time.time()
        ranked = []
        for n, relevance, occurred_s in rows:
            age = now - occurred_s if occurred_s is not None else search.HALF_LIFE_S * 24
            ranked.append((-search.score(max(float(relevance), 1e-12), age), -n))
        ranked.sort()
        hits = self._hits(terms, where, [-n for _score, n in ranked[:limit]], marks)
        if where.workstream:
            sequences = self._workstreams.sequences(
                search.clean(where.workstream), [hit.event_id for hit in hits]
            )
            from msgspec.structs import replace

            hits = [replace(hit, sequence=sequences[hit.event_id]) for hit in hits]
        return hits

    def _newest(
        self,
        terms: list[tuple[list[str], bool]],
        narrowed: list[str],
        where: Filter,
        since: float | None,
        count: int,
    ) -> list[tuple[Any, ...]]:
        """Number, relevance and time of the newest hits."""
        has_phrases = any(len(words) > 1 for words, _is_prefix in terms)
        expression = " & ".join([condition(terms, side_by_side=False), *narrowed])
        sql, bindings = "words @@ %s::tsquery", [expression]
        if has_phrases:
            sql += " and (is_long or words @@ %s::tsquery)"
            bindings.append(condition(terms, side_by_side=True))
        if since is not None:
            sql += " and occurred_s >= %s"
            bindings.append(since)  # type: ignore[arg-type]
        if where.session:
            sql += (
                " and exists(select 1 from session_events e join sessions s on s.n = e.session"
                " where e.event = events.n and native_key = %s)"
            )
            bindings.append(key_of(search.clean(where.session)))  # type: ignore[arg-type]
        if where.workstream:
            sql += (
                " and exists(select 1 from workstream_events v join workstreams w on w.n = v.workstream"
                " where v.event = events.n and w.id = %s)"
            )
            bindings.append(search.clean(where.workstream))
        rank = condition(terms, side_by_side=False)
        rows = self._link.rows(
            f"select n, ts_rank(words, %s::tsquery, {BY_LENGTH}), occurred_s, is_long from events where {sql}"
            f" order by n desc limit {int(count)}",
            rank,
            *bindings,
        )
        if has_phrases:
            rows = self._checked(terms, rows)
        return [row[:3] for row in rows]

    def _checked(
        self, terms: list[tuple[list[str], bool]], rows: list[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        """Without those long texts in which the words do not stand side by side."""
        wrong = set()
        for n, _relevance, _moment, is_long in rows:
            if is_long and not self._words.holds(
                self._link.value("select content from events where n = %s", n) or "", terms
            ):
                wrong.add(n)
        return [row for row in rows if row[0] not in wrong]

    def matching(self, query: str) -> tuple[str, list[Any], Callable[[str], bool]]:
        """A condition on events for all that a query finds, and what its long texts must hold besides."""
        terms = self._words.terms(query)
        if not terms:
            return "false", [], lambda _text: False
        return (
            "words @@ %s::tsquery and (is_long or words @@ %s::tsquery)",
            [condition(terms, side_by_side=False), condition(terms, side_by_side=True)],
            lambda text: self._words.holds(text, terms),
        )

    def holds(self, text: str, query: str) -> bool:
        """Whether a text is one that the query finds."""
        terms = self._words.terms(query)
        return bool(terms) and self._words.holds(text, terms)

    def _hits(
        self, terms: list[tuple[list[str], bool]], where: Filter, numbers: list[int], marks: tuple[str, str]
    ) -> list[Hit]:
        """Of several places of an event one that the filter names is shown, else the first main line."""
        place = search.clean(where.cwd).rstrip("/")
        session = search.clean(where.session)
        inside = place + "/"
        rows = self._link.rows(_HIT, numbers, session, session, bool(where.cwd), place, len(inside), inside)
        found = {row[0]: row for row in rows}
        hits = []
        for row in (found[n] for n in numbers if n in found):
            shift = self._reading.shift(row[5], row[6]) if row[9] else 0
            hits.append(
                Hit(
                    harness=row[5],
                    session=row[6],
                    cwd=row[7],
                    sequence=row[8] + shift,
                    event_id=named(row[1]),
                    kind=row[2],
                    role=row[3],
                    occurred_at=row[4],
                    snippet=self._words.snippet(row[10], terms, marks),
                    content=row[10],
                )
            )
        return hits


def _in_places(checkouts: list[int]) -> str:
    return "(" + " | ".join(scope_word(f"c{n}") for n in checkouts) + ")"
