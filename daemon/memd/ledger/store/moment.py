"""The ledger's database as it is at one moment, in a file of its own, and which segments belong to it.

The copy is made page by page inside one reading transaction, so writers go on meanwhile and it still shows a
single state. It holds every text: whoever asks for it takes it away again, and what a kill left goes when the
next one is made.
"""

from __future__ import annotations

import contextlib
import os
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import apsw
import zstandard

from memd import disk
from memd.errors import DiskError
from memd.ledger.segments import Segments, decompress
from memd.ledger.store import database, schema
from memd.ledger.store.interface import Damaged, TooNew

FOLDER: Final = b"backup"
"""Private, below the ledger's; there only while a backup is made."""

PAGES: Final = 512
"""Copied in one go: 2 MiB, after which whoever waits hears how far it is."""


class Held(NamedTuple):
    """A segment as the database counts it. size: of its lines, not compressed"""

    number: int
    harness: str
    size: int
    is_sealed: bool


def drop_copy(root: bytes) -> None:
    """Take a copy away, or what is left of one. Raises DiskError."""
    with disk.open_folder(root) as folder:
        if folder.look(FOLDER) is None:
            return
        with folder.folder(FOLDER) as below:
            for name in below.names():
                below.remove(name)
        folder.remove_folder(FOLDER)


@contextlib.contextmanager
def copied(root: bytes, note: Callable[[int, int], None]) -> Iterator[bytes]:
    """The path of a copy of the ledger in `root`, which is gone at the end of the block.

    note    is told bytes done and bytes in all, after every few; what it raises ends the copying
    raises  TooNew, DiskError, Damaged
    """
    path = os.path.join(root, FOLDER, database.FILE)
    drop_copy(root)
    try:
        with disk.open_folder(root) as folder:
            folder.ensure_folder(FOLDER)
        with database.saying("copy", os.path.join(root, database.FILE)):
            _copy(os.path.join(root, database.FILE), path, note)
        yield path
    finally:
        drop_copy(root)


def _copy(path: bytes, to: bytes, note: Callable[[int, int], None]) -> None:
    source = database.open_reader(path)
    with contextlib.closing(source), database.snapshot(source):
        source.execute("select count(*) from segments").get  # noqa: B018 - the moment is now
        page = source.pragma("page_size")
        assert isinstance(page, int)
        with contextlib.closing(apsw.Connection(os.fsdecode(to))) as target:
            target.pragma("synchronous", "off")
            target.pragma("journal_mode", "off")
            with target.backup("main", source, "main") as work:
                while not work.done:
                    work.step(PAGES)
                    note((work.page_count - work.remaining) * page, work.page_count * page)


def version_of(path: bytes) -> int:
    """The version of a database that nobody has open. Raises DiskError, Damaged."""
    with _opened(path) as connection:
        return schema.version(connection)


def segments_of(path: bytes) -> list[Held]:
    """The segments that a database names which nobody has open. Raises DiskError, Damaged."""
    with _opened(path) as connection:
        rows = database.fetch(connection, "select n, harness, bytes, state from segments order by n")
        return [Held(n, harness, size, state == "sealed") for n, harness, size, state in rows]


def check(path: bytes) -> None:
    """raises Damaged for a database that is not in order, TooNew for one of a later memd, DiskError"""
    with _opened(path) as connection:
        found = schema.version(connection)
        if found > schema.VERSION:
            raise TooNew(f"it has ledger version {found}; this memd knows versions up to {schema.VERSION}")
        said = connection.execute("pragma quick_check(1)").get
        if said != "ok":
            raise Damaged(f"its database is damaged: {said}")


@contextlib.contextmanager
def _opened(path: bytes) -> Iterator[apsw.Connection]:
    """A look that leaves nothing behind."""
    name = "file:" + urllib.parse.quote(path) + "?mode=ro&immutable=1"
    with database.saying("read", path):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(apsw.Connection(name, flags=flags)) as connection:
            yield connection


def lines_of(segments: Segments, held: Held) -> tuple[bytes, bool]:
    """A segment's bytes as they were at the moment, and whether they are its sealed form.

    Sealed meanwhile, it has the same lines under another name; grown, the lines of the moment come first.
    raises  Damaged when bytes are missing, DiskError
    """
    if held.is_sealed:
        data = segments.sealed_bytes(held.harness, held.number)
        try:
            plain = decompress(data)
        except zstandard.ZstdError as reason:
            raise Damaged(f"{segments.path(held.harness, held.number)}.zst is damaged: {reason}") from reason
    else:
        data = plain = _growing(segments, held)
    if len(plain) != held.size:
        raise Damaged(f"{segments.path(held.harness, held.number)} has {len(plain)} of its {held.size} bytes")
    return data, held.is_sealed


def _growing(segments: Segments, held: Held) -> bytes:
    if segments.size(held.harness, held.number) >= 0:
        with contextlib.suppress(DiskError):  # sealed between the look and the reading
            return segments.read_plain(held.harness, held.number)[: held.size]
    return segments.read_sealed(held.harness, held.number)[: held.size]
