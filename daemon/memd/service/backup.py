"""Backups as the daemon makes them while all goes on: one at a time, called off when the asker leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

import memd
from memd import heap, protocol
from memd.errors import Refused, TryAgain, UsageError
from memd.service.backup_places import Roots
from memd.service.ledger import Ledger
from memd.service.topics import MemoryTopics

if TYPE_CHECKING:
    from memd.service.backup_write import Collected, Written

LOOK_S = 0.5  # between two looks whether the asker is still there

log = structlog.get_logger()


class Backups:
    def __init__(
        self,
        ledger: Ledger,
        topics: MemoryTopics,
        roots: Roots,
        schema: Callable[[], str],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._topics = topics
        self._roots = roots
        self._schema = schema
        self._wall_s = wall_s
        self._is_busy = False
        self._is_called_off = False
        self._step = protocol.BackupStep()

    def progress(self) -> protocol.BackupStep:
        return self._step

    async def make(self, path: bytes, is_there: Callable[[], bool]) -> protocol.BackedUp:
        """A backup at `path`, which must be absolute and free; nothing is left when it does not get done.

        is_there  whether somebody still waits for it
        raises    Refused, TryAgain while another one is made, UsageError, DiskError, Damaged
        """
        if not path.startswith(b"/"):
            raise UsageError("a backup needs the full path of a file")
        if self._ledger.engine != "sqlite":
            raise Refused(
                "the ledger is on a PostgreSQL server, which has its own way to be backed up",
                remedy=f"Use pg_dump, for instance: pg_dump --format=custom --schema={self._schema()}"
                " --file=memd.dump DATABASE",
            )
        from memd.service import backup_write  # archives cost a megabyte: not for the daemons that make none

        if self._is_busy:
            raise TryAgain("another backup is being made")
        self._is_busy, self._is_called_off = True, False
        try:
            small = await self._topics.still(partial(backup_write.collect, self._roots))
            written = await self._ledger.at_rest(lambda: self._written(path, small, is_there))
        finally:
            self._is_busy, self._step = False, protocol.BackupStep()
            await trio.to_thread.run_sync(heap.give_back)
        log.info("backup.made", size=written.size, files=written.files)
        return protocol.BackedUp(path=path, size=written.size, files=written.files, left_out=written.left_out)

    async def _written(self, path: bytes, small: Collected, is_there: Callable[[], bool]) -> Written:
        from memd.service.backup_write import Writer

        writer = Writer(self._roots, memd.__version__, self._note)
        refusal: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, is_there)
            try:
                return await trio.to_thread.run_sync(writer.write, path, small, self._wall_s())
            except Exception as reason:  # noqa: BLE001 - out of the nursery it would come as one of a group
                refusal = reason
            finally:
                nursery.cancel_scope.cancel()
        assert refusal is not None
        raise refusal

    async def _watch(self, is_there: Callable[[], bool]) -> None:
        """A thread cannot be cancelled; it asks at every step whether it should go on."""
        try:
            while is_there():  # noqa: ASYNC110 - the system tells only who looks
                await trio.sleep(LOOK_S)
        finally:
            self._is_called_off = True

    def _note(self, what: str, done: int, total: int) -> None:
        self._step = protocol.BackupStep(what=what, done=done, total=total)
        if self._is_called_off:
            raise TryAgain("the backup was called off", remedy="Run `memctl backup` again.")
