"""Writing a backup: everything that cannot be made anew, as of one moment, into one file that is checked.

The file is written under a temporary name in its folder, read back and compared with its own sums, and only
then gets its name, which must be free. So whoever finds a file of that name has a whole backup.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import zstandard

from memctl.paths import shown
from memd import disk
from memd.errors import DiskError, Refused
from memd.ledger.segments import Segments
from memd.ledger.store import moment
from memd.service import backup_format as form
from memd.service import backup_read
from memd.service.backup_places import Roots

LEVEL = 3
MAX_SMALL_BYTES = 1 << 30
MAX_DEPTH = 64
MAGIC = b"\x28\xb5\x2f\xfd"

Note = Callable[[str, int, int], None]
"""Told what is done, and bytes done and in all; what it raises ends the work."""


class Small(NamedTuple):
    """A file that is held in memory."""

    name: bytes
    mtime_s: int
    data: bytes


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """left_out  links and other things in memd's folders that are no files"""

    path: bytes
    size: int
    files: int
    left_out: tuple[bytes, ...] = ()


class Collected(NamedTuple):
    files: list[Small]
    left_out: list[bytes]


def collect(roots: Roots) -> Collected:
    """The small files as they are now. Raises DiskError, Refused when they are too many."""
    found = Collected([], [])
    room = [MAX_SMALL_BYTES]
    for name in form.FILES:
        path = roots.path(name)
        facts = disk.follow(path)
        if facts is None:
            continue
        if not stat.S_ISREG(facts.st_mode):
            found.left_out.append(path)
            continue
        with disk.open_folder(os.path.dirname(os.path.realpath(path))) as folder:
            _take(folder, os.path.basename(os.path.realpath(path)), name, found, room)
    for tree in form.TREES:
        if disk.follow(roots.path(tree)) is not None:
            with disk.open_folder(roots.path(tree)) as folder:
                _collect_tree(folder, tree, found, room, MAX_DEPTH)
    return found


def _collect_tree(folder: disk.Folder, name: bytes, found: Collected, room: list[int], depth: int) -> None:
    for one in folder.names():
        facts = folder.look(one)
        if facts is None or disk.is_temporary(one) or one == b".lock" or one.endswith(b".lock"):
            continue
        if stat.S_ISREG(facts.st_mode):
            _take(folder, one, name + b"/" + one, found, room)
        elif stat.S_ISDIR(facts.st_mode) and depth:
            with folder.folder(one) as below:
                _collect_tree(below, name + b"/" + one, found, room, depth - 1)
        else:
            found.left_out.append(folder.at(one))


def _take(folder: disk.Folder, one: bytes, name: bytes, found: Collected, room: list[int]) -> None:
    try:
        facts, data = folder.look(one), folder.read(one, room[0])
    except DiskError as reason:
        if folder.look(one) is None:
            return  # gone since it was listed
        if reason.errno == 27:  # EFBIG
            raise Refused(
                f"the small files of a backup take more than {MAX_SMALL_BYTES >> 30} GiB with {shown(name)}",
                remedy="Make the local store of topics smaller.",
            ) from None
        raise
    room[0] -= len(data)
    found.files.append(Small(name, int(facts.st_mtime) if facts else 0, data))


class Writer:
    """Writes one backup. `roots` are memd's folders, `memd` its version."""

    def __init__(self, roots: Roots, memd: str, note: Note) -> None:
        self._roots = roots
        self._memd = memd
        self._note = note
        self._sums: dict[bytes, str] = {}
        self._done = 0
        self._total = 0

    def write(self, path: bytes, small: Collected, now_s: float) -> Written:
        """The backup at `path`, durable and checked.

        raises  Refused when something has that name, DiskError, Damaged, BackupDamaged
        """
        parent, name = os.path.split(path)
        ledger = self._roots.data + b"/ledger"
        with disk.open_folder(parent) as folder:
            if folder.look(name) is not None:
                raise _taken(path)
            _clear(folder)
            with moment.copied(ledger, lambda done, total: self._note("copying", done, total)) as copy:
                fresh = folder.write_temporary(self._compressed(copy, small, now_s))
            try:
                facts = folder.look(fresh)
                size = facts.st_size if facts else 0
                backup_read.verify(folder, fresh, lambda done: self._note("checking", done, size))
                folder.move(fresh, folder, name)
            except DiskError as reason:
                folder.remove(fresh)
                if reason.errno == 17:  # EEXIST
                    raise _taken(path) from None
                raise
            except BaseException:
                folder.remove(fresh)
                raise
            folder.sync()
        return Written(
            path=path, size=size, files=len(self._sums) - 1, left_out=tuple(sorted(small.left_out))
        )

    def _compressed(self, copy: bytes, small: Collected, now_s: float) -> Iterator[bytes]:
        work = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
        for chunk in self._archive(copy, small, now_s):
            if packed := work.compress(chunk):
                yield packed
        yield work.flush()

    def _archive(self, copy: bytes, small: Collected, now_s: float) -> Iterator[bytes]:
        now = int(now_s)
        held = moment.segments_of(copy)
        facts = disk.look(copy)
        assert facts is not None
        self._total = (
            facts.st_size + sum(one.size for one in held) + sum(len(one.data) for one in small.files)
        )
        head = form.header(self._memd, moment.version_of(copy), int(now_s * 1000))
        yield from self._whole(form.HEADER, now, msgspec.json.format(msgspec.json.encode(head)) + b"\n")
        for one in small.files:
            yield from self._whole(one.name, one.mtime_s, one.data)
        yield from form.member(form.DATABASE, facts.st_size, now, self._database(copy))
        segments = Segments(self._roots.data + b"/ledger")
        try:
            for part in held:
                data, is_sealed = moment.lines_of(segments, part)
                name = b"%s/%s/%08d.jsonl" % (form.SEGMENTS, part.harness.encode(), part.number)
                yield from self._whole(name + (b".zst" if is_sealed else b""), now, data, part.size)
        finally:
            segments.close()
        sums = form.render_sums(self._sums)
        yield from form.member(form.SUMS, len(sums), now, (sums,))
        yield form.end()

    def _whole(self, name: bytes, mtime_s: int, data: bytes, counts: int = -1) -> Iterator[bytes]:
        self._sums[name] = hashlib.sha256(data).hexdigest()
        yield from form.member(name, len(data), mtime_s, (data,))
        self._step(len(data) if counts < 0 else counts)

    def _database(self, copy: bytes) -> Iterator[bytes]:
        digest = hashlib.sha256()
        with disk.open_folder(os.path.dirname(copy)) as folder:
            for chunk in folder.chunks(os.path.basename(copy)):
                digest.update(chunk)
                yield chunk
                self._step(len(chunk))
        self._sums[form.DATABASE] = digest.hexdigest()

    def _step(self, count: int) -> None:
        self._done += count
        self._note("writing", self._done, max(self._total, self._done))


def _taken(path: bytes) -> Refused:
    return Refused(f"{shown(path)} is there already", remedy="Give another name; a backup replaces nothing.")


def _clear(folder: disk.Folder) -> None:
    """Take away what killed backups left here; other things with such names are not ours to judge."""
    for name in folder.names():
        if not disk.is_temporary(name):
            continue
        facts = folder.look(name)
        if facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            continue
        for chunk in folder.chunks(name):
            if chunk[:4] == MAGIC:
                folder.remove(name)
            break
