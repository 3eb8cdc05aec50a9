"""The engines behind the ledger: who makes writers and readers. Everybody else knows only their interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from memd.ledger.store.interface import Reader, Writer
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter


class Engine(Protocol):
    """Where one ledger is kept."""

    def writer(self) -> Writer:
        """The one writer of this daemon. raises TooNew, DiskError, Damaged"""

    def reader(self) -> Reader:
        """A look at the ledger, made after the writer. raises what `writer` raises"""

    def cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        """Where every source was left, in the order of their names; a page from `after`."""


class SqliteEngine:
    """The ledger of one machine, in a folder."""

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
