"""What happens in a ledger, as flows for faults."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memd.ledger.store.sqlite import SqliteWriter
from memd.workstream.delivery import Claimed
from support_flow import Flow
from support_ledger import Ledger, holding
from support_ledger_faults import LedgerFaults, faulty
from support_ledger_flows import SOURCE, before, begin, coming, forget, life, outcome, state, state_of_texts


class _Ledger(Flow):
    """What happens in a ledger, its opening included."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.root = top / "ledger"
        self.good = top.with_name(top.name + "-good")
        with Ledger(self.root) as ledger:
            self.begin(ledger.writer)
        shutil.copytree(self.root, self.good)
        writer = SqliteWriter(bytes(self.good))
        self.do(writer)
        writer.close()
        self.expected = self.state(self.good)
        shutil.rmtree(self.good)
        self._open = lambda: SqliteWriter(bytes(self.root))

    def begin(self, writer: SqliteWriter) -> None:
        writer.append(before())

    def do(self, writer: SqliteWriter) -> None:
        raise NotImplementedError

    def state(self, root: Path) -> object:
        return state(root)

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with faulty(self.root, faults) as open_:
            self._open = open_
            yield

    def work(self) -> None:
        writer = self._open()
        try:
            self.do(writer)
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    def check_kept(self) -> None:
        with Ledger(self.root) as ledger:
            assert ledger.problems() == []

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert self.state(self.root) == self.expected


class Import(_Ledger):
    """A batch that comes in."""

    def do(self, writer: SqliteWriter) -> None:
        if writer.cursor(SOURCE) != b"2":
            writer.append(coming())


class Forget(_Ledger):
    """Something that is forgotten for good."""

    def begin(self, writer: SqliteWriter) -> None:
        writer.append(before())
        writer.append(coming())
        writer.seal_all()

    def do(self, writer: SqliteWriter) -> None:
        while writer.tidy():
            pass
        forget(writer)

    def state(self, root: Path) -> object:
        return state_of_texts(root)

    def check_kept(self) -> None:
        with Ledger(self.root) as ledger:
            while ledger.writer.tidy():
                pass
        super().check_kept()

    def check_done(self) -> None:
        super().check_done()
        assert holding(self.root, [b"zebrafish"]) == []


class Life(_Ledger):
    """A run from its lease to its end, and what it is told."""

    def __init__(self, top: Path) -> None:
        self.told: list[Claimed] = []
        super().__init__(top)
        self.told.clear()

    def memory(self) -> list[Any]:
        return self.told

    def begin(self, writer: SqliteWriter) -> None:
        begin(writer)

    def do(self, writer: SqliteWriter) -> None:
        life(writer, self.told)

    def state(self, root: Path) -> object:
        return outcome(root)

    def check_done(self) -> None:
        super().check_done()
        assert len(self.told) <= 1
