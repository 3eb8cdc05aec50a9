"""What memd remembers about one store, in the state folder: the write under way, lines it took out.

    <state>/topics/v1/settings.json        the last good settings, see `configuration`
    <state>/topics/v1/<store>/lock         held by whichever memd works on the store
    <state>/topics/v1/<store>/record.json  this

A write touches two files of the store, the topic and the index. Its record is made durable before the first
and cleared after the second; what a crash left is finished by whoever works on the store next, and asked for
again, it is recognised instead of done twice:

- a write with the key of one of the last writes was done: its asker lost the answer and tries again;
- so was one that says exactly what the very last write said, when a daemon died between it and now.

Losing this file loses no topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from memd import disk
from memd.memory.shared.index import NEWER

VERSION = b"v1"
MAX_FILE_BYTES = 64 << 20
REMOVED_LINE = "it was removed"  # why a line was taken out
MAX_RECENT = 64
MAX_DROPPED = 2000
MAX_CARRIED = 20_000
RETRY_MS = 600_000  # so much later the same words are new words


class Writing(msgspec.Struct, frozen=True, kw_only=True, tag_field="doing", tag="write"):
    """A write that was begun."""

    key: str
    digest: str  # of everything that was asked
    at_ms: int
    file: bytes
    name: str
    summary: str
    date: str
    body: str
    is_replaced: bool
    is_pinned: bool
    old: str  # digest of the topic before; empty: there was none
    new: str  # and after
    was_removed: bool  # whether the topic had a tombstone before


class Removing(msgspec.Struct, frozen=True, kw_only=True, tag_field="doing", tag="remove"):
    """A removal that was begun."""

    file: bytes
    line: bytes  # the first of those that go
    at_ms: int


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """A write that was done."""

    key: str
    digest: str
    at_ms: int
    file: bytes
    name: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was taken out of the index; restoring and repair use it."""

    file: bytes
    line: bytes
    reason: str
    at_ms: int


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A topic of another folder that was carried over once."""

    source: bytes
    file: bytes
    digest: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    pending: Writing | Removing | None = None
    recent: tuple[Recent, ...] = ()  # oldest first
    dropped: tuple[Line, ...] = ()  # oldest first
    absent: dict[bytes, int] = {}  # listed files that were missing, since when
    carried: tuple[Carried, ...] = ()

    def line_of(self, file: bytes) -> bytes:
        """The last line that a file had and lost; empty when none is known."""
        return next((line.line for line in reversed(self.dropped) if line.file == file), b"")

    def removal_of(self, matches: Callable[[bytes], bool], now_ms: int) -> bytes:
        """The line of a removal that is under way, or was done so lately that its asker may ask again."""
        if isinstance(self.pending, Removing) and matches(self.pending.line):
            return self.pending.line
        for line in reversed(self.dropped):
            if line.reason == REMOVED_LINE and matches(line.line) and 0 <= now_ms - line.at_ms <= RETRY_MS:
                return line.line
        return b""

    def lines(self) -> dict[bytes, bytes]:
        return {line.file: line.line for line in self.dropped if line.reason != NEWER}

    def with_recent(self, done: Recent) -> Record:
        return msgspec.structs.replace(self, pending=None, recent=(*self.recent, done)[-MAX_RECENT:])

    def with_dropped(self, lines: tuple[Line, ...]) -> Record:
        if not lines:
            return self
        return msgspec.structs.replace(self, dropped=(*self.dropped, *lines)[-MAX_DROPPED:])

    def repeated(self, key: str, digest: str, now_ms: int, answered: bool) -> Recent | None:
        """The write that this one repeats.

        answered  whether the asker of the last one is known to have been answered
        """
        for done in reversed(self.recent):
            if key and done.key == key:
                return done
        if self.recent and not answered:
            last = self.recent[-1]
            if last.digest == digest and 0 <= now_ms - last.at_ms <= RETRY_MS:
                return last
        return None


class Records:
    """The state of one store, written under its lock only."""

    def __init__(self, state: bytes, store: bytes) -> None:
        """`store` with all links resolved."""
        name = hashlib.sha256(store).hexdigest()[:24].encode("ascii")
        self.folder = state + b"/topics/" + VERSION + b"/" + name
        self._path = self.folder + b"/record.json"

    def read(self) -> Record:
        """What is remembered; nothing, when the file is missing or not understood. Raises DiskError."""
        data = disk.read_file(self._path, MAX_FILE_BYTES)
        if data is None:
            return Record()
        try:
            return msgspec.json.decode(data, type=Record)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Record()

    def write(self, record: Record) -> None:
        disk.replace_file(self._path, msgspec.json.encode(record))
