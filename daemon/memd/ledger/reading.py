"""Reads a source slice by slice and hands whole records to its adapter. Read-only, bounded in memory.

A slice ends at the last newline within its budget. A record longer than the budget is read whole up to
`MAX_READ_BYTES`; a longer one is stepped over and counted as a loss. What follows the last newline is
unfinished and waits.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from memd import seldom
from memd.harness.losses import CLASSES
from memd.harness.model import Adapter, Event, Link, Loss, Session, Turn
from memd.ledger import cursor as cursors
from memd.ledger import troubles
from memd.ledger.cursor import FileCursor
from memd.ledger.sources import Source, storable

if TYPE_CHECKING:
    import zstandard
else:
    zstandard = seldom.module("zstandard")  # few harnesses compress what they write

SLICE_BYTES = 2 << 20
MAX_READ_BYTES = 16 << 20
IDENTIFY_BYTES = (64 << 10, 1 << 20, 8 << 20)  # how much of a beginning an adapter is shown, until it knows
SCAN_BYTES = 1 << 20
BESIDE_BYTES = 1 << 20  # of a file that says which session another one is


class Slice(msgspec.Struct, kw_only=True):
    """What one read gave. `cursor` is where it ended; `is_more` says that more is there now."""

    session: str
    cursor: FileCursor
    is_restart: bool
    is_more: bool
    size: int  # bytes dealt with
    events: list[Event] = []
    links: list[Link] = []
    turns: list[Turn] = []
    losses: list[Loss] = []
    sessions: list[Session] = []


class Unreadable(Exception):
    """A source that cannot be read now: says why. Read again when it changed, or soon if that will pass.

    remedy  what a person can do about it; empty where there is nothing to do but to wait
    """

    def __init__(self, why: str, *, remedy: str = troubles.LEFT_ALONE, is_passing: bool = False) -> None:
        super().__init__(why)
        self.remedy = remedy
        self.is_passing = is_passing


def _refused(reason: OSError) -> Unreadable:
    """What the system said when a source was to be read. A change of its mode alone shows in no look."""
    why = reason.strerror or str(reason)
    if isinstance(reason, FileNotFoundError):
        return Unreadable(why, remedy="", is_passing=True)
    if isinstance(reason, PermissionError):
        return Unreadable(why, remedy=troubles.READABLE, is_passing=True)
    return Unreadable(why, is_passing=True)


class Plain:
    """A file as it was when it was opened; what is appended meanwhile is for the next look."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size

    def read_at(self, offset: int, size: int) -> bytes:
        size = min(size, self._size - offset)  # else room is made for what is not there
        parts = []
        while size > 0:
            part = os.pread(self._fd, size, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        os.close(self._fd)


class Cold:
    """A Zstandard file as the bytes in it, read forward; going back starts over."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._at = 0
        self._stream = self._open()

    def _open(self) -> zstandard.ZstdDecompressionReader:
        os.lseek(self._fd, 0, os.SEEK_SET)
        raw = os.fdopen(os.dup(self._fd), "rb")
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return decompressor.stream_reader(raw, read_across_frames=True)

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            if offset < self._at:
                self._stream.close()  # type: ignore[no-untyped-call]
                self._stream, self._at = self._open(), 0
            while self._at < offset:
                skipped = len(self._stream.read(min(SCAN_BYTES, offset - self._at)))
                if not skipped:
                    return b""
                self._at += skipped
            parts = []
            while size > 0:
                part = self._stream.read(min(SCAN_BYTES, size))
                if not part:
                    break
                parts.append(part)
                size -= len(part)
                self._at += len(part)
            return b"".join(parts)
        except zstandard.ZstdError as reason:
            raise Unreadable(f"not whole Zstandard data: {reason}") from None

    def close(self) -> None:
        self._stream.close()  # type: ignore[no-untyped-call]
        os.close(self._fd)


class Reader:
    """Reads sources of harnesses; keeps the last cold one open, since it can only be read forward."""

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters
        self._cold: tuple[tuple[bytes, int, int, int], Cold] | None = None
        self._prefix = cursors.Prefix()

    def read(self, source: Source, known: FileCursor | None, budget: int = SLICE_BYTES) -> Slice | None:
        """The next slice of a source: from where `known` stands, or all of it when the file is another.

        returns None when there is nothing to do yet: nothing new, or no session can be told from it so far
        raises  Unreadable
        """
        adapter = self._adapters[source.harness]
        if adapter.parse is None:
            return None
        stream, size, inode, device, mtime_ns = self._open(source)
        try:
            return self._read(adapter, source, stream, known, budget, (size, inode, device, mtime_ns))
        except OSError as reason:
            raise _refused(reason) from None
        finally:
            if isinstance(stream, Plain):
                stream.close()

    def session_of(self, source: Source) -> Session | None:
        """The session that a source names as it is now; None: none so far. raises Unreadable"""
        adapter = self._adapters[source.harness]
        stream = self._open(source)[0]
        try:
            about, mark = self._about(adapter, source)
            return about if mark else self._begin(adapter, source, stream)
        except OSError as reason:
            raise _refused(reason) from None
        finally:
            if isinstance(stream, Plain):
                stream.close()

    def _read(
        self,
        adapter: Adapter,
        source: Source,
        stream: Plain | Cold,
        known: FileCursor | None,
        budget: int,
        facts: tuple[int, int, int, int],
    ) -> Slice | None:
        size, inode, device, mtime_ns = facts
        mtime_ns = max(mtime_ns, source.mtime_ns)
        about, mark = self._about(adapter, source)
        is_cold = isinstance(stream, Cold)
        here = (source.path, size, inode, device, mtime_ns)
        whole = partial(self._prefix.whole, here, stream.read_at) if source.store.rewrites else None
        if known is not None and is_cold:
            is_same = (known.inode, known.device, known.size_seen, known.mtime_ns) == (
                inode,
                device,
                size,
                mtime_ns,
            )
        else:
            is_same = known is not None and cursors.continues(
                known,
                stream.read_at,
                inode=inode,
                device=device,
                size=size,
                whole=whole,
                loose=source.store.head,
            )
        if mark and known is not None and known.session not in ("", about.id if about else ""):
            if about is None:
                return None  # it named a session before: half written now, or gone
            is_same = False
        if known is not None and is_same and (known.session or known.state):
            session, offset, state = known.session, known.offset, known.state
        else:
            begun = about if mark else self._begin(adapter, source, stream)
            if begun is None:
                return _no_session(FileCursor(inode, device, 0, size_seen=size, mtime_ns=mtime_ns))
            session, state = begun.id, adapter.begin(begun, source.store.flavor)
            offset = 0
        assert adapter.parse is not None
        made = Slice(
            session=session,
            cursor=FileCursor(inode, device, offset),
            is_restart=not is_same,
            is_more=False,
            size=0,
        )
        chunk = stream.read_at(offset, budget)
        if b"\n" not in chunk and len(chunk) == budget:
            chunk = stream.read_at(offset, MAX_READ_BYTES)
            if b"\n" not in chunk and len(chunk) == MAX_READ_BYTES:
                end = _next_line(stream, offset + len(chunk))
                if end is None:
                    return None  # still being written
                made.losses.append(_oversized(session))
                made.size = end - offset
                chunk = b""
        if chunk:
            parsed = adapter.parse(chunk, offset, state)
            made.events, made.links = list(parsed.events), list(parsed.links)
            made.turns = list(parsed.turns)
            made.losses += parsed.losses
            made.sessions = list(parsed.sessions)
            made.size = parsed.consumed
            state = parsed.state
        if about is not None and (made.is_restart or known is None or known.beside != mark):
            made.sessions.insert(0, about)
        if not made.size and not made.is_restart and not made.sessions:
            return None
        offset += made.size
        made.is_more = bool(made.size) and (offset < size if not is_cold else bool(stream.read_at(offset, 1)))
        head, tail = (b"", b"") if is_cold else cursors.windows(stream.read_at, offset, source.store.head)
        made.cursor = FileCursor(
            inode,
            device,
            offset,
            head,
            tail,
            b"" if whole is None else whole(offset),
            session,
            state,
            size,
            mtime_ns,
            mark,
        )
        return made

    def _about(self, adapter: Adapter, source: Source) -> tuple[Session | None, bytes]:
        """What the file beside a source says, and what stands for it; nothing where there is none to ask."""
        beside = adapter.beside(source.rel)
        if not beside:
            return None, b""
        content = _small_file(source.store.root + b"/" + beside)
        if content is None:
            return None, b"none"
        return adapter.identify(source.rel, content, source.store.flavor), cursors.digest(content)

    def _begin(self, adapter: Adapter, source: Source, stream: Plain | Cold) -> Session | None:
        """The session of a source that is read from its start."""
        for size in IDENTIFY_BYTES:
            head = stream.read_at(0, size)
            session = adapter.identify(source.rel, head, source.store.flavor)
            if session is not None:
                return session
            if len(head) < size:
                return None
        raise Unreadable(f"no session can be told from its first {IDENTIFY_BYTES[-1] >> 20} MiB")

    def _open(self, source: Source) -> tuple[Plain | Cold, int, int, int, int]:
        try:
            fd = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as reason:
            raise _refused(reason) from None
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            os.close(fd)
            raise Unreadable("not a regular file")
        plain = (facts.st_size, facts.st_ino, facts.st_dev, storable(facts.st_mtime_ns))
        if not source.path.endswith(b".zst"):
            return (Plain(fd, facts.st_size), *plain)
        key = (source.path, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if self._cold is not None and self._cold[0] == key:
            os.close(fd)
            return (self._cold[1], *plain)
        self.close()
        self._cold = (key, Cold(fd))
        return (self._cold[1], *plain)

    def close(self) -> None:
        if self._cold is not None:
            self._cold[1].close()
            self._cold = None


def _small_file(path: bytes) -> bytes | None:
    """A regular file of at most `BESIDE_BYTES`; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > BESIDE_BYTES:
            return None
        return Plain(fd, facts.st_size).read_at(0, facts.st_size)
    except OSError:
        return None
    finally:
        os.close(fd)


def _no_session(cursor: FileCursor) -> Slice:
    """A file that names no session, or not yet: it is asked again when it has changed."""
    return Slice(session="", cursor=cursor, is_restart=False, is_more=False, size=0)


def _next_line(stream: Plain | Cold, offset: int) -> int | None:
    """Where the line after the one at `offset` begins; None when this one has no end yet."""
    while True:
        part = stream.read_at(offset, SCAN_BYTES)
        if not part:
            return None
        found = part.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(part)


def _oversized(session: str) -> Loss:
    return Loss(session=session, what="oversized", sentence=CLASSES["oversized"])
