"""From what an adapter parsed to batches for the store: ordered, scrubbed, cut, within the batch limits.

A source's cursor goes out with the last batch of what lies before it, and only while nothing before it is
held back for its place in the order. What is held goes out after `HOLD_S` at the latest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from memd.harness.model import Adapter, Event, Loss, Parsed, Session, Turn, event_id
from memd.ledger import cursor as cursors
from memd.ledger import documents, rows
from memd.ledger.cursor import FileCursor
from memd.ledger.messages import Ended, Rules
from memd.ledger.order import Order
from memd.ledger.reading import Reader, Slice
from memd.ledger.rules import Wanted
from memd.ledger.sanitiser import Sanitiser, as_bytes, cut
from memd.ledger.sources import Source
from memd.ledger.store.interface import BATCH_BYTES, BATCH_EVENTS, MAX_TEXT_BYTES, Batch, Entry

HOLD_S = 2.0
MAX_TITLE_BYTES = 400
MAX_METADATA_BYTES = 512
SHORT = MAX_METADATA_BYTES // 4  # characters of what is not looked at alone; within that whatever they are
TOGETHER = 16  # events whose names and short texts are looked at together
MAX_REMEMBERED_SESSIONS = 20_000
FAR = 1e9
_COLOURS = re.compile(rb"\x1b\[[0-9;:]*m")  # ECMA-48, Select Graphic Rendition


class Made(msgspec.Struct):
    """What one reading of a source gave: batches, where it stands now, and whether more is there."""

    batches: list[Batch]
    cursor: bytes
    is_more: bool


class _Pending(msgspec.Struct):
    """A source with records that wait for their place: what goes out when they have got it."""

    harness: str
    source: bytes
    order: Order
    since: float
    cursor: bytes = b""
    is_restart: bool = False
    losses: list[Loss] = []
    turns: list[Turn] = []
    sessions: list[Session] = []


class Assembly:
    """Holds the sanitiser, and of every source only what waits."""

    def __init__(self, rules: Rules, scratch: bytes = b"") -> None:
        self._scratch = scratch
        self._pending: dict[bytes, _Pending] = {}
        self._unwanted: dict[tuple[str, str], bool] = {}
        self._settings: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._sanitiser: Sanitiser | None = None
        self._settle(rules)

    def reconfigure(self, rules: Rules, scratch: bytes) -> None:
        self._scratch = scratch
        self._settle(rules)
        self._unwanted.clear()

    def _settle(self, rules: Rules) -> None:
        """A sanitiser takes megabytes and some 20 ms: it is made once for the same rules. One with a person's
        own patterns is made here: bad ones are no fault of a source.
        """
        settings = (rules.extra_patterns, rules.allowlist)
        if settings != self._settings:
            self._settings = settings
            self._sanitiser = Sanitiser(*settings) if any(settings) else None

    def prepare(self) -> None:
        """Make now what the first text needs: nobody waits for it yet."""
        self._clean()

    def _clean(self) -> Sanitiser:
        if self._sanitiser is None:
            self._sanitiser = Sanitiser(*self._settings)
        return self._sanitiser

    # ------------------------------------------------------------------------- reading

    def read(
        self,
        adapter: Adapter,
        source: Source,
        known: bytes,
        reader: Reader,
        wanted: Wanted,
        now: float,
    ) -> Made:
        """One slice of a source, of whatever kind it is; raises Unreadable."""
        if source.store.database:
            part = rows.read_database(adapter, source, cursors.row_cursor(known), self._scratch, _now_ms())
            return self._make(
                adapter.name,
                source.path,
                part.parsed,
                cursors.encode(part.cursor),
                False,
                part.is_more,
                wanted,
                now,
            )
        if source.store.documents:
            return self._read_documents(adapter, source, known, wanted, now)
        made = reader.read(source, cursors.file_cursor(known))
        if made is None:
            return Made([], b"", False)
        if not self._is_session_wanted(adapter.name, made, wanted):
            made.events, made.losses, made.sessions = [], [], []
        parsed = Parsed(
            events=[e if e.session else replace(e, session=made.session) for e in made.events],
            links=made.links,
            turns=made.turns,
            losses=[
                x if x.session else replace(x, session=made.session)
                for x in made.losses
                if x.session or made.session  # else nobody's: of a source of many
            ],
            sessions=made.sessions,
        )
        cursor = cursors.encode(made.cursor)
        return self._make(
            adapter.name, source.path, parsed, cursor, made.is_restart, made.is_more, wanted, now
        )

    def read_ended(
        self, adapter: Adapter, source: Source, known: bytes, ended: Ended, wanted: Wanted, now: float
    ) -> Made:
        """What the harness never completed in a session that is over; raises Unreadable."""
        if source.store.documents:
            return self._read_documents(adapter, source, known, wanted, now, is_ended=True)
        part = rows.read_ended(
            adapter, source, cursors.row_cursor(known), self._scratch, ended.session, ended.since_ms
        )
        cursor = cursors.encode(part.cursor)
        return self._make(adapter.name, source.path, part.parsed, cursor, False, False, wanted, now)

    def _read_documents(
        self,
        adapter: Adapter,
        source: Source,
        known: bytes,
        wanted: Wanted,
        now: float,
        *,
        is_ended: bool = False,
    ) -> Made:
        assert adapter.gather is not None
        is_at_rest = is_ended or rows.is_resting(source, _now_ms())
        stamp = documents.fingerprint(adapter.gather, source.store.root, source.rel) + b"\1" * is_at_rest
        before = cursors.row_cursor(known)
        if stamp == before.fingerprint:
            return Made([], known, False)
        parsed = rows.read_documents(adapter, source, is_at_rest=is_at_rest)
        cursor = cursors.encode(cursors.RowCursor(fingerprint=stamp))
        return self._make(adapter.name, source.path, parsed, cursor, True, False, wanted, now)

    def _is_session_wanted(self, harness: str, made: Slice, wanted: Wanted) -> bool:
        """By the first directory that the session named; a slice without one goes as its session went."""
        for session in made.sessions:
            self._judge(harness, session, wanted)
        return not self._unwanted.get((harness, made.session), False)

    def _judge(self, harness: str, session: Session, wanted: Wanted) -> None:
        key = (harness, session.id)
        if session.cwd and key not in self._unwanted:
            if len(self._unwanted) >= MAX_REMEMBERED_SESSIONS:
                self._unwanted.pop(next(iter(self._unwanted)))
            self._unwanted[key] = not all(map(wanted.directory, (session.cwd, *session.also)))

    # ----------------------------------------------------------------------- assembling

    def _make(
        self,
        harness: str,
        path: bytes,
        parsed: Parsed,
        cursor: bytes,
        is_restart: bool,
        is_more: bool,
        wanted: Wanted,
        now: float,
    ) -> Made:
        for session in parsed.sessions:
            self._judge(harness, session, wanted)
        held = self._pending.pop(path, None)
        if held is None or is_restart:
            held = _Pending(harness, path, Order(), now, is_restart=is_restart)
        events = held.order.feed(parsed)
        held.cursor = cursor
        held.losses += parsed.losses
        held.turns += parsed.turns
        held.sessions += parsed.sessions
        if held.order.is_holding:
            self._pending[path] = held
            return Made(self._batches(held, events, is_last=False), cursor, is_more)
        return Made(self._batches(held, events, is_last=True), cursor, is_more)

    def overdue(self, now: float) -> Iterator[Batch]:
        """What was held too long."""
        for path, held in list(self._pending.items()):
            if now >= held.since + HOLD_S:
                del self._pending[path]
                yield from self._batches(held, held.order.flush(), is_last=True)

    def release(self, is_kept: Callable[[bytes], bool]) -> Iterator[Batch]:
        """What is held, but of sources of which more is to come."""
        for path, held in list(self._pending.items()):
            if not is_kept(path):
                del self._pending[path]
                yield from self._batches(held, held.order.flush(), is_last=True)

    def due(self, now: float) -> float:
        """When something held will be overdue."""
        return min((held.since + HOLD_S for held in self._pending.values()), default=now + FAR)

    def is_holding(self) -> bool:
        return bool(self._pending)

    def _batches(self, held: _Pending, events: Sequence[Event], *, is_last: bool) -> list[Batch]:
        """The events in batches; the last carries cursor, losses and turns if nothing is held any more."""
        entries = self._entries(
            held.harness, [event for event in events if self._is_kept(held.harness, event.session)]
        )
        sessions = [self._session(s) for s in held.sessions if self._is_kept(held.harness, s.id)]
        held.sessions = []
        groups = list(_groups(entries)) or [[]]
        made = []
        for number, group in enumerate(groups):
            closes = is_last and number == len(groups) - 1
            if not (group or closes or sessions):
                continue
            made.append(
                Batch(
                    harness=held.harness,
                    source=held.source if closes else b"",
                    cursor=held.cursor if closes else b"",
                    entries=group,
                    losses=[loss for loss in held.losses if self._is_kept(held.harness, loss.session)]
                    if closes
                    else (),
                    turns=held.turns if closes else (),
                    sessions=sessions,
                    is_restart=held.is_restart and closes,
                )
            )
            sessions = []
        return made

    def _is_kept(self, harness: str, session: str) -> bool:
        return not self._unwanted.get((harness, session), False)

    def _entries(self, harness: str, events: Sequence[Event]) -> list[Entry]:
        """Events as the ledger keeps them. Names and short texts are looked at together: most are clean."""
        sanitiser = self._clean()
        entries: list[Entry] = []
        small: list[list[str]] = []  # of each
        for event in events:
            content = event.content
            raw = as_bytes(content)
            made_id = event_id(harness, event, raw)
            if b"\x1b" in raw or b"\0" in raw:
                # a word behind a colour must be found, and forgotten, as the word it is
                raw = _COLOURS.sub(b"", raw).replace(b"\0", b"")
                content = raw.decode("utf-8", "surrogatepass")
            names = [event.record, *[value for value in event.metadata.values() if isinstance(value, str)]]
            if len(content) <= SHORT:
                names.append(content)
            else:
                content = cut(sanitiser.scrub(content, raw), MAX_TEXT_BYTES)
            small.append(names)
            entries.append(
                Entry(
                    id=made_id,
                    session=event.session,
                    kind=event.kind,
                    role=event.role,
                    content=content,
                    at=event.at,
                    occurred_at=event.occurred_at,
                    record=event.record,
                    is_side=event.is_side,
                    replaces=event.replaces,
                    metadata=event.metadata,
                )
            )
        for start in range(0, len(entries), TOGETHER):
            near = range(start, min(start + TOGETHER, len(entries)))
            if not _are_clean(sanitiser, [name for number in near for name in small[number]]):
                for number in near:
                    if not _are_clean(sanitiser, small[number]):
                        entries[number] = _scrubbed(sanitiser, entries[number])
        return entries

    def _session(self, session: Session) -> Session:
        if not session.title:
            return session
        title = cut(self._clean().scrub(session.title.replace("\0", "")), MAX_TITLE_BYTES)
        return replace(session, title=title)


def _are_clean(sanitiser: Sanitiser, names: Sequence[str]) -> bool:
    """Whether all of these can stay as they are."""
    return max(map(len, names)) <= SHORT and sanitiser.is_clean(names)


def _scrubbed(sanitiser: Sanitiser, entry: Entry) -> Entry:
    """One whose names and short text were not looked at one by one yet."""

    def name(text: str) -> str:
        return cut(sanitiser.scrub(text), MAX_METADATA_BYTES)

    return replace(
        entry,
        content=sanitiser.scrub(entry.content) if len(entry.content) <= SHORT else entry.content,
        record=name(entry.record),
        metadata={
            key: name(value) if isinstance(value, str) else value for key, value in entry.metadata.items()
        },
    )


def _groups(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Entries in order, in groups within the batch limits."""
    group: list[Entry] = []
    size = 0
    for entry in entries:
        length = len(entry.content)
        if group and (len(group) == BATCH_EVENTS or size + length > BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append(entry)
        size += length
    if group:
        yield group


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def seen(source: Source, known: bytes) -> tuple[int, int, int] | None:
    """How a source looked when its cursor was made: inode, size, time. None: it has no such cursor."""
    if source.store.database or source.store.documents:
        return None
    cursor = cursors.file_cursor(known)
    return None if cursor is None else (cursor.inode, cursor.size_seen, cursor.mtime_ns)


def unread(source: Source, known: bytes) -> int:
    """Bytes of a source that were not dealt with yet, about."""
    if source.store.database or source.store.documents:
        return source.size
    cursor: FileCursor | None = cursors.file_cursor(known)
    return source.size if cursor is None else max(0, source.size - cursor.offset)
