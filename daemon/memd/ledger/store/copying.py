"""Copying a whole ledger from one engine into another, by what both promise: nothing here knows an engine.

Sessions go first, the ones of longest ago before the others, each as batches of its own events; then what
was lost and how far sources were read; then workstreams with the very sequences of their views, their links,
runs and deliveries; then handoffs and what must never come back. Everything is named by ids, so what is there
already is left alone: a copy that was cut off is simply begun again, and a ledger that holds another
machine's events takes these in beside them. The source is only read.

What was replaced or forgotten left gaps between the positions of a session; in the copy they are dense, and a
session was last active when something in its main line was said. The record ids that lines of segments carry
are not rows, and stay with the segments.

At the end both are read once more and compared, event by event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from memd.errors import Refused
from memd.harness.model import Loss, Session
from memd.ledger.store.interface import (
    BATCH_BYTES,
    BATCH_EVENTS,
    Batch,
    Entry,
    Filter,
    Reader,
    SessionRow,
    StoredEvent,
    Writer,
)
from memd.ledger.store.moving import Moving, SqliteMoving
from memd.ledger.store.workstream_reading import WorkstreamReading
from memd.ledger.store.workstreams import UNRESOLVED, Work, Workstream

CURSORS_PAGE: Final = 500
NUMBERS_PAGE: Final = 2000
COPIED: Final = b"copied:"
"""The source that losses of a session stand under whose own sources are not told apart any more."""

Tell = Callable[[str, int, int], None]
"""What is being done, how much of it, of how much."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied or found there, and what does not agree afterwards. kept: first versions that stay"""

    sessions: int = 0
    events: int = 0
    workstreams: int = 0
    handoffs: int = 0
    cursors: int = 0
    kept: int = 0
    problems: tuple[str, ...] = ()


class Copy:
    """source, target: readers of both; writer: of the target"""

    def __init__(self, source: Reader, target: Reader, writer: Writer, tell: Tell) -> None:
        self._source = source
        self._target = target
        self._writer = writer
        self._tell = tell

    def run(self, *, with_forgotten: bool = True) -> Copied:
        """Copy and compare. raises Refused while an agent runs, and what engines raise"""
        if self._source.workstreams.active_runs():
            raise Refused("an agent is running under memd", remedy="Quit it, then migrate again.")
        if with_forgotten:
            record = _moving(self._source.workstreams).record()
            self._writer.work(lambda work: _moving(work).put_record(record))
        rows = self._sessions()
        for number, row in enumerate(rows):
            self._tell("sessions", number, len(rows))
            self._copy_session(row)
        cursors = self._copy_cursors()
        lines = self._workstreams(self._source)
        for number, line in enumerate(lines):
            self._tell("workstreams", number, len(lines))
            self._copy_workstream(line)
        handoffs = self._copy_handoffs()
        problems, events, kept = self._compare(rows, lines)
        return Copied(
            sessions=len(rows),
            events=events,
            workstreams=len(lines),
            handoffs=handoffs,
            cursors=cursors,
            kept=kept,
            problems=tuple(problems),
        )

    # ------------------------------------------------------------------------------- sessions

    def _sessions(self) -> list[SessionRow]:
        """All that there are, longest ago first: what is newest gets the highest numbers."""
        rows = self._source.sessions(Filter())
        rows.reverse()
        for line in self._workstreams(self._source):
            for run in _moving(self._source.workstreams).runs_of(line.id):
                rows += self._source.find(UNRESOLVED + run.id)
        return rows

    def _copy_session(self, row: SessionRow) -> None:
        self._copy_events(row)
        self._copy_losses(row)

    def _copy_events(self, row: SessionRow) -> None:
        there = {one.event_id for one in _own(self._target, row)}
        if there and all(one.event_id in there for one in _own(self._source, row)):
            return
        said = Session(
            id=row.id,
            cwd=row.cwd,
            title=row.title,
            started=row.started,
            version=row.version,
            is_side=row.is_side,
            parent=row.parent,
            forked_from=row.forked_from,
            forked_at=row.forked_at,
        )
        sessions: tuple[Session, ...] = (said,)
        for entries in _groups(_own(self._source, row)):
            self._writer.append(Batch(harness=row.harness, entries=entries, sessions=sessions))
            sessions = ()
        if sessions:
            self._writer.append(Batch(harness=row.harness, sessions=sessions))

    def _copy_losses(self, row: SessionRow) -> None:
        source = COPIED + f"{row.harness}:{row.id}".encode()
        losses = [
            Loss(session=row.id, what=one.what, sentence=one.sentence, count=one.count)
            for one in self._source.losses(row.harness, row.id)
        ]
        if losses:
            self._writer.append(
                Batch(harness=row.harness, source=source, cursor=b"", losses=losses, is_restart=True)
            )
            self._writer.drop_source(source)

    # -------------------------------------------------------------------------------- cursors

    def _copy_cursors(self) -> int:
        after, count = b"", 0
        while page := self._source.cursors(after, CURSORS_PAGE):
            for source, value in page.items():
                # no batch of these has losses: what was counted for a source stands under its session
                self._writer.append(Batch(harness="memd", source=source, cursor=value))
            count += len(page)
            self._tell("sources", count, count)
            after = max(page)
        return count

    # ---------------------------------------------------------------------------- workstreams

    def _workstreams(self, reader: Reader) -> list[Workstream]:
        looking = reader.workstreams
        found = [
            line for scope in looking.scopes() for line in looking.in_scope(scope.workspace, scope.project)
        ]
        return list({line.id: line for line in sorted(found, key=lambda one: one.created_ms)}.values())

    def _copy_workstream(self, line: Workstream) -> None:
        looking = self._source.workstreams
        numbers = _moving(looking).numbers(line.id)
        links, runs = looking.linked(line.id), _moving(looking).runs_of(line.id)
        deliveries = [found for run in runs if (found := looking.delivery(run.id)) is not None]

        def make(work: Work) -> None:
            moving = _moving(work)
            if work.workstream(line.id) is None:
                names = {row.name for row in work.workstreams(line.place)}
                work.put_workstream(replace(line, name=_free(line.name, names), last_sequence=0))
            for start in range(0, len(numbers), NUMBERS_PAGE):
                moving.put_numbers(line.id, numbers[start : start + NUMBERS_PAGE])
            there = {(one.harness, one.session) for one in work.linked(line.id)}
            for one in reversed(links):
                if (one.harness, one.session) not in there:
                    work.put_linked(line.id, one)
            for run in runs:
                if work.run(run.id) is None:
                    work.put_run(run)
            for delivery in deliveries:
                if work.delivery(delivery.run) is None:
                    work.put_delivery(delivery)

        self._writer.work(make)

    def _copy_handoffs(self) -> int:
        rows = _moving(self._source.workstreams).all_handoffs()

        def make(work: Work) -> None:
            for row in rows:
                if work.handoff(row.id) is not None:
                    continue
                others = work.handoffs(row.workspace, row.project, 1)
                if row.state == "open" and others and others[0].state == "open":
                    work.put_handoff(replace(row, state="replaced", ended_ms=work.moment.wall_ms))
                else:
                    work.put_handoff(row)

        self._writer.work(make)
        return len(rows)

    # ------------------------------------------------------------------------------ comparing

    def _compare(self, rows: list[SessionRow], lines: list[Workstream]) -> tuple[list[str], int, int]:
        """What does not agree, how many events were compared, and of how many another version stays."""
        problems: list[str] = []
        events = kept = 0
        for number, row in enumerate(rows):
            self._tell("comparing", number, len(rows))
            there = {one.event_id: _digest(one) for one in _own(self._target, row)}
            for one in _own(self._source, row):
                events += 1
                found = there.get(one.event_id)
                if found is None and not self._target.has_forgotten(one.event_id):
                    problems.append(f"{row.harness} {row.id}: event {one.event_id} is not there")
                elif found is not None and found != _digest(one):
                    kept += 1
            mine = sum(loss.count for loss in self._source.losses(row.harness, row.id))
            theirs = sum(loss.count for loss in self._target.losses(row.harness, row.id))
            if theirs < mine:
                problems.append(f"{row.harness} {row.id}: {mine} losses became {theirs}")
        for line in lines:
            theirs_numbers = dict(_moving(self._target.workstreams).numbers(line.id))
            missing = sum(
                theirs_numbers.get(sequence) != event
                for sequence, event in _moving(self._source.workstreams).numbers(line.id)
            )
            if missing:
                problems.append(f"workstream {line.id}: {missing} events have not the sequence they had")
        return problems, events, kept


def _own(reader: Reader, row: SessionRow) -> Iterator[StoredEvent]:
    """What stands in the session itself, beside the main line too."""
    return (one for one in reader.export(row.harness, row.id, side=True) if one.session == row.id)


def _groups(events: Iterable[StoredEvent]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    size = 0
    for one in events:
        if group and (len(group) >= BATCH_EVENTS or size + len(one.content) > BATCH_BYTES):
            yield group
            group, size = [], 0
        size += len(one.content)
        group.append(
            Entry(
                id=one.event_id,
                session=one.session,
                kind=one.kind,  # type: ignore[arg-type]
                role=one.role,
                content=one.content,
                at=one.at,
                occurred_at=one.occurred_at,
                is_side=one.is_side,
                metadata=one.metadata,
            )
        )
    if group:
        yield group


def _digest(one: StoredEvent) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    facts: tuple[Any, ...] = (
        one.kind,
        one.role,
        one.content,
        one.occurred_at,
        sorted(one.metadata.items()),
        one.at,
        one.is_side,
    )
    digest.update(msgspec.msgpack.encode(facts))
    return digest.digest()


def _free(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free in taken:
        free = f"{name} {number}"
        number += 1
    return free


def _moving(looking: object) -> Moving:
    """What is behind a reader's `workstreams`, or a transaction, asked for more than its interface says."""
    if isinstance(looking, WorkstreamReading):
        return SqliteMoving(looking)
    from memd.ledger.store.postgres import moving, workstream_reading

    assert isinstance(looking, workstream_reading.WorkstreamReading)
    return moving.PostgresMoving(looking)
