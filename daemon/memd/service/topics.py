"""Memory topics as the daemon serves them: in threads, changes one at a time, a bounded number of readers.

In the background it finishes what a crash left, carries the local store over once that is due, and watches
`memory.jsonc`, ours and those of the other tools. What it finds is told by status and doctor.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
import structlog
import trio

from memctl.paths import shown
from memd import protocol_memory as m
from memd.errors import MemdError, NotFound
from memd.memory.shared import block, configuration, injection
from memd.memory.shared.access import Active, Places
from memd.memory.shared.configuration import Configuration
from memd.memory.shared.lock import Busy
from memd.memory.shared.repairs import DRIFT
from memd.memory.shared.topics import TopicStore
from memd.protocol import Finding
from memd.service.topics_glance import Glance, glance
from memd.service.watcher import Change, Interest, Watcher

T = TypeVar("T")

READERS = 4
LOOK_S = 60.0  # between two looks that nobody asked for
STATUS_S = 0.5  # a status waits no longer for a slow disk

log = structlog.get_logger()


class TopicsState(msgspec.Struct, frozen=True, kw_only=True):
    """The part of `memctl status --json` about the memory store in use."""

    store: str
    is_shared: bool
    topics: int = 0
    unlisted: int = 0
    is_drifting: bool = False
    config: str = ""
    config_error: str = ""
    trouble: str = ""


class MemoryTopics:
    """Answers every action; `keep` runs in the background."""

    def __init__(
        self,
        store: TopicStore,
        watcher: Watcher,
        *,
        inject: injection.Setting,
        owned_by: Callable[[bytes], Awaitable[bytes]],
    ) -> None:
        """`owned_by` gives the memory folder of the agent that works in a directory, empty for none."""
        self._store = store
        self._inject: injection.Setting = inject
        self._owned_by = owned_by
        self._changing = trio.CapacityLimiter(1)
        self._reading = trio.CapacityLimiter(READERS)
        self._hint = trio.Event()
        self._watcher = watcher
        self._interest = Interest(self._notice, lambda _: self._hint.set())
        watcher.add(self._interest)
        self._state = TopicsState(store="", is_shared=False)
        self._told: tuple[tuple[object, ...], Glance, m.Block] | None = None
        self._trouble = ""

    def reconfigure(self, inject: injection.Setting) -> None:
        self._inject = inject

    # ------------------------------------------------------------------ answers

    async def answer(self, action: m.AnyAction) -> m.AnyResult:
        """raises MemdErrors"""
        store = self._store
        match action:
            case m.ListTopics():
                return await self._read(store.list_topics)
            case m.ReadTopic(topic=topic):
                return await self._read(partial(store.read, topic))
            case m.SearchTopics(words=words, limit=limit):
                return await self._read(partial(store.search, words, limit))
            case m.Context():
                return await self._read(partial(self.block, action))
            case m.WriteTopic():
                return await self._change(partial(store.write, action))
            case m.RemoveTopic(topic=topic):
                return await self._change(partial(store.remove, topic))
            case m.RestoreTopic(file=file):
                return await self._change(partial(store.restore, file))
            case m.PinTopic(topic=topic, pin=pin):
                return await self._change(partial(store.pin, topic, pin))
            case m.RepairIndex():
                return await self._change(store.repair)
            case m.CarryOver(source=source):
                overs = store.carry_overs
                return await self._change(partial(overs.from_folder, source) if source else overs.local)
            case m.ImportClaude():
                owned = await self._owned_by(action.path)
                if not owned:
                    raise NotFound(
                        f"no enrolled agent works in {shown(action.path)}",
                        remedy="Name an agent's directory, or enroll it first: `memctl enroll`.",
                    )
                work = partial(store.carry_overs.from_claude, owned, action.files, action.everything)
                return await self._change(work)

    async def _read(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work, limiter=self._reading, abandon_on_cancel=True)

    async def _change(self, work: Callable[[], T]) -> T:
        """A shutdown does not wait: any step may be the last, and the next start goes on."""
        try:
            return await trio.to_thread.run_sync(work, limiter=self._changing, abandon_on_cancel=True)
        finally:
            self._hint.set()

    async def still(self, work: Callable[[], T]) -> T:
        """What `work` gives while nobody changes a topic through this daemon."""
        return await trio.to_thread.run_sync(work, limiter=self._changing)

    def block(self, action: m.Context) -> m.Block:
        """What `answer` gives for it; reads files: it belongs in a thread. raises MemdErrors"""
        seen = glance(self._store.access.active())
        key = (action.limit, action.harness, self._inject)
        told = self._told  # other threads come here too
        if told is not None and told[0] == key and told[1].is_same(seen):
            return told[2]
        made = self._block(action, seen.active)
        self._told = (key, seen, made) if seen.is_settled() else None
        return made

    def _block(self, action: m.Context, active: Active) -> m.Block:
        reason = ""
        if action.harness:
            reason = injection.reason_against(
                self._inject,
                is_shared=active.is_shared,
                harness=action.harness,
                sharing=self._sharing(),
                error=active.in_force.error,
            )
        text = "" if reason else self._rendered(active, action.limit)
        if not text and not reason:
            reason = f"it does not fit into {action.limit} bytes"
        return m.Block(
            store=active.path, is_shared=active.is_shared, notes=active.notes, text=text, reason=reason
        )

    def _rendered(self, active: Active, limit: int) -> str:
        rules = active.in_force.rules
        contents = block.Contents(
            folder=shown(active.path),
            index=self._store.index(),
            unlisted=self._store.unlisted(),
            max_lines=rules.max_lines,
            lists=rules.lists,
            rules_source=active.in_force.rules_source,
        )
        return block.render(contents, limit)

    def _sharing(self) -> frozenset[str]:
        theirs = self._store.access.configuration.theirs
        pairs = zip(("opencode", "pi"), theirs, strict=True)
        return frozenset(name for name, path in pairs if configuration.is_sharing(path))

    # ------------------------------------------------------------------ in the background

    async def keep(self) -> None:
        """Look at start, at every hint and now and then."""
        while True:
            self._hint = trio.Event()
            await self._look()
            with trio.move_on_after(LOOK_S):
                await self._hint.wait()

    def _notice(self, changes: list[Change]) -> None:
        if any(os.path.basename(path) == b"memory.jsonc" for _, path in changes):
            self._hint.set()

    async def _look(self) -> None:
        self._watcher.follow(self._interest, await self._read(self._folders))
        try:
            if await trio.to_thread.run_sync(self._recover, limiter=self._changing, abandon_on_cancel=True):
                log.info("topics.recovered")
            self._state = await self._read(self._now)
            self._trouble = ""
        except Busy:
            pass  # whoever works there will be done by the next look
        except (MemdError, OSError) as reason:
            if str(reason) != self._trouble:
                log.warning("topics.failed", reason=str(reason))
            self._trouble = str(reason)

    def _folders(self) -> set[bytes]:
        """Those of the settings files, as far as they exist."""
        configuration = self._store.access.configuration
        folders = {os.path.dirname(path) for path in (configuration.ours, *configuration.theirs)}
        return {os.path.realpath(folder) for folder in folders if os.path.isdir(folder)}

    def _recover(self) -> bool:
        did = self._store.recover()
        self._store.carry_overs.ensure(waits=False)
        return did

    def _now(self) -> TopicsState:
        listed = self._store.list_topics()
        in_force = self._store.access.active().in_force
        return TopicsState(
            store=shown(listed.store),
            is_shared=listed.is_shared,
            topics=len(listed.topics),
            unlisted=listed.unlisted,
            is_drifting=listed.is_shared and listed.unlisted > DRIFT,
            config=in_force.source,
            config_error=in_force.error,
            trouble=self._store.carry_overs.trouble,
        )

    # ------------------------------------------------------------------ telling

    async def state(self) -> TopicsState:
        """How it is now, or was a while ago when the disk is slow."""
        with trio.move_on_after(STATUS_S):
            try:
                self._state = await self._read(self._now)
            except (MemdError, OSError) as reason:
                self._trouble = str(reason)
        return msgspec.structs.replace(self._state, trouble=self._trouble or self._state.trouble)

    async def findings(self) -> tuple[Finding, ...]:
        """What doctor says about the store in use."""
        state = await self.state()
        subject = "shared memory" if state.is_shared else "local memory"
        out = []
        if state.config_error:
            out.append(
                Finding(
                    level="problem",
                    subject="memory.jsonc",
                    message=state.config_error,
                    remedy="Correct it; until then nothing is written to memory.",
                )
            )
        if state.trouble:
            out.append(
                Finding(
                    level="problem",
                    subject=subject,
                    message=state.trouble,
                    remedy="Remove the cause; memd tries again at the next use.",
                )
            )
        if state.is_drifting:
            out.append(
                Finding(
                    level="warning",
                    subject=subject,
                    message=f"{state.unlisted} topics in {state.store} are not in its index",
                    remedy="List them with `memctl memory repair`.",
                )
            )
        holder = await self._holder()
        if holder:
            out.append(
                Finding(
                    level="warning",
                    subject=subject,
                    message=holder,
                    remedy="If that goes on and nobody works there, remove the lock file.",
                )
            )
        if not out:
            out.append(
                Finding(level="ok", subject=subject, message=f"{state.topics} topics in {state.store}")
            )
        return tuple(out)

    async def _holder(self) -> str:
        """Who holds the lock, when the same one still does a moment later."""
        try:
            first = await self._read(self._store.lock_holder)
            if not first:
                return ""
            await trio.sleep(0.2)
            again = await self._read(self._store.lock_holder)
        except (MemdError, OSError):
            return ""
        return again


def places(home: bytes, data: bytes, state: bytes) -> Places:
    """Where the stores are."""
    return Places(
        shared=home + b"/.agents/memory",
        local=data + b"/memory",
        kept=data + b"/memory-kept",
        state=state,
    )


def configuration_of(home: bytes, config: bytes, state: bytes, xdg_config: bytes) -> Configuration:
    """The settings: ours, then openclaude's and openpi's, which are `opencode` and `pi` in that order."""
    base = xdg_config if xdg_config.startswith(b"/") else home + b"/.config"
    theirs = (base + b"/opencode/memory.jsonc", home + b"/.pi/agent/memory.jsonc")
    return Configuration(config + b"/memory.jsonc", theirs, state + b"/topics/v1/settings.json")
