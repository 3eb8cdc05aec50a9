"""The part of the daemon that answers hooks, on a temporary ledger: runs and handoffs are real."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from memd import processes
from memd.ledger.store.workstreams import Process, Run
from memd.protocol_memory import Block, Context
from memd.service.environments import Environments
from memd.service.handoffs import Handoffs
from memd.service.hooks import HookService
from memd.service.runs import Runs
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.handoff import Note
from memd.workstream.opening import Ask
from support_fake_ledger import FakeRecords, Processes
from support_workstreams import LAUNCHER, PLACE, Lines

AGENT = Process(os.getpid(), processes.start_of(os.getpid()))


class Records(FakeRecords):
    """looked: what was hinted at; opening: the ledger is not open yet"""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        self.looked: set[bytes] = set()
        self.opening: trio.Event | None = None

    async def ask(self, question: Any) -> Any:
        if self.opening is not None:
            await self.opening.wait()
        return await super().ask(question)

    async def consult(self, question: Any) -> Any:
        return await self.ask(question)

    def look(self, paths: Iterable[bytes]) -> None:
        self.looked |= set(paths)

    async def import_now(self, *, wait: bool, ended: Any = None, since_ms: int = 0) -> None:
        if wait:
            await super().import_now(wait=True, ended=ended, since_ms=since_ms)
        else:
            self.looked.add(b"everything")


class Healing:
    """hangs: a merge that takes for ever"""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.ensured: list[tuple[bytes, bytes]] = []
        self.hangs = False
        self.is_right = False

    def is_in_order(self, cwd: bytes, config_home: bytes) -> bool:
        return self.is_right

    def see(self, config_dir: bytes) -> None:
        self.seen.append(config_dir)

    async def ensure(self, cwd: bytes, config_home: bytes) -> None:
        self.ensured.append((cwd, config_home))
        if self.hangs:
            await trio.sleep_forever()


class Topics:
    """text: the block, of which as much is given as is asked for"""

    def __init__(self) -> None:
        self.text = ""
        self.asked: list[Context] = []

    def block(self, action: Context) -> Block:
        self.asked.append(action)
        return Block(
            store=b"/m", is_shared=True, text=self.text.encode()[: action.limit].decode("utf-8", "ignore")
        )


class Desk:
    """`cwd` is a directory in the scope of `PLACE`; the agent of a run is this very process."""

    def __init__(self, lines: Lines, path: Path) -> None:
        self.lines = lines
        self.home = path / "home"
        self.cwd = self.home / "proj"
        self.cwd.mkdir(parents=True)
        self.state = path / "state"
        self.records = Records(lines)
        self.healing = Healing()
        self.topics = Topics()
        self.environments = Environments(bytes(self.home), bytes(path / "environments.json"), lambda: None)
        self.runs = Runs(self.records, checkpoint=self._checkpoint, wall_ms=self.now_ms, see=Processes())
        self.handoffs = Handoffs(self.records, wall_ms=self.now_ms)
        self.hooks = self.service()

    def service(self) -> HookService:
        """As a daemon that was started anew has it."""
        return HookService(
            runs=self.runs,
            handoffs=self.handoffs,
            ledger=self.records,
            healer=self.healing,
            topics=self.topics,
            environments=self.environments,
            home=bytes(self.home),
            state=bytes(self.state),
            wall_ms=self.now_ms,
        )

    def now_ms(self) -> int:
        return self.lines.clock.wall_ms

    async def _checkpoint(self, run: Run) -> Checkpoint:
        return Checkpoint()

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.hooks.keep)
            yield
            done = trio.Event()

            async def last() -> None:
                done.set()

            self.hooks._do_later(last)
            await done.wait()
            nursery.cancel_scope.cancel()

    async def launch(self, harness: str = "claude", session: str = "") -> Run:
        ask = Ask(place=PLACE, cwd=bytes(self.cwd), harness=harness, launcher=LAUNCHER)
        made = await self.runs.prepare(ask)
        await self.runs.plan(made.run.id, expected=session)
        return await self.runs.started(made.run.id, AGENT)

    async def fire(
        self,
        event: str,
        harness: str = "claude",
        *,
        run: Run | str | None = None,
        pid: int = AGENT.pid,
        is_there: bool = True,
        **payload: object,
    ) -> str:
        """What the hook prints."""
        id = run.id if isinstance(run, Run) else run or ""
        stdin = msgspec.json.encode({"cwd": str(self.cwd), **payload})
        return await self.hooks.answer(self.message(event, harness, id, pid, stdin), lambda: is_there)

    def message(self, event: str, harness: str, run: str, pid: int, stdin: bytes) -> bytes:
        fields = (harness.encode(), event.encode(), bytes(self.cwd), run.encode(), b"%d" % pid)
        return b"".join(field + b"\0" for field in fields) + stdin

    async def start(self, session: str = "s1", **more: Any) -> str:
        """The text of a start hook of Claude Code; empty when it printed nothing."""
        return told(
            await self.fire("SessionStart", session_id=session, source=more.pop("source", "startup"), **more)
        )

    async def note(self, summary: str = "the port stays 8123", **more: Any) -> str:
        fields: dict[str, Any] = {
            "workspace": PLACE.workspace,
            "project": PLACE.project,
            "cwd": bytes(self.cwd),
        }
        made, _ = await self.handoffs.create(Note(summary=summary, **{**fields, **more}))
        return made.id

    def handoff_state(self, id: str) -> str:
        row = self.lines.reader.workstreams.handoff(id)
        assert row is not None
        return row.state

    def found(self, run: Run) -> Run:
        row = self.lines.reader.workstreams.run(run.id)
        assert row is not None
        return row


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what a thread does; time on a fake clock passes meanwhile."""
    while not is_so():  # noqa: ASYNC110  nothing tells
        await trio.sleep(0.01)


def told(printed: str) -> str:
    """What the model is given by an answer of Claude Code's or Codex's form."""
    if not printed:
        return ""
    answer = msgspec.json.decode(printed)
    assert set(answer) == {"hookSpecificOutput"}
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    text: str = answer["hookSpecificOutput"]["additionalContext"]
    return text
