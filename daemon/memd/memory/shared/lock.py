"""The lock of a memory store: how it is taken, waited for, taken over from the dead, and given back.

    free      there is no `.lock`
    held      `.lock` is a file with its holder's payload
    reclaimed a lock of the dead was exchanged for ours

It is taken by writing the payload to a private file and giving that the name `.lock`, which fails when the
name is taken; so a lock is never seen half-written. It is waited for by looking every 25 ms, in a shared
store for 2 s, 1 s of rest, and 2 s more, then the store is busy and nothing is written. In the local store
one window of 0.5 s is all: then the work goes on, since only our own processes use it, and these are kept
apart by a `flock` on top, in either store.

A dead holder's lock is exchanged for ours in one step, and then the caught one is looked at: when it is not
the one that was judged dead, both are put back. It is given back by removing it, if it still is ours.

The protocol cannot protect from everything: its files have no owner but by agreement.

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator

from memctl.paths import shown
from memd import disk, processes
from memd.disk import Folder, Lock
from memd.errors import DiskError, TryAgain
from memd.memory.shared.clock import Clock
from memd.memory.shared.lock_rules import Holder, Seen, is_reused, may_reclaim, payload, pid_of, since_ms
from memd.memory.shared.mounts import is_foreign

LOCK = b".lock"
MAX_PAYLOAD_BYTES = 4096
POLL_S = 0.025
LOCAL_WINDOWS_MS = (500,)
SHARED_WINDOWS_MS = (2000, 2000)
REST_S = 1.0
FLOCK_WAIT_S = 5.0  # as long as a shared store may be waited for in all
STEPPED_MS = 1000  # wall and steady clock drifting apart by more: somebody set the wall clock

BUSY = "memory store is busy, retry in a moment"


class Busy(TryAgain):
    """Somebody else works on the store. Nothing was written."""


class StoreLock:
    """Takes the locks of stores. One object lives as long as its process, since it watches locks and clocks.

    alive, started  what is known of processes, see `memd.processes`
    foreign         whether other machines see a folder, see `mounts`
    """

    def __init__(
        self,
        state: bytes,
        clock: Clock,
        *,
        alive: Callable[[int], bool] = processes.is_alive,
        started: Callable[[int], int | None] = processes.started_at_ms,
        foreign: Callable[[bytes], bool] = is_foreign,
    ) -> None:
        self._state = state
        self._clock = clock
        self._alive = alive
        self._started = started
        self._foreign = foreign
        self._offset_ms = clock.now_ms() - clock.steady_ms()
        self._watched: dict[bytes, tuple[Seen, int]] = {}  # by store: what is in the way, since when
        self._abandoned: set[bytes] = set()  # payloads of ours that could not be removed

    @contextlib.contextmanager
    def held(self, store: Folder, *, is_shared: bool, waits: bool = True) -> Iterator[None]:
        """Hold the store's lock; raises Busy, DiskError.

        waits  whether a lock that is held is waited for at all
        """
        real = os.path.realpath(store.path)
        with self._flocks(real, waits):
            token = self._acquire(store, is_shared=is_shared, waits=waits)
            try:
                yield
            finally:
                if token is not None:
                    self._release(store, token)

    # ------------------------------------------------------------------ among our own processes

    @contextlib.contextmanager
    def _flocks(self, real: bytes, waits: bool) -> Iterator[None]:
        """A lock on a file in our state, and one on the folder itself for memds with another state."""
        wait_s = FLOCK_WAIT_S if waits else 0.0
        held: list[Lock] = []
        try:
            try:
                held.append(disk.take_lock(self._state + b"/lock", wait_s=wait_s))
                folder = disk.take_folder_lock(real, wait_s=wait_s)
            except TryAgain as reason:
                raise Busy(f"{BUSY} ({reason})") from None
            if folder is not None:
                held.append(folder)
            yield
        finally:
            for lock in reversed(held):
                lock.release()

    # ------------------------------------------------------------------ among all tools

    def _acquire(self, store: Folder, *, is_shared: bool, waits: bool) -> bytes | None:
        """The token to release; None where the work goes on without the lock."""
        windows = SHARED_WINDOWS_MS if is_shared else LOCAL_WINDOWS_MS
        for number, window_ms in enumerate(windows if waits else (0,)):
            if number:
                self._clock.sleep(REST_S)
            token = self._try_for(store, window_ms)
            if token is not None:
                self._watched.pop(store.path, None)
                return token
        if not is_shared:
            return None
        raise Busy(*self._why_busy(store))

    def _try_for(self, store: Folder, window_ms: int) -> bytes | None:
        token = payload(os.getpid(), self._clock.now_ms(), secrets.token_hex(8))
        ready = store.write_temporary((token,), is_flushed=False)
        try:
            deadline = self._clock.steady_ms() + window_ms
            while True:
                if self._publish(store, ready):
                    return token
                seen = self._look(store)
                is_dead = seen is not None and self._is_dead(seen, store)
                if seen is not None and is_dead and self._reclaim(store, ready, seen, token):
                    return token
                if self._clock.steady_ms() >= deadline:
                    return None
                self._clock.sleep(POLL_S)
        finally:
            with contextlib.suppress(DiskError):
                store.remove(ready)

    def _publish(self, store: Folder, ready: bytes) -> bool:
        try:
            store.move(ready, store, LOCK)
        except DiskError as reason:
            if reason.errno in (errno.EEXIST, errno.ENOTEMPTY):
                return False
            raise
        return True

    def _look(self, store: Folder) -> Seen | None:
        """The lock as it is; None when it is gone, or is nothing that a tool of this folder makes."""
        facts = store.look(LOCK)
        if facts is None or not stat.S_ISREG(facts.st_mode):
            return None
        try:
            content = store.read(LOCK, MAX_PAYLOAD_BYTES)
        except DiskError as reason:
            if reason.errno == errno.EFBIG:
                content = b""
            else:
                return None
        seen = Seen(payload=content, ino=facts.st_ino, mtime_ms=facts.st_mtime_ns // 1_000_000)
        before, since = self._watched.get(store.path, (None, 0))
        now = self._clock.steady_ms()
        if before != seen:
            self._watched[store.path] = (seen, now)
            return seen
        return Seen(payload=content, ino=seen.ino, mtime_ms=seen.mtime_ms, watched_ms=now - since)

    def _is_dead(self, seen: Seen, store: Folder) -> bool:
        if seen.payload in self._abandoned:
            return True
        holder = self._holder(seen.payload)
        if holder == "dead" and self._foreign(store.path):
            holder = "unnamed"  # it may live on another machine: as long as for a lock that names nobody
        return may_reclaim(seen, self._clock.now_ms(), holder)

    def _holder(self, content: bytes) -> Holder:
        pid = pid_of(content)
        if pid is None:
            return "unnamed"
        if not self._alive(pid):
            return "dead"
        started = self._started(pid)
        return "dead" if is_reused(since_ms(content), started, self._is_clock_steady()) else "alive"

    def _is_clock_steady(self) -> bool:
        offset_ms = self._clock.now_ms() - self._clock.steady_ms()
        return abs(offset_ms - self._offset_ms) <= STEPPED_MS

    def _reclaim(self, store: Folder, ready: bytes, judged: Seen, token: bytes) -> bool:
        """Exchange the dead lock for ours; False when another one was caught, which is put back."""
        is_ours = False
        try:
            store.swap(LOCK, store, ready)  # now `ready` is what was caught
            is_ours = True
            if self._caught(store, ready) == (judged.ino, judged.payload):
                store.remove(ready)
                self._abandoned.discard(judged.payload)
                return True
            store.swap(LOCK, store, ready)
        except DiskError:  # somebody else was quicker, or it cannot be done: wait like anybody
            if is_ours:
                self._put_back(store, ready, token)
        return False

    def _put_back(self, store: Folder, ready: bytes, token: bytes) -> None:
        """What was caught cannot be looked at: it may be anybody's."""
        try:
            store.swap(LOCK, store, ready)
        except DiskError:
            self._abandoned.add(token)  # ours stays there, and the next of ours takes it over

    def _caught(self, store: Folder, name: bytes) -> tuple[int, bytes]:
        facts = store.look(name)
        if facts is None or not stat.S_ISREG(facts.st_mode):
            return (0, b"")
        try:
            return (facts.st_ino, store.read(name, MAX_PAYLOAD_BYTES))
        except DiskError as reason:
            if reason.errno == errno.EFBIG:
                return (facts.st_ino, b"")
            raise

    def _release(self, store: Folder, token: bytes) -> None:
        try:
            if store.read(LOCK, MAX_PAYLOAD_BYTES) == token:
                store.remove(LOCK)
        except DiskError as reason:
            if reason.errno != errno.ENOENT:
                self._abandoned.add(token)  # what was done stands; the next of ours takes the lock over

    # ------------------------------------------------------------------ telling

    def _why_busy(self, store: Folder) -> tuple[str]:
        return (f"{BUSY}: {self.describe(store)}",)

    def describe(self, store: Folder) -> str:
        """Who holds the store's lock, in words; empty when nobody does."""
        facts = store.look(LOCK)
        path = shown(store.at(LOCK))
        if facts is None:
            return ""
        if not stat.S_ISREG(facts.st_mode):
            return f"{path} is no file, so no tool of this folder made it; move it away"
        seen = self._look(store)
        if seen is None:
            return f"{path} cannot be read"
        age_s = max(0, self._clock.now_ms() - seen.mtime_ms) // 1000
        pid = pid_of(seen.payload)
        if pid is None:
            return f"{path} names no process, and is {age_s} s old"
        holder = self._holder(seen.payload)
        word = "which runs" if holder == "alive" else "which is gone"
        return f"{path} is held by process {pid}, {word}, since {age_s} s"
