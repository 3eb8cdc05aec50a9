"""A launcher's conversation, step by step: from a prepare to the run's end."""

from __future__ import annotations

from memd import protocol_runs as runs_protocol
from memd.errors import UsageError
from memd.service.environments import Environments
from memd.service.healer import Healer
from memd.service.ledger import Ledger
from memd.service.runs import Runs


class Launches:
    """All launchers' conversations. One launcher is known by the pid that the kernel gives for its socket."""

    def __init__(
        self,
        *,
        runs: Runs,
        ledger: Ledger,
        healer: Healer,
        environments: Environments,
        home: bytes,
        state: bytes,
    ) -> None:
        self._runs = runs
        self._ledger = ledger
        self._healer = healer
        self._environments = environments
        self._home = home
        self._state = state

    async def step(self, step: runs_protocol.AnyStep, pid: int) -> runs_protocol.AnyAnswer:
        """pid: the launcher's"""
        raise UsageError("not there yet", remedy="Wait.")
