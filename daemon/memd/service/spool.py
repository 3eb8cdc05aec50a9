"""What hooks left for the daemon while it was away or busy: one small file each, taken in order and removed.

A note says which harness, event, directory and run, and when; nothing of a conversation. It is enough that
there is one: everything is looked at again then. Only where the text of a hook exists nowhere else it comes
with the note.

    memd-note1 NUL harness NUL event NUL cwd NUL run NUL pid NUL milliseconds NUL stdin    (`memctl.hook`)
"""

from __future__ import annotations

import errno
import re
import stat
import time
from collections.abc import Callable

import msgspec
import structlog
from msgspec.structs import replace

from memctl.hook import MAX_HOOK_BYTES, NOTE
from memd import disk
from memd.disk import Folder
from memd.errors import DiskError
from memd.service.hook_view import Waiting

MAX_NOTE_BYTES = MAX_HOOK_BYTES + (16 << 10)
_LATER = re.compile(rb"memd-note(?!1\0)[0-9]{1,9}\0")
UNFINISHED_S = 60.0  # a note that is still being written by then never will be

log = structlog.get_logger()


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """
    payload  empty but where the text exists nowhere else
    name     of its file, for the spool
    """

    harness: str
    event: str
    cwd: bytes
    run: str
    pid: int
    at_ms: int
    payload: bytes = b""
    name: bytes = b""


class Spool:
    """The folder of notes. Everything here reads the disk: it belongs in a thread."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._held: set[bytes] = set()
        self._has_told = False

    def waiting(self) -> Waiting:
        """How many there are and since when, by their names; raises DiskError."""
        folder = self._open()
        if folder is None:
            return Waiting()
        with folder:
            times = [_time_of(name) for name in folder.names() if not name.startswith(b".")]
        return Waiting(count=len(times), oldest_ms=min((at for at in times if at), default=0))

    def take(self, wants: Callable[[Note], bool]) -> list[Note]:
        """The oldest notes that are wanted, and no more than is held easily: ask again until there is none.
        Raises DiskError.

        A note without a text is removed before the next is read: one that is lost when the daemon ends before
        it looked is no loss, its next start looks at everything. One with a text stays until `let_go`, and is
        given once only. What is no note is removed too, and told in the log. A note of a later memd stays
        as it is, for that one.
        """
        folder = self._open()
        if folder is None:
            return []
        found: list[Note] = []
        with folder:
            try:
                self._take(folder, wants, found)
            except DiskError as reason:
                if not found:
                    raise
                log.info("spool.left", reason=str(reason))  # the next look tells what is the matter
        return sorted(found, key=lambda note: note.at_ms)

    def _take(self, folder: Folder, wants: Callable[[Note], bool], found: list[Note]) -> None:
        odd = held = 0
        for name in folder.names():
            if held > MAX_NOTE_BYTES:
                break
            if name.startswith(b"."):
                _clear(folder, name)
                continue
            data = None if name in self._held else _read(folder, name)
            if data is None or self._is_later(data):
                continue
            note = parse(data)
            if note is not None and not wants(note):
                continue
            if note is not None and note.payload:
                found.append(replace(note, name=name))
                held += len(note.payload)
                self._held.add(name)
                continue
            folder.remove(name)
            if note is None:
                odd += 1
            else:
                found.append(note)
        if odd:
            log.warning("spool.odd", files=odd)

    def _is_later(self, data: bytes) -> bool:
        if not _LATER.match(data):
            return False
        if not self._has_told:
            self._has_told = True
            log.warning("spool.newer", remedy="Run the memd that belongs to the hooks installed here.")
        return True

    def let_go(self, note: Note) -> None:
        """What this note says is kept elsewhere by now: it is removed. Raises DiskError."""
        if not note.name:
            return
        with disk.open_folder(self._path) as folder:
            folder.remove(note.name)
        self._held.discard(note.name)

    def give_back(self, note: Note) -> None:
        """Nothing came of it yet: it is taken again later."""
        self._held.discard(note.name)

    def _open(self) -> Folder | None:
        try:
            return disk.open_folder(self._path)
        except DiskError as reason:
            if reason.errno == errno.ENOENT:
                return None
            raise


def _read(folder: Folder, name: bytes) -> bytes | None:
    """What stands there; nothing for what is no note by its kind or size; None: leave it alone."""
    facts = folder.look(name)
    if facts is None or stat.S_ISDIR(facts.st_mode):
        return None
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_NOTE_BYTES:
        return b""
    try:
        return folder.read(name, MAX_NOTE_BYTES)
    except DiskError as reason:
        if reason.errno == errno.ENOENT:
            return None
        if reason.errno in (errno.EACCES, errno.EPERM):
            return b""  # left by an agent that somebody ran as root
        raise


def parse(data: bytes) -> Note | None:
    """The note; None: it is none."""
    parts = data.split(b"\0", 7)
    if len(parts) != 8 or parts[0] != NOTE or not (parts[5].isdigit() and parts[6].isdigit()):
        return None
    if len(parts[5]) > 10 or len(parts[6]) > 16:
        return None
    return Note(
        harness=parts[1].decode("utf-8", "replace"),
        event=parts[2].decode("utf-8", "replace"),
        cwd=parts[3],
        run=parts[4].decode("utf-8", "replace"),
        pid=int(parts[5]),
        at_ms=int(parts[6]),
        payload=parts[7],
    )


def _clear(folder: Folder, name: bytes) -> None:
    """Remove what a hook that was killed left half written."""
    facts = folder.look(name)
    if facts is not None and stat.S_ISREG(facts.st_mode) and time.time() - facts.st_mtime > UNFINISHED_S:
        folder.remove(name)


def _time_of(name: bytes) -> int:
    """Milliseconds, from a name that begins with microseconds; 0: it does not."""
    digits = name.partition(b"-")[0]
    return int(digits) // 1000 if digits.isdigit() and len(digits) <= 18 else 0
