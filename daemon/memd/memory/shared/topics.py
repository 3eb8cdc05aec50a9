"""The topics of the store in use: what the rest of the daemon calls.

Every method answers with a result of `memd.protocol_memory` and raises MemdErrors. They block: the daemon
calls them in threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import MemdError, NotFound, Refused
from memd.memory.shared import front, searching
from memd.memory.shared.access import Access, Active, Places
from memd.memory.shared.carry_overs import CarryOvers
from memd.memory.shared.clock import Clock
from memd.memory.shared.configuration import Configuration
from memd.memory.shared.index import INITIAL, Entry, entries_of
from memd.memory.shared.lock import StoreLock
from memd.memory.shared.matching import find
from memd.memory.shared.repairs import lost
from memd.memory.shared.store import make_store
from memd.memory.shared.work import Work
from memd.protocol_memory import Changed, Hit, Hits, Repaired, Topic, Topics, TopicText, Unlisted, WriteTopic

MAX_HITS = 100


class TopicStore:
    """One object for a daemon, which knows whether it has answered the last write."""

    def __init__(
        self,
        places: Places,
        configuration: Configuration,
        clock: Clock | None = None,
        *,
        make_lock: Callable[[bytes, Clock], StoreLock] = StoreLock,
    ) -> None:
        self.access = Access(places, configuration, clock or Clock(), make_lock)
        self.carry_overs = CarryOvers(self.access)
        self._answered: set[bytes] = set()

    # ------------------------------------------------------------------ reading

    def list_topics(self) -> Topics:
        active = self._for_reading()
        with self.access.reading(active) as store:
            if store is None:
                return Topics(
                    store=active.path, is_shared=active.is_shared, notes=self._notes(active), topics=()
                )
            names = set(store.names())
            index = store.index()
            return Topics(
                store=active.path,
                is_shared=active.is_shared,
                notes=self._notes(active),
                topics=tuple(
                    topic_row(e, e.file not in names) for e in _once(entries_of(index)) if e.is_safe
                ),
                unlisted=len(lost(index, names, store.regular(), store.removed()).files),
            )

    def read(self, topic: str) -> TopicText:
        active = self._for_reading()
        with self.access.reading(active) as store:
            entry = find(entries_of(store.index() if store is not None else INITIAL), topic)
            content = store.topic(entry.file) if store is not None else None
            if store is None or content is None:
                raise Refused(
                    f"the file of {entry.name!r}, {shown(entry.file)}, is not there",
                    remedy="It may come back with the next sync; else remove the topic.",
                )
            return TopicText(
                store=active.path,
                is_shared=active.is_shared,
                notes=self._notes(active),
                topic=topic_row(entry),
                path=store.folder.at(entry.file),
                content=content,
            )

    def search(self, words: str, limit: int) -> Hits:
        active = self._for_reading()
        found: list[tuple[int, Hit]] = []
        with self.access.reading(active) as store:
            for entry in _once(entries_of(store.index())) if store is not None else ():
                if store is None or not entry.is_safe:
                    continue
                try:
                    content = store.topic(entry.file)
                except MemdError:
                    continue
                body = front.body_of(content or b"").decode("utf-8", "replace")
                fit = searching.match(words, entry.name, entry.summary, body)
                if fit is not None:
                    found.append((fit.score, Hit(topic=topic_row(entry, content is None), lines=fit.lines)))
        found.sort(key=lambda pair: -pair[0])
        shown_hits = max(1, min(limit, MAX_HITS))
        return Hits(
            store=active.path,
            is_shared=active.is_shared,
            notes=self._notes(active),
            hits=tuple(hit for _, hit in found[:shown_hits]),
            left_out=max(0, len(found) - shown_hits),
        )

    def unlisted(self) -> int:
        """How many topics no line leads to, in the shared store; 0 in the local one."""
        active = self.access.active()
        if not active.is_shared:
            return 0
        with self.access.reading(active) as store:
            if store is None:
                return 0
            return len(lost(store.index(), store.names(), store.regular(), store.removed()).files)

    def index(self) -> bytes:
        """The index of the store in use."""
        with self.access.reading(self._for_reading()) as store:
            return store.index() if store is not None else INITIAL

    # ------------------------------------------------------------------ changing

    def write(self, ask: WriteTopic) -> Changed:
        with self._working() as (active, work, real):
            answered = real in self._answered
            self._answered.discard(real)
            done = work.write(ask, answered=answered)
            self._answered.add(real)
            return self._changed(active, work, done.entry, done.outcome, done.kept)

    def remove(self, topic: str) -> Changed:
        with self._working() as (active, work, _):
            try:
                entry = find(entries_of(work.store.index()), topic)
            except NotFound:
                lately = work.removed_lately(topic)
                if lately is None:
                    raise
                return self._changed(active, work, lately, "removed")
            work.remove(entry)
            return self._changed(active, work, entry, "removed")

    def restore(self, file: str) -> Changed:
        with self._working() as (active, work, _):
            entry = work.restore(os.fsencode(file))
            return self._changed(active, work, entry, "restored")

    def pin(self, topic: str, is_pinned: bool) -> Changed:
        with self._working() as (active, work, _):
            entry = find(entries_of(work.store.index()), topic)
            changed = work.pin(entry, is_pinned)
            outcome = ("pinned" if is_pinned else "unpinned") if changed else "unchanged"
            return self._changed(active, work, msgspec.structs.replace(entry, is_pinned=is_pinned), outcome)

    def repair(self) -> Repaired:
        with self._working() as (active, work, _):
            added, reported = work.repair()
            return Repaired(
                store=active.path,
                is_shared=active.is_shared,
                notes=self._notes(active),
                added=tuple(topic_row(entry) for entry in added),
                reported=tuple(Unlisted(file=m.file, reason=m.reason, remedy=m.remedy) for m in reported),
            )

    def recover(self) -> bool:
        """Finish what a crash left in the store in use; whether there was anything. A busy store is left."""
        active = self.access.active()
        if active.in_force.error or disk.look(active.path) is None:
            return False
        with make_store(active.path) as store:
            if self.access.records(active.path).read().pending is None:
                return False
            with self.access.locked(store, active, waits=False) as work:
                return work.finish_pending()

    # ------------------------------------------------------------------ the parts of it all

    def _for_reading(self) -> Active:
        """The store in use; what is due to be carried over is, unless somebody is in the way."""
        with contextlib.suppress(MemdError):  # its `trouble` tells it
            self.carry_overs.ensure(waits=False)
        return self.access.active()

    @contextlib.contextmanager
    def _working(self) -> Iterator[tuple[Active, Work, bytes]]:
        """The store in use, locked, everything before this finished; and its real path."""
        self.access.for_writing()
        self.carry_overs.ensure(waits=True)
        active = self.access.for_writing()
        with make_store(active.path) as store, self.access.locked(store, active, waits=True) as work:
            work.finish_pending()
            yield active, work, os.path.realpath(active.path)

    def lock_holder(self) -> str:
        """Who holds the lock of the store in use, in words; empty when nobody does."""
        active = self.access.active()
        with self.access.reading(active) as store:
            return "" if store is None else self.access.lock_of(active.path).describe(store.folder)

    def _notes(self, active: Active) -> tuple[str, ...]:
        return (
            *active.notes,
            *((self.carry_overs.trouble,) if self.carry_overs.trouble and active.is_shared else ()),
        )

    def _changed(self, active: Active, work: Work, entry: Entry, outcome: str, kept: bytes = b"") -> Changed:
        return Changed(
            store=active.path,
            is_shared=active.is_shared,
            notes=self._notes(active),
            topic=topic_row(entry),
            path=work.store.folder.at(entry.file),
            outcome=outcome,  # type: ignore[arg-type]
            kept=kept,
        )


def topic_row(entry: Entry, is_missing: bool = False) -> Topic:
    """An entry as it goes over the wire, which takes no half characters."""

    def text(value: str) -> str:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    return Topic(
        name=text(entry.name),
        file=entry.file.decode("utf-8", "replace"),
        is_pinned=entry.is_pinned,
        is_stale=entry.is_stale,
        is_missing=is_missing,
        date=entry.date,
        summary=text(entry.summary),
    )


def _once(entries: list[Entry]) -> list[Entry]:
    """The first of the entries for each file."""
    found: dict[bytes, Entry] = {}
    for entry in entries:
        found.setdefault(entry.file, entry)
    return list(found.values())
