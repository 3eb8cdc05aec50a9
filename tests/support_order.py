"""The placing of records as `memd.harness.model.Link` describes it, in its simplest form."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memd.harness.model import Event, Link, Parsed


def arrange(parts: Iterable[Parsed]) -> list[Event]:
    """All events of one source in the order in which a ledger shows them, replaced ones left out."""
    parts = list(parts)
    events = [event for part in parts for event in part.events]
    replaced = {event.replaces for event in events}
    records: dict[int, tuple[str, str, list[Event]]] = {}
    steps: list[tuple[int, int, str, str, list[Event]]] = []
    for event in events:
        if event.at in replaced:
            continue
        if event.at not in records:
            records[event.at] = (event.record, event.parent, [])
        records[event.at][2].append(event)
    for at, (record, parent, blocks) in records.items():
        steps.append((at, 1, record, parent, sorted(blocks, key=lambda event: event.block)))
    links: list[Link] = [link for part in parts for link in part.links]
    # a link that gives up comes before the record that was read when it did
    steps += [(link.at, 0, link.record, link.parent, []) for link in links]
    steps.sort(key=lambda step: step[:2])

    placed: list[Event] = []
    held: dict[str, list[tuple[int, int, str, list[Event]]]] = {}

    def place(record: str, blocks: list[Event]) -> None:
        open_ = [(record, blocks)]
        while open_:
            name, here = open_.pop()
            placed.extend(here)
            children = held.pop(name, []) if name else []
            open_.extend((child, theirs) for _at, _rank, child, theirs in reversed(children))

    for at, rank, record, parent, blocks in steps:
        if parent:
            held.setdefault(parent, []).append((at, rank, record, blocks))
        else:
            place(record, blocks)
    rest = sorted((item for items in held.values() for item in items), key=lambda item: item[:2])
    for _at, _rank, _record, blocks in rest:
        placed.extend(blocks)
    return [_turned(event, parts) for event in placed]


def _turned(event: Event, parts: list[Parsed]) -> Event:
    """The event on the side on which the branches that were left have put it."""
    is_side = event.is_side
    for turn in (turn for part in parts for turn in part.turns):
        if turn.session == event.session and turn.first <= event.at <= turn.last:
            is_side = turn.is_side
    return event if is_side == event.is_side else msgspec.structs.replace(event, is_side=is_side)


def conversation(events: Iterable[Event]) -> list[list[str]]:
    """The visible messages of the main line as `[role, text]`, each event once."""
    seen = set()
    said = []
    for event in events:
        identity = (event.origin, event.block, event.kind, event.content)
        if event.is_side or identity in seen:
            continue
        seen.add(identity)
        if event.kind == "message":
            said.append([event.role, event.content])
    return said
