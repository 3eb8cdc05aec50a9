"""A launcher's conversation without sockets: `Launches` on a ledger in a temporary folder, fake programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from memd import protocol_runs as asked
from memd.ledger.store.workstreams import Run
from memd.protocol_memory import Block, Context
from memd.service.clients import Clients
from memd.service.environments import Environments
from memd.service.launches import Launches
from memd.service.plans import Carry
from memd.service.runs import Runs
from memd.workstream.checkpoint import Checkpoint
from support_fake_harness import Fakes
from support_fake_ledger import FakeRecords, Processes
from support_ledger import entry
from support_workstreams import Lines

ADDRESS = b"/run/memd/memd.sock"
SESSIONS = [f"{number:08}-1111-4111-8111-000000000000" for number in range(20)]


class Healer:
    """Notes which logins were to be put right; `hangs`: it takes for ever."""

    def __init__(self) -> None:
        self.calls: list[tuple[bytes, bytes]] = []
        self.hangs = False

    async def ensure(self, cwd: bytes, config_home: bytes) -> None:
        self.calls.append((cwd, config_home))
        if self.hangs:
            await trio.sleep_forever()


class Topics:
    def block(self, action: Context) -> Block:
        return Block(text="", store=b"", is_shared=False)


class Floor:
    """One launcher (this very process) and what it talks to."""

    def __init__(self, root: Path, carry: Carry | None = None) -> None:
        self.root = root
        self.home = root / "home"
        self.home.mkdir()
        self.cwd = root / "proj"
        self.cwd.mkdir()
        self.fakes = Fakes(root / "bin", self.home)
        self.lines = Lines(root / "ledger")
        self.records = FakeRecords(self.lines)
        self.healer = Healer()
        self.changes = 0
        self.environments = Environments(
            bytes(self.home), bytes(root / "state" / "environments.json"), self._changed
        )
        self.alive = Processes()
        self.carry = carry
        self.anew()

    def _changed(self) -> None:
        self.changes += 1

    def anew(self) -> None:
        """Another daemon, on the same ledger and the same state."""
        self.runs = Runs(
            self.records, checkpoint=_nothing, wall_ms=lambda: self.lines.clock.wall_ms, see=self.alive
        )
        self.launches = Launches(
            runs=self.runs,
            ledger=self.records,
            healer=self.healer,
            environments=self.environments,
            topics=Topics(),
            home=bytes(self.home),
            state=bytes(self.root / "state"),
            address=ADDRESS,
            wall_s=lambda: self.lines.clock.wall_ms / 1000,
            clients=Clients(bytes(self.root / "state" / "clients.json"), bytes(self.home)),
            carry=self.carry,
        )

    async def say(self, step: asked.AnyStep, pid: int | None = None) -> Any:
        return await self.launches.step(step, os.getpid() if pid is None else pid)

    async def prepare(self, word: str = "", *native: str, pid: int | None = None, **more: Any) -> asked.Ready:
        fields: dict[str, Any] = {
            "cwd": bytes(self.cwd),
            "word": word,
            "native": tuple(os.fsencode(one) for one in native),
            "path": bytes(self.root / "bin"),
            "variables": {"HOME": bytes(self.home)},
        }
        variables = {**fields["variables"], **more.pop("variables", {})}
        ready = await self.say(asked.Prepare(**{**fields, **more, "variables": variables}), pid)
        assert isinstance(ready, asked.Ready)
        return ready

    async def plan(self, ready: asked.Ready) -> asked.LaunchPlan:
        plan = await self.say(asked.Plan(run=ready.run))
        assert isinstance(plan, asked.LaunchPlan)
        return plan

    async def args(self, word: str = "", *native: str, **more: Any) -> list[str]:
        """What a child would be started with; nothing is started."""
        ready = await self.prepare(word, *native, **more)
        plan = await self.plan(ready)
        await self.say(asked.Cancel(run=ready.run))
        return [os.fsdecode(word) for word in plan.arguments]

    async def whole(
        self, word: str, *native: str, during: Callable[[], object] | None = None, **more: Any
    ) -> Run:
        """A run from its prepare to its end, on whatever session the plan says; there something is said."""
        ready = await self.prepare(word, *native, **more)
        await self.plan(ready)
        await self.say(asked.Started(run=ready.run, pid=os.getpid()))
        if during is not None:
            during()
        session, harness = self.run(ready).session, self.run(ready).harness
        if session:
            self.lines.put(entry(f"said in {ready.run}", session=session), harness=harness)
        await self.say(asked.Exited(run=ready.run, code=0))
        return self.run(ready)

    def run(self, ready: asked.Ready) -> Run:
        found = self.lines.reader.workstreams.run(ready.run)
        assert found is not None
        return found

    def names(self) -> list[str]:
        rows = self.lines.reader.workstreams.in_scope("default", "proj")
        return sorted(row.name for row in rows)

    # ------------------------------------------------------------------------------ stores

    def transcript(
        self, session: str, *, login: str = ".claude", cwd: Path | None = None, lines: int = 1
    ) -> Path:
        """A session of Claude Code as it lies in a login."""
        where = str(cwd or self.cwd)
        key = "".join(sign if sign.isalnum() else "-" for sign in where)
        path = self.home / login / "projects" / key / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "type": "user",
            "sessionId": session,
            "cwd": where,
            "message": {"role": "user", "content": "x"},
        }
        path.write_text((json.dumps(record) + "\n") * lines)
        return path

    def rollout(self, session: str, *, home: str = ".codex") -> Path:
        """A session of Codex."""
        path = self.home / home / "sessions/2026/12/01" / f"rollout-2026-12-01T00-00-00-{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = {"type": "session_meta", "payload": {"id": session, "cwd": str(self.cwd)}}
        path.write_text(json.dumps(meta) + "\n")
        return path


async def _nothing(_run: Run) -> Checkpoint:
    await trio.lowlevel.checkpoint()
    return Checkpoint()
