"""From a request to its reply: one `match`, each case a line or two into the part that knows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import memd
from memctl.paths import shown
from memd import protocol, wire
from memd.errors import NeedsConfirmation
from memd.memory.ownership import Ownership
from memd.service import answers, diagnosis, status
from memd.service.configuration import Configuration
from memd.service.environments import Environments
from memd.service.healer import Healer, now_ms
from memd.service.ledger import Ledger
from memd.service.logs import RecentErrors
from memd.service.server import Server
from memd.service.topics import MemoryTopics
from memd.service.watcher import Watcher, limits

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
        watcher: Watcher,
        environments: Environments,
        configuration: Configuration,
        recent: RecentErrors,
        address: bytes,
        origin: str,
        stop: Callable[[], None],
        reload: Callable[[], None],
    ) -> None:
        self._healer = healer
        self._ledger = ledger
        self._topics = topics
        self._watcher = watcher
        self._environments = environments
        self._configuration = configuration
        self._recent = recent
        self._address = address
        self._origin = origin
        self._stop = stop
        self._reload = reload
        self._started = time.monotonic()
        self.server = Server(self.answer)

    async def answer(self, kind: bytes, body: bytes) -> tuple[bytes, bytes]:
        if kind == b"h":
            return b"t", wire.rendered("")  # no hook has an answer yet
        request = protocol.decode_request(body)
        self._healer.see(request.config_dir)
        match request:
            case protocol.Status():
                return b"t", wire.rendered(await self._status(request))
            case protocol.Sessions():
                return b"t", wire.rendered(await answers.sessions(self._ledger, request))
            case protocol.Search():
                return b"t", wire.rendered(await answers.search(self._ledger, request))
            case protocol.Export():
                return b"t", wire.rendered(await answers.export(self._ledger, request))
        return b"j", protocol.encode(await self._reply(request))

    async def _reply(self, request: Structured) -> protocol.AnyReply:
        run = self._healer.run
        match request:
            case protocol.Ping():
                return protocol.Pong(version=memd.__version__, pid=os.getpid(), uptime_s=self._uptime())
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
                return protocol.Diagnosis(findings=await self._diagnose())
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
            case protocol.Memory(action=action):
                return protocol.MemoryReply(result=await self._topics.answer(action))

    async def _status(self, request: protocol.Status) -> str:
        agents, entries = await self._healer.look_up(lambda o: (o.agents(), o.entries()))
        entries = self._healer.as_it_is(entries)
        watch = status.WatchState(
            state=self._watcher.state, folders=self._watcher.folders, trouble=self._watcher.trouble
        )
        is_older = bool(request.installed) and request.installed != memd.__version__
        topics = await self._topics.state()
        health, line = status.judge(
            entries,
            watch,
            self._configuration.error,
            self._healer.trouble,
            is_older,
            topics,
            has_good_config=self._configuration.was_good,
            worker_trouble=self._ledger.worker_trouble(),
        )
        report = status.Report(
            health=health,
            health_line=line,
            version=memd.__version__,
            installed=request.installed,
            pid=os.getpid(),
            uptime_s=round(self._uptime(), 3),
            socket=shown(self._address),
            clients=self.server.clients,
            served=self.server.served,
            config=self._configuration.source,
            config_error=self._configuration.error,
            service=self._origin,
            watch=watch,
            watch_limits=limits(),
            memory_trouble=self._healer.trouble,
            errors=tuple(self._recent.rows),
            agents=status.agent_rows(agents, entries),
            ledger=await self._ledger.state(),
            topics=topics,
        )
        if request.form == "json":
            return status.to_json(report)
        return status.to_text(report, color=request.color, width=max(40, min(request.width, 400)))

    async def _diagnose(self) -> tuple[protocol.Finding, ...]:
        agents, entries, kept = await self._healer.look_up(lambda o: (o.agents(), o.entries(), o.kept()))
        entries = self._healer.as_it_is(entries)
        found = diagnosis.findings(
            agents=agents,
            entries=entries,
            kept=[(one.path, one.files, one.size_bytes) for one in kept],
            config_error=self._configuration.error,
            memory_trouble=self._healer.trouble,
            watch_state=self._watcher.state,
            watch_trouble=self._watcher.trouble,
            watched=self._watcher.folders,
            watch_limits=limits(),
            overdue_s=self._healer.overdue_s(),
        )
        return (*found, *await self._topics.findings())

    def _uptime(self) -> float:
        return time.monotonic() - self._started
