"""What a session is told by a hook: a handoff, the packet and the memory block, in this order.

`render` consumes nothing and takes all the time; `claim` consumes at once what was rendered, and only what it
gives may be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from memd.service.runs import Runs, gather
from memd.workstream import scope
from memd.workstream.delivery import Material, Offer, Start, may_have_packet
from memd.workstream.linking import UnknownSession, check_id, is_plain
from memd.workstream.room import Room, room_of

T = TypeVar("T")

BLOCK_TRIES = 5  # to find the length in bytes that fills the room in the harness's measure
LEAST_BLOCK = 300

log = structlog.get_logger()


def always() -> bool:
    return True


class Asking(Protocol):
    """The ledger as far as it is asked here."""

    async def consult(self, question: Callable[[Reader], T]) -> T: ...

    async def scrub(self, text: str) -> str: ...


class Topics(Protocol):
    """The memory folder as far as it is asked here. `memd.service.topics.MemoryTopics` is one."""

    def block(self, action: Context) -> Block: ...


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """offer     what is to be claimed; None: nothing
    is_right  what the look beside it found
    """

    harness: str
    offer: Offer | None
    block: str
    is_right: bool = True


class Telling:
    """home: the person's"""

    def __init__(self, *, runs: Runs, records: Asking, topics: Topics, home: bytes) -> None:
        self._runs = runs
        self._records = records
        self._topics = topics
        self._home = home

    async def render(
        self,
        session: Session,
        run: Run | None,
        *,
        has_block: bool,
        is_welcome: Callable[[], bool] = always,
        beside: Callable[[], bool] = always,
    ) -> Rendered:
        """run         what the session was linked to; None: it is told handoffs, and no packet
        is_welcome  asked when there is a handoff for a session without a run: whether it may have it
        beside      a quick look at something else, for the same turn of the thread
        """
        harness, hooks = session.adapter.name, session.hooks
        room = room_of(session.adapter.start_output_limit, hooks.wrapper, is_escaped=hooks.is_escaped)
        start = start_of(session, run)
        is_new = may_have_packet(start) or not session.heard.is_again  # else it has been told

        def look(reader: Reader) -> tuple[Material | None, str, bool]:
            """In one turn of a thread: agents wait for it."""
            block = filled(self._topics, harness, room) if has_block else ""
            return self._gather(session, start, reader) if is_new else None, block, beside()

        material, block, is_right = await self._records.consult(look)
        offer = self._runs.compose(material, room) if material is not None else None
        if offer is not None and offer.handoff is not None and run is None:
            offer = await self._kept(offer) if is_welcome() else None
        if offer is not None and block and room.size(block) > offer.left.left:
            block = await block_of(self._topics, harness, offer.left)  # it was as if it were alone
        return Rendered(harness=harness, offer=offer, block=block, is_right=is_right)

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
        return await self._records.consult(partial(self._scope, session, run))

    def _scope(self, session: Session, run: Run | None, reader: Reader) -> tuple[str, str]:
        if run is not None:
            found = reader.workstreams.workstream(run.workstream)
            if found is not None:
                return found.place.workspace, found.place.project
        if not session.cwd:
            raise UsageError("a hook does not say where it runs")
        where = scope.resolve(session.cwd, self._home)
        return where.workspace, where.project

    def _gather(self, session: Session, start: Start, reader: Reader) -> Material | None:
        """The handoff and the packet that there may be; None: there are none, or nobody can say for where."""
        if start.run is None and not reader.workstreams.has_open_handoff():
            return None
        try:
            workspace, project = self._scope(session, start.run, reader)
        except (MemdError, OSError) as reason:
            log.warning("hook.untold", harness=start.harness, reason=str(reason))
            return None
        return gather(replace(start, workspace=workspace, project=project), reader)

    async def _kept(self, offer: Offer) -> Offer:
        """Without the handoff when it would be written down as taken by what can be no session's id."""
        session = offer.start.session
        scrubbed = session if is_plain(session) else await self._records.scrub(session)
        try:
            check_id(session, lambda _: scrubbed)
        except UnknownSession as reason:
            log.warning("hook.untold", harness=offer.start.harness, reason=str(reason))
            return replace(offer, handoff=None, handoff_text="")
        return offer


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
