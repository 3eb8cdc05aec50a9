"""The engines behind the ledger: who makes writers and readers. Everybody else knows only their interface."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from memd.ledger.store import buffered, machine
from memd.ledger.store.buffered import REST_S, BufferedWriter
from memd.ledger.store.interface import Reader, Unreachable, Writer
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from memd.ledger.store.waiting import Queue, Waiting

if TYPE_CHECKING:
    from memd.ledger.store.postgres import engine as postgres

NOTHING: Final = Waiting()


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says. connection: libpq's words; schema: where the tables are"""

    engine: str = "sqlite"
    connection: str = ""
    schema: str = "memd"


class Engine(Protocol):
    """Where one ledger is kept."""

    @property
    def name(self) -> str: ...

    def writer(self) -> Writer:
        """The one writer of this daemon. raises TooNew, DiskError, Damaged, ConfigError"""

    def reader(self) -> Reader:
        """A look at the ledger, made after the writer. raises what `writer` raises"""

    def cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        """Where every source was left, in the order of their names; a page from `after`."""

    def waiting(self) -> Waiting:
        """What waits here for a server that is away."""

    def rest_s(self) -> float:
        """How long housekeeping may rest while nothing comes."""

    def trouble(self) -> str:
        """Why the server is not reached; empty while it is."""


class SqliteEngine:
    """The ledger of one machine, in a folder."""

    name = "sqlite"

    def __init__(self, root: bytes) -> None:
        self._root = root

    def writer(self) -> Writer:
        return SqliteWriter(self._root)

    def reader(self) -> Reader:
        return SqliteReader(self._root)

    def cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        reader = SqliteReader(self._root)
        try:
            return reader.cursors(after, limit)
        finally:
            reader.close()

    def waiting(self) -> Waiting:
        return NOTHING

    def rest_s(self) -> float:
        return REST_S

    def trouble(self) -> str:
        return ""


class PostgresEngine:
    """The ledger of several machines on a server, with a queue in this machine's folder."""

    name = "postgresql"

    def __init__(self, root: bytes, choice: Choice) -> None:
        self._root = root
        self._choice = choice
        self._queue: Queue | None = None
        self._writer: BufferedWriter | None = None

    def writer(self) -> Writer:
        """Opens without the server, too: what is read waits then."""
        remote = self._remote().lazy_writer()
        with contextlib.suppress(Unreachable):
            remote.settle()
        self._queue = Queue(self._root)
        self._writer = BufferedWriter(remote, self._queue)
        return self._writer

    def reader(self) -> Reader:
        return self._remote().reader()

    def _remote(self) -> postgres.PostgresEngine:
        from memd.ledger.store.postgres import engine as postgres  # what nobody else needs

        here = postgres.Machine(machine.id_of(self._root), machine.host_name())
        return postgres.PostgresEngine(self._choice.connection, self._choice.schema, here)

    def cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        assert self._queue is not None
        return buffered.page(self._queue, lambda: self._remote().cursors(after, limit), after, limit)

    def waiting(self) -> Waiting:
        return NOTHING if self._queue is None else self._queue.state

    def rest_s(self) -> float:
        return REST_S if self._writer is None else self._writer.rest_s()

    def trouble(self) -> str:
        return "" if self._writer is None else self._writer.trouble


def chosen(root: bytes, choice: Choice) -> Engine:
    """The engine that the configuration names."""
    return PostgresEngine(root, choice) if choice.engine == "postgresql" else SqliteEngine(root)
