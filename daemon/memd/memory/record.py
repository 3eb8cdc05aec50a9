"""What memd remembers about one agent between runs, in the state folder. The only writer of these files.

    <state>/memory/v1/known.json           config homes that clients used; folders our links lead to
    <state>/memory/v1/<agent>/lock         held while an agent's memory is worked on
    <state>/memory/v1/<agent>/record.json  the last result per entry; what was merged from where
    <state>/memory/v1/<agent>/journal-*    what is being done right now, see `journal`

All of it can be lost without losing a note: then folders are looked at anew. So a file that cannot be
understood counts as missing, and is put aside before it would be overwritten. A later version of these
formats gets another `v1`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from memd import disk
from memd.errors import DiskError
from memd.memory.acting import Won
from memd.memory.journal import Journal
from memd.memory.leftovers import remove_temporaries
from memd.memory.merge import Seen
from memd.protocol import Entry, LeftBehind

VERSION = b"v1"
MAX_FILE_BYTES = 64 << 20
MAX_CARRIED = 20_000  # the newest are kept
MAX_SOURCES = 64  # per agent; the newest are kept
MAX_KNOWN = 256
LOCK_WAIT_S = 10.0

T = TypeVar("T")


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was merged and may still be written to by whoever had it open."""

    path: bytes
    ino: int
    entry: bytes  # the entry it belonged to
    label: bytes
    changed_ms: int  # when it was set aside, or last had something new
    seen: tuple[Seen, ...] = ()
    left: tuple[LeftBehind, ...] = ()
    won: tuple[Won, ...] = ()  # notes it won whose index lines have yet to follow

    def seen_by_rel(self) -> dict[bytes, Seen]:
        return {s.rel: s for s in self.seen}


class Carried(msgspec.Struct, frozen=True):
    """A note that has been in the owned folder: missing from it now, it was deleted on purpose."""

    rel: bytes
    digest: bytes
    at_ns: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    entries: tuple[Entry, ...] = ()
    sources: tuple[Source, ...] = ()
    carried: tuple[Carried, ...] = ()

    def carried_once(self) -> dict[tuple[bytes, bytes], int]:
        return {(c.rel, c.digest): c.at_ns for c in self.carried}

    def with_carried(self, live: Iterable[tuple[bytes, bytes]], at_ns: int) -> Record:
        """The same with notes that are in the owned folder now; one that was there before keeps its time."""
        known = self.carried_once()
        new = [Carried(rel, digest, at_ns) for rel, digest in live if (rel, digest) not in known]
        if not new:
            return self
        return msgspec.structs.replace(self, carried=(*self.carried, *new)[-MAX_CARRIED:])

    def with_source(self, source: Source) -> Record:
        """The same with this source in place of what was known about its folder."""
        others = tuple(s for s in self.sources if s.ino != source.ino and s.path != source.path)
        return msgspec.structs.replace(self, sources=(*others, source)[-MAX_SOURCES:])

    def begun_anew(self, now_ms: int) -> Record:
        """The same for an owned folder that is made anew: what was set aside is merged again.

        The old folder is gone altogether, so nobody deleted its notes one by one.
        """
        if not (self.carried or self.sources):
            return self
        anew = tuple(msgspec.structs.replace(s, seen=(), changed_ms=now_ms) for s in self.sources)
        return msgspec.structs.replace(self, carried=(), sources=anew)

    def source_at(self, path: bytes, ino: int) -> Source | None:
        """What is known about a folder, by its place or, where it was moved, by itself."""
        for source in self.sources:
            if source.ino == ino and source.path == path:
                return source
        return next((s for s in self.sources if s.ino == ino), None)


class Target(msgspec.Struct, frozen=True):
    """An owned folder that links of ours lead to, or led to once."""

    path: bytes
    ino: int


class Known(msgspec.Struct, frozen=True, kw_only=True):
    config_homes: tuple[bytes, ...] = ()
    targets: tuple[Target, ...] = ()


class Records:
    """The state folder's part for memory."""

    def __init__(self, state: bytes) -> None:
        self._folder = state + b"/memory/" + VERSION

    def of(self, agent_home: bytes) -> AgentFiles:
        name = hashlib.sha256(agent_home).hexdigest()[:24].encode("ascii")
        return AgentFiles(self._folder + b"/" + name, agent_home)

    def known(self) -> Known:
        return _read(self._folder + b"/known.json", Known) or Known()

    def remember(self, *, config_homes: Iterable[bytes] = (), targets: Iterable[Target] = ()) -> Known:
        """Add to what is known; writes only when that is new. Raises DiskError, TryAgain."""
        known = self.known()
        if not _news(known.config_homes, config_homes) and not _news(known.targets, targets):
            return known
        with disk.take_lock(self._folder + b"/lock", wait_s=LOCK_WAIT_S):
            known = self.known()
            known = Known(
                config_homes=(*known.config_homes, *_news(known.config_homes, config_homes))[-MAX_KNOWN:],
                targets=(*known.targets, *_news(known.targets, targets))[-MAX_KNOWN:],
            )
            _write(self._folder + b"/known.json", known)
        return known

    def clean(self) -> None:
        """Take away what a crash left half-written; raises DiskError, TryAgain."""
        if disk.look(self._folder) is not None:
            with disk.take_lock(self._folder + b"/lock", wait_s=LOCK_WAIT_S):
                remove_temporaries(self._folder)


class AgentFiles:
    """The files of one agent. `record` and `journal` are written under `lock` only."""

    def __init__(self, folder: bytes, agent_home: bytes) -> None:
        self._folder = folder
        self._home = agent_home

    @contextlib.contextmanager
    def lock(self, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
        """Keep every other memd from this agent's memory; raises TryAgain, DiskError.

        The file here keeps away those with the same state folder on any file system; the lock on the agent's
        home itself also those of another login or user, where its file system can do that.
        """
        with disk.take_lock(self._folder + b"/lock", wait_s=wait_s):
            shared = disk.take_folder_lock(self._home, wait_s=wait_s)
            try:
                yield
            finally:
                if shared is not None:
                    shared.release()

    def record(self) -> Record:
        return _read(self._folder + b"/record.json", Record) or Record()

    def save(self, record: Record) -> None:
        _write(self._folder + b"/record.json", record)

    def journals(self) -> tuple[Journal, ...]:
        """What was begun and not finished; raises DiskError."""
        if disk.look(self._folder) is None:
            return ()
        with disk.open_folder(self._folder) as folder:
            names = [n for n in folder.names() if n.startswith(b"journal-") and n.endswith(b".json")]
        found: list[Journal | None] = [_read(self._folder + b"/" + name, Journal) for name in names]
        return tuple(journal for journal in found if journal is not None)

    def write_journal(self, journal: Journal) -> None:
        _write(self._folder + b"/" + _journal_name(journal), journal, Journal)

    def clear_journal(self, journal: Journal) -> None:
        with disk.open_folder(self._folder) as folder:
            if folder.look(_journal_name(journal)) is not None:
                folder.remove(_journal_name(journal))
                folder.sync()

    def clean(self) -> None:
        """Take away what a crash left half-written here; under `lock` only."""
        remove_temporaries(self._folder)


def _journal_name(journal: Journal) -> bytes:
    return b"journal-%b.json" % hashlib.sha256(journal.path).hexdigest()[:24].encode("ascii")


def _news(known: tuple[T, ...], found: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(item for item in found if item not in known))


def _read(path: bytes, kind: type[T] | Any) -> T | None:
    """A file of ours; None when it is missing or not understood. Raises DiskError."""
    data = disk.read_file(path, MAX_FILE_BYTES)
    if data is None:
        return None
    try:
        content: T = msgspec.json.decode(data, type=kind)
        return content
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _write(path: bytes, content: msgspec.Struct, kind: Any = None) -> None:
    if _read(path, kind or type(content)) is None:
        _put_aside(path)
    disk.replace_file(path, msgspec.json.encode(content))


def _put_aside(path: bytes) -> None:
    if disk.look(path) is None:
        return
    with disk.open_folder(os.path.dirname(path)) as folder:
        name = os.path.basename(path)
        for number in range(1, 1000):
            try:
                folder.move(name, folder, b"%b.unreadable-%d" % (name, number))
                return
            except DiskError as reason:
                if reason.errno == errno.ENOENT:  # another process was first
                    return
                if reason.errno != errno.EEXIST:
                    raise
