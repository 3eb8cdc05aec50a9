"""The worker process: reads stores, parses, orders, scrubs, and hands finished batches to the daemon.

It owns no state that matters. The daemon tells it where every source was left; it remembers more only while
it lives. A batch moves a source's cursor only when nothing that lies before the cursor is still held back,
so a worker that dies costs some reading and loses nothing.

Two queues. What somebody just wrote (a hint named it) goes first, one slice each in turn; all else is
back-fill, in slices small enough that a new line never waits long. No more than `WINDOW` groups are under
way: the daemon's writer sets the pace.

No trio here: it is one loop over a pipe, and every megabyte of a second process counts.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
from collections import deque

from memd import heap
from memd.harness.model import Adapter, Environment, Store
from memd.harness.registry import adapters
from memd.ledger import assembly, messages, rows, sources, troubles
from memd.ledger.assembly import Assembly
from memd.ledger.glance import Disk
from memd.ledger.known import Known
from memd.ledger.messages import AnyNews, Frames, Rules
from memd.ledger.outbox import Outbox
from memd.ledger.reading import Reader, Unreadable
from memd.ledger.retries import Retries
from memd.ledger.rules import Wanted, is_below
from memd.ledger.sources import Source, Walk
from memd.ledger.store.interface import Batch
from memd.ledger.troubles import Troubles
from memd.ledger.waiting import Flow, Wait

WINDOW = 8  # groups of batches under way
MANY, MANY_BYTES = 200, 64 << 20  # sources to be read, from which on one may wait for the newest alone
RESCAN_S = 600.0  # between two looks at every file, whatever the hints said
BLIND_S = 5.0  # the same while no hints come, or a store lies where others write unseen
FOLDERS_S = 60.0  # between two looks at the folders' own times: new files that no hint told of
RETIRE_SOURCES = 1000  # slices of back-fill, after which a worker that is done makes room for a fresh one
PROGRESS_S = 0.5
PROGRESS_SHARE = 20  # one part in so many of the time at most goes into saying how far it is
COURTESY = 5  # agents, and the daemon's own answers, come first
GARBAGE = 50_000  # objects between two looks for circles: a batch holds thousands, and none of them in one
GIVE_BACK_GROUPS = 4  # of batches, after which a rest is used to give memory back
KEPT_BESIDE = 256  # sources read lately that another file names: a change of that one is a hint too


class Worker:
    """One per daemon. `run` returns when the daemon closes the pipe."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._frames = Frames()
        self._adapters: dict[str, Adapter] = dict(adapters())
        self._reader = Reader(self._adapters)
        self._chosen: list[Adapter] = []
        self._environments: tuple[Environment, ...] = ()
        self._stores: list[tuple[Adapter, Store]] = []
        self._followed: set[bytes] = set()  # files that say where stores are
        self._extra: list[tuple[Adapter, Store]] = []
        self._wanted = Wanted(Rules())
        self._assembly = Assembly(Rules())
        self._scratch = b""
        self._known = Known()
        self._is_watched = False
        self._live: dict[bytes, Source] = {}
        self._back: deque[Source] = deque()
        self._is_queued: set[bytes] = set()
        self._outbox = Outbox()
        self._flow = Flow()
        self._given_back = -GIVE_BACK_GROUPS  # so that the first look at everything is followed by it too
        self._waits: list[Wait] = []
        self._folders: dict[bytes, int] = {}  # folder -> its mtime when it was listed
        self._troubles = Troubles()
        self._retries = Retries()
        self._beside: dict[bytes, Source] = {}
        self._has_begun = False
        self._filled = 0  # slices of back-fill
        self._has_remote = False
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
            if self._may_retire():
                self._tell(messages.Retiring())
                return

    def _may_retire(self) -> bool:
        """After a large back-fill, when all is done: a process keeps the memory that it once needed."""
        is_idle = self._is_quiet() and not (self._live or self._back or self._waits)
        return self._filled >= RETIRE_SOURCES and is_idle

    def _can_work(self) -> bool:
        return not self._outbox.is_due and len(self._flow) < WINDOW and self._is_anything_left()

    def _is_anything_left(self) -> bool:
        return bool(self._live or self._back)

    def _rest(self) -> float:
        """Seconds until something is due that no message tells."""
        if not self._has_begun:
            return RESCAN_S
        now = time.monotonic()
        due = min(self._rescan_at, self._folders_at, self._assembly.due(now), self._retries.due)
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
            case messages.Cursors(cursors=known):
                self._known.add(known)
            case messages.Begin(environments=environments, rules=rules, scratch=scratch):
                self._scratch = scratch
                self._follow(environments, rules)
                self._assembly.prepare()
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
            case messages.Flush(token=token, ended=ended, since_ms=since_ms):
                self._rescan_at = 0.0
                self._waits.append(Wait(token=token, since_ns=since_ms * 1_000_000, ended=ended))
            case messages.Acknowledge(number=number):
                self._flow.acknowledge(number)
            case messages.Watched(is_watched=is_watched):
                self._is_watched = is_watched
                self._rescan_at = self._folders_at = 0.0

    def _follow(self, environments: tuple[Environment, ...], rules: Rules) -> None:
        self._wanted = Wanted(rules)
        self._assembly.reconfigure(rules, self._scratch)
        self._chosen = [one for one in self._adapters.values() if self._wanted.harness(one.name)]
        self._environments = environments
        self._find_stores()
        self._known.forget_looks()
        self._troubles.forget()

    def _find_stores(self) -> None:
        disk = Disk()
        self._stores = sources.stores(self._chosen, self._environments, disk)
        self._followed = disk.followed

    # ------------------------------------------------------------------------- looking

    def _look_about(self) -> None:
        now = time.monotonic()
        for path in self._retries.take(now):
            self._hint(path)
        if now >= self._rescan_at:
            self._rescan()
            is_blind = not self._is_watched or self._has_remote
            self._rescan_at = time.monotonic() + (BLIND_S if is_blind else RESCAN_S)
            self._folders_at = time.monotonic() + (BLIND_S if is_blind else FOLDERS_S)
        elif now >= self._folders_at:
            if any(sources.mtime(folder) != seen for folder, seen in self._folders.items()):
                self._rescan()
            self._folders_at = time.monotonic() + FOLDERS_S

    def _rescan(self) -> None:
        """Walk every store; queue what is not as it was when it was last read."""
        folders: dict[bytes, int] = {}
        news: list[Source] = []
        remote = sources.remote_roots()
        self._find_stores()
        for file in self._followed:
            for folder in sources.nearest(os.path.dirname(file)):
                folders[folder] = sources.mtime(folder)
        self._troubles.begin_look(os.path.lexists)
        self._has_remote = False
        for adapter, store in [*self._stores, *self._extra]:
            walk = sources.walk(adapter, store, is_wanted=self._is_to_be_queued)
            news += walk.sources
            self._has_remote = self._has_remote or any(is_below(store.root, root) for root in remote)
            folders.update(
                walk.folders or {near: sources.mtime(near) for near in sources.nearest(store.root)}
            )
            self._note_places(store, walk)
        for source in self._in_reading_order(news):
            self._back.append(source)
            self._is_queued.add(source.path)
        if folders.keys() != self._folders.keys():
            self._tell(messages.Folders(folders=tuple(folders)))
        self._folders = folders
        self._is_told = False

    def _note_places(self, store: Store, walk: Walk) -> None:
        self._retries.settle(walk.folders)
        for folder, reason in walk.blind.items():
            self._troubles.note_place(folder, reason, troubles.READABLE)
            self._retries.note(folder, time.monotonic())
        if walk.is_cut:
            reason = f"it holds more than {sources.MAX_FILES} session files"
            self._troubles.note_place(store.root, reason, troubles.CUT)

    def _in_reading_order(self, news: list[Source]) -> list[Source]:
        """The newest first; files that continue each other together, by name."""
        news.sort(key=lambda source: -source.mtime_ns)
        groups: dict[tuple[str, bytes], list[Source]] = {}
        for source in news:
            groups.setdefault(self._group(source), []).append(source)
        ordered = [source for group in groups.values() for source in sorted(group, key=lambda s: s.path)]
        return sorted(ordered, key=lambda source: source.store.is_index)  # after what it tells of

    def _kin(self, source: Source) -> bytes:
        return self._adapters[source.harness].kin(source.rel)

    def _is_to_be_queued(self, source: Source) -> bool:
        return source.path not in self._is_queued and self._is_news(source)

    def _is_news(self, source: Source) -> bool:
        looks = rows.look_of(source, _now_ms())
        if self._known.has_looks(source.path):
            return not self._known.is_as_it_was(source.path, looks)
        return assembly.seen(source, self._known.cursor(source.path)) != looks

    def _take_live(self, source: Source) -> None:
        """Read it before any back-fill, unless it continues a file that is still to be read."""
        if not self._is_news(source):
            return
        kin = self._kin(source)
        if kin and any(self._kin(other) == kin for other in self._back if other.path != source.path):
            if source.path not in self._is_queued:
                self._back.append(source)
                self._is_queued.add(source.path)
            return
        self._live[source.path] = source

    def _hint(self, path: bytes) -> None:
        if any(is_below(file, path) for file in self._followed):
            self._rescan_at = 0.0
        named = self._beside.get(path)
        if named is not None:
            path = named.path
        for adapter, store in [*self._stores, *self._extra]:
            if not is_below(path, store.root):
                continue
            source = sources.look(adapter, store, path)
            if source is not None:
                self._take_live(source)
                return
            if os.path.isdir(path):
                self._list(adapter, store, path)

    def _list(self, adapter: Adapter, store: Store, folder: bytes) -> None:
        """A folder that is new, or newly watched: what is in it may have come before anybody looked."""
        if folder == store.root:
            self._rescan_at = 0.0
            return
        walk = sources.walk(adapter, store, folder)
        self._troubles.settle_places(walk.folders)
        self._note_places(store, walk)
        for source in self._in_reading_order(walk.sources):
            if source.path not in self._is_queued:
                self._take_live(source)
        is_new = not walk.folders.keys() <= self._folders.keys()
        self._folders.update(walk.folders)
        if is_new:
            self._tell(messages.Folders(folders=tuple(self._folders)))

    # ------------------------------------------------------------------------- working

    def _work(self) -> None:
        if self._live:
            path = next(iter(self._live))
            source, is_live = self._live.pop(path), True
        else:
            source, is_live = self._back.popleft(), False
            self._is_queued.discard(source.path)
            self._filled += 1
        self._note_beside(source)
        now_facts = rows.look_of(source, _now_ms())
        try:
            made = self._assembly.read(
                self._adapters[source.harness],
                source,
                self._known.cursor(source.path),
                self._reader,
                self._wanted,
                time.monotonic(),
            )
        except Unreadable as reason:
            self._troubles.note(source.path, str(reason), reason.remedy)
            if reason.is_passing:
                self._retries.note(source.path, time.monotonic())
            else:
                self._known.set_looks(source.path, now_facts)
            return
        except Exception as bug:  # noqa: BLE001  one odd source must not keep all others out
            self._troubles.note(source.path, f"reading it failed: {_where(bug)}", troubles.BUG)
            self._known.set_looks(source.path, now_facts)
            return
        self._troubles.settle(source.path)
        self._retries.settle((source.path,))
        for batch in made.batches:
            self._put(batch, is_live=is_live)
        if made.cursor:
            self._known.set_cursor(source.path, made.cursor)
        if made.is_more:
            is_next = is_live or self._kin(source)
            self._back.appendleft(source) if is_next else self._back.append(source)
            self._is_queued.add(source.path)
        else:
            self._known.set_looks(source.path, now_facts)

    def _note_beside(self, source: Source) -> None:
        """Keep in mind which file says what a source is: it may be written after it, and again."""
        beside = self._adapters[source.harness].beside(source.rel)
        if beside:
            path = source.store.root + b"/" + beside
            self._beside.pop(path, None)
            self._beside[path] = source
            if len(self._beside) > KEPT_BESIDE:
                del self._beside[next(iter(self._beside))]

    def _finish_reading(self, ended: messages.Ended, now: float) -> None:
        """A session is over: take what its harness never completed as it is."""
        for adapter, store in [*self._stores, *self._extra]:
            if adapter.name != ended.harness or not any(query.is_at_rest for query in adapter.queries):
                continue
            for source in sources.walk(adapter, store).sources:
                if not store.database and ended.session.encode("utf-8", "replace") not in source.rel:
                    continue
                known = self._known.cursor(source.path)
                try:
                    made = self._assembly.read_ended(adapter, source, known, ended, self._wanted, now)
                except Unreadable as reason:
                    self._troubles.note(source.path, str(reason), reason.remedy)
                    continue
                except Exception as bug:  # noqa: BLE001  as in `_work`
                    self._troubles.note(source.path, f"reading it failed: {_where(bug)}", troubles.BUG)
                    continue
                for batch in made.batches:
                    self._put(batch, is_live=True)
                if made.cursor:
                    self._known.set_cursor(source.path, made.cursor)

    def _settle(self) -> None:
        """What was held back too long goes out; what was asked for is answered; progress is told."""
        now = time.monotonic()
        is_idle = not self._is_anything_left()
        for batch in self._assembly.overdue(now):
            self._put(batch, is_live=True)
        if self._rescan_at > now:
            self._waits = [wait for wait in self._waits if not self._is_served(wait, now)]
        self._send_what_may_go()
        if self._troubles.is_news:
            self._troubles.is_news = self._is_told = False
        if not self._is_told and (now >= self._progress_at or is_idle):
            self._tell(self._progress())
            took = time.monotonic() - now  # with tens of thousands left, the telling takes its time too
            self._progress_at = now + max(PROGRESS_S, took * PROGRESS_SHARE)
            self._is_told = is_idle
            if is_idle and self._flow.groups - self._given_back >= GIVE_BACK_GROUPS:
                heap.give_back()
                self._given_back = self._flow.groups

    def _is_served(self, wait: Wait, now: float) -> bool:
        """Whether all that somebody waits for is in the ledger, which is told them then."""
        if wait.paths is None:
            wait.paths = list(self._awaited(wait.since_ns))
        while wait.paths:  # a look at all of them with every slice would take longer than the reading
            if wait.paths[-1] in self._live or wait.paths[-1] in self._is_queued:
                return False
            wait.paths.pop()
        if wait.batches < 0:
            if wait.ended is not None:
                self._finish_reading(wait.ended, now)
            for batch in self._assembly.release(lambda path: path in self._live or path in self._is_queued):
                self._put(batch, is_live=True)
            wait.batches = self._flow.made
        if not self._flow.is_in(wait.batches):
            return False
        self._tell(messages.Flushed(token=wait.token))
        return True

    def _awaited(self, since_ns: int) -> set[bytes]:
        """The sources that one waits for: all that are to be read, or, where these are many, those alone that
        changed since then. These are read first."""
        if since_ns and (len(self._back) > MANY or sum(source.size for source in self._back) > MANY_BYTES):
            changed = {self._group(s) for s in self._back if s.mtime_ns >= since_ns and not s.store.is_index}
            chosen = [source for source in self._back if self._group(source) in changed]
            self._back = deque(source for source in self._back if self._group(source) not in changed)
            self._is_queued.difference_update(source.path for source in chosen)
            self._live.update((source.path, source) for source in chosen)
            return set(self._live)
        return {*self._live, *self._is_queued}

    def _group(self, source: Source) -> tuple[str, bytes]:
        """What is read in one go, in the order of its names."""
        return source.harness, self._kin(source) or source.path

    def _put(self, batch: Batch, *, is_live: bool) -> None:
        self._outbox.put(batch, is_live=is_live)
        self._flow.made += 1

    def _is_quiet(self) -> bool:
        return not self._outbox and not len(self._flow) and not self._assembly.is_holding()

    def _progress(self) -> messages.Progress:
        left = [*self._live.values(), *self._back]
        return messages.Progress(
            sources=len(self._known),
            total_bytes=0,
            left_sources=len(left),
            left_bytes=sum(assembly.unread(s, self._known.cursor(s.path)) for s in left),
            unreadable=self._troubles.told(),
            needing=self._troubles.needing(),
        )

    def _send_what_may_go(self) -> None:
        while self._outbox and len(self._flow) < WINDOW:
            is_awaited = any(not self._flow.is_sent(wait.batches) for wait in self._waits)
            if not self._outbox.is_due and not is_awaited and self._is_anything_left():
                return  # the group is not full yet
            batches, is_live = self._outbox.take()
            number = self._flow.send(len(batches))
            is_more = self._is_anything_left() or bool(self._outbox)
            self._tell(messages.read(number, batches, is_live=is_live, is_more=is_more))

    def _tell(self, news: AnyNews) -> None:
        data = memoryview(messages.pack(news))
        while data:
            data = data[os.write(self._outgoing, data) :]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the daemon's to heed
    heap.settle()
    os.nice(COURTESY)
    gc.freeze()
    gc.set_threshold(GARBAGE)
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
    import traceback  # with what it needs a megabyte, for nearly never

    frames = traceback.extract_tb(bug.__traceback__)
    places = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in reversed(frames[-6:]))
    return f"{type(bug).__name__} at {places}"


if __name__ == "__main__":
    sys.exit(main())
