"""Workstreams and handoffs for people: each request becomes the text that is printed."""

from __future__ import annotations

from memd import protocol
from memd.errors import UsageError
from memd.service.handoffs import Handoffs
from memd.service.ledger import Ledger
from memd.service.runs import Runs


class WorkAnswers:
    def __init__(self, *, runs: Runs, handoffs: Handoffs, ledger: Ledger, home: bytes) -> None:
        self._runs = runs
        self._handoffs = handoffs
        self._ledger = ledger
        self._home = home

    async def answer(self, request: protocol.Work) -> str:
        """raises what the action raises"""
        raise UsageError("not there yet", remedy="Wait.")
