"""The statements that write what a batch comes to. Inside a transaction that has the lock of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memd.ledger.store.interface import Batch
from memd.ledger.store.planning import Facts, Plan
from memd.ledger.store.postgres.connecting import Link
from memd.ledger.store.postgres.values import instant_of, key_of, stored
from memd.ledger.store.postgres.words import Words
from memd.ledger.store.scope import key

_SESSION = (
    "insert into sessions(n, key, native_key, harness, native, checkout, title, title_from, started,"
    " last_activity, last_s, version, is_side, parent, forked_from, forked_key, forked_at, last_position,"
    " events, side_events) values(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
    " on conflict(n) do update set checkout = excluded.checkout, title = excluded.title,"
    " title_from = excluded.title_from, started = excluded.started, last_activity = excluded.last_activity,"
    " last_s = excluded.last_s, version = excluded.version, is_side = excluded.is_side,"
    " parent = excluded.parent, forked_from = excluded.forked_from, forked_key = excluded.forked_key,"
    " forked_at = excluded.forked_at, last_position = excluded.last_position, events = excluded.events,"
    " side_events = excluded.side_events"
)

_EVENT = (
    "insert into events(n, id, kind, role, occurred_at, occurred_s, record, metadata, scope, is_long, words,"
    " content) values(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s::tsvector,%s)"
)


def put(link: Link, words: Words, machine: str, batch: Batch, plan: Plan) -> None:
    """Everything a batch comes to, but for views."""
    link.many(
        "insert into checkouts(n, key, path) values(%s,%s,%s)",
        ((n, key_of(path), path) for n, path in plan.checkouts),
    )
    link.many(_SESSION, (session_row(batch.harness, facts) for facts in plan.touched.values()))
    _put_events(link, words, batch, plan)
    link.many(
        "insert into session_events(session, position, is_side, event, at) values(%s,%s,%s,%s,%s)",
        ((session, position, bool(side), event, at) for session, position, side, event, at in plan.standings),
    )
    link.many(
        "update session_events set is_side = %s where session = %s and position = %s",
        ((bool(side), session, position) for side, session, position in plan.turned),
    )
    if plan.gone:
        take_out(link, plan.gone)
    for session, checkout in plan.moved:
        _learn_checkout(link, session, checkout)
    widen(link, plan.widened)
    if batch.is_restart:
        link.run(
            "delete from losses where machine = %s and source_key = %s and session in"
            " (select n from sessions where harness = %s)",
            machine,
            key_of(batch.source),
            batch.harness,
        )
    link.many(
        "insert into losses(session, what, machine, source_key, source, sentence, count)"
        " values(%s,%s,%s,%s,%s,%s,%s) on conflict(session, what, machine, source_key) do update set"
        " sentence = excluded.sentence, count = excluded.count",
        (
            (session, what, machine, key_of(source), source, sentence, count)
            for session, what, source, sentence, count in plan.losses
        ),
    )
    if batch.source:
        put_cursor(link, machine, batch.source, batch.cursor)


def put_cursor(link: Link, machine: str, source: bytes, value: bytes) -> None:
    link.run(
        "insert into cursors(machine, source_key, source, value) values(%s,%s,%s,%s)"
        " on conflict(machine, source_key) do update set value = excluded.value",
        machine,
        key_of(source),
        source,
        value,
    )


def _put_events(link: Link, words: Words, batch: Batch, plan: Plan) -> None:
    if not plan.events:
        return
    records = {stored(key(entry.id)): entry.record for entry in reversed(batch.entries)}
    rows = []
    for n, one, kind, role, occurred_at, metadata, tokens, content in plan.events:
        id = stored(one)
        vector, is_long = words.vector(content, tokens)
        moment = instant_of(occurred_at)
        rows.append(
            (n, id, kind, role, occurred_at, moment, records[id], metadata, tokens, is_long, vector, content)
        )
    link.many(_EVENT, rows)


def session_row(harness: str, facts: Facts) -> tuple[object, ...]:
    return (
        facts.n,
        key_of(harness, facts.native),
        key_of(facts.native),
        harness,
        facts.native,
        facts.checkout,
        facts.title,
        facts.title_from,
        facts.started,
        facts.last_activity,
        instant_of(facts.last_activity) or 0.0,
        facts.version,
        bool(facts.is_side),
        facts.parent,
        facts.forked_from,
        key_of(harness, facts.forked_from) if facts.forked_from else None,
        facts.forked_at,
        facts.last_position,
        facts.events,
        facts.side_events,
    )


def take_out(link: Link, places: Iterable[tuple[int, int, int]]) -> None:
    """Take events from places (session, position, event); what stands nowhere any more goes."""
    held = list(places)
    link.many(
        "delete from session_events where session = %s and position = %s",
        ((session, position) for session, position, _event in held),
    )
    link.run(
        "delete from events e where n = any(%s)"
        " and not exists(select 1 from session_events s where s.event = e.n)",
        [event for _session, _position, event in held],
    )


def widen(link: Link, wanted: Mapping[int, Iterable[int]]) -> None:
    """Let searches in these directories find these events too."""
    if not wanted:
        return
    changes = []
    for event, scope in link.rows("select n, scope from events where n = any(%s)", list(wanted)):
        held = set(scope.split())
        missing = [f"c{checkout}" for checkout in sorted(wanted[event]) if f"c{checkout}" not in held]
        if missing:
            more = " ".join(f"'.{token}'" for token in missing)
            changes.append((" ".join([scope, *missing]), more, event))
    link.many("update events set scope = %s, words = words || %s::tsvector where n = %s", changes)


def _learn_checkout(link: Link, session: int, checkout: int) -> None:
    """The directory of a session came after its first events."""
    rows = link.rows("select distinct event from session_events where session = %s", session)
    widen(link, {event: (checkout,) for (event,) in rows})
