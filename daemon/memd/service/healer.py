"""Keeps the memory links right: at start, at every hint, and by looking again every few seconds.

All work on memory folders runs one at a time in a thread, whoever asks for it. Hints that arrive while it
runs are answered by one more look after it; so a burst costs two looks, not one each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
import trio

from memd.errors import MemdError
from memd.memory.ownership import Ownership
from memd.protocol import Entry
from memd.service.links_glance import LinksGlance
from memd.service.watcher import Change, Interest, Watcher
from memd.settings import Settings

T = TypeVar("T")

LOGIN_NAMES = frozenset({b".claude.json", b".credentials.json", b"projects", b"settings.json"})
WATCHED_FACTOR = 15  # so much more seldom everything is looked at while system events arrive
OVERDUE_S = 60.0
RETRY_S = (0.5, 2.0, 8.0, 30.0)  # after a look that failed, and failed again; then at the usual pace
SETTLE_S = 1.0  # after one that changed something: what is put right may uncover the next
BURST = 500  # changes at once, of which the system may have dropped some: look again a little later
BURST_S = 2.0

log = structlog.get_logger()


class Healer:
    """The one that runs `Ownership`; everything else goes through `run`."""

    def __init__(
        self, ownership: Ownership, looking: Ownership, settings: Settings, watcher: Watcher
    ) -> None:
        """looking  another view of the same state, for questions that must not wait for a merge"""
        self._ownership = ownership
        self._looking = looking
        self._glance = LinksGlance(ownership.registry)
        self._one_question_at_a_time = trio.CapacityLimiter(1)
        self._settings = settings
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._hint = trio.Event()
        self._seen: dict[bytes, None] = {}
        self.on_config_homes: Callable[[list[bytes]], None] = lambda _: None
        self._again_at = 0.0
        self._failures = 0  # looks in a row that could not do all they should
        self._has_recovered = False
        self._unhealed: tuple[Entry, ...] = ()
        self.trouble = ""
        self.looks = 0
        self.last_look_at = 0.0
        self._watcher = watcher
        self._interest = Interest(self._notice, lambda _: self.hint())
        watcher.add(self._interest)

    def hint(self) -> None:
        self._hint.set()

    def _notice(self, changes: list[Change]) -> None:
        if any(came_or_went for came_or_went, _ in changes):
            self.hint()
        if len(changes) > BURST:
            self._again_at = trio.current_time() + BURST_S

    def see(self, config_dir: bytes) -> None:
        """A client uses this config home: it is looked after from now on."""
        if config_dir.startswith(b"/") and config_dir not in self._seen:
            self._seen[config_dir] = None
            self.hint()

    def is_in_order(self, cwd: bytes, config_home: bytes) -> bool:
        """Whether `ensure` has nothing to do; a few looks at the disk, for a thread. False: nobody knows."""
        return not self._settings.memory.heal or self._glance.is_same((cwd, config_home))

    async def ensure(self, cwd: bytes, config_home: bytes) -> None:
        """Have the memory of the agent that works in a directory linked in one login, if it is to be.

        Whoever waits bounds the time; what is under way goes on without them.
        """
        if not self._settings.memory.heal:
            return

        glance = self._glance

        def heal(owner: Ownership) -> tuple[Entry, ...]:
            registry = glance.registry()
            healed: tuple[Entry, ...] = ()
            is_known = True
            if owner.agents():
                is_known = may_be_login(config_home)
                owner.config_homes([config_home] if is_known else [])
                healed = owner.heal(cwd=cwd, now_ms=now_ms())
            if is_known:  # of a login that is only made later nothing says that it came
                glance.remember((cwd, config_home), registry, healed)
            return healed

        await self._attempt(heal)

    def reconfigure(self, settings: Settings, ownership: Ownership, looking: Ownership) -> None:
        self._settings = settings
        self._ownership = ownership
        self._looking = looking
        self._glance = LinksGlance(ownership.registry)
        self.hint()

    async def run(self, work: Callable[[Ownership], T]) -> T:
        """The result of `work` on the ownership, in a thread, after whatever runs now.

        A shutdown does not wait for it: any step of a merge may be the last, and the next start goes on.
        """
        return await trio.to_thread.run_sync(
            work, self._ownership, limiter=self._one_at_a_time, abandon_on_cancel=True
        )

    async def look_up(self, question: Callable[[Ownership], T]) -> T:
        """The answer to a question that changes nothing, at once, also while a large merge runs."""
        return await trio.to_thread.run_sync(
            question, self._looking, limiter=self._one_question_at_a_time, abandon_on_cancel=True
        )

    async def keep(self) -> None:
        """Heal for ever; first of all what a crash left."""
        while True:
            await self._look()
            rescan_s = self._period_s()
            if self._again_at > trio.current_time():
                rescan_s = min(rescan_s, self._again_at - trio.current_time())
            with trio.move_on_after(rescan_s):
                await self._hint.wait()

    def as_it_is(self, recorded: Iterable[Entry]) -> tuple[Entry, ...]:
        """What is on record, but what the last look could not do: a full disk keeps no record of it."""
        now = {(entry.agent, entry.config_home): entry for entry in self._unhealed}
        kept = [entry for entry in recorded if (entry.agent, entry.config_home) not in now]
        return tuple(sorted([*kept, *now.values()], key=lambda entry: (entry.agent, entry.config_home)))

    def _period_s(self) -> float:
        factor = WATCHED_FACTOR if self._watcher.state == "watching" else 1
        return self._settings.memory.rescan_s * factor

    def overdue_s(self) -> float:
        """How long nothing was looked at, if that is far longer than it should be; else 0."""
        age = trio.current_time() - self.last_look_at
        return age if self.looks and age > OVERDUE_S + 3 * self._period_s() else 0.0

    async def _look(self) -> None:
        self._hint = trio.Event()
        recovered: tuple[Entry, ...] | None = ()
        if self._settings.memory.heal and not self._has_recovered:
            recovered = await self._attempt(lambda owner: owner.recover(now_ms=now_ms()))
            self._has_recovered = recovered is not None
        seen = tuple(self._seen)
        healed = await self._attempt(lambda owner: self._heal(owner, seen))
        if healed is not None:
            self._unhealed = tuple(entry for entry in healed if entry.outcome in ("failed", "skipped"))
        self.looks += 1
        self.last_look_at = trio.current_time()
        logins = await self._attempt(lambda owner: [home.path for home in owner.config_homes()])
        if logins is not None:
            self.on_config_homes(logins)
        points = await self._attempt(lambda owner: owner.watch_points())
        if points is not None:
            self._watcher.follow(self._interest, points)
        entries = (*(recovered or ()), *(healed or ()))
        has_failed = None in (recovered, healed, logins, points)
        self._plan(
            has_failed=has_failed or any(entry.outcome == "failed" for entry in self._unhealed),
            has_changed=any(entry.changed for entry in entries),
        )

    def _plan(self, *, has_failed: bool, has_changed: bool) -> None:
        """When to look again, hints apart, if sooner than usual: events tell of changes, not of an end of
        what failed, nor of what an interrupted merge had kept from sight."""
        self._failures = self._failures + 1 if has_failed else 0
        if 0 < self._failures <= len(RETRY_S):
            self._again_at = trio.current_time() + RETRY_S[self._failures - 1]
        elif has_changed:
            self._again_at = trio.current_time() + SETTLE_S

    def _heal(self, owner: Ownership, seen: tuple[bytes, ...]) -> tuple[Entry, ...]:
        owner.config_homes([path for path in seen if may_be_login(path)])
        if not self._settings.memory.heal:
            return ()
        return owner.heal(now_ms=now_ms())

    async def _attempt(self, work: Callable[[Ownership], T]) -> T | None:
        """One piece of background work; a failure is told in log and status, and tried again later."""
        try:
            result = await self.run(work)
        except (MemdError, OSError) as reason:
            self._fail(str(reason))
            return None
        except Exception as bug:  # noqa: BLE001  a bug on one folder must not end healing for all others
            self._fail(f"bug: {type(bug).__name__}", bug)
            return None
        self.trouble = ""
        if isinstance(result, tuple):
            for entry in result:
                if isinstance(entry, Entry) and entry.changed:
                    log.info(
                        "entry.healed",
                        outcome=entry.outcome,
                        added=entry.added,
                        replaced=entry.replaced,
                        superseded=entry.superseded,
                        left_behind=len(entry.left_behind),
                    )
        return result

    def _fail(self, reason: str, bug: Exception | None = None) -> None:
        if reason != self.trouble:
            log.error("heal.failed", reason=reason, exc_info=bug)
        self.trouble = reason


def may_be_login(path: bytes) -> bool:
    """Whether a folder that a client named as its config home may be one, and this user's own."""
    try:
        facts = os.stat(path)
        names = os.listdir(path)
    except OSError:
        return False
    if facts.st_uid != os.getuid() or not os.access(path, os.W_OK):
        return False
    return not names or any(name in LOGIN_NAMES for name in names)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
