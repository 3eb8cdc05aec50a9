"""What a session is told by a hook: a handoff, the packet and the memory block, in this order.

`render` consumes nothing and takes all the time; `claim` consumes at once what was rendered, and only what it
gives may be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec
import structlog
import trio
from msgspec.structs import replace

from memd.errors import MemdError, UsageError
from memd.ledger.store.interface import Reader
from memd.ledger.store.workstreams import Run
from memd.protocol_memory import Block, Context
from memd.service.hook_calls import Session
from memd.service.runs import Runs
from memd.workstream import scope
from memd.workstream.delivery import Offer, Start, may_have_packet
from memd.workstream.linking import check_id
from memd.workstream.room import Room, room_of

T = TypeVar("T")

BLOCK_TRIES = 5  # to find the length in bytes that fills the room in the harness's measure
LEAST_BLOCK = 300

log = structlog.get_logger()


class Asking(Protocol):
    """The ledger as far as it is asked here."""

    async def ask(self, question: Callable[[Reader], T]) -> T: ...

    async def scrub(self, text: str) -> str: ...


class Topics(Protocol):
    """The memory folder as far as it is asked here. `memd.service.topics.MemoryTopics` is one."""

    def block(self, action: Context) -> Block: ...


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """offer: what is to be claimed; None: nothing"""

    harness: str
    offer: Offer | None
    block: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """scope: None: not asked for, or it cannot be told"""

    scope: tuple[str, str] | None
    block: str


class Telling:
    """home: the person's"""

    def __init__(self, *, runs: Runs, records: Asking, topics: Topics, home: bytes) -> None:
        self._runs = runs
        self._records = records
        self._topics = topics
        self._home = home

    async def render(
        self, session: Session, run: Run | None, *, has_block: bool, has_offer: bool = True
    ) -> Rendered:
        """run: what the session was linked to; None: it is told handoffs, and no packet"""
        adapter, hooks = session.adapter, session.hooks
        room = room_of(adapter.start_output_limit, hooks.wrapper, is_escaped=hooks.is_escaped)
        offer: Offer | None = None
        found = await self._look(session, run, room if has_block else None, has_scope=has_offer)
        if has_offer:
            offer = await self._offer(session, run, room, found.scope)
        block = found.block
        if block and offer is not None and room.size(block) > offer.left.left:
            block = await block_of(self._topics, adapter.name, offer.left)
        return Rendered(harness=adapter.name, offer=offer, block=block)

    async def claim(self, rendered: Rendered, is_there: Callable[[], bool]) -> str:
        """What is told. Not cancelled between the claim and its return."""
        offer, told = rendered.offer, ""
        if offer is not None and (offer.handoff is not None or offer.wants_packet):
            if not is_there():
                log.info("hook.left", harness=rendered.harness)
                return ""
            told = (await self._runs.claim(offer)).text()
        return "\n".join(part for part in (told, rendered.block) if part)

    async def scope(self, session: Session, run: Run | None) -> tuple[str, str]:
        """Workspace and project; raises ConfigError for a marker that cannot be read, UsageError."""
        if run is not None:
            found = await self._records.ask(lambda reader: reader.workstreams.workstream(run.workstream))
            if found is not None:
                return found.place.workspace, found.place.project
        return await trio.to_thread.run_sync(self._resolve, session, abandon_on_cancel=True)

    def _resolve(self, session: Session) -> tuple[str, str]:
        if not session.cwd:
            raise UsageError("a hook does not say where it runs")
        where = scope.resolve(session.cwd, self._home)
        return where.workspace, where.project

    async def _look(self, session: Session, run: Run | None, room: Room | None, *, has_scope: bool) -> Found:
        """What the disk says, in one turn of a thread. room: for the block, as if it were alone"""

        def look() -> Found:
            where: tuple[str, str] | None = None
            if has_scope and run is None:
                try:
                    where = self._resolve(session)
                except (MemdError, OSError) as reason:
                    log.warning("hook.untold", harness=session.adapter.name, reason=str(reason))
            block = filled(self._topics, session.adapter.name, room) if room is not None else ""
            return Found(scope=where, block=block)

        return await trio.to_thread.run_sync(look, abandon_on_cancel=True)

    async def _check(self, session: str) -> None:
        """raises UnknownSession for what cannot be kept as the id of a session"""
        scrubbed = await self._records.scrub(session)
        check_id(session, lambda _: scrubbed)

    async def _offer(
        self, session: Session, run: Run | None, room: Room, where: tuple[str, str] | None
    ) -> Offer | None:
        """The handoff and the packet. None: what goes on in the same conversation has had them."""
        start = start_of(session, run)
        if session.heard.is_again and not may_have_packet(start):
            return None
        try:
            if run is not None:
                where = await self.scope(session, run)
            if where is None:
                return None
            offer = await self._runs.offer(replace(start, workspace=where[0], project=where[1]), room)
            if offer.handoff is not None and run is None:
                await self._check(start.session)  # it is going to be written down
            return offer
        except (MemdError, OSError) as reason:
            log.warning("hook.untold", harness=session.adapter.name, reason=str(reason))
            return None


async def block_of(topics: Topics, harness: str, room: Room) -> str:
    """The block of the memory folder within the room; empty when it is not wanted or has none."""
    return await trio.to_thread.run_sync(filled, topics, harness, room, abandon_on_cancel=True)


def filled(topics: Topics, harness: str, room: Room) -> str:
    """As `block_of`; reads files."""
    limit = room.left if room.unit == "bytes" else room.left * 3
    for _ in range(BLOCK_TRIES):
        if limit < LEAST_BLOCK:
            break
        try:
            text = topics.block(Context(limit=limit, harness=harness)).text
        except (MemdError, OSError) as reason:
            log.warning("hook.no_block", harness=harness, reason=str(reason))
            break
        size = room.size(text)
        if size <= room.left:
            return text
        limit = min(limit, len(text.encode("utf-8", "replace"))) * room.left // size - 1
    return ""


def start_of(session: Session, run: Run | None) -> Start:
    """The start without its scope, which takes a look at the disk."""
    return Start(
        harness=session.adapter.name,
        cwd=session.cwd,
        workspace="",
        project="",
        session=session.heard.session,
        run=run,
    )
