"""Faults at any write of the ledger: of its files, and of its database through a VFS.

All of them count in one row, so that a sweep meets every point between two effects on the disk.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from memd import disk
from memd.ledger.store.sqlite import SqliteWriter
from support_faults import WRITES, Faults, Killed, installed

SQL_WRITES = frozenset({"xWrite", "xSync", "xTruncate", "xDelete"})

_numbers = itertools.count()


class LedgerFaults(Faults):
    """`is_torn`: what is written when it happens gets to the disk by half."""

    def __init__(
        self,
        at: int | None = None,
        happens: Callable[[], None] | None = None,
        *,
        is_torn: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(at, happens, only_writes=True, **more)
        self._is_torn = is_torn

    def _counts(self, name: str, args: tuple[Any, ...]) -> bool:
        return (name in SQL_WRITES and not self._dead) or super()._counts(name, args)

    def _call(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._is_torn and name == "write" and not self._dead and len(self.calls) == self._at:
            real(args[0], args[1][: len(args[1]) // 2])
        return super()._call(name, real, args, named)

    def sql(self, name: str, real: Callable[..., Any], *args: Any) -> Any:
        if self._is_torn and name == "xWrite" and not self._dead and len(self.calls) == self._at:
            data, offset = args
            real(data[: len(data) // 2], offset)
        return self._call(name, real, args, {})


class _File(apsw.VFSFile):
    def __init__(self, base: str, name: Any, flags: list[int], faults: LedgerFaults) -> None:
        super().__init__(base, name, flags)
        self._faults = faults

    def xWrite(self, data: bytes, offset: int) -> None:
        self._guarded("xWrite", super().xWrite, data, offset)

    def xSync(self, flags: int) -> None:
        self._guarded("xSync", super().xSync, flags)

    def xTruncate(self, size: int) -> None:
        self._guarded("xTruncate", super().xTruncate, size)

    def xLock(self, level: int) -> None:
        """As SQLite itself takes it: what a reader that closes last cannot have is no error."""
        try:
            super().xLock(level)
        except apsw.IOError as reason:
            raise apsw.BusyError(str(reason)) from None

    def _guarded(self, name: str, real: Callable[..., Any], *args: Any) -> None:
        try:
            self._faults.sql(name, real, *args)
        except (OSError, Killed) as reason:
            raise apsw.IOError(str(reason)) from reason


class _System(apsw.VFS):
    def __init__(self, name: str, faults: LedgerFaults, *, is_default: bool = False) -> None:
        self._faults = faults
        self._base = apsw.vfs_names()[0]
        super().__init__(name, self._base, is_default)

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self._base, name, flags, self._faults)

    def xDelete(self, name: str, sync: bool) -> None:
        try:
            self._faults.sql("xDelete", super().xDelete, name, sync)
        except (OSError, Killed) as reason:
            raise apsw.IOError(str(reason)) from reason


@contextlib.contextmanager
def faulty(root: Path, faults: LedgerFaults) -> Iterator[Callable[[], SqliteWriter]]:
    """Inside the block a ledger opened by what this gives meets the faults; at its end it is let go."""
    name = f"memd-faults-{next(_numbers)}"
    system = _System(name, faults)
    opened: list[SqliteWriter] = []

    def open_() -> SqliteWriter:
        opened.append(SqliteWriter(bytes(root), vfs=name))
        return opened[-1]

    try:
        with installed(faults):
            try:
                yield open_
            finally:
                for writer in opened:
                    with contextlib.suppress(Exception, Killed):
                        writer.close()
    finally:
        system.unregister()


@contextlib.contextmanager
def faulty_everywhere(faults: LedgerFaults) -> Iterator[None]:
    """Inside the block every database that is opened meets the faults, whoever opens it."""
    system = _System(f"memd-faults-{next(_numbers)}", faults, is_default=True)
    try:
        yield
    finally:
        system.unregister()  # the one before is the first choice again


def killing(at: int, *, is_torn: bool = False) -> LedgerFaults:
    """A process that dies at its write number `at`."""
    faults = LedgerFaults(at, is_torn=is_torn)
    faults._happens = faults.kill
    return faults


def is_dead(faults: LedgerFaults) -> bool:
    return faults._dead


__all__ = ["WRITES", "LedgerFaults", "disk", "faulty", "faulty_everywhere", "is_dead", "killing"]
