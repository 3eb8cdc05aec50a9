"""The ledger as the daemon's runs use it, without a daemon: writer, reader, and imports as the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from memd.errors import TryAgain
from memd.ledger.messages import Ended
from memd.ledger.sanitiser import Sanitiser
from memd.ledger.store.interface import Appended, Batch
from memd.ledger.store.sqlite import SqliteReader
from memd.ledger.store.workstreams import Process, Work
from memd.workstream.lease import Seen
from support_workstreams import Lines

T = TypeVar("T")


class FakeRecords:
    """`on_import` is what an import brings in; `trouble`: it fails; `hangs`: it never ends."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.on_import: Callable[[], object] | None = None
        self.trouble = ""
        self.hangs = False
        self.is_importing = True
        self.import_count = 0
        self.ended: Ended | None = None
        self._sanitiser = Sanitiser()

    async def work(self, do: Callable[[Work], T]) -> T:
        await trio.lowlevel.checkpoint()
        return self.lines.writer.work(do)

    async def append(self, batch: Batch) -> Appended:
        await trio.lowlevel.checkpoint()
        return self.lines.writer.append(batch)

    async def ask(self, question: Callable[[SqliteReader], T]) -> T:
        await trio.lowlevel.checkpoint()
        return question(self.lines.reader)

    async def import_now(self, *, wait: bool, ended: Ended | None = None, since_ms: int = 0) -> None:
        assert wait
        self.import_count += 1
        self.ended = ended
        if self.hangs:
            await trio.sleep_forever()
        if self.trouble:
            raise TryAgain(self.trouble)
        await trio.lowlevel.checkpoint()
        if self.on_import is not None:
            self.on_import()

    async def scrub(self, text: str) -> str:
        await trio.lowlevel.checkpoint()
        return self._sanitiser.scrub(text)

    async def imports(self, harness: str, cwd: bytes) -> bool:
        return self.is_importing


class Processes:
    """Which of the made-up processes live."""

    def __init__(self) -> None:
        self.gone: set[Process] = set()
        self.unknown: set[Process] = set()

    def __call__(self, process: Process) -> Seen:
        if process in self.gone:
            return "gone"
        return "unknown" if process in self.unknown else "alive"
