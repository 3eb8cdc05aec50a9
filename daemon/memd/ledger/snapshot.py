"""Reading another program's SQLite store without leaving a trace in its folder.

What lies beside the database decides how it is opened (`_way`):

    live    `-wal` and `-shm` are there, also after a kill: `mode=ro` with a read-only `-shm`. SQLite then
            takes shared locks and writes no byte, not even a read mark; where nobody else has the store open
            it builds the index of the log in its own memory.
    still   no log (or an empty one without `-shm`): `immutable=1`, which locks nothing and opens nothing
            beside the file. It would not see a log, so the folder is looked at again afterwards.
    copy    a log without `-shm`, or a rollback journal that was left behind: both files are copied into
            `scratch`, and SQLite makes its side files there.

`mode=ro` alone would make a missing `-wal` or `-shm`, and a harness that quits removes both at any moment.
So a live store is opened under a shared lock on the range of the database file that SQLite itself uses: the
log is only removed under the exclusive lock, which nobody gets meanwhile. POSIX locks belong to the process:
closing any descriptor of a file drops all its locks on it, also those of an open connection. Hence one
snapshot at a time per store and process, and `fingerprint` never opens the database of a live one.

Nothing here checkpoints: the connection is read-only, and `NO_CKPT_ON_CLOSE` is set as well. Hooks that would
run on every new connection (`apsw.connection_hooks`, which `apsw.bestpractice` fills) must not be used in a
process that takes snapshots, because the usual ones change the journal mode.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from memd import disk, seldom
from memd.errors import DiskError, MemdError
from memd.harness.model import Query, Store

if TYPE_CHECKING:
    from urllib import parse

    import apsw
else:
    apsw = seldom.module("apsw")  # few harnesses keep a database
    parse = seldom.module("urllib.parse")  # with it comes a module about addresses of networks

BUSY_MS = 250  # waiting for a lock that the harness holds; it holds one for milliseconds
WORK_S = 30.0  # one snapshot: a statement that runs longer is interrupted
ATTEMPTS = 3  # a store that moves under a reader is read again this often
MAX_COPY_BYTES = 2 << 30
MAX_FETCH_BYTES = 32 << 20

_SHARED_FIRST = 0x40000000 + 2  # source  SQLite 3.54, os.h: PENDING_BYTE, SHARED_FIRST, SHARED_SIZE
_SHARED_SIZE = 510
_WAL_HEADER_BYTES = 32
_WAL_INDEX_HEADER_BYTES = 96  # two copies of the header; it counts every commit
_DATABASE_HEADER_BYTES = 100  # holds the change counter of a store without a log
_STEPS_BETWEEN_LOOKS = 10_000

Reason = Literal["missing", "locked", "corrupt", "moved", "too-large", "slow", "schema", "io"]

T = TypeVar("T")


class Unreadable(msgspec.Struct, frozen=True):
    """Why a store could not be read now. `locked`, `moved` and `slow` are worth another try later."""

    reason: Reason
    sentence: str


class SnapshotError(MemdError):
    """A store that cannot be read. `open_snapshot` raises it; `read_snapshot` returns what it carries."""

    code = "io"
    exit_status = 74
    remedy = "memd tries again by itself; `memctl doctor` names stores that stay unreadable."

    def __init__(self, why: Unreadable) -> None:
        super().__init__(why.sentence)
        self.why = why


class _Needs(Exception):
    """Inside this module: the way that was chosen does not work, this one may."""

    def __init__(self, way: Literal["copy", "again"]) -> None:
        super().__init__(way)
        self.way = way


# ------------------------------------------------------------------------------ reading


def read_snapshot(
    path: bytes, scratch: bytes, work: Callable[[apsw.Connection], T], *, seconds: float = WORK_S
) -> T | Unreadable:
    """What `work` makes of one consistent state of the store, or why there is none. Raises nothing of SQLite.

    `work` must be done with the connection when it returns; it may be called again when the store moved.
    """
    why = Unreadable("moved", f"{_shown(path)} is changed faster than it can be read")
    for _ in range(ATTEMPTS):
        try:
            with open_snapshot(path, scratch, seconds=seconds) as connection:
                return work(connection)
        except SnapshotError as failure:
            why = failure.why
            if why.reason != "moved":
                break
    return why


@contextlib.contextmanager
def open_snapshot(path: bytes, scratch: bytes, *, seconds: float = WORK_S) -> Iterator[apsw.Connection]:
    """A read-only connection to one state of the store, closed at the end of the block.

    path     the database file, links followed
    scratch  a private folder of memd's own, made when missing; it is left as it was found
    raises   SnapshotError, also at the end of the block when the store changed under a reader that could
             not lock it: what was read then must be thrown away. SQLite's own errors inside the block
             come out as SnapshotError too.
    """
    real = os.path.realpath(path)
    with contextlib.ExitStack() as stack:
        try:
            connection, check = _opened(real, scratch, stack)
            _bound(connection, seconds)
            connection.execute("begin")  # one read transaction: every statement sees the same state
            yield connection
            check()
        except (apsw.Error, UnicodeDecodeError, MemoryError) as error:
            raise SnapshotError(_why(path, error)) from error
        except DiskError as error:
            raise SnapshotError(Unreadable("io", str(error))) from error
        except OSError as error:
            raise SnapshotError(Unreadable("io", f"cannot read {_shown(path)}: {error.strerror}")) from error


def fetch(
    connection: apsw.Connection,
    query: Query,
    *,
    updated: int = 0,
    row_id: str = "",
    limit: int = -1,
    until: int = 0,
    session: str = "",
    store: Store | None = None,
    max_bytes: int = MAX_FETCH_BYTES,
) -> tuple[list[tuple[object, ...]], bool]:
    """Rows of an adapter's SELECT past the cursor (`updated`, `row_id`), and whether a bound cut them short.

    The bound is on the texts and blobs of the rows together; one row over it is still returned, so that a
    reader that goes on from its last row always gets ahead. `until` and `session` reach the queries that
    are for stores at rest, what `store` says of its place the queries that ask for it.
    """
    bindings = {
        "updated": updated,
        "id": row_id,
        "limit": limit,
        "until": until,
        "session": session,
        "cwd": b"" if store is None else store.cwd,
        "shared": "[]" if store is None or not store.shared else _texts(store.shared),
    }
    held: list[tuple[object, ...]] = []
    room = max_bytes
    for row in connection.execute(query.sql, bindings):
        held.append(tuple(row))
        room -= sum(len(value) for value in row if isinstance(value, str | bytes))
        if room <= 0:
            return held, True
    return held, limit >= 0 and len(held) >= limit


def _texts(paths: Sequence[bytes]) -> str:
    """The paths as a JSON array; one that is not UTF-8 is in no database of texts."""
    whole = [path.decode("utf-8", "replace") for path in paths]
    return msgspec.json.encode([path for path in whole if "\ufffd" not in path]).decode()


def fingerprint(path: bytes) -> bytes:
    """Changes whenever the database or its log changes; empty when there is no database.

    Stat alone would not do: a log that starts over is written in place, at the same size and within one tick
    of the clock. The heads of the log, of its index (which counts commits) or, without one, of the database
    are part of it.
    """
    real = os.path.realpath(path)
    facts = _facts(real)
    if facts is None:
        return b""
    digest = hashlib.blake2b(repr(facts).encode("ascii"), digest_size=16)
    log = _facts(real + b"-wal")
    digest.update(repr(log).encode("ascii"))
    index = _head(real + b"-shm", _WAL_INDEX_HEADER_BYTES)
    if log is not None:
        digest.update(_head(real + b"-wal", _WAL_HEADER_BYTES))
        digest.update(index)
    if not index:  # nobody has it open in this process: closing a descriptor of it drops no lock
        digest.update(_head(real, _DATABASE_HEADER_BYTES))
    return digest.digest()


# -------------------------------------------------------------------------------- ways


def _way(real: bytes) -> Literal["live", "still", "copy"]:
    log = _size(real + b"-wal")
    index = _size(real + b"-shm")
    if log is not None and index is not None:
        return "live"
    if log:
        return "copy"
    return "copy" if _size(real + b"-journal") else "still"


def _opened(
    real: bytes, scratch: bytes, stack: contextlib.ExitStack
) -> tuple[apsw.Connection, Callable[[], None]]:
    """The connection, and the look afterwards that tells whether what it read was one state."""
    if _size(real) is None:
        raise SnapshotError(Unreadable("missing", f"{_shown(real)} does not exist"))
    for _ in range(ATTEMPTS):
        try:
            match _way(real):
                case "live":
                    return _open_live(real, stack), _nothing
                case "still":
                    return _open_still(real, stack)
                case "copy":
                    return _open_copy(real, scratch, stack)
        except _Needs as other:
            if other.way == "copy":
                return _open_copy(real, scratch, stack)
    raise SnapshotError(_moved(real))


def _open_live(real: bytes, stack: contextlib.ExitStack) -> apsw.Connection:
    with contextlib.ExitStack() as inner:
        guard = os.open(real, os.O_RDONLY | os.O_CLOEXEC)
        inner.callback(os.close, guard)
        _share(guard, real)
        if _way(real) != "live":
            raise _Needs("again")
        connection = _connect(real, "mode=ro&readonly_shm=1", apsw.SQLITE_OPEN_READONLY)
        inner.callback(connection.close)
        try:
            connection.execute("select count(*) from sqlite_schema").fetchall()
        except (apsw.ReadOnlyError, apsw.CantOpenError):
            raise _Needs("copy") from None  # an index that only a writer could repair
        stack.enter_context(inner.pop_all())
    return connection


def _open_still(real: bytes, stack: contextlib.ExitStack) -> tuple[apsw.Connection, Callable[[], None]]:
    before = _facts(real)
    connection = _connect(real, "immutable=1", apsw.SQLITE_OPEN_READONLY)
    stack.callback(connection.close)

    def check() -> None:
        if _way(real) != "still" or _facts(real) != before:
            raise SnapshotError(_moved(real))

    return connection, check


def _open_copy(
    real: bytes, scratch: bytes, stack: contextlib.ExitStack
) -> tuple[apsw.Connection, Callable[[], None]]:
    beside = b"-wal" if _size(real + b"-wal") else b"-journal"
    before = (_facts(real), _facts(real + beside))
    total = (_size(real) or 0) + (_size(real + beside) or 0)
    if total > MAX_COPY_BYTES:
        raise SnapshotError(
            Unreadable("too-large", f"{_shown(real)} has a log without an index and is too large to copy")
        )
    folder = stack.enter_context(disk.make_folders(scratch))
    name = folder.write_temporary(_chunks(real))
    for ending in (b"", beside, b"-shm", b"-journal"):
        stack.callback(folder.remove, name + ending)
    if before[1] is not None:
        log = folder.write_temporary(_chunks(real + beside))
        stack.callback(folder.remove, log)
        folder.move(log, folder, name + beside)
    if (_facts(real), _facts(real + beside)) != before:
        raise _Needs("again")
    connection = _connect(folder.at(name), "mode=rw", apsw.SQLITE_OPEN_READWRITE)
    stack.callback(connection.close)
    return connection, _nothing


def _connect(real: bytes, how: str, flags: int) -> apsw.Connection:
    quoted = parse.quote_from_bytes(real, safe="/")
    return apsw.Connection(f"file:{quoted}?{how}", flags=flags | apsw.SQLITE_OPEN_URI)


def _bound(connection: apsw.Connection, seconds: float) -> None:
    """The database is another program's: no waiting, no writing, no code of its own, no endless statement."""
    deadline = time.monotonic() + seconds
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)


def _share(guard: int, real: bytes) -> None:
    """Hold what SQLite calls SHARED on the database, so that nobody can take its log away."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            fcntl.lockf(guard, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
            return
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # no locks on this file system: SQLite goes without them there too
        if time.monotonic() > deadline:
            raise SnapshotError(
                Unreadable("locked", f"{_shown(real)} is locked by the program it belongs to")
            )
        time.sleep(0.01)


# ------------------------------------------------------------------------- small things


@functools.cache
def _reasons() -> tuple[tuple[type[Exception], Reason], ...]:
    return (
        (apsw.BusyError, "locked"),
        (apsw.LockedError, "locked"),
        (apsw.ProtocolError, "locked"),
        (apsw.NotADBError, "corrupt"),
        (apsw.CorruptError, "corrupt"),
        (apsw.FormatError, "corrupt"),
        (UnicodeDecodeError, "corrupt"),
        (apsw.InterruptError, "slow"),
        (apsw.SQLError, "schema"),
        (apsw.TooBigError, "too-large"),
        (apsw.NoMemError, "too-large"),
    )


def _why(path: bytes, error: Exception) -> Unreadable:
    for kind, reason in _reasons():
        if isinstance(error, kind):
            return Unreadable(reason, f"cannot read {_shown(path)}: {_words(reason)}")
    return Unreadable("io", f"cannot read {_shown(path)}: {type(error).__name__}")


def _words(reason: Reason) -> str:
    """Never SQLite's own words: a malformed text may be quoted in them."""
    return {
        "locked": "the program it belongs to has it locked",
        "corrupt": "it is damaged or no SQLite database",
        "slow": "a statement took too long",
        "schema": "its tables are not those of a version that memd knows",
        "too-large": "a value in it is too large",
    }.get(reason, reason)


def _moved(real: bytes) -> Unreadable:
    return Unreadable("moved", f"{_shown(real)} changed while it was read")


def _nothing() -> None:
    return None


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def _size(path: bytes) -> int | None:
    facts = _facts(path)
    return None if facts is None else facts[0]


def _facts(path: bytes) -> tuple[int, int, int] | None:
    """Size, modification time and inode of a regular file; None for anything else."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _head(path: bytes, size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, size)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _chunks(path: bytes) -> Iterable[bytes]:
    with disk.open_folder(os.path.dirname(path)) as folder:
        yield from folder.chunks(os.path.basename(path))
