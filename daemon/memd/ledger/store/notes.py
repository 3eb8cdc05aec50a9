"""Which handoffs a forgetting takes along: they are text, and of the same words."""

from __future__ import annotations

import apsw

from memd.ledger import search
from memd.ledger.store import database
from memd.ledger.store.interface import Selection


def selected(connection: apsw.Connection, chosen: Selection, expression: str) -> list[int]:
    """The numbers of the handoffs that all of a selection applies to.

    expression  the selection's query as the index takes it; it is asked of the handoffs' own texts
    """
    conditions, bindings = ["1"], list[object]()
    if chosen.harness:
        conditions.append("from_harness = ?")
        bindings.append(chosen.harness)
    if chosen.session:
        conditions.append("from_session = ?")
        bindings.append(chosen.session)
    if chosen.project:
        place = search.clean(chosen.project).encode("utf-8")
        inside = place.rstrip(b"/") + b"/"
        conditions.append("(cwd = ? or (cwd >= ? and cwd < ?))")
        bindings += [place, inside, inside[:-1] + b"0"]
    if chosen.before:
        conditions.append("created_ms < ?")
        bindings.append((search.instant(chosen.before) or 0.0) * 1000)
    where = " and ".join(conditions)
    if chosen.matching:
        connection.execute(
            "create virtual table if not exists temp.notes using fts5(content,"
            " tokenize='unicode61 remove_diacritics 2')"
        )
        connection.execute("delete from temp.notes")
        connection.execute(
            "insert into temp.notes(rowid, content) select n, summary || char(10) ||"
            " (select group_concat(value, char(10)) from json_tree(lists) where atom is not null)"
            f" from handoffs where {where}",
            bindings,
        )
        where, bindings = "n in (select rowid from temp.notes where notes match ?)", [expression]
    found = [n for (n,) in database.fetch(connection, f"select n from handoffs where {where}", bindings)]
    if chosen.matching:
        connection.execute("drop table temp.notes")
    return found
