"""Changing one store while its lock is held: writes, removals, pins, repair, and what a crash left of them.

A write is written down before its first step, so that whoever works on the store next can finish it, see
`record`. The order of the steps is such that at no point something is lost:

    write    record, topic, index, tombstone cleared, record cleared
    remove   record, tombstone, index, record cleared. The topic's file stays
    others   one step: the index is exchanged whole
"""

from __future__ import annotations

import contextlib

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import DiskError, Refused, TryAgain, UsageError
from memd.memory.names import fitted
from memd.memory.shared import front
from memd.memory.shared.clock import Clock
from memd.memory.shared.index import (
    Dropped,
    Entry,
    entries_of,
    maintained,
    parse_line,
    with_entry,
    with_lines,
    with_pin,
    without,
)
from memd.memory.shared.matching import exact
from memd.memory.shared.record import REMOVED_LINE, Line, Recent, Record, Records, Removing, Writing
from memd.memory.shared.repairs import Misnamed, entry_for, lines_for, lost
from memd.memory.shared.rules import Rules
from memd.memory.shared.slugs import (
    EXTENSION,
    INDEX,
    comparable,
    file_of,
    folded,
    is_safe,
    stem_of,
    summary_of,
    topic_name,
)
from memd.memory.shared.store import MAX_TOPIC_BYTES, Store, digest_of
from memd.memory.shared.tombstones import REMOVED, added, cleared
from memd.protocol_memory import MAX_BODY_BYTES, WriteTopic

GONE_MS = 24 * 3_600_000  # a listed file may be away for so long: a sync, a rename, a disk not mounted


class Written(msgspec.Struct, frozen=True, kw_only=True):
    entry: Entry
    outcome: str  # created, appended, replaced, repeated
    kept: bytes = b""


class Work:
    """Made under the lock; `finish_pending` first."""

    def __init__(self, store: Store, records: Records, rules: Rules, clock: Clock, kept: bytes) -> None:
        """`kept` is the folder for texts that are replaced."""
        self.store = store
        self.record = records.read()
        self._records = records
        self._rules = rules
        self._clock = clock
        self._kept = kept

    # ------------------------------------------------------------------ writing a topic

    def write(self, ask: WriteTopic, *, answered: bool) -> Written:
        """Write a topic. raises UsageError, Refused, TryAgain, DiskError

        answered  whether the last write of this store is known to have been answered
        """
        name, summary = topic_name(ask.topic), summary_of(ask.summary)
        body = _body(ask)
        digest = digest_of(msgspec.json.encode([name, summary, body, ask.replace, ask.pin]))
        again = self.record.repeated(ask.key, digest, self._clock.now_ms(), answered)
        index = self.store.index()
        entries = entries_of(index)
        if again is not None:
            found = next((e for e in entries if e.file == again.file), None)
            return Written(entry=found or Entry(name=again.name, file=again.file), outcome="repeated")
        listed = exact(entries, name)
        if not stem_of(name):
            raise UsageError(
                f"{ask.topic!r} has no letter or digit to name a file after",
                remedy="Give the topic a name in words.",
            )
        if listed is not None and not listed.is_safe:
            raise Refused(
                f"the line of {name!r} names a file that may not be written",
                remedy="Correct or remove that line of MEMORY.md, or take another name.",
            )
        if listed is None and not summary:
            raise UsageError(
                f"{name!r} is a new topic and has no summary",
                remedy="Say in a line what it is about (--summary).",
            )
        file = listed.file if listed is not None else self._free_file(name, entries)
        old = self.store.topic(file)
        entry = Entry(
            name=listed.name if listed is not None else name,
            file=file,
            is_pinned=ask.pin or (listed is not None and listed.is_pinned),
            date=self._clock.stamp(),
            summary=summary or (listed.summary if listed is not None else ""),
        )
        new = _text(old, entry, body, ask.replace)
        if len(new) > MAX_TOPIC_BYTES:
            raise Refused(
                f"{shown(file)} would grow over {MAX_TOPIC_BYTES >> 20} MiB",
                remedy="Begin another topic, or write it anew with --replace.",
            )
        kept = self._keep(file, old) if ask.replace and old is not None else b""
        pending = Writing(
            key=ask.key,
            digest=digest,
            at_ms=self._clock.now_ms(),
            file=file,
            name=entry.name,
            summary=entry.summary,
            date=entry.date,
            body=body,
            is_replaced=ask.replace,
            is_pinned=entry.is_pinned,
            old=digest_of(old) if old is not None else "",
            new=digest_of(new),
            was_removed=file in self.store.removed(),
        )
        self._begin(pending)
        try:
            self._put_topic(pending, old, new)
            self._save_index(index, with_entry(index, entry))
        except (DiskError, Refused, TryAgain):
            self._undo(pending, old, new, index)
            raise
        self._clear_tombstone(file)
        self._done(pending)
        outcome = "created" if old is None else "replaced" if ask.replace else "appended"
        return Written(entry=entry, outcome=outcome, kept=kept)

    def _free_file(self, name: str, entries: list[Entry]) -> bytes:
        """The file of a topic that is not listed: a free name, or one that had this very topic before."""
        stem = stem_of(name)
        listed = {folded(entry.file) for entry in entries}
        on_disk = {folded(found): found for found in self.store.names()}
        for number in range(1, 10_000):
            file = file_of(stem, number)
            if not is_safe(file) or folded(file) in listed:
                continue
            there = on_disk.get(folded(file))
            if there is None:
                return file
            if is_safe(there) and self._is_of(there, name):
                return there
        raise Refused(f"too many topics are called {name!r}", remedy="Take another name.")

    def _is_of(self, file: bytes, name: str) -> bool:
        if not self.store.is_regular(file):
            return False
        content = self.store.topic(file)
        return content is not None and comparable(front.read_front(content).name) == comparable(name)

    def _keep(self, file: bytes, old: bytes) -> bytes:
        """Where a copy of what is about to be replaced is."""
        digest = digest_of(old)
        with disk.make_folders(self._kept) as folder:
            name = fitted(file, b"." + digest[:16].encode("ascii"))
            if not folder.create(name, old) and folder.read(name, MAX_TOPIC_BYTES) != old:
                raise Refused(f"{shown(folder.at(name))} is in the way", remedy="Move it away.")
            return folder.at(name)

    def _put_topic(self, pending: Writing, old: bytes | None, new: bytes) -> None:
        if old is not None:
            self.store.write(pending.file, new)
        elif not self.store.create(pending.file, new):
            raise TryAgain(f"{shown(pending.file)} appeared this very moment")

    def _undo(self, pending: Writing, old: bytes | None, new: bytes, index: bytes) -> None:
        """A step failed: the topic goes back to what it was. Where that fails as well, or the index has it
        already, the next one who works on the store finishes the write."""
        with contextlib.suppress(DiskError, Refused):
            if self.store.index() != index:
                return
            now = self.store.topic(pending.file)
            if now == new and old is None:
                self.store.take_back(pending.file, new)
            elif now == new and old is not None:
                self.store.write(pending.file, old)
            self._save(msgspec.structs.replace(self.record, pending=None))

    def _list(self, entry: Entry, index: bytes) -> None:
        """Put a topic's line in its place, and take its tombstone away."""
        self._save_index(index, with_entry(index, entry))
        self._clear_tombstone(entry.file)

    def _clear_tombstone(self, file: bytes) -> None:
        tombstones = self.store.tombstones()
        if cleared(tombstones, file) != tombstones:
            self.store.write(REMOVED, cleared(tombstones, file))

    # ------------------------------------------------------------------ other changes

    def remove(self, entry: Entry) -> None:
        """Take a topic off the index for good; its file stays. raises Refused when it is pinned, DiskError"""
        index = self.store.index()
        if any(e.is_pinned for e in entries_of(index) if e.file == entry.file):
            raise Refused(f"{entry.name!r} is pinned", remedy="Unpin it first: `memctl memory unpin`.")
        lines = without(index, entry.file)[1]
        pending = Removing(file=entry.file, line=lines[0] if lines else b"", at_ms=self._clock.now_ms())
        self._begin(pending)
        self._finish_removing(pending)

    def removed_lately(self, topic: str) -> Entry | None:
        """The topic of that name whose removal was cut off or may not have been answered."""

        def matches(line: bytes) -> bool:
            entry = parse_line(line)
            return entry is not None and comparable(topic) in (comparable(entry.name), folded(entry.file))

        return parse_line(self.record.removal_of(matches, self._clock.now_ms()))

    def restore(self, file: bytes) -> Entry:
        """Undo a removal. raises Refused when the file is not there or not fit, DiskError

        file  its name, which may lack `.md`, or the name of the topic that was removed
        """
        file = self._meant(file)
        if not is_safe(file) or not self.store.is_regular(file):
            raise Refused(
                f"there is no topic file {shown(file)} here", remedy="Give the name of a file in the store."
            )
        index = self.store.index()
        listed = next((entry for entry in entries_of(index) if entry.file == file), None)
        if listed is None:
            taken = {comparable(entry.name) for entry in entries_of(index)}
            old = self.record.line_of(file)
            listed = parse_line(old) or entry_for(file, self.store.topic(file) or b"", taken)
            self._list(msgspec.structs.replace(listed, file=file), index)
        else:
            self._list(listed, index)
        return listed

    def _meant(self, wanted: bytes) -> bytes:
        """The file that is to come back, as far as it can be told; else what was given."""
        for file in (wanted, wanted + EXTENSION):
            if is_safe(file) and self.store.is_regular(file):
                return file
        name = wanted.decode("utf-8", "surrogateescape")
        gone = [file for file in self.store.removed() if is_safe(file) and self._is_of(file, name)]
        return gone[0] if len(gone) == 1 else wanted

    def pin(self, entry: Entry, is_pinned: bool) -> bool:
        """Whether that changed anything; raises DiskError."""
        index = self.store.index()
        new = with_pin(index, entry.file, is_pinned)
        if new == index:
            return False
        self._save_index(index, new)
        return True

    def repair(self) -> tuple[list[Entry], list[Misnamed]]:
        """List what the index has lost; the lines added, and what could not be listed. raises DiskError"""
        index = self.store.index()
        found = lost(index, self.store.names(), self.store.regular(), self.store.removed())
        reported = list(found.misnamed)
        topics = []
        for file in found.files:
            try:
                content = self.store.topic(file)
            except (DiskError, Refused) as reason:
                reported.append(Misnamed(file, f"it cannot be read: {reason}", reason.remedy))
                continue
            if content is not None:
                topics.append((file, content))
        lines = [line for _, line in lines_for(index, topics, self.record.lines())]
        if lines:
            self.store.write(INDEX, with_lines(index, lines))
        entries = [parse_line(line) for line in lines]
        return [entry for entry in entries if entry is not None], reported

    def add_lines(self, lines: list[bytes]) -> None:
        """Lines at the end of the index; everything else in it stays as it is. raises DiskError"""
        index = self.store.index()
        if lines or not self.store.has_index():
            self.store.write(INDEX, with_lines(index, lines))

    def remember(self, record: Record) -> None:
        if record != self.record:
            self._save(record)

    # ------------------------------------------------------------------ after a crash

    def finish_pending(self) -> bool:
        """Finish what somebody began; whether there was anything. raises DiskError, Refused"""
        match self.record.pending:
            case None:
                return False
            case Removing() as pending:
                self._finish_removing(pending)
            case Writing() as pending:
                self._finish_writing(pending)
        return True

    def _finish_removing(self, pending: Removing) -> None:
        tombstones = self.store.tombstones()
        if added(tombstones, (pending.file,)) != tombstones:
            self.store.write(REMOVED, added(tombstones, (pending.file,)))
        index = self.store.index()
        new, gone = without(index, pending.file)
        if gone:
            self._save_index(index, new)
        lines = gone or ([pending.line] if pending.line else [])
        at_ms = self._clock.now_ms()
        kept = (Line(file=pending.file, line=line, reason=REMOVED_LINE, at_ms=at_ms) for line in lines)
        self._save(msgspec.structs.replace(self.record.with_dropped(tuple(kept)), pending=None))

    def _finish_writing(self, pending: Writing) -> None:
        """Go on where it ended, unless somebody removed the topic since."""
        if not is_safe(pending.file) or (pending.file in self.store.removed() and not pending.was_removed):
            self._save(msgspec.structs.replace(self.record, pending=None))
            return
        entry = Entry(
            name=pending.name,
            file=pending.file,
            is_pinned=pending.is_pinned,
            date=pending.date,
            summary=pending.summary,
        )
        now = self.store.topic(pending.file)
        if not _has(now, pending):
            new = _text(now, entry, pending.body, pending.is_replaced)
            if now is None:
                self.store.create(pending.file, new)
            else:
                self.store.write(pending.file, new)
        self._list(entry, self.store.index())
        self._done(pending)

    # ------------------------------------------------------------------ index and record

    def _save_index(self, old: bytes, new: bytes) -> None:
        """Write the index, put in order. Lines that are taken out of it are remembered first."""
        now_ms = self._clock.now_ms()
        absent = self._absent(new, now_ms)
        gone = {file for file, since in absent.items() if now_ms - since > GONE_MS}
        ordered, dropped = maintained(
            new, now_ms=now_ms, stale_after_days=self._rules.stale_after_days, gone=gone
        )
        kept = {file: since for file, since in absent.items() if file not in gone}
        record = msgspec.structs.replace(self.record, absent=kept)
        record = record.with_dropped(tuple(_line(line, now_ms) for line in dropped))
        self.remember(record)
        if ordered != old or not self.store.has_index():
            self.store.write(INDEX, ordered)

    def _absent(self, index: bytes, now_ms: int) -> dict[bytes, int]:
        """Listed files that are not there, and since when that is known."""
        there = set(self.store.names())
        known = self.record.absent
        missing = {e.file for e in entries_of(index) if e.is_safe and e.file not in there}
        return {file: min(known.get(file, now_ms), now_ms) for file in sorted(missing)}

    def _begin(self, pending: Writing | Removing) -> None:
        self._save(msgspec.structs.replace(self.record, pending=pending))

    def _done(self, pending: Writing) -> None:
        self._save(
            self.record.with_recent(
                Recent(
                    key=pending.key,
                    digest=pending.digest,
                    at_ms=self._clock.now_ms(),
                    file=pending.file,
                    name=pending.name,
                )
            )
        )

    def _save(self, record: Record) -> None:
        self._records.write(record)
        self.record = record


def _body(ask: WriteTopic) -> str:
    body = ask.body.replace("\r\n", "\n").replace("\0", "")
    if not body.strip():
        raise UsageError("there is nothing to write", remedy="Give the topic's text on standard input.")
    if len(body.encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        raise UsageError(
            f"the text is longer than {MAX_BODY_BYTES >> 10} KiB", remedy="Write it in several topics."
        )
    if not topic_name(ask.topic):
        raise UsageError(f"{ask.topic!r} is no name for a topic", remedy="Give the topic a name in words.")
    return body


def _text(old: bytes | None, entry: Entry, body: str, is_replaced: bool) -> bytes:
    if old is None:
        return front.new_file(entry.name, entry.summary, entry.date, body)
    if is_replaced:
        return front.replaced(old, entry.name, entry.summary, entry.date, body)
    return front.appended(old, entry.summary, entry.date, body)


def _has(content: bytes | None, pending: Writing) -> bool:
    """Whether a topic has what a write was to put in it, also when others wrote to it since."""
    if content is None:
        return False
    digest = digest_of(content)
    if digest == pending.new:
        return True
    if digest == pending.old:
        return False
    plain = content.replace(b"\r\n", b"\n")
    if pending.is_replaced or not pending.old:
        return pending.body.strip("\n").encode() in plain
    return front.section(pending.date, pending.body).strip(b"\n") in plain


def _line(dropped: Dropped, now_ms: int) -> Line:
    return Line(file=dropped.file, line=dropped.line, reason=dropped.reason, at_ms=now_ms)
