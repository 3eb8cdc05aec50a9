"""The ledger as the rest of the daemon uses it: questions, orders, and the import that never stops.

Questions run in threads on reading connections of their own, a bounded number at a time, and are called off
when the asker goes away or takes too long. Orders go through the writer's lane. The database is opened in the
background at start: a large recovery delays nobody but those who ask the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
import structlog
import trio

from memctl.paths import shown
from memd import heap, protocol, seldom
from memd.errors import MemdError, TryAgain
from memd.harness.model import Environment
from memd.ledger.messages import Ended, Rules
from memd.ledger.rules import Wanted
from memd.ledger.store.engines import Engine, SqliteEngine
from memd.ledger.store.interface import (
    Appended,
    Batch,
    Forgetting,
    Reader,
    Report,
    Selection,
    Stats,
    Unreachable,
    Writer,
)
from memd.ledger.store.workstreams import Work
from memd.service import diagnosis, page
from memd.service.importer import Importer
from memd.service.lane import BULK, Lane
from memd.service.watcher import Change, Interest, Watcher

if TYPE_CHECKING:
    from memd.ledger import sanitiser
    from memd.ledger.sanitiser import Sanitiser
else:
    sanitiser = seldom.module("memd.ledger.sanitiser")  # some 50 ms: only in threads, by `_scrub`

T = TypeVar("T")
Level = Literal["ok", "note", "warning", "problem"]

READERS = 4
WORKER_FAILURES = 3  # in a row, from which on a person should know
LOGS = "See `memctl logs`."
QUESTION_S = 20.0
TIDY_S = 6.0  # from a batch to housekeeping: what comes in a row is tidied once
TIDY_STEP_S = 0.05
BACKLOG_BYTES = 256 << 20  # of what has come since: then housekeeping no longer waits for the end of it

NO_STATS = Stats(
    events=0,
    sessions=0,
    losses=0,
    sources=0,
    segments=0,
    unsealed=0,
    database_bytes=0,
    log_bytes=0,
    segment_bytes=0,
)

log = structlog.get_logger()


class LedgerState(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger's part of `memctl status --json`. `left_*`: known and not yet read.

    unreadable  path, reason and remedy of what cannot be read, the first of many; unreadable_needing: how
                many of all need a person
    waiting_*  what was read and waits on this machine for the ledger's server; aside: it does not take it
    """

    state: str  # opening, running, restarting, closed
    trouble: str = ""
    events: int = 0
    sessions: int = 0
    losses: int = 0
    bytes: int = 0
    left_sources: int = 0
    left_bytes: int = 0
    unreadable: tuple[tuple[str, str, str], ...] = ()
    unreadable_needing: int = 0
    worker_restarts: int = 0
    engine: str = "sqlite"
    waiting_batches: int = 0
    waiting_bytes: int = 0
    waiting_since: str = ""
    waiting_aside: int = 0


class Ledger:
    """Opens in `run`; until then whoever asks waits."""

    def __init__(self, root: bytes, watcher: Watcher, engine: Engine | None = None) -> None:
        self._root = root
        self._engine = engine or SqliteEngine(root)
        self._watcher = watcher
        self._interest = Interest(self._notice, self.look)
        watcher.add(self._interest)
        self._lane = Lane()
        self._asking = trio.CapacityLimiter(READERS)
        self._checkpointing = trio.CapacityLimiter(1)
        self._consulting = trio.CapacityLimiter(READERS)
        self._idle: list[Reader] = []
        self._is_open = trio.Event()
        self._rewriting = trio.Lock()  # of segments: forgetting and repairs; a backup waits for their end
        self._writer: Writer | None = None
        self._environments: tuple[Environment, ...] = ()
        self._rules = Rules()
        self._sanitiser: tuple[Rules, Sanitiser] | None = None
        self.importer: Importer | None = None
        self.trouble = ""
        self._remedy = ""
        self.failing: set[str] = set()  # events of the log whose cause lasts

    # ----------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Open the ledger and import until cancelled."""
        writer = await self._open()
        self.importer = importer = Importer(
            writer,
            self._lane,
            cursors=self._cursors,
            scratch=self._root + b"/scratch",
            on_folders=partial(self._watcher.follow, self._interest),
            environments=self._environments,
            rules=self._rules,
        )
        self._watcher.on_state = importer.set_watched
        importer.set_watched(self._watcher.state == "watching")
        self._is_open.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(importer.run)
                nursery.start_soon(self._tidy, writer)
                nursery.start_soon(self._shorten_log, writer)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await self._lane.run(writer.close)

    async def _open(self) -> Writer:
        while True:
            try:
                self._writer = await self._lane.run(self._engine.writer)
            except MemdError as reason:
                if str(reason) != self.trouble:
                    log.error("ledger.closed", reason=str(reason))
                self.trouble, self._remedy = str(reason), reason.remedy
                await trio.sleep(5)
                continue
            self.trouble = ""
            return self._writer

    async def _tidy(self, writer: Writer) -> None:
        """Small steps of housekeeping after something was put in, once nothing more comes."""
        has_done = False
        rest_s = TIDY_S  # at first: what the last daemon left is tidied once nothing comes
        while True:
            try:
                did = await self._lane.run(writer.tidy, BULK)
                if writer.wants_checkpoint(is_quiet=True):
                    await trio.to_thread.run_sync(writer.checkpoint, limiter=self._checkpointing)
            except MemdError as reason:
                log.warning("ledger.tidy_failed", reason=str(reason))
                self.failing.add("ledger.tidy_failed")
                did = False
            else:
                self.failing.discard("ledger.tidy_failed")
            assert self.importer is not None
            if did:
                has_done = True
                await trio.sleep(TIDY_STEP_S)
                await self._calm(self.importer)
                continue
            self.importer.untidied = 0
            readers: list[Reader] = []
            if has_done:
                readers, self._idle = self._idle, []
                has_done = False
            await trio.to_thread.run_sync(_give_back, readers)  # also what the start took, and the worker's
            with trio.move_on_after(rest_s):
                await self.importer.next_batch()
            rest_s = self._engine.rest_s()
            await self._calm(self.importer)

    async def _calm(self, importer: Importer) -> None:
        """Return when nothing has come for a while, or more has come than may wait.

        Sealing beside a back-fill would slow it down, and both take longer that way.
        """
        while importer.untidied < BACKLOG_BYTES and not self._engine.waiting().groups:
            left = importer.put_at + TIDY_S - trio.current_time()
            if left <= 0:
                return
            await trio.sleep(left)

    async def _shorten_log(self, writer: Writer) -> None:
        """Bring the log in whenever it has become long, also while more comes."""
        assert self.importer is not None
        while True:
            await self.importer.next_batch()
            if writer.wants_checkpoint():
                try:
                    await trio.to_thread.run_sync(writer.checkpoint, limiter=self._checkpointing)
                except MemdError as reason:
                    log.warning("ledger.checkpoint_failed", reason=str(reason))
                    self.failing.add("ledger.checkpoint_failed")
                else:
                    self.failing.discard("ledger.checkpoint_failed")

    def configure(self, environments: Iterable[Environment], rules: Rules) -> None:
        self._environments, self._rules = tuple(environments), rules
        if self.importer is not None:
            self.importer.follow(self._environments, rules)

    def _notice(self, changes: list[Change]) -> None:
        if self.importer is not None:
            self.importer.look(path for _, path in changes)

    def look(self, paths: Iterable[bytes]) -> None:
        """A hint that something was written there; before the ledger is open everything is going to be."""
        if self.importer is not None:
            self.importer.look(paths)

    def _cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        return self._engine.cursors(after, limit)

    # --------------------------------------------------------------------------- questions

    async def ask(self, question: Callable[[Reader], T]) -> T:
        """The answer of `question`; raises TryAgain when it takes longer than QUESTION_S."""
        await self._ready()
        with trio.move_on_after(QUESTION_S):
            return await self._ask(question)
        raise TryAgain(f"the ledger did not answer within {QUESTION_S:.0f} s", remedy="Narrow the question.")

    async def _ask(self, question: Callable[[Reader], T]) -> T:
        async with self._asking:
            reader = self._spare()
            if reader is None:
                reader = await trio.to_thread.run_sync(self._engine.reader)
            done = trio.Event()
            refusal: MemdError | None = None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_interrupt_when_cancelled, reader, done)
                try:
                    return await trio.to_thread.run_sync(question, reader)
                except MemdError as reason:
                    refusal = reason  # out of the nursery it would come as one of a group
                finally:
                    done.set()
                    self._idle.append(reader)
        assert refusal is not None
        raise refusal

    async def consult(self, question: Callable[[Reader], T]) -> T:
        """As `ask`, for a short question that also looks at the disk elsewhere, in one turn of a thread.

        Whoever gives up is not held by a disk that hangs.
        """
        await self._ready()
        return await trio.to_thread.run_sync(
            self._consulted, question, limiter=self._consulting, abandon_on_cancel=True
        )

    def _consulted(self, question: Callable[[Reader], T]) -> T:
        reader = self._spare() or self._engine.reader()
        try:
            return question(reader)
        finally:
            self._idle.append(reader)

    def _spare(self) -> Reader | None:
        try:
            return self._idle.pop()  # other threads take from it too
        except IndexError:
            return None

    async def _ready(self) -> None:
        if self.trouble:
            raise TryAgain(f"the ledger is not open: {self.trouble}", remedy=self._remedy)
        with trio.fail_after(QUESTION_S):
            await self._is_open.wait()

    def worker_trouble(self) -> str:
        """Why the import does not get anywhere; empty while it does."""
        if self.trouble:
            return f"the ledger is not open: {self.trouble}"
        if self.importer is not None and self.importer.trouble:
            left = self.importer.progress.left_sources
            more = f", {page.count(left, 'file')} to be read" if left else ""
            return f"{self.importer.trouble}; {page.count(self.importer.held, 'event')} held back{more}"
        if self.importer is None or self.importer.failures < WORKER_FAILURES:
            return ""
        return f"the worker ended {self.importer.failures} times in a row; see `memctl logs`"

    def server_trouble(self, state: LedgerState) -> str:
        """Why the ledger's server is not reached; empty while it is, and where there is none."""
        reason = state.trouble if state.state == "unreachable" else self._engine.trouble()
        return f"{reason}; what is read waits on this machine" if reason else ""

    async def findings(self) -> list[protocol.Finding]:
        """What `memctl doctor` should know of the ledger."""
        state = await self.state()
        subject = f"ledger ({state.engine})"
        found = []
        if state.state == "closed":
            found.append(_finding("problem", subject, state.trouble, self._remedy))
        elif reason := self.server_trouble(state):
            remedy = "Look whether `psql` gets in with the same words; docs/several-machines.md says more."
            found.append(_finding("problem", subject, reason, remedy))
        elif reason := self.worker_trouble():
            remedy = self.importer.remedy if self.importer is not None and self.importer.trouble else LOGS
            found.append(_finding("problem", subject, f"nothing is imported: {reason}", remedy))
        else:
            found.append(_finding("ok", subject, f"{state.events} events of {state.sessions} sessions"))
        if state.waiting_batches:
            size = f"{state.waiting_batches} groups, {state.waiting_bytes / 1e6:.1f} MB"
            message = f"waiting here for the server since {state.waiting_since}: {size}"
            found.append(_finding("note", subject, message))
        if state.waiting_aside:
            message = f"{state.waiting_aside} groups of batches are kept here that the server does not take"
            found.append(_finding("warning", subject, message, "Report it as a bug; nothing of it is lost."))
        return [*found, *diagnosis.unread(state.unreadable, state.unreadable_needing)]

    async def state(self) -> LedgerState:
        """How it is, for `memctl status`."""
        if self.importer is None or not self._is_open.is_set():
            return LedgerState(state="closed" if self.trouble else "opening", trouble=self.trouble)
        waiting, trouble, state = self._engine.waiting(), self.importer.trouble, self.importer.state
        try:
            stats = await self.ask(lambda reader: reader.stats())
        except Unreachable as reason:
            stats, trouble, state = NO_STATS, trouble or str(reason), "unreachable"
        progress = self.importer.progress
        return LedgerState(
            engine=self._engine.name,
            waiting_batches=waiting.groups,
            waiting_bytes=waiting.bytes,
            waiting_since=page.utc(waiting.oldest_ms) if waiting.groups else "",
            waiting_aside=waiting.aside,
            state=state,
            trouble=trouble,
            events=stats.events,
            sessions=stats.sessions,
            losses=stats.losses,
            bytes=stats.database_bytes + stats.log_bytes + stats.segment_bytes,
            left_sources=progress.left_sources,
            left_bytes=progress.left_bytes,
            unreadable=tuple((shown(one.path), one.reason, one.remedy) for one in progress.unreadable),
            unreadable_needing=progress.needing,
            worker_restarts=self.importer.restarts,
        )

    # ------------------------------------------------------------------------------ orders

    async def import_now(self, *, wait: bool, ended: Ended | None = None, since_ms: int = 0) -> None:
        """For one who waits:

        ended     a session that is over, to be read to its end too
        since_ms  with much to be read, only what changed since then is waited for
        """
        await self._ready()
        assert self.importer is not None
        if wait:
            await self.importer.flush(ended, since_ms)
        else:
            self.importer.look(everything=True)

    async def add_store(self, harness: str, folder: bytes) -> None:
        """Import a store outside the usual places."""
        await self._ready()
        assert self.importer is not None
        self.importer.add_store(harness, folder)

    async def work(self, do: Callable[[Work], T]) -> T:
        """What `do` gives, run in one transaction; ahead of whatever waits to be imported."""
        writer = await self._written()
        return await self._lane.run(partial(writer.work, do))

    async def append(self, batch: Batch) -> Appended:
        """Put in what memd itself says; raises DiskError, RunGone."""
        writer = await self._written()
        return await self._lane.run(partial(writer.append, batch))

    async def _written(self) -> Writer:
        await self._ready()
        assert self._writer is not None
        return self._writer

    async def scrub(self, text: str) -> str:
        """The text without secrets, by the rules that imports go by."""
        return await trio.to_thread.run_sync(self._scrub, text)

    def _scrub(self, text: str) -> str:
        rules, known = self._rules, self._sanitiser
        if known is None or known[0] is not rules:
            known = self._sanitiser = (rules, sanitiser.Sanitiser(rules.extra_patterns, rules.allowlist))
        return known[1].scrub(text)

    async def imports(self, harness: str, cwd: bytes) -> bool:
        """Whether what is said to a harness in a directory is imported."""
        wanted = Wanted(self._rules)
        if not wanted.harness(harness):
            return False
        return await trio.to_thread.run_sync(wanted.directory, os.fsdecode(cwd))

    async def forget(self, selection: Selection, *, dry_run: bool) -> Forgetting:
        """Write down what is to go, then take it away in small steps; `dry_run` only says what."""
        await self._ready()
        writer = self._writer
        assert writer is not None
        if dry_run:
            return await self._lane.run(lambda: writer.plan_forget(selection))
        async with self._rewriting:
            found = await self._lane.run(lambda: writer.begin_forget(selection))
            while await self._lane.run(writer.forget_step):
                pass
        return found

    async def check(self) -> Report:
        await self._ready()
        return await trio.to_thread.run_sync(self._check, abandon_on_cancel=True)

    async def repair(self) -> int:
        """Derive anew what disagrees with the segments; how many disagreements that removed."""
        writer = self._writer
        assert writer is not None
        async with self._rewriting:
            return await self._lane.run(writer.repair)

    @property
    def engine(self) -> str:
        """The name of what keeps the ledger."""
        return self._engine.name

    async def at_rest(self, do: Callable[[], Awaitable[T]]) -> T:
        """What `do` gives while nothing that is in the ledger is rewritten; what is new goes on coming in."""
        writer = await self._written()
        async with self._rewriting:
            while await self._lane.run(writer.forget_step):  # one that a crash interrupted
                pass
            return await do()

    def _check(self) -> Report:
        reader = self._engine.reader()
        try:
            return reader.check()
        finally:
            reader.close()


def _finding(level: Level, subject: str, message: str, remedy: str = "") -> protocol.Finding:
    return protocol.Finding(level=level, subject=subject, message=message, remedy=remedy)


def _give_back(readers: list[Reader]) -> None:
    """Let go of what only work needs: connections with their caches, and what is free on the heap."""
    for reader in readers:
        reader.close()
    heap.give_back()


async def _interrupt_when_cancelled(reader: Reader, done: trio.Event) -> None:
    """A thread cannot be cancelled, a query can."""
    try:
        await done.wait()
    finally:
        if not done.is_set():
            reader.interrupt()
