"""The ledger on SQLite: the engine of one machine. Implements `interface.Writer`; `sqlite_reader` the other.
On the disk, below the ledger's folder:

    ledger.sqlite3 (and its -wal, -shm)     rows and index
    segments/<harness>/...                  the durable form, see `memd.ledger.segments`

States of a batch, and what the next start does when the process died there:

    planned     nothing is on the disk                  the source is read again
    appended    the segment has it, the rows have not   put in from the segment (`_take_up`)
    committed   rows, index, losses and cursor too      nothing

Batches that come together share one transaction, one flush of a segment and one piece of the index.

Sealing: the sealed form is written beside the growing one, the row says so, the growing one goes. A start
that finds both takes the growing one as long as the row has not changed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import apsw
import msgspec

from memd import disk
from memd.errors import DiskError
from memd.ledger.segments import SEAL_BYTES, VERSION, Codec, HeadLine, Segments
from memd.ledger.store import database, rows, tails
from memd.ledger.store.checking import Checker, drop_copy
from memd.ledger.store.forgetting import Forgetter
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.interface import (
    Appended,
    Batch,
    Forgetting,
    Selection,
    T,
    never,
)
from memd.ledger.store.pieces import Pieces
from memd.ledger.store.planning import Planner
from memd.ledger.store.repairing import Repairer
from memd.ledger.store.sqlite_reader import SqliteReader
from memd.ledger.store.view import View
from memd.ledger.store.workstream_writing import Working, present
from memd.ledger.store.workstreams import Moment, Work
from memd.ledger.store.writing import Memory

__all__ = ["SqliteReader", "SqliteWriter"]

REST_S: Final = 600.0
"""A segment to which nothing came for so long is sealed."""

IDLE_S: Final = 5.0
"""The index is merged when nothing came for so long."""

FORGET_AGAIN_S: Final = 60.0
"""Between two tries to go on with a forgetting that failed: its last steps write as much as the ledger is."""

MAX_FREE_PAGES: Final = 256
SHRINK_PAGES: Final = 128
LOG_PAGES: Final = 8000
QUIET_LOG_PAGES: Final = 1000
"""How long the log gets while batches come, and between them: a page that changes often is brought in once.
After all housekeeping nothing is left of it."""


class _Growing(msgspec.Struct):
    number: int
    size: int
    touched: float
    is_new: bool = False  # no row tells of it yet
    lines: list[bytes] = []  # those of the transaction that is open


class SqliteWriter:
    """The one writer. Belongs to the thread that uses it; `checkpoint` may be called from another one."""

    def __init__(self, root: bytes, *, vfs: str | None = None, clock: Callable[[], Moment] = present) -> None:
        """Open the ledger in `root`, make it if it is not there, finish what a crash left.

        raises  TooNew, DiskError, Damaged
        """
        self._clock = clock
        self._path = os.path.join(root, database.FILE)
        self._vfs = vfs
        self._connection = database.open_writer(self._path, vfs)
        with contextlib.ExitStack() as stack:
            stack.callback(database.let_go, self._connection)
            self._begin(root)
            stack.pop_all()

    def _begin(self, root: bytes) -> None:
        self._checkpointer: apsw.Connection | None = None
        self._log_pages = 1 if self._has_log() else 0  # of the last daemon; how many nobody has counted
        self._connection.set_wal_hook(self._note_log)
        self._segments = Segments(root)
        self._codec = Codec()
        self._growing: dict[str, _Growing] = {}
        self._retired: list[int] = []
        self._busy_at = time.monotonic()
        self._forget_at = 0.0
        drop_copy(root)
        with database.saying("read", self._path):
            self._forgotten = Forgotten(self._connection)
            self._memory = Memory(self._connection)
            self._planner = Planner(self._memory, self._forgotten)
            self._view = View(self._connection)
            self._forgetter = Forgetter(self._connection, self._segments, self._codec, self._forgotten)
            self._number = self._connection.execute("select coalesce(max(n), 0) from segments").get
            self._pieces = Pieces(self._connection)
        with contextlib.suppress(DiskError), database.saying("write", self._path):
            self._pieces.settle()  # on a full disk later, or never: that only costs time
        self._take_up()

    def close(self) -> None:
        """What was appended is durable already."""
        self._segments.close()
        with database.saying("close", self._path):
            if self._checkpointer is not None:
                self._checkpointer.close()
            self._connection.close()

    # ------------------------------------------------------------------------ appending

    def append(self, batch: Batch) -> Appended:
        return self.append_all((batch,))[0]

    def append_all(self, batches: Iterable[Batch], is_awaited: Callable[[], bool] = never) -> list[Appended]:
        opened: dict[str, _Growing] = {}  # the segments they go into, out of use until the rows are in
        is_in = False
        try:
            with database.saying("write", self._path), database.transaction(self._connection):
                done = self._put_rows(batches, opened, is_awaited)
                for harness, held in opened.items():
                    self._put_lines(harness, held)
                for number in self._retired:
                    rows.close_segment(self._connection, number)
            is_in = True
        except Exception:
            self._drop_new(opened)
            raise
        finally:
            if not is_in:
                # what the files have beyond their marks is unknown: the next batch begins a new segment
                self._retired += [held.number for held in opened.values()]
                self._view.reset()
                with database.saying("read", self._path):
                    self._memory.reset()
                    self._pieces.reset()
        self._retired.clear()
        for held in opened.values():
            held.is_new = False
            held.lines.clear()
        self._growing.update((name, held) for name, held in opened.items() if held.size < SEAL_BYTES)
        self._busy_at = time.monotonic()
        self._pieces.note()
        return done

    def _drop_new(self, opened: Mapping[str, _Growing]) -> None:
        """A full disk would otherwise gather a file at every try. What was in them comes again."""
        for harness, held in opened.items():
            if held.is_new:
                with contextlib.suppress(DiskError):
                    self._segments.drop_plain(harness, held.number)

    def _put_rows(
        self, batches: Iterable[Batch], opened: dict[str, _Growing], is_awaited: Callable[[], bool]
    ) -> list[Appended]:
        """All that the batches, or the first of them, come to; their lines are encoded, nothing is committed.

        One batch is done with before the next one is looked at: what it holds is in the processor's cache.
        """
        done: list[Appended] = []
        placed: list[tuple[int, int]] = []
        words = rows.Words(self._connection)
        for batch in batches:
            self._pieces.expect(batch)
            plan = self._planner.plan(batch)
            number = 0
            if plan.lines:
                held = opened.get(batch.harness)
                if held is None:
                    held = opened[batch.harness] = self._open_segment(batch.harness)
                    rows.put_segment(self._connection, held.number, batch.harness)
                held.lines.append(self._codec.encode(plan.lines))
                number = held.number
            rows.put(self._connection, batch, plan, number, words)
            self._view.take(batch, plan)
            for facts in plan.touched.values():
                self._memory.remember(batch.harness, facts)
            placed += plan.placed
            done.append(plan.appended)
            if is_awaited():
                break
        words.put()
        rows.place(self._connection, placed)
        return done

    def _open_segment(self, harness: str) -> _Growing:
        held = self._growing.pop(harness, None)
        if held is None:
            self._number += 1
            held = _Growing(self._number, 0, 0.0, is_new=True)
        return held

    def _put_lines(self, harness: str, held: _Growing) -> None:
        """Append what the batches say to the segment, flushed; how far it reaches goes in with the rows."""
        head = HeadLine(v=VERSION, harness=harness, number=held.number)
        data = b"".join([b"" if held.size else self._codec.encode((head,)), *held.lines])
        self._segments.append(harness, held.number, held.size, data)
        held.size += len(data)
        held.touched = time.monotonic()
        rows.mark_segment(self._connection, held.number, held.size, is_full=held.size >= SEAL_BYTES)

    def _take_up(self) -> None:
        """Finish what the process before this one had begun."""
        known = {
            number: (harness, size, state)
            for number, harness, size, state in self._connection.execute(
                "select n, harness, bytes, state from segments where state <> 'sealed'"
            )
        }
        cut: list[tuple[str, int, int]] = []
        for harness, number in sorted(self._segments.growing(), key=lambda one: one[1]):
            self._number = max(self._number, number)
            row = known.get(number)
            if row is None:
                is_sealed = self._connection.execute("select 1 from segments where n = ?", (number,)).get
                if is_sealed:
                    self._segments.drop_plain(harness, number)
                else:
                    cut.append((harness, number, 0))
            elif row[2] == "open":
                size = self._segments.size(harness, number)
                if size == row[1]:
                    held = self._growing.pop(harness, None)
                    if held is not None:
                        self._retired.append(held.number)
                    self._growing[harness] = _Growing(number, size, time.monotonic())
                elif size > row[1]:
                    cut.append((harness, number, row[1]))
                else:
                    self._retired.append(number)  # `check` names it
        for harness, number, mark in cut:
            lines = self._codec.decode_tail(self._segments.read_plain(harness, number, mark))
            self.append(tails.batch(self._connection, harness, lines))
            if mark:
                self._retired.append(number)
            else:
                self._segments.drop_plain(harness, number)
        if self._retired:
            with database.saying("write", self._path), database.transaction(self._connection):
                for number in self._retired:
                    rows.close_segment(self._connection, number)
            self._retired.clear()

    # ---------------------------------------------------------------------- workstreams

    def work(self, do: Callable[[Work], T]) -> T:
        with database.saying("write", self._path), self._view.kept(), database.transaction(self._connection):
            return do(Working(self._connection, self._view, self._clock))

    # ---------------------------------------------------------------------- the sources

    def cursor(self, source: bytes) -> bytes:
        with database.saying("read", self._path):
            return (
                self._connection.execute("select value from cursors where source = ?", (source,)).get or b""
            )

    def drop_source(self, source: bytes) -> None:
        with database.saying("write", self._path), database.transaction(self._connection):
            self._connection.execute("delete from cursors where source = ?", (source,))

    # ------------------------------------------------------------------------ forgetting

    def plan_forget(self, selection: Selection) -> Forgetting:
        with database.saying("read", self._path):
            return self._forgetter.plan(selection)

    def begin_forget(self, selection: Selection) -> Forgetting:
        with database.saying("write", self._path):
            while self.forget_step():  # one forgetting at a time
                pass
            return self._forgetter.begin(selection)

    def forget_step(self) -> bool:
        try:
            with database.saying("write", self._path):
                return self._forgetter.step()
        finally:
            self._memory.reset()
            for harness, held in list(self._growing.items()):
                if self._forgetter.has_sealed(held.number):
                    del self._growing[harness]

    # ----------------------------------------------------------------------- housekeeping

    def tidy(self) -> bool:
        now = time.monotonic()
        if self._forgetter.is_pending() and now >= self._forget_at:
            self._forget_at = now + FORGET_AGAIN_S  # stays when the step fails, as on a full disk
            self.forget_step()
            self._forget_at = 0.0
            return True
        with database.saying("write", self._path):
            for harness, held in list(self._growing.items()):
                if now - held.touched >= REST_S:
                    del self._growing[harness]
                    self._retired.append(held.number)
            if self._retired:
                with database.transaction(self._connection):
                    for number in self._retired:
                        rows.close_segment(self._connection, number)
                self._retired.clear()
            if self._seal_one():
                return True
            return now - self._busy_at >= IDLE_S and (
                self._pieces.merge(self._memory.total()) or self._shrink()
            )

    def seal_all(self) -> None:
        """Seal everything that grows, as at the end of a long rest."""
        for held in self._growing.values():
            held.touched = -REST_S
        while self.tidy():
            pass

    def rest(self) -> None:
        """All housekeeping there is, as after a long time without anything new."""
        self._busy_at -= IDLE_S
        self.seal_all()

    def _seal_one(self) -> bool:
        row = self._connection.execute(
            "select n, harness, bytes from segments where state = 'closed' order by n limit 1"
        ).fetchone()
        if row is None:
            return False
        number, harness, size = row
        if self._segments.size(harness, number) >= 0:
            # a file that lost its end is sealed as it is: `check` finds that bytes are missing
            data = self._segments.read_plain(harness, number)[:size]
            self._segments.seal(harness, number, self._codec.compress(data))
        with database.transaction(self._connection):
            self._connection.execute("update segments set state = 'sealed' where n = ?", (number,))
        self._segments.drop_plain(harness, number)
        return True

    def _shrink(self) -> bool:
        """Give some of the pages back that merging has left free."""
        free = self._connection.pragma("freelist_count")
        if not isinstance(free, int) or free < MAX_FREE_PAGES:
            self._connection.pragma("shrink_memory")  # the system's cache keeps the pages just as well
            return False
        for _ in self._connection.execute(f"pragma incremental_vacuum({SHRINK_PAGES})"):
            pass
        return True

    def repair(self) -> int:
        while self._forgetter.is_pending():
            self.forget_step()
        self._retired += [held.number for held in self._growing.values()]
        self._growing.clear()
        before = self._problem_count()
        repairer = Repairer(self._connection, self._segments, self._codec, self._forgotten, self._memory)
        with database.saying("repair", self._path):
            repairer.run(self._number + 1)
            self._view.join_all()
            self._number = max(
                self._number, self._connection.execute("select coalesce(max(n), 0) from segments").get
            )
        return before - self._problem_count()

    def _problem_count(self) -> int:
        with database.saying("check", self._path):
            return Checker(self._connection, self._segments).run().problem_count

    def _note_log(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def wants_checkpoint(self, *, is_quiet: bool = False) -> bool:
        if is_quiet and self._is_resting():
            return self._log_pages > 0
        return self._log_pages >= (QUIET_LOG_PAGES if is_quiet else LOG_PAGES)

    def _has_log(self) -> bool:
        facts = disk.look(self._path + b"-wal")
        return facts is not None and facts.st_size > 0

    def _is_resting(self) -> bool:
        return self._pieces.is_merged and time.monotonic() - self._busy_at >= IDLE_S

    def checkpoint(self) -> None:
        with database.saying("checkpoint", self._path):
            if self._checkpointer is None:
                self._checkpointer = apsw.Connection(
                    os.fsdecode(self._path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs
                )
                self._checkpointer.wal_autocheckpoint(0)
                self._checkpointer.pragma("synchronous", "full")
            self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if self._is_resting():
                with contextlib.suppress(apsw.BusyError):  # somebody reads it: another time
                    self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                    self._log_pages = 0
