"""From a request to its reply: one `match`, each case a line or two into the part that knows."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import memd
from memctl.paths import shown
from memd import protocol, seldom, wire
from memd.errors import MemdError, NeedsConfirmation
from memd.memory.ownership import Ownership
from memd.protocol_runs import AnyStep
from memd.service import answers
from memd.service.backup import Backups
from memd.service.configuration import Configuration
from memd.service.environments import Environments
from memd.service.healer import Healer, now_ms
from memd.service.hooks import HookService
from memd.service.launches import Launches
from memd.service.ledger import Ledger
from memd.service.overview import Overview
from memd.service.peer import Peer
from memd.service.server import Answered, Server, failure
from memd.service.topics import MemoryTopics
from memd.service.work import WorkAnswers

if TYPE_CHECKING:
    from memd.service import report
else:
    report = seldom.module("memd.service.report")

Structured = (
    protocol.Ping
    | protocol.Diagnose
    | protocol.Enroll
    | protocol.Unenroll
    | protocol.Heal
    | protocol.Where
    | protocol.Reload
    | protocol.Stop
    | protocol.Import
    | protocol.Forget
    | protocol.CheckLedger
    | protocol.BackupProgress
    | protocol.Memory
)
"""Requests that are answered with a Struct; the others get rendered text."""


def check_unenrolment(owner: Ownership, path: bytes) -> None:
    """raises NeedsConfirmation where `path` is only inside an agent's home, or the agent's memory is away"""
    agents = {agent.home: agent for agent in owner.agents()}
    named = next((name for name in (os.path.normpath(path), os.path.realpath(path)) if name in agents), None)
    if named is None:
        root = owner.where(path).root
        if root in agents:
            raise NeedsConfirmation(f"{shown(path)} lies inside the agent home {shown(root)}", root)
    elif not os.path.isdir(agents[named].owned):
        raise NeedsConfirmation(
            f"{shown(agents[named].owned)} is not there: every login would get an empty folder."
            " If the agent home was moved, bring it back to its place first",
            named,
        )


class Dispatch:
    """Answers the socket. Knows the parts, decides nothing itself."""

    def __init__(
        self,
        *,
        healer: Healer,
        ledger: Ledger,
        topics: MemoryTopics,
        launches: Launches,
        hooks: HookService,
        work: WorkAnswers,
        environments: Environments,
        configuration: Configuration,
        overview: Overview,
        backups: Backups,
        stop: Callable[[], None],
        reload: Callable[[], None],
    ) -> None:
        self._healer = healer
        self._ledger = ledger
        self._topics = topics
        self._launches = launches
        self._hooks = hooks
        self._work = work
        self._environments = environments
        self._configuration = configuration
        self._overview = overview
        self._backups = backups
        self._stop = stop
        self._reload = reload
        self.server = Server(self.answer, overview.traffic)

    async def answer(self, kind: bytes, body: bytes, peer: Peer) -> Answered:
        if kind == b"h":
            return Answered(b"t", wire.rendered(await self._hooks.answer(body, peer.is_there)))
        request = protocol.decode_request(body)
        self._healer.see(request.config_dir)
        if isinstance(request, protocol.Status | protocol.Diagnose) and self._configuration.is_mended():
            self._reload()
        match request:
            case protocol.Run(step=step):
                return Answered(b"j", protocol.encode(await self._step(step, peer.pid)), goes_on=True)
            case protocol.Backup(path=path):
                done = await self._backups.make(path, peer.is_there)
                return Answered(b"j", protocol.encode(done))
            case protocol.Status():
                text = await self._overview.status(request)
            case protocol.Sessions():
                text = await answers.sessions(self._ledger, request)
            case protocol.Search():
                text = await answers.search(self._ledger, request)
            case protocol.Export():
                text = await answers.export(self._ledger, request)
            case protocol.Report():
                text = await report.report(self._overview, self._ledger, request)
            case protocol.Work():
                text = await self._work.answer(request)
            case _:
                return Answered(b"j", protocol.encode(await self._reply(request)))
        return Answered(b"t", wire.rendered(text))

    async def _step(self, step: AnyStep, peer: int) -> protocol.AnyReply:
        """A refused step ends no conversation: the launcher may have another one to say."""
        try:
            return protocol.RunReply(answer=await self._launches.step(step, peer))
        except MemdError as reason:
            return failure(reason)

    async def _reply(self, request: Structured) -> protocol.AnyReply:
        run = self._healer.run
        match request:
            case protocol.Ping():
                return protocol.Pong(
                    version=memd.__version__, pid=os.getpid(), uptime_s=self._overview.uptime_s()
                )
            case protocol.Enroll(path=path, confirmed=confirmed):
                enrolled = await run(lambda o: o.enroll(path, confirmed=confirmed, now_ms=now_ms()))
                self._healer.hint()
                return enrolled
            case protocol.Unenroll(path=path, confirmed=confirmed):
                if not confirmed:
                    await self._healer.look_up(lambda o: check_unenrolment(o, path))
                return await run(lambda o: o.unenroll(path, now_ms=now_ms()))
            case protocol.Heal(cwd=cwd, dry_run=dry_run):
                entries = await run(lambda o: o.heal(cwd=cwd, dry_run=dry_run, now_ms=now_ms()))
                self._healer.hint()  # a look of its own, so that the status says what this one met
                return protocol.Healed(entries=entries)
            case protocol.Where(path=path):
                return await self._healer.look_up(lambda o: o.where(path))
            case protocol.Diagnose():
                return protocol.Diagnosis(findings=await self._overview.findings())
            case protocol.Reload():
                self._reload()
                error = self._configuration.error
                return protocol.Done(message=error or "configuration re-read")
            case protocol.Stop():
                self._stop()
                return protocol.Done(message="stopping")
            case protocol.Import():
                self._environments.see(request.variables)
                return await answers.import_now(self._ledger, request)
            case protocol.Forget():
                return await answers.forget(self._ledger, request)
            case protocol.CheckLedger():
                return await answers.check(self._ledger, request)
            case protocol.BackupProgress():
                return self._backups.progress()
            case protocol.Memory(action=action):
                return protocol.MemoryReply(result=await self._topics.answer(action))
