"""What the parts of the daemon say of themselves, put together for `memctl status` and `memctl doctor`."""

from __future__ import annotations

import os
import time

import msgspec

import memd
from memctl.paths import shown
from memd import protocol
from memd.ledger.store.interface import Reader, Unreachable
from memd.ledger.store.workstreams import Workstream
from memd.service import diagnosis, hook_view, status
from memd.service.configuration import Configuration
from memd.service.healer import Healer, now_ms
from memd.service.hooks import HookService
from memd.service.ledger import Ledger, LedgerState
from memd.service.logs import RecentErrors
from memd.service.runs import Runs
from memd.service.server import Traffic
from memd.service.status import Report, RunRow
from memd.service.topics import MemoryTopics
from memd.service.watcher import Watcher, limits


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Asks every part; changes nothing.

    origin      who started the daemon, in words
    started_s   when, on the monotonic clock
    """

    healer: Healer
    ledger: Ledger
    topics: MemoryTopics
    watcher: Watcher
    configuration: Configuration
    runs: Runs
    hooks: HookService
    recent: RecentErrors
    traffic: Traffic
    address: bytes
    origin: str
    started_s: float

    def uptime_s(self) -> float:
        return time.monotonic() - self.started_s

    async def status(self, request: protocol.Status) -> str:
        """The page, or the JSON document."""
        report = await self.facts(request.installed)
        if request.form == "json":
            return status.to_json(report)
        width = max(40, min(request.width, 400))
        return status.to_text(report, now_ms=now_ms(), color=request.color, width=width)

    async def facts(self, installed: str = "") -> Report:
        """How everything is now. installed: the version of the package the client runs from"""
        agents, entries = await self.healer.look_up(lambda o: (o.agents(), o.entries()))
        entries = self.healer.as_it_is(entries)
        watch = status.WatchState(
            state=self.watcher.state, folders=self.watcher.folders, trouble=self.watcher.trouble
        )
        is_other = bool(installed) and installed != memd.__version__
        topics = await self.topics.state()
        ledger = await self.ledger.state()
        health, line = status.judge(
            entries,
            watch,
            self.configuration.error,
            self.healer.trouble,
            is_other,
            topics,
            is_enrolled=bool(agents),
            has_good_config=self.configuration.was_good,
            unreadable=ledger.unreadable_needing,
            worker_trouble=self.ledger.worker_trouble(),
            server_trouble=self.ledger.server_trouble(ledger),
        )
        return Report(
            health=health,
            health_line=line,
            version=memd.__version__,
            installed=installed,
            pid=os.getpid(),
            uptime_s=round(self.uptime_s(), 3),
            socket=shown(self.address),
            clients=self.traffic.clients,
            served=self.traffic.served,
            config=self.configuration.source,
            config_error=self.configuration.error,
            service=self.origin,
            watch=watch,
            watch_limits=limits(),
            memory_trouble=self.healer.trouble,
            errors=status.lasting(self.recent.rows, self._over(ledger)),
            agents=status.agent_rows(agents, entries),
            runs=await self._runs(),
            ledger=ledger,
            topics=topics,
            hooks=hook_view.rows(await self.hooks.state(), now_ms()),
        )

    def _over(self, ledger: LedgerState) -> frozenset[str]:
        """What was logged of states of which the parts say now that they are over."""
        states: dict[str, str | bool] = {
            "config.refused": self.configuration.error,
            "heal.failed": self.healer.trouble,
            "import.refused": ledger.trouble,
            "ledger.closed": ledger.trouble,
            "watch.limited": self.watcher.trouble,
        }
        failing = self.ledger.failing
        states |= {name: name in failing for name in ("ledger.tidy_failed", "ledger.checkpoint_failed")}
        return frozenset(event for event, trouble in states.items() if not trouble)

    async def _runs(self) -> tuple[RunRow, ...]:
        active = self.runs.active()
        if not active:
            return ()
        ids = {run.workstream for run in active}

        def named(reader: Reader) -> dict[str, Workstream]:
            found = {id: reader.workstreams.workstream(id) for id in ids}
            return {id: workstream for id, workstream in found.items() if workstream is not None}

        try:
            workstreams = await self.ledger.ask(named)
        except Unreachable:  # the ledger's own lines say so
            return ()
        return status.run_rows(active, workstreams)

    async def findings(self) -> tuple[protocol.Finding, ...]:
        """What `memctl doctor` cannot see from outside."""
        agents, entries, kept = await self.healer.look_up(lambda o: (o.agents(), o.entries(), o.kept()))
        entries = self.healer.as_it_is(entries)
        found = diagnosis.findings(
            agents=agents,
            entries=entries,
            kept=[(one.path, one.files, one.size_bytes) for one in kept],
            config_error=self.configuration.error,
            memory_trouble=self.healer.trouble,
            watch_state=self.watcher.state,
            watch_trouble=self.watcher.trouble,
            watched=self.watcher.folders,
            watch_limits=limits(),
            overdue_s=self.healer.overdue_s(),
        )
        return (*found, *await self.ledger.findings(), *await self.topics.findings())
