"""Hints from the file system: "look here", never "this happened".

One watch follows a set of real directories, each without its sub-folders. Several parts of the daemon give
their own directories and hear of changes in them. The set can be exchanged at any time: the new watch stands
before the old one is taken down, and whoever's folders are newly watched is told so, because what happened in
them before is unknown. Where the system gives no events (watch limit, odd names, a network file system) the
watcher says so once, and the periodic looks of its users are all there is.

A process that was stopped read no events meanwhile, and of those that are too many the system drops the rest.
It says so in an event that watchfiles keeps to itself, so after each stop all users look at everything.

watchfiles' own `awatch` cannot say when its watch stands, and follows links; its Rust class, which it
documents for direct use, does both right when given real directories and `recursive=False`.
source  watchfiles 1.3.0
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable

import structlog
import trio
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

DEBOUNCE_STEPS = 4  # a steady stream of changes delays its first report by no more than this
ARM_TRIES = 5
MODIFIED = 2  # watchfiles.Change.modified: something in the folder grew, nothing came or went
DRAIN_S = 0.5  # after a stop: until what the system still held was read, and new events come again
REST_MS = 60_000  # the thread looks up at least this often; a stop is seen within one step

Change = tuple[bool, bytes]
"""Whether something came or went (and did not only grow), and its path."""

Target = tuple[bytes, int, int]

log = structlog.get_logger()


class Interest:
    """What one part of the daemon wants watched, and how it is told.

    on_change  the changes directly in its folders, at most every step
    on_watch   folders of it that are watched from now on and were not before
    """

    def __init__(
        self, on_change: Callable[[list[Change]], None], on_watch: Callable[[list[bytes]], None]
    ) -> None:
        self.on_change = on_change
        self.on_watch = on_watch
        self.folders: frozenset[bytes] = frozenset()
        self.watched: frozenset[Target] = frozenset()


class Watcher:
    """`state` says in a word whether system events arrive: starting, watching, polling, limited."""

    def __init__(self, *, step_ms: int, poll: bool) -> None:
        self.state = "starting"
        self.trouble = ""
        self._step_ms = step_ms
        self._poll = poll
        self.on_state: Callable[[bool], None] = lambda _: None  # whether system events arrive
        self._interests: list[Interest] = []
        self._armed: tuple[frozenset[Target], int, bool] = (frozenset(), 0, False)
        self._change = trio.Event()

    @property
    def folders(self) -> int:
        return len(self._armed[0])

    def add(self, interest: Interest) -> None:
        self._interests.append(interest)

    def follow(self, interest: Interest, folders: Iterable[bytes]) -> None:
        """Exchange the folders of one interest; costs a look at each, and a new watch when they differ."""
        interest.folders = frozenset(folders)
        self._arm_if_changed()

    def reconfigure(self, *, step_ms: int, poll: bool) -> None:
        self._step_ms, self._poll = step_ms, poll
        self._arm_if_changed()

    def _arm_if_changed(self) -> None:
        if self._wanted() != self._armed or self.state == "limited":
            self._change.set()

    def _wanted(self) -> tuple[frozenset[Target], int, bool]:
        """By inode: a folder that was removed and made again has to be watched again."""
        folders = frozenset().union(*(interest.folders for interest in self._interests))
        return _targets(folders), self._step_ms, self._poll

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._notice_stops)
            current: trio.CancelScope | None = None
            while True:
                await self._change.wait()
                self._change = trio.Event()
                self._armed = self._wanted()
                scope = await nursery.start(self._watch, self._armed[0])
                if current is not None:
                    nursery.start_soon(self._retire, current)
                current = scope
                self._tell_watched()

    async def _notice_stops(self) -> None:
        with trio.open_signal_receiver(signal.SIGCONT) as signals:
            async for _ in signals:
                await trio.sleep(DRAIN_S)
                self._say_all()

    def _say_all(self) -> None:
        """What happened is unknown, so all of it has to be looked at."""
        for interest in self._interests:
            interest.on_watch(list(interest.folders))

    async def _retire(self, scope: trio.CancelScope) -> None:
        """End an old watch once it has told what it holds back: the new one may have come after that."""
        await trio.sleep(2 * DEBOUNCE_STEPS * self._step_ms / 1000)
        scope.cancel()

    def _tell_watched(self) -> None:
        armed = self._armed[0] if self.state == "watching" else frozenset()
        for interest in self._interests:
            watched = frozenset(target for target in armed if target[0] in interest.folders)
            fresh = [folder for folder, _, _ in watched - interest.watched]
            interest.watched = watched
            if fresh:
                interest.on_watch(fresh)

    async def _watch(
        self,
        targets: frozenset[Target],
        *,
        task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        with trio.CancelScope() as scope:
            notify = self._arm(targets)
            task_status.started(scope)
            if notify is None:
                return
            stop = threading.Event()
            debounce_ms = DEBOUNCE_STEPS * self._step_ms
            try:
                while True:
                    changes = await trio.to_thread.run_sync(
                        notify.watch, debounce_ms, self._step_ms, REST_MS, stop, abandon_on_cancel=True
                    )
                    if isinstance(changes, set):
                        self._tell(changes)
            except WatchfilesRustInternalError as reason:
                # a name that is no text came up, and nothing else is told: arm anew
                log.debug("watch.lost", reason=str(reason))
                self._say_all()
                self._change.set()
            finally:
                stop.set()  # the thread returns within a step; the watch goes with its last reference

    def _tell(self, changes: set[tuple[int, str]]) -> None:
        told = [(kind != MODIFIED, os.fsencode(path)) for kind, path in changes]
        for interest in self._interests:
            mine = [
                change
                for change in told
                if os.path.dirname(change[1]) in interest.folders or change[1] in interest.folders
            ]
            if mine:
                interest.on_change(mine)

    def _arm(self, targets: frozenset[Target]) -> RustNotify | None:
        """A standing watch over those folders that exist, or None where only looking is left."""
        if self._poll:
            self._say("polling", "")
            return None
        for _ in range(ARM_TRIES):
            names = [os.fsdecode(folder) for folder, _, _ in targets if os.access(folder, os.R_OK | os.X_OK)]
            try:
                # told to ignore missing permissions, it would ignore a reached limit as well
                notify = RustNotify([name for name in names if _encodes(name)], False, False, 0, False, False)
            except (FileNotFoundError, PermissionError):
                continue  # one went away, or was closed, between the look and the watch
            except (OSError, WatchfilesRustInternalError) as reason:
                self._say("limited", str(reason))
                return None
            self._say("watching", "")
            return notify
        self._say("limited", "watched folders come and go too fast")
        return None

    def _say(self, state: str, trouble: str) -> None:
        if state != self.state and state == "limited":
            log.warning("watch.limited", reason=trouble)
        self.state, self.trouble = state, trouble
        self.on_state(state == "watching")


def _targets(folders: frozenset[bytes]) -> frozenset[Target]:
    found = []
    for folder in folders:
        try:
            facts = os.stat(folder)
        except OSError:
            continue
        found.append((folder, facts.st_dev, facts.st_ino))
    return frozenset(found)


def _encodes(name: str) -> bool:
    """Whether the watcher can be given this name: it takes text, not bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def limits() -> dict[str, int]:
    """The system's bounds on inotify watches and instances, where it has them."""
    found = {}
    for name in ("max_user_watches", "max_user_instances"):
        try:
            with open("/proc/sys/fs/inotify/" + name, "rb") as file:
                found[name] = int(file.read())
        except (OSError, ValueError):
            continue
    return found
