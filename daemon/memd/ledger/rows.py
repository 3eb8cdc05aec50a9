"""Reads the sources that are no record files: SQLite databases, and sessions in many small documents.

Rows that a harness updates in place come again when they have changed; ids make that harmless. What was never
completed is read when the store has rested for `REST_MS`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from memd.harness.model import Adapter, Parsed, Query, Store
from memd.ledger import cursor as cursors
from memd.ledger import documents, snapshot
from memd.ledger.cursor import RowCursor
from memd.ledger.reading import Unreadable
from memd.ledger.sources import Source
from memd.ledger.troubles import LEFT_ALONE, READABLE

if TYPE_CHECKING:
    import apsw

ROWS = 2000  # of one query in one round
BYTES = 4 << 20
REST_MS = 15 * 60 * 1000
CALM_MS = 6_000  # after which what lies round a database of one session is certain (`Adapter.around`)
DOCUMENT_ROWS = 500
FAR_MS = 1 << 62


class RowsRead(msgspec.Struct):
    parsed: Parsed
    cursor: RowCursor
    is_more: bool


def read_database(
    adapter: Adapter, source: Source, known: RowCursor, scratch: bytes, now_ms: int
) -> RowsRead:
    """What is new in a database since `known`; raises Unreadable."""
    result = snapshot.read_snapshot(
        source.path, scratch, lambda connection: _round(connection, adapter, source, known, now_ms)
    )
    if isinstance(result, snapshot.Unreadable):
        raise _unreadable(result)
    if adapter.around is None:
        return result
    near = documents.Documents(source.store.root)
    more = adapter.around(result.cursor.state, near, now_ms)
    return RowsRead(_joined([result.parsed, more]), replace(result.cursor, state=more.state), result.is_more)


def _round(
    connection: apsw.Connection, adapter: Adapter, source: Source, known: RowCursor, now_ms: int
) -> RowsRead:
    """One pass over all queries of an adapter, each from where it was left.

    Where other directories have come to keep sessions in the store, from the start: rows that were nobody's
    may be somebody's now.
    """
    assert adapter.parse_rows is not None
    store = source.store
    state = known.state or _begun(adapter, source)
    whose = _whose(store)
    places = dict(known.places) if known.fingerprint == whose else {}
    parts: list[Parsed] = []
    is_more = False
    for query in adapter.queries:
        before = places.get(query.name, (0, ""))
        place = _start(query, *before, now_ms)
        was_cut = True
        while was_cut and place <= before:  # what lies before the cursor may be more than one page
            found, was_cut = snapshot.fetch(
                connection,
                query,
                updated=place[0],
                row_id=place[1],
                limit=ROWS,
                until=now_ms - REST_MS,
                store=store,
                max_bytes=BYTES,
            )
            if not found:
                break
            parsed = adapter.parse_rows(query.name, found, state)
            parts.append(parsed)
            state = parsed.state
            last = (_whole(found[-1][0]), str(found[-1][1]))
            if last <= place:
                break  # no query of ours does this; a round that never ended would be worse than a row
            place = last
        places[query.name] = max(place, before)
        is_more = is_more or was_cut
    return RowsRead(_joined(parts), RowCursor(fingerprint=whose, places=places, state=state), is_more)


def _begun(adapter: Adapter, source: Source) -> bytes:
    """The state before the first row: what only the path of a database says."""
    session = adapter.identify(source.rel, b"", source.store.flavor)
    return b"" if session is None else adapter.begin(session, source.store.flavor)


def read_ended(
    adapter: Adapter, source: Source, known: RowCursor, scratch: bytes, session: str, since_ms: int
) -> RowsRead:
    """What was never completed in a session in which nobody works any more; raises Unreadable.

    since_ms  only what changed after that. The places of the cursor stay: other sessions are not looked at
    """

    def question(connection: apsw.Connection) -> tuple[list[Parsed], bytes]:
        assert adapter.parse_rows is not None
        state = known.state or _begun(adapter, source)
        parts: list[Parsed] = []
        for query in adapter.queries:
            place, was_cut = (since_ms, ""), query.is_at_rest
            while was_cut:
                found, was_cut = snapshot.fetch(
                    connection,
                    query,
                    updated=place[0],
                    row_id=place[1],
                    limit=ROWS,
                    until=FAR_MS,
                    session=session,
                    store=source.store,
                    max_bytes=BYTES,
                )
                if not found:
                    break
                parts.append(adapter.parse_rows(query.name, found, state))
                state = parts[-1].state
                before, place = place, (_whole(found[-1][0]), str(found[-1][1]))
                was_cut = was_cut and place > before
        return parts, state

    result = snapshot.read_snapshot(source.path, scratch, question)
    if isinstance(result, snapshot.Unreadable):
        raise _unreadable(result)
    parts, state = result
    return RowsRead(_joined(parts), replace(known, state=state), False)


def _unreadable(why: snapshot.Unreadable) -> Unreadable:
    is_passing = why.reason in ("locked", "moved", "slow", "missing")
    remedy = "" if is_passing else READABLE if why.reason == "io" else LEFT_ALONE
    return Unreadable(why.sentence, remedy=remedy, is_passing=is_passing or why.reason == "io")


def _start(query: Query, updated: int, row_id: str, now_ms: int) -> tuple[int, str]:
    """Where a round begins: some way before the cursor where rows are stamped before they are committed."""
    if not query.overlap_ms or not updated:
        return updated, row_id
    return max(0, min(updated, now_ms) - query.overlap_ms), ""


def is_resting(source: Source, now_ms: int) -> bool:
    """Whether nobody has touched a database, or a session's own document, for `REST_MS`."""
    return now_ms - source.mtime_ns // 1_000_000 > REST_MS


def look_of(source: Source, now_ms: int) -> tuple[int | bytes, ...]:
    """How a source looks: equal looks, nothing to do.

    A store that has come to rest looks otherwise once, and a database already when it is calm.
    """
    is_rows = source.store.database or source.store.documents
    is_calm = source.store.database and now_ms - source.mtime_ns // 1_000_000 > CALM_MS
    facts = (source.inode, source.size, source.mtime_ns + is_calm + (is_rows and is_resting(source, now_ms)))
    whose = _whose(source.store)
    return (*facts, whose) if whose else facts


def _whose(store: Store) -> bytes:
    """What stands for the directories whose sessions lie in a store; empty where its records say them."""
    return cursors.digest(b"\0".join((store.cwd, *store.shared))) if store.cwd or store.shared else b""


def read_documents(adapter: Adapter, source: Source, *, is_at_rest: bool) -> Parsed:
    """All of a session in many files; at rest also what was never completed."""
    assert adapter.gather is not None
    assert adapter.parse_rows is not None
    name = next(query.name for query in adapter.queries if query.is_at_rest == is_at_rest)
    found = documents.rows(adapter.gather, source.store.root, source.rel)
    parts: list[Parsed] = []
    state = b""
    while chunk := list(itertools.islice(found, DOCUMENT_ROWS)):
        parts.append(adapter.parse_rows(name, chunk, state))
        state = parts[-1].state
    return _joined(parts)


def _joined(parts: list[Parsed]) -> Parsed:
    return Parsed(
        events=[event for part in parts for event in part.events],
        links=[link for part in parts for link in part.links],
        turns=[turn for part in parts for turn in part.turns],
        losses=[loss for part in parts for loss in part.losses],
        sessions=[session for part in parts for session in part.sessions],
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
