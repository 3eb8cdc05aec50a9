"""Connections to the ledger's database, and SQLite's errors in memd's words.

The writer is the only connection that ever writes. It keeps the log short by itself only when asked
(`checkpoint`): a checkpoint inside a commit would add tens of milliseconds to whoever waits for it. `FULL`
makes every answered commit survive a power cut. Deleted text stays in free pages until `forget`, which alone
deletes text, writes the database anew: wiping pages all the time would cost every import a tenth.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from memd import disk
from memd.errors import DiskError, MemdError, TryAgain
from memd.ledger.store import schema
from memd.ledger.store.interface import Damaged, Interrupted

FILE: Final = b"ledger.sqlite3"
BUSY_MS: Final = 5000
LOG_BYTES: Final = 4 << 20
"""What the log is cut to once it has been brought in."""

WRITER_CACHE_KIB: Final = 16 * 1024
READER_CACHE_KIB: Final = 16 * 1024
PAGE_BYTES: Final = 8192
"""Of a new database: texts are long, and each page of a back-fill costs two calls of the system."""

BROKEN: Final = (
    "Put a backup back with `memctl restore FILE`. Without one: `memctl down`, move ledger.sqlite3 and what"
    " begins with that name out of the ledger's folder, `memctl up`, `memctl ledger check --repair`: the"
    " events come back from the segments, workstreams and handoffs do not."
)

_ERRNO: Final = (
    (apsw.FullError, errno.ENOSPC),
    (apsw.ReadOnlyError, errno.EROFS),
    (apsw.PermissionsError, errno.EACCES),
    (apsw.CantOpenError, errno.ENOENT),
    (apsw.NoMemError, errno.ENOMEM),
    (apsw.IOError, errno.EIO),
)


@contextlib.contextmanager
def saying(verb: str, path: bytes) -> Iterator[None]:
    """The one place where SQLite's errors become memd's. A statement that is wrong stays a bug."""
    try:
        yield
    except apsw.Error as error:
        told = translated(verb, path, error)
        if told is None:
            raise
        raise told from error


def translated(verb: str, path: bytes, error: apsw.Error) -> MemdError | None:
    if isinstance(error, apsw.InterruptError):
        return Interrupted("the query was called off")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return TryAgain(f"the ledger's database is in use: {error}")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return Damaged(f"the ledger's database is damaged: {error}", remedy=BROKEN)
    for kind, number in _ERRNO:
        if isinstance(error, kind):
            return DiskError(verb, path, OSError(number, os.strerror(number)))
    return None


def settle() -> None:
    """To be called at the start of a process that writes: SQLite keeps no account of its memory.

    It would take a lock for every piece of it, and nobody asks.
    """
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.initialize()


def open_writer(path: bytes, vfs: str | None = None) -> apsw.Connection:
    """The writing connection to an up-to-date database, which is made when missing.

    raises  TooNew for a database of a later memd, which stays as it was; DiskError, Damaged
    """
    shown = os.fsdecode(path)
    with saying("open", path):
        with disk.make_folders(os.path.dirname(path)) as folder:
            if folder.look(os.path.basename(path)) is not None:
                _refuse_newer(path, vfs)
            else:
                folder.create(os.path.basename(path), b"")  # private: SQLite would go by the umask
        connection = apsw.Connection(shown, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        with contextlib.ExitStack() as stack:
            stack.callback(let_go, connection)
            _settle(connection, WRITER_CACHE_KIB)
            connection.pragma("page_size", PAGE_BYTES)
            connection.pragma("auto_vacuum", 2)  # of a new database: `tidy` gives free pages back
            connection.pragma("journal_mode", "wal")
            connection.pragma("journal_size_limit", LOG_BYTES)
            connection.pragma("synchronous", "full")
            if sys.platform == "darwin":
                connection.pragma("fullfsync", True)
                connection.pragma("checkpoint_fullfsync", True)
            connection.wal_autocheckpoint(0)
            schema.migrate(connection)
            connection.pragma("foreign_keys", True)
            stack.pop_all()
    return connection


def _refuse_newer(path: bytes, vfs: str | None = None) -> None:
    """A look that leaves nothing behind: opening in the usual way makes side files."""
    shown = os.fsdecode(path)
    name = "file:" + urllib.parse.quote(path) + "?mode=ro"
    if disk.look(path + b"-wal") is None:
        name += "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with contextlib.closing(apsw.Connection(name, flags=flags, vfs=vfs)) as look:
        look.set_busy_timeout(BUSY_MS)
        schema.refuse_newer(look, shown)


def open_reader(path: bytes, vfs: str | None = None) -> apsw.Connection:
    """A connection that cannot write. Raises DiskError or Damaged."""
    with saying("open", path):
        _refuse_newer(path, vfs)
        connection = apsw.Connection(os.fsdecode(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
        with contextlib.ExitStack() as stack:
            stack.callback(let_go, connection)
            _settle(connection, READER_CACHE_KIB)
            stack.pop_all()
    return connection


def let_go(connection: apsw.Connection) -> None:
    """Close after an error: what closing has to say about it adds nothing."""
    with contextlib.suppress(apsw.Error):
        connection.close()


def _settle(connection: apsw.Connection, cache_kib: int) -> None:
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("trusted_schema", False)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", 2)  # in memory: a sort must not leave text in a file


@contextlib.contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """All or nothing. After an error in the commit itself nothing is in either."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    finally:
        # also after a failed commit; after some errors (disk full, I/O) SQLite has done so by itself
        if connection.in_transaction:
            connection.execute("rollback")


@contextlib.contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """All statements inside see one state of the database."""
    connection.execute("begin")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def fetch(connection: apsw.Connection, sql: str, bindings: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows whose columns have the types that the tables say."""
    return iter(connection.execute(sql, bindings))
