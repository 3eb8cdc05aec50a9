"""The lines of a segment, made anew from the rows: for one that is lost or damaged."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from memd.ledger.segments import VERSION, EventLine, HeadLine, Line, SessionLine, StandingLine
from memd.ledger.store import values
from memd.ledger.store.scope import spelled


def lines(
    connection: apsw.Connection,
    harness: str,
    number: int,
    needs: Callable[[int], bool] = lambda _event: False,
) -> list[Line]:
    """All that the rows know of what stood in that segment, which is all but record ids and losses.

    An event is told where it stands first.

    needs  whether an event must be told here although it stands elsewhere before
    """
    made: list[Line] = [HeadLine(v=VERSION, harness=harness, number=number)]
    for row in connection.execute(
        "select native, position, id, kind, role, at, occurred_at, e.is_side, metadata, content,"
        " not exists(select 1 from session_events o where o.event = e.event"
        "  and (o.segment < e.segment or (o.segment = e.segment and o.session < e.session))), event"
        " from session_events e join events on events.n = e.event join sessions s on s.n = e.session"
        " where segment = ? order by e.session, position",
        (number,),
    ):
        if not row[10] and not needs(row[11]):
            made.append(
                StandingLine(
                    session=row[0], position=row[1], id=spelled(row[2]), at=row[5], is_side=bool(row[7])
                )
            )
            continue
        made.append(
            EventLine(
                session=row[0],
                position=row[1],
                id=spelled(row[2]),
                kind=row[3],
                role=row[4],
                at=row[5],
                occurred_at=row[6],
                is_side=bool(row[7]),
                metadata=values.unpack(row[8]),
                content=row[9],
            )
        )
    for row in connection.execute(
        "select native, coalesce(path, ''), iif(title_from = 'native', title, ''), started, version, is_side,"
        " parent, forked_from, forked_at from session_lines l join sessions s on s.n = l.session"
        " left join checkouts c on c.n = s.checkout where segment = ? order by s.n",
        (number,),
    ):
        made.append(
            SessionLine(
                session=row[0],
                cwd=row[1],
                title=row[2],
                started=row[3],
                version=row[4],
                is_side=bool(row[5]),
                parent=row[6],
                forked_from=row[7],
                forked_at=row[8],
            )
        )
    return made
