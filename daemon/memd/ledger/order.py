"""The order of events of one source, as chunks of it come in. Pure; `memd.harness.model.Link` has the rules.

Nearly always that is file order. A record that names a `parent` waits for it; placing a record places what
waited for it. Whatever happens to the chain (a parent that never comes, a circle, two children of one
parent), nothing waits beyond a flush, and nothing is lost: what is flushed goes by its place in the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memd.harness.model import Event, Parsed

MAX_HELD = 512  # records that may wait; one more flushes them all
MAX_FLUSHED = 1024  # names of flushed records that are remembered, so that nobody waits for them again


class _Record(msgspec.Struct, gc=False):
    """A link (no events) or all events of one place, by block. A link goes before a record at its place."""

    at: int
    rank: int
    name: str
    parent: str
    session: str
    events: list[Event]

    @property
    def key(self) -> tuple[int, int]:
        return self.at, self.rank


class Order:
    """Feed it what an adapter parsed, in file order; it gives events in the order to show them."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], list[_Record]] = {}  # (session, parent) -> who waits for it
        self._count = 0
        self._flushed: dict[tuple[str, str], None] = {}

    @property
    def is_holding(self) -> bool:
        return self._count > 0

    def feed(self, parsed: Parsed) -> list[Event]:
        """Events that are placed now. Of what still waits, replaced events and turns are dealt with here."""
        if not self._count and _is_plain(parsed):
            return list(parsed.events)
        placed: list[Event] = []
        for record in _records(parsed):
            self._forget_replaced(record, placed)
            key = (record.session, record.parent)
            if record.parent and key not in self._flushed:
                self._held.setdefault(key, []).append(record)
                self._count += 1
                if self._count > MAX_HELD:
                    placed += self.flush()
            else:
                self._place(record, placed)
        for turn in parsed.turns:
            for record in self._waiting():
                if record.session == turn.session and turn.first <= record.at <= turn.last:
                    record.events = [msgspec.structs.replace(e, is_side=turn.is_side) for e in record.events]
        return placed

    def flush(self) -> list[Event]:
        """Everything that still waits, by its place in the file."""
        records = sorted(self._waiting(), key=lambda record: record.key)
        self._held.clear()
        self._count = 0
        for record in records:
            self._flushed[record.session, record.name] = None
            self._flushed[record.session, record.parent] = None
        for name in list(self._flushed)[:-MAX_FLUSHED]:
            del self._flushed[name]
        return [event for record in records for event in record.events]

    def _waiting(self) -> list[_Record]:
        return [record for records in self._held.values() for record in records]

    def _place(self, record: _Record, placed: list[Event]) -> None:
        """Place a record and, oldest first and depth first, what waited for it."""
        open_ = [record]
        while open_:
            here = open_.pop()
            placed += here.events
            children = self._held.pop((here.session, here.name), []) if here.name else []
            self._count -= len(children)
            open_ += sorted(children, key=lambda child: child.key, reverse=True)

    def _forget_replaced(self, record: _Record, placed: list[Event]) -> None:
        """Take out what this record replaces, where it has not gone out yet."""
        gone = {event.replaces for event in record.events if event.replaces >= 0}
        if not gone:
            return
        placed[:] = [event for event in placed if event.session != record.session or event.at not in gone]
        for other in self._waiting():
            if other.session == record.session and other.at in gone:
                other.events = []


def _is_plain(parsed: Parsed) -> bool:
    """Whether nothing in the chunk waits, is waited for, or takes something else away."""
    return not parsed.links and all(not event.parent and event.replaces < 0 for event in parsed.events)


def _records(parsed: Parsed) -> Sequence[_Record]:
    """The links and records of a chunk, in file order."""
    records: dict[tuple[str, int], _Record] = {}
    for event in parsed.events:
        made = records.get((event.session, event.at))
        if made is None:
            records[event.session, event.at] = _Record(
                event.at, 1, event.record, event.parent, event.session, [event]
            )
        else:
            made.events.append(event)
    for made in records.values():
        made.events.sort(key=lambda event: event.block)
    links = [_Record(link.at, 0, link.record, link.parent, link.session, []) for link in parsed.links]
    return sorted([*records.values(), *links], key=lambda record: record.key)
