"""What a crash left in a segment behind its mark, as a batch that can be put in again."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from memd.harness.model import Session, Turn
from memd.ledger.segments import AnyLine, EventLine, GoneLine, SessionLine, StandingLine, TurnLine
from memd.ledger.store.interface import Batch, Entry
from memd.ledger.store.schema import BY_ID
from memd.ledger.store.scope import key, probe


def batch(connection: apsw.Connection, harness: str, lines: Sequence[AnyLine]) -> Batch:
    """The events, standings and facts of these lines, in their order.

    Losses are left out: the cursor did not move, so the source is read again and they are counted then.
    """
    entries: list[Entry] = []
    sessions: list[Session] = []
    new: dict[str, EventLine] = {}
    places: dict[tuple[str, int], int] = {}
    turns: list[Turn] = []
    replaces = -1
    for line in lines:
        if isinstance(line, EventLine):
            new[line.id] = line
            places[line.session, line.position] = line.at
            entries.append(
                Entry(
                    id=line.id,
                    session=line.session,
                    kind=line.kind,
                    role=line.role,
                    content=line.content,
                    at=line.at,
                    occurred_at=line.occurred_at,
                    record=line.record,
                    is_side=line.is_side,
                    replaces=replaces,
                    metadata=line.metadata,
                )
            )
            replaces = -1
        elif isinstance(line, StandingLine):
            places[line.session, line.position] = line.at
            entry = _known(connection, line, new, replaces)
            if entry is not None:
                entries.append(entry)
            replaces = -1
        elif isinstance(line, GoneLine):
            replaces = _at(connection, harness, places, line.session, line.position)
        elif isinstance(line, TurnLine):
            for first, last in line.ranges:
                for position in range(first, last + 1):
                    at = _at(connection, harness, places, line.session, position)
                    if at >= 0:
                        turns.append(Turn(session=line.session, first=at, last=at, is_side=line.is_side))
        elif isinstance(line, SessionLine):
            sessions.append(
                Session(
                    id=line.session,
                    cwd=line.cwd,
                    title=line.title,
                    started=line.started,
                    version=line.version,
                    is_side=line.is_side,
                    parent=line.parent,
                    forked_from=line.forked_from,
                    forked_at=line.forked_at,
                )
            )
    return Batch(harness=harness, entries=entries, sessions=sessions, turns=turns)


def _known(
    connection: apsw.Connection, line: StandingLine, new: dict[str, EventLine], replaces: int
) -> Entry | None:
    """A standing names only its event; None when there is no such event any more."""
    if line.id in new:
        kind, role, occurred_at = new[line.id].kind, new[line.id].role, new[line.id].occurred_at
    else:
        row = connection.execute(
            f"select kind, role, occurred_at from events where {BY_ID}", probe(key(line.id))
        ).fetchone()
        if row is None:
            return None
        kind, role, occurred_at = row
    return Entry(
        id=line.id,
        session=line.session,
        kind=kind,
        role=role,
        content="",
        at=line.at,
        occurred_at=occurred_at,
        is_side=line.is_side,
        replaces=replaces,
    )


def _at(
    connection: apsw.Connection,
    harness: str,
    places: dict[tuple[str, int], int],
    session: str,
    position: int,
) -> int:
    """Where in its source the event of a place comes from; -1: there is no such place."""
    if (session, position) in places:
        return places[session, position]
    found = connection.execute(
        "select at from session_events join sessions on n = session"
        " where harness = ? and native = ? and position = ?",
        (harness, session, position),
    ).get
    return -1 if found is None else found
