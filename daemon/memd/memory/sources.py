"""Folders that were merged and set aside: who had them open may still write there, and that is merged, too.

They are looked at again by every run for a week after the last change in them: one lstat per name.
"""

from __future__ import annotations

import errno
import os

import msgspec

from memd import disk
from memd.disk import Folder
from memd.errors import DiskError
from memd.memory import tree
from memd.memory.journal import Recheck
from memd.memory.merge import is_settled
from memd.memory.plan import Tally
from memd.memory.record import Source
from memd.memory.work import Work

WATCHED_MS = 7 * 24 * 3600 * 1000

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def open_real(path: bytes) -> Folder | None:
    """A folder that is a folder itself, not a link; None when there is none. Raises DiskError."""
    try:
        with disk.open_folder(os.path.dirname(path)) as holder:
            return holder.folder(os.path.basename(path))
    except DiskError as reason:
        if reason.errno in _GONE:
            return None
        raise


def open_source(source: Source) -> Folder | None:
    """The folder that was set aside; None when it is gone or another one has its name. Raises DiskError."""
    folder = open_real(source.path)
    if folder is not None and folder.facts().st_ino != source.ino:
        folder.close()
        return None
    return folder


def is_watched(source: Source, now_ms: int) -> bool:
    return now_ms - source.changed_ms < WATCHED_MS


def has_news(source: Source, now_ms: int) -> bool:
    """Whether something in there was not merged yet; raises DiskError."""
    if not is_watched(source, now_ms):
        return False
    folder = open_source(source)
    if folder is None:
        return False
    with folder:
        return not is_settled(tree.survey(folder), source.seen_by_rel())


class Kept(msgspec.Struct, frozen=True):
    """Old notes that memd keeps and never deletes: a folder that was set aside, or `_superseded`."""

    path: bytes
    files: int
    size_bytes: int


def kept_in(path: bytes) -> Kept | None:
    """How much there is in a folder; None for no folder and for an empty one. Raises DiskError."""
    folder = open_real(path)
    if folder is None:
        return None
    with folder:
        sizes = [found.size for found in tree.survey(folder) if found.kind == "file"]
    return Kept(path, len(sizes), sum(sizes)) if sizes else None


def with_another_try(source: Source, now_ms: int) -> Source:
    """The same, but what could not be read is tried again, however old it is."""
    readable = tuple(s for s in source.seen if s.digest)
    if len(readable) == len(source.seen):
        return source
    return msgspec.structs.replace(source, seen=readable, changed_ms=now_ms)


def merge_news(work: Work, source: Source) -> tuple[Source, Tally]:
    """Merge what is new in a folder that was set aside; raises DiskError."""
    folder = open_source(source)
    if folder is None:
        return source, Tally()
    is_resumed = source.path in work.won
    won = (*source.won, *work.won.pop(source.path, ()))
    journal = Recheck(path=source.path, ino=source.ino, won=won)
    with folder, work.open_owned() as owned:
        merge = work.merge(owned, folder, source.label, journal, is_resumed=is_resumed)
        merge.run()
        noted = work.note_merged(merge, folder, source.path, source.entry, source.label)
    if noted == msgspec.structs.replace(source, changed_ms=noted.changed_ms):
        noted = source  # trouble that is still the same is no news
        work.record = work.record.with_source(noted)
    else:
        work.save()
    work.files.clear_journal(journal)
    return noted, merge.tally
