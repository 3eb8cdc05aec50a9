"""From a settled launch to what is started: the command line, and what is due right before the child is."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable

import msgspec
import structlog
import trio
from msgspec.structs import replace

from memd.errors import MemdError
from memd.harness.launching import Argv, Doorway, Intent
from memd.ledger.lookup import Look
from memd.ledger.store.workstreams import Run
from memd.protocol_runs import LaunchPlan
from memd.service.doorways import Doorways, read_small
from memd.service.healer import Healer
from memd.service.orders import Order
from memd.service.preflight import CARRIED, Preflight
from memd.service.runs import Runs
from memd.workstream import launch
from memd.workstream.launch import Probes

LINK_S = 0.3  # for the memory link of the login that is launched

Carry = Callable[[str, bytes, bytes], Awaitable[str]]
"""Copies a session (its id, its transcript) into a config home; gives a line for people. raises MemdError"""

log = structlog.get_logger()


class Going(msgspec.Struct, kw_only=True):
    """A launch whose child is not there yet.

    session  to go on in; empty: a new one
    path     the file it lies in, when it was begun in another directory
    choices  sessions that may be chosen instead
    linked   the workstream's own session, which lies in another login, at `other`; copied if `is_carried`
    """

    order: Order
    run: Run
    workspace: str
    project: str
    session: str = ""
    path: bytes = b""
    is_usual: bool = False
    choices: frozenset[str] = frozenset()
    linked: str = ""
    other: Look | None = None
    is_carried: bool = False


class Plans:
    """programs: a file for what installed programs are known to understand; address: where memd listens"""

    def __init__(
        self,
        *,
        runs: Runs,
        healer: Healer,
        preflight: Preflight,
        doorways: Doorways,
        programs: bytes,
        address: bytes,
        carry: Carry | None,
    ) -> None:
        self._runs = runs
        self._healer = healer
        self._preflight = preflight
        self._doorways = doorways
        self._probes = Probes(programs)
        self._address = address
        self._carry = carry

    async def make(self, going: Going) -> LaunchPlan:
        """The plan, noted in the ledger; may be made again. raises MemdError: nothing may be started then"""
        order, client = going.order, going.order.client
        assert order.adapter.launch is not None
        notices = await self._carried(going) if going.is_carried else []
        intent = Intent(
            session=going.session,
            new_id=str(uuid.uuid4()),
            is_yolo=order.is_yolo,
            flavor=going.run.flavor,
            path=os.fsdecode(going.path),
            is_usual=going.is_usual,
            cwd=os.fsdecode(going.run.cwd),
        )
        words = launch.probes(order.adapter.launch, order.said, intent)
        if words:
            supports = await trio.to_thread.run_sync(self._probes.known, order.program, words, client)
            intent = replace(intent, supports=supports)
        argv = launch.compose(order.adapter, order.said, order.native, intent)
        session = argv.session
        if order.said.has_selector:
            session = await self._preflight.named(order.adapter, order.environment(), session)
        run = await self._runs.plan(
            going.run.id, expected=session, flavor=going.run.flavor, is_passing=order.said.is_passing
        )
        argv = await self._put(going, run, intent, argv)
        if order.adapter.name == CARRIED and not run.is_passing:
            await self._link_memory(order, run.cwd)
        own = {
            "MEMD_RUN_ID": os.fsencode(run.id),
            "MEMD_WORKSTREAM_ID": os.fsencode(run.workstream),
            "MEMD_SOCKET": self._address,
        }
        return LaunchPlan(
            executable=order.program,
            arguments=tuple(os.fsencode(word) for word in argv.arguments),
            cwd=run.cwd,
            set={**{name: os.fsencode(value) for name, value in argv.set.items()}, **own},
            unset=tuple(dict.fromkeys((*argv.unset, *launch.blanks(order.adapter.launch, client)))),
            notices=(*notices, *argv.notices),
        )

    async def _carried(self, going: Going) -> list[str]:
        """Copy the linked session into the login that is launched; without success a new one begins."""
        assert self._carry is not None
        assert going.other is not None
        try:
            said = await self._carry(going.linked, going.other.path, _login(going.order))
        except MemdError as reason:
            return [f"the session was not copied, a new one begins: {reason}"]
        going.session, going.is_carried = going.linked, False
        if going.other.cwd and going.other.cwd != os.fsdecode(going.run.cwd):
            going.path = _copy_of(going.other, _login(going.order))
        return [said]

    async def _put(self, going: Going, run: Run, intent: Intent, argv: Argv) -> Argv:
        """Give the child what no hook of its harness can tell it."""
        order = going.order
        doorway = Doorway(
            said=order.said,
            intent=intent,
            cwd=run.cwd,
            home=order.client.home,
            variables=order.environment().variables,
            folder=self._doorways.folder(run.id),
            read=read_small,
        )
        return await self._doorways.put(order.adapter, run, going.workspace, going.project, doorway, argv)

    async def _link_memory(self, order: Order, cwd: bytes) -> None:
        with trio.move_on_after(LINK_S) as scope:
            await self._healer.ensure(cwd, _login(order))
        if scope.cancelled_caught:
            log.info("launch.memory_late", harness=order.adapter.name)


def _copy_of(there: Look, login: bytes) -> bytes:
    """Where a transcript of another login lies in this one once it was copied."""
    assert there.store is not None
    root = os.path.realpath(login + b"/projects")
    return root + b"/" + os.path.relpath(there.path, there.store.root)


def _login(order: Order) -> bytes:
    """The config home of Claude Code that is launched."""
    chosen = order.environment().variables.get("CLAUDE_CONFIG_DIR", b"")
    return chosen if chosen.startswith(b"/") else order.client.home + b"/.claude"
