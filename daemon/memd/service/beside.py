"""Utilities of a harness (`--version`, `mcp list`) beside whoever has the workstream: started all the same.

A utility links and imports nothing, so there is nothing that a lease would have to keep apart. No run stands
for such a one and nothing of it is kept: a daemon that is started anew knows nothing of it.
"""

from __future__ import annotations

import os
import uuid

from memd import protocol_runs as asked
from memd.harness.launching import Intent
from memd.service.orders import Order
from memd.service.places import Located
from memd.workstream import launch

MAX_OPEN = 256


class Beside:
    """Those that are open, by ids of their own."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Order, bytes]] = {}

    def __contains__(self, id: object) -> bool:
        return id in self._open

    def open(self, order: Order, located: Located, cwd: bytes, workstream: str) -> asked.Ready:
        """workstream: the name of the one that somebody else has"""
        id = f"beside-{uuid.uuid4()}"
        self._open[id] = order, cwd
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        return asked.Ready(
            run=id,
            workstream="",
            workstream_id="",
            workspace=located.scope.workspace,
            project=located.scope.project,
            harness=order.adapter.name,
            notices=(f"workstream {workstream!r} is in use: this is started beside it, and nothing is kept",),
        )

    def step(self, step: asked.AnyStep) -> asked.AnyAnswer:
        """The answer about one that is open."""
        match step:
            case asked.Plan(run=id):
                return self._plan(*self._open[id])
            case asked.Exited(run=id):
                del self._open[id]
                return asked.Closed(workstream="", events=0)
            case asked.Cancel(run=id):
                del self._open[id]
        return asked.Noted()

    def _plan(self, order: Order, cwd: bytes) -> asked.LaunchPlan:
        assert order.adapter.launch is not None
        argv = launch.compose(order.adapter, order.said, order.native, Intent())
        return asked.LaunchPlan(
            executable=order.program,
            arguments=tuple(os.fsencode(word) for word in argv.arguments),
            cwd=cwd,
            unset=tuple(launch.blanks(order.adapter.launch, order.client)),
        )
