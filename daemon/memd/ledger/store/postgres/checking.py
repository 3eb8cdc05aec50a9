"""Comparing what the rows on the server say with each other, and the index with the texts."""

from __future__ import annotations

from typing import Final

from memd.ledger.store.interface import Problem, Report
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.values import named
from memd.ledger.store.postgres.words import Words

MAX_PROBLEMS: Final = 1000
PAGE: Final = 500


def check(link: Link, words: Words) -> Report:
    """Inside a snapshot; reads every text."""
    problems: list[Problem] = []
    count = 0

    def say(what: str, where: str, sentence: str) -> None:
        nonlocal count
        count += 1
        if len(problems) < MAX_PROBLEMS:
            problems.append(Problem(what, where, sentence))

    for harness, native in link.rows(
        "select harness, native from sessions s where events <> (select count(*) from session_events e"
        " where e.session = s.n and not e.is_side) or side_events <> (select count(*) from session_events e"
        " where e.session = s.n and e.is_side) or last_position < coalesce((select max(position)"
        " from session_events e where e.session = s.n), 0)"
    ):
        say("count", f"{harness} {native}", "The session counts its events wrongly.")
    for (id,) in link.rows(
        "select id from events where not exists(select 1 from session_events e where e.event = events.n)"
    ):
        say("place", named(id), "The event stands in no session.")
    for (id,) in link.rows(
        "select id from workstreams w where last_sequence < coalesce((select max(sequence)"
        " from workstream_events v where v.workstream = w.n), 0)"
    ):
        say("count", id, "The workstream counts its events wrongly.")
    last = -1
    while rows := link.rows(
        f"select n, id, content, scope, is_long from events where n > %s order by n limit {PAGE}", last
    ):
        last = rows[-1][0]
        made = [words.vector(content, scope) for _n, _id, content, scope, _long in rows]
        same = {
            n
            for (n,) in link.rows(
                "select e.n from events e join (select unnest(%s::bigint[]) as n, unnest(%s::text[])"
                " as words) d on d.n = e.n where e.words = d.words::tsvector",
                [row[0] for row in rows],
                [vector for vector, _long in made],
            )
        }
        for row, (_vector, is_long) in zip(rows, made, strict=True):
            if is_long != row[4] or row[0] not in same:
                say("index", named(row[1]), "The index does not say what the text says.")
    totals = link.row("select (select count(*) from events), (select count(*) from session_events)")
    assert totals is not None
    return Report(events=totals[0], standings=totals[1], segments=0, problem_count=count, problems=problems)


def repair(link: Link, words: Words) -> None:
    """Inside a transaction that has the lock of the ledger."""
    link.run("delete from events e where not exists(select 1 from session_events s where s.event = e.n)")
    for column, side in (("events", "not e.is_side"), ("side_events", "e.is_side")):
        link.run(
            f"update sessions set {column} = (select count(*) from session_events e"
            f" where e.session = sessions.n and {side})"
        )
    link.run(
        "update sessions set last_position = greatest(last_position, coalesce((select max(position)"
        " from session_events e where e.session = sessions.n), 0))"
    )
    link.run(
        "update workstreams set last_sequence = greatest(last_sequence, coalesce((select max(sequence)"
        " from workstream_events v where v.workstream = workstreams.n), 0))"
    )
    last = -1
    while rows := link.rows(
        f"select n, content, scope from events where n > %s order by n limit {PAGE}", last
    ):
        last = rows[-1][0]
        link.many(
            "update events set words = %s::tsvector, is_long = %s where n = %s",
            ((*words.vector(content, scope), n) for n, content, scope in rows),
        )
