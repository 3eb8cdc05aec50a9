"""The supervisor of the worker, and the way of its batches into the ledger.

The worker is started, fed with hints, watched, and started again when it dies, from where the ledger's
cursors stand. What it reads goes in in the order in which it came, a few groups of batches together, through
the writer's lane, so that commands overtake them. What the disk refuses is tried again until it goes in:
nothing that was read is dropped.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import structlog
import trio

from memd.errors import MemdError, TryAgain
from memd.harness.model import Environment
from memd.ledger import messages
from memd.ledger.messages import Rules
from memd.ledger.store.interface import Appended, Writer
from memd.service.arrivals import Arrivals, Coming
from memd.service.lane import BULK, LIVE, Lane

RESTART_S = (0.1, 0.5, 2.0, 5.0)  # pauses before the worker is started again; the last one repeats
STEADY_S = 60.0  # a worker that lived this long starts the pauses over
GATHER_S = 0.1  # for more back-fill that goes in together with what came
RETRY_S = 2.0  # before a batch that the disk refused is tried again
FLUSH_RESTARTS = 4  # of the worker, that one who waits sits out
CURSORS_PAGE = 500
MAX_LAST_WORDS = 600
LAST_WORDS_S = 0.1
PIPE_BYTES = 1 << 20  # a group of batches in one piece, where the system allows it
PAGES_BYTES, PAGES_S = 64 << 10, 0.001
"""So much of a message that is under way comes at once after a moment; else page by page, a turn for each."""

MAX_HINTS = 2000  # paths that wait; more of them mean: look at everything

_DIGITS = re.compile(r"\d+")

log = structlog.get_logger()


class _Flush:
    """Somebody who waits for the import to catch up."""

    def __init__(self, ended: messages.Ended | None, since_ms: int) -> None:
        self.ended = ended
        self.since_ms = since_ms
        self.done = trio.Event()
        self.failure = ""
        self._restarts = 0

    def note_restart(self, reason: str) -> None:
        self._restarts += 1
        if self._restarts > FLUSH_RESTARTS:
            self.failure = reason or "the worker ends without a word"
            self.done.set()


def _told(token: int, flush: _Flush) -> messages.Flush:
    return messages.Flush(token=token, ended=flush.ended, since_ms=flush.since_ms)


class Importer:
    """Runs one worker for ever; everybody else sees hints go in and progress come out."""

    def __init__(
        self,
        writer: Writer,
        lane: Lane,
        *,
        cursors: Callable[[bytes, int], Mapping[bytes, bytes]],
        scratch: bytes,
        on_folders: Callable[[tuple[bytes, ...]], None],
        environments: tuple[Environment, ...] = (),
        rules: Rules | None = None,
    ) -> None:
        self._writer = writer
        self._lane = lane
        self._cursors = cursors
        self._scratch = scratch
        self._on_folders = on_folders
        self._environments = environments
        self._rules = rules or Rules()
        self._commands: deque[messages.AnyCommand] = deque()
        self._hints: set[bytes] = set()
        self._has_words = trio.Event()
        self._flushes: dict[int, _Flush] = {}
        self._extras: list[messages.Extra] = []
        self._token = 0
        self._is_watched = False
        self._is_retiring = False
        self._batch: trio.Event | None = None
        self._arrivals = Arrivals()
        self.progress = messages.Progress(sources=0, total_bytes=0, left_sources=0, left_bytes=0)
        self.state = "starting"
        self.trouble = ""
        self.remedy = ""
        self.held = 0  # events that wait in memory while there is trouble
        self.restarts = 0
        self.put_at = -math.inf  # when something was put in last, by the loop's clock
        self.untidied = 0  # bytes put in since housekeeping came to its end; set to 0 by who does it
        self.failures = 0  # ends in a row of workers that did not live long
        self.pid = 0
        self._last_words = ""

    # ----------------------------------------------------------------------- from others

    def look(self, paths: Iterable[bytes] = (), *, everything: bool = False) -> None:
        """A hint; hints that wait are told together."""
        self._hints.update(paths)
        if everything or len(self._hints) > MAX_HINTS:
            self._hints.clear()
            self._commands.append(messages.Look(all=True))
        self._has_words.set()

    def set_watched(self, is_watched: bool) -> None:
        """Whether hints come, as far as the system is concerned."""
        if is_watched != self._is_watched:
            self._is_watched = is_watched
            self._command(messages.Watched(is_watched=is_watched))

    def follow(self, environments: tuple[Environment, ...], rules: Rules) -> None:
        if (environments, rules) == (self._environments, self._rules):
            return
        self._environments, self._rules = environments, rules
        self._command(messages.Follow(environments=environments, rules=rules))

    def add_store(self, harness: str, folder: bytes) -> None:
        """Import a store outside the usual places; remembered while the daemon lives."""
        extra = messages.Extra(harness=harness, folder=folder)
        self._extras.append(extra)
        self._command(extra)

    async def next_batch(self) -> None:
        """Return when something has been put in."""
        if self._batch is None:
            self._batch = trio.Event()
        await self._batch.wait()

    async def flush(self, ended: messages.Ended | None = None, since_ms: int = 0) -> None:
        """Return when everything visible now is in the ledger; raises TryAgain if the worker keeps dying.

        ended     a session that is over: what its harness never completed is taken as it is
        since_ms  with much to be read, wait only for what changed since then
        """
        self._token += 1
        token, flush = self._token, _Flush(ended, since_ms)
        self._flushes[token] = flush
        self._command(_told(token, flush))
        try:
            await flush.done.wait()
        finally:
            self._flushes.pop(token, None)
        if flush.failure:
            raise TryAgain(f"the import keeps failing: {flush.failure}", remedy="See `memctl logs`.")

    def _command(self, command: messages.AnyCommand) -> None:
        self._commands.append(command)
        self._has_words.set()

    # --------------------------------------------------------------------------- running

    async def run(self) -> None:
        tries = 0
        while True:
            began = trio.current_time()
            await self._one_worker()
            self.pid = 0
            if self._is_retiring:
                continue
            self.state = "restarting"
            self.restarts += 1
            self.failures = 0 if trio.current_time() - began > STEADY_S else self.failures + 1
            tries = 0 if trio.current_time() - began > STEADY_S else tries + 1
            log.warning("worker.ended", restarts=self.restarts, reason=self._last_words)
            for flush in list(self._flushes.values()):
                flush.note_restart(self._last_words)
            await trio.sleep(RESTART_S[min(tries, len(RESTART_S) - 1)])

    async def _one_worker(self) -> None:
        """From the start of a worker process to its end."""
        process = await trio.lowlevel.open_process(
            [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "memd.ledger.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._is_retiring = False
        _widen(process.stdout)
        try:
            await self._tell_cursors(process.stdin)
            self._commands.clear()  # what was meant for an earlier worker: the rest is told anew
            begin = messages.Begin(environments=self._environments, rules=self._rules, scratch=self._scratch)
            await process.stdin.send_all(messages.pack(begin))
            await process.stdin.send_all(messages.pack(messages.Watched(is_watched=self._is_watched)))
            for extra in self._extras:
                await process.stdin.send_all(messages.pack(extra))
            for token, flush in list(self._flushes.items()):  # others come while these are told
                await process.stdin.send_all(messages.pack(_told(token, flush)))
            self.state = "running"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._speak, process.stdin)
                nursery.start_soon(self._hear, process.stderr)
                await self._listen(process.stdout)
                with trio.move_on_after(LAST_WORDS_S):
                    await process.wait()
                    await trio.sleep(LAST_WORDS_S)
                nursery.cancel_scope.cancel()
        except trio.BrokenResourceError:
            pass  # it died while it was spoken to
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                process.kill()
                await process.wait()

    async def _tell_cursors(self, stdin: trio.abc.SendStream) -> None:
        """Where every source was left, page by page: all at once would cost memory for good."""
        after = b""
        while page := await trio.to_thread.run_sync(self._cursors, after, CURSORS_PAGE):
            await stdin.send_all(messages.pack(messages.Cursors(cursors=dict(page))))
            after = max(page)

    async def _hear(self, stderr: trio.abc.ReceiveStream | None) -> None:
        """The end of what the worker said before it died: a failure and its place, never content."""
        assert stderr is not None
        self._last_words = ""
        async for data in stderr:
            self._last_words = (self._last_words + data.decode("utf-8", "replace"))[-MAX_LAST_WORDS:]

    async def _speak(self, stdin: trio.abc.SendStream) -> None:
        """A worker that is gone is told nothing more; `_listen` comes to the end of what it said itself."""
        with contextlib.suppress(trio.BrokenResourceError):
            while True:
                await self._has_words.wait()
                self._has_words = trio.Event()
                while self._commands:
                    await stdin.send_all(messages.pack(self._commands.popleft()))
                if self._hints:
                    paths = tuple(self._hints)
                    self._hints.clear()
                    await stdin.send_all(messages.pack(messages.Look(paths=paths)))

    async def _listen(self, stdout: trio.abc.ReceiveStream) -> None:
        """Put in what comes, to the end. Nothing is read meanwhile: two threads that take turns cost more."""
        frames = messages.Frames()
        arrivals = self._arrivals = Arrivals()
        is_over = False
        while not is_over:
            with trio.move_on_after(GATHER_S if arrivals else math.inf) as gathering:
                data = await stdout.receive_some(PIPE_BYTES)
                is_over = not data
                for frame in frames.feed(bytes(data)):
                    self._heed(messages.news(frame), len(frame), arrivals)
                if frames.missing > PAGES_BYTES and not is_over:
                    await trio.sleep(PAGES_S)
            while arrivals.is_due or (arrivals and (gathering.cancelled_caught or is_over)):
                taken = arrivals.take()
                await self._put_in(taken.batches, LIVE if taken.is_live else BULK)
                self.untidied += taken.size
                for number in taken.numbers:
                    self._command(messages.Acknowledge(number=number))

    def _heed(self, news: messages.AnyNews, size: int, arrivals: Arrivals) -> None:
        match news:
            case messages.Read():
                arrivals.add(news, size)
            case messages.Retiring():
                self._is_retiring = True
            case messages.Folders(folders=folders):
                self._on_folders(folders)
            case messages.Progress():
                self.progress = news
            case messages.Flushed(token=token):
                self.failures = 0
                flush = self._flushes.get(token)
                if flush is not None:
                    flush.done.set()

    async def _put_in(self, batches: Coming, priority: int) -> None:
        """All of them, in pieces when somebody needs the writer meanwhile."""
        is_awaited = partial(self._lane.is_wanted, priority)
        while batches:
            try:
                put: list[Appended] = await self._lane.run(
                    partial(self._writer.append_all, batches, is_awaited), priority
                )
            except MemdError as reason:
                if _DIGITS.sub("", str(reason)) != _DIGITS.sub("", self.trouble):  # each try has its number
                    log.error("import.refused", reason=str(reason), harness=batches.harness)
                self.trouble, self.remedy = str(reason), reason.remedy
                self.held = batches.events + self._arrivals.events
                await trio.sleep(RETRY_S)
                continue
            self.trouble, self.held = "", 0
            self.put_at = trio.current_time()
            if self._batch is not None:
                self._batch.set()
                self._batch = None
            log.debug("import.done", batches=len(put), events=sum(one.stored for one in put))
            batches = batches.after(len(put))


def _widen(pipe: trio.abc.ReceiveStream) -> None:
    """Let a pipe hold more than the usual 64 KiB: each piece costs both processes a turn of their loops."""
    if sys.platform == "linux" and isinstance(pipe, trio.lowlevel.FdStream):
        with contextlib.suppress(OSError):  # the user has many large pipes already
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
