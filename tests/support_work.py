"""What people ask about workstreams and handoffs, answered by the daemon's own part on a temporary ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from memd import protocol
from memd.ledger.store.workstreams import Place, Run
from memd.service.environments import Environments
from memd.service.handoffs import Handoffs
from memd.service.places import locate
from memd.service.runs import Runs
from memd.service.work import WorkAnswers
from memd.service.work_sessions import Carrying
from memd.workstream.checkpoint import Checkpoint
from support_fake_ledger import FakeRecords
from support_git import VARIABLES, checkout
from support_runs import Runs as Steps
from support_workstreams import Lines


class Desk:
    """`cwd` is a checkout of its own; runs are launched there."""

    def __init__(self, lines: Lines, path: Path) -> None:
        self.lines = lines
        self.home = path / "home"
        self.cwd = checkout(self.home / "src" / "app")
        self.records = FakeRecords(lines)
        self.steps = Steps(lines)
        self.handoffs = Handoffs(self.records, wall_ms=self.now_ms)

        self.environments = Environments(bytes(self.home), bytes(path / "environments.json"), lambda: None)

        async def no_checkpoint(_run: Run) -> Checkpoint:
            return Checkpoint()

        self.answers = WorkAnswers(
            runs=Runs(self.records, checkpoint=no_checkpoint, wall_ms=self.now_ms),
            handoffs=self.handoffs,
            ledger=self.records,
            carrying=Carrying(self.environments),
            home=bytes(self.home),
            wall_ms=self.now_ms,
        )

    def now_ms(self) -> int:
        return self.lines.clock.wall_ms

    def place(self, cwd: Path | None = None, **more: str) -> Place:
        return locate(bytes(cwd or self.cwd), self.variables, home=b"/", path=VARIABLES["PATH"], **more).place

    @property
    def variables(self) -> dict[str, bytes]:
        return {"HOME": bytes(self.home)}

    def launch(self, harness: str = "claude", session: str = "", **more: Any) -> Run:
        """A run that has started, in the checkout."""
        return self.steps.launch(harness, session, **{"place": self.place(), "cwd": bytes(self.cwd), **more})

    async def say(self, action: type[Any], *, form: str = "text", color: bool = False, **fields: Any) -> str:
        """What is printed."""
        width = fields.pop("width", 80)
        fields = {"cwd": bytes(self.cwd), "variables": self.variables, "path": VARIABLES["PATH"], **fields}
        return await self.answers.answer(
            protocol.Work(action=action(**fields), form=form, color=color, width=width)  # type: ignore[arg-type]
        )

    async def json(self, action: type[Any], **fields: Any) -> Any:
        return msgspec.json.decode(await self.say(action, form="json", **fields))
