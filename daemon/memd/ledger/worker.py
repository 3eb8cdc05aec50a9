"""The worker process: reads stores, parses, orders, scrubs, and hands finished batches to the daemon.

It owns no state that matters. The daemon tells it where every source was left; it remembers more only while
it lives. A batch moves a source's cursor only when nothing that lies before the cursor is still held back,
so a worker that dies costs some reading and loses nothing.

Two queues. What somebody just wrote (a hint named it) goes first, one slice each in turn; all else is
back-fill, in slices small enough that a new line never waits long. No more than `WINDOW` batches are under
way: the daemon's writer sets the pace.

No trio here: it is one loop over a pipe, and every megabyte of a second process counts.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections import deque

from memd.harness.model import Adapter, Environment, Store
from memd.harness.registry import adapters
from memd.ledger import assembly, messages, rows, sources
from memd.ledger.assembly import Assembly
from memd.ledger.messages import AnyNews, Frames, Rules
from memd.ledger.reading import Reader, Unreadable
from memd.ledger.rules import Wanted, is_below
from memd.ledger.sources import Source
from memd.ledger.store.interface import Batch

WINDOW = 4  # batches under way
RESCAN_S = 60.0  # between two looks at every file, whatever the hints said
FOLDERS_S = 5.0  # between two looks at the folders' own times: new files that no hint told of
PROGRESS_S = 0.5
KEPT_TROUBLES = 20


class Worker:
    """One per daemon. `run` returns when the daemon closes the pipe."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._frames = Frames()
        self._adapters: dict[str, Adapter] = dict(adapters())
        self._reader = Reader(self._adapters)
        self._stores: list[tuple[Adapter, Store]] = []
        self._extra: list[tuple[Adapter, Store]] = []
        self._wanted = Wanted(Rules())
        self._assembly = Assembly(Rules())
        self._scratch = b""
        self._cursors: dict[bytes, bytes] = {}
        self._looked: dict[bytes, tuple[int, int, int]] = {}  # path -> inode, size, mtime of the last reading
        self._live: dict[bytes, Source] = {}
        self._back: deque[Source] = deque()
        self._is_queued: set[bytes] = set()
        self._outbox: deque[tuple[Batch, bool]] = deque()
        self._number = 0
        self._unacknowledged: set[int] = set()
        self._flushes: list[int] = []
        self._folders: dict[bytes, int] = {}  # folder -> its mtime when it was listed
        self._troubles: dict[bytes, str] = {}
        self._cut: set[bytes] = set()
        self._has_begun = False
        self._rescan_at = self._folders_at = self._progress_at = 0.0
        self._is_told = True  # the last progress said that nothing is left

    # ------------------------------------------------------------------------ the loop

    def run(self) -> None:
        while self._receive(0.0 if self._can_work() else self._rest()):
            self._send_what_may_go()
            if self._has_begun:
                self._look_about()
            if self._can_work():
                self._work()
            self._settle()

    def _can_work(self) -> bool:
        return not self._outbox and len(self._unacknowledged) < WINDOW and bool(self._live or self._back)

    def _rest(self) -> float:
        """Seconds until something is due that no message tells."""
        if not self._has_begun:
            return RESCAN_S
        now = time.monotonic()
        due = min(self._rescan_at, self._folders_at, self._assembly.due(now))
        return max(0.0, min(due - now, FOLDERS_S))

    def _receive(self, wait_s: float) -> bool:
        """Deal with what the daemon said; False when it is gone."""
        while select.select([self._incoming], [], [], wait_s)[0]:
            data = os.read(self._incoming, 1 << 20)
            if not data:
                return False
            for frame in self._frames.feed(data):
                self._obey(messages.command(frame))
            wait_s = 0.0
        return True

    def _obey(self, command: messages.AnyCommand) -> None:
        match command:
            case messages.Begin(environments=environments, rules=rules, cursors=known, scratch=scratch):
                self._cursors = dict(known)
                self._scratch = scratch
                self._follow(environments, rules)
                self._has_begun = True
                self._rescan_at = 0.0
            case messages.Follow(environments=environments, rules=rules):
                self._follow(environments, rules)
                self._rescan_at = 0.0
            case messages.Look(paths=paths, all=everything):
                if everything:
                    self._rescan_at = 0.0
                for path in paths:
                    self._hint(path)
            case messages.Extra(harness=harness, folder=folder):
                adapter = self._adapters[harness]
                # every place of this adapter is tried relative to the folder that was named
                self._extra += sources.stores_in(adapter, folder)
                self._rescan_at = 0.0
            case messages.Flush(token=token):
                self._rescan_at = 0.0
                self._flushes.append(token)
            case messages.Acknowledge(number=number):
                self._unacknowledged.discard(number)

    def _follow(self, environments: tuple[Environment, ...], rules: Rules) -> None:
        self._wanted = Wanted(rules)
        self._assembly.reconfigure(rules, self._scratch)
        chosen = [adapter for adapter in self._adapters.values() if self._wanted.harness(adapter.name)]
        self._stores = sources.stores(chosen, environments)
        self._looked.clear()

    # ------------------------------------------------------------------------- looking

    def _look_about(self) -> None:
        now = time.monotonic()
        if now >= self._rescan_at:
            self._rescan()
            self._rescan_at = time.monotonic() + RESCAN_S
            self._folders_at = time.monotonic() + FOLDERS_S
        elif now >= self._folders_at:
            if any(_mtime(folder) != seen for folder, seen in self._folders.items()):
                self._rescan()
            self._folders_at = time.monotonic() + FOLDERS_S

    def _rescan(self) -> None:
        """Walk every store; queue what is not as it was when it was last read."""
        folders: dict[bytes, int] = {}
        found: list[Source] = []
        self._cut.clear()
        for adapter, store in [*self._stores, *self._extra]:
            walk = sources.walk(adapter, store)
            found += walk.sources
            for folder in walk.folders or _nearest(store.root):
                folders[folder] = _mtime(folder)
            if walk.is_cut:
                self._cut.add(store.root)
        found.sort(key=lambda source: -source.mtime_ns)
        for source in found:
            if source.path not in self._is_queued and self._is_news(source):
                self._back.append(source)
                self._is_queued.add(source.path)
        if folders.keys() != self._folders.keys():
            self._tell(messages.Folders(folders=tuple(folders)))
        self._folders = folders
        self._is_told = False

    def _is_news(self, source: Source) -> bool:
        looked = self._looked.get(source.path)
        if looked is None:
            looked = assembly.seen(source, self._cursors.get(source.path, b""))
        return looked != rows.look_of(source, _now_ms())

    def _hint(self, path: bytes) -> None:
        for adapter, store in [*self._stores, *self._extra]:
            if not is_below(path, store.root):
                continue
            source = sources.look(adapter, store, path)
            if source is not None:
                if self._is_news(source):
                    self._live[source.path] = source
                return
            if os.path.isdir(path):
                self._list(adapter, store, path)

    def _list(self, adapter: Adapter, store: Store, folder: bytes) -> None:
        """A folder that is new, or newly watched: what is in it may have come before anybody looked."""
        if folder == store.root:
            self._rescan_at = 0.0
            return
        walk = sources.walk(adapter, store, folder)
        for source in walk.sources:
            if source.path not in self._is_queued and self._is_news(source):
                self._live[source.path] = source
        fresh = {name: _mtime(name) for name in walk.folders}
        if not fresh.keys() <= self._folders.keys():
            self._folders.update(fresh)
            self._tell(messages.Folders(folders=tuple(self._folders)))
        self._folders.update(fresh)

    # ------------------------------------------------------------------------- working

    def _work(self) -> None:
        if self._live:
            path = next(iter(self._live))
            source, is_live = self._live.pop(path), True
        else:
            source, is_live = self._back.popleft(), False
            self._is_queued.discard(source.path)
        now_facts = rows.look_of(source, _now_ms())
        try:
            made = self._assembly.read(
                self._adapters[source.harness],
                source,
                self._cursors.get(source.path, b""),
                self._reader,
                self._wanted,
                time.monotonic(),
            )
        except Unreadable as reason:
            self._troubles[source.path] = str(reason)
            if not reason.is_passing:
                self._looked[source.path] = now_facts
            return
        self._troubles.pop(source.path, None)
        self._outbox.extend((batch, is_live) for batch in made.batches)
        if made.cursor:
            self._cursors[source.path] = made.cursor
        if made.is_more:
            self._back.appendleft(source) if is_live else self._back.append(source)
            self._is_queued.add(source.path)
        else:
            self._looked[source.path] = now_facts

    def _settle(self) -> None:
        """What was held back too long goes out; what was asked for is answered; progress is told."""
        now = time.monotonic()
        is_idle = not (self._live or self._back)
        for batch in self._assembly.overdue(now, everything=is_idle and bool(self._flushes)):
            self._outbox.append((batch, True))
        self._send_what_may_go()
        if self._flushes and is_idle and self._rescan_at > now and self._is_quiet():
            for token in self._flushes:
                self._tell(messages.Flushed(token=token))
            self._flushes.clear()
        if not self._is_told and (now >= self._progress_at or is_idle):
            self._tell(self._progress())
            self._progress_at = now + PROGRESS_S
            self._is_told = is_idle

    def _is_quiet(self) -> bool:
        return not self._outbox and not self._unacknowledged and not self._assembly.is_holding()

    def _progress(self) -> messages.Progress:
        left = [*self._live.values(), *self._back]
        return messages.Progress(
            sources=len(self._looked) + len(left),
            total_bytes=0,
            left_sources=len(left),
            left_bytes=sum(assembly.unread(s, self._cursors.get(s.path, b"")) for s in left),
            unreadable=tuple(list(self._troubles.items())[:KEPT_TROUBLES]),
            cut_stores=tuple(self._cut),
        )

    def _send_what_may_go(self) -> None:
        while self._outbox and len(self._unacknowledged) < WINDOW:
            batch, is_live = self._outbox.popleft()
            self._number += 1
            self._unacknowledged.add(self._number)
            self._tell(messages.Read(number=self._number, batch=batch, is_live=is_live))

    def _tell(self, news: AnyNews) -> None:
        data = memoryview(messages.pack(news))
        while data:
            data = data[os.write(self._outgoing, data) :]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _mtime(folder: bytes) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1


def _nearest(root: bytes) -> list[bytes]:
    """The folder in which a store that is not there yet would begin to appear."""
    while not os.path.isdir(root):
        root = os.path.dirname(root)
    return [root]


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the daemon's to heed
    try:
        Worker(0, 1).run()
    except BrokenPipeError:
        pass  # the daemon is gone
    except Exception as bug:  # noqa: BLE001  the edge of a process: say where, not what
        sys.stderr.write(_where(bug))
        return 70
    return 0


def _where(bug: Exception) -> str:
    """What failed and where, without the words of the exception: they may quote a transcript."""
    frames = traceback.extract_tb(bug.__traceback__)
    places = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in reversed(frames[-6:]))
    return f"{type(bug).__name__} at {places}"


if __name__ == "__main__":
    sys.exit(main())
