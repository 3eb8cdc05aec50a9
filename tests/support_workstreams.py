"""Workstreams, runs and handoffs for tests, on a ledger in a temporary folder with a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from memd.ledger.store.interface import Appended
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from memd.ledger.store.workstreams import (
    Handoff,
    Linked,
    Moment,
    Place,
    Process,
    Run,
    Work,
    Workstream,
)
from support_ledger import Ledger, batch

T = TypeVar("T")

PLACE = Place(workspace="default", project="proj", repository="r" * 64, worktree="w" * 64)
CWD = b"/home/dev/proj"
WALL_MS = 1_790_000_000_000
LAUNCHER = Process(4242, "100")
AGENT = Process(4243, "101")


class Clock:
    """The store's clock: starts at a made-up moment, goes when it is told to."""

    def __init__(self) -> None:
        self.boot = "boot-1"
        self.ms = 1_000_000
        self.wall_ms = WALL_MS

    def __call__(self) -> Moment:
        return Moment(boot=self.boot, ms=self.ms, wall_ms=self.wall_ms)

    def go(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)
        self.wall_ms += int(seconds * 1000)


class Lines(Ledger):
    """A ledger whose writer has a clock of its own."""

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.root = root
        self.clock = clock or Clock()
        self.writer = SqliteWriter(bytes(root), clock=self.clock)
        self.reader = SqliteReader(bytes(root))

    def work(self, do: Callable[[Work], T]) -> T:
        return self.writer.work(do)

    def workstream(self, id: str = "w1", **more: Any) -> Workstream:
        row = workstream(id, **more)
        self.work(lambda work: work.put_workstream(row))
        return row

    def link(self, session: str, harness: str = "claude", *, workstream: str = "w1", **more: Any) -> Linked:
        row = linked(session, harness, **more)
        self.work(lambda work: work.put_linked(workstream, row))
        return row

    def view(self, workstream: str = "w1") -> list[str]:
        """Contents in the order of their sequences."""
        return [event.content for event in reversed(self.reader.workstreams.tail(workstream, limit=1000))]

    def sequences_of(self, workstream: str = "w1") -> list[int]:
        return [event.sequence for event in reversed(self.reader.workstreams.tail(workstream, limit=1000))]

    def say(self, run: str, *entries: Any, harness: str = "claude") -> Appended:
        """What memd says of a run."""
        return self.writer.append(batch(*entries, harness=harness, run=run))


def workstream(id: str = "w1", **more: Any) -> Workstream:
    fields: dict[str, Any] = {
        "id": id,
        "place": PLACE,
        "name": id,
        "cwd": CWD,
        "created_ms": WALL_MS,
        "updated_ms": WALL_MS,
    }
    return Workstream(**{**fields, **more})


def linked(session: str, harness: str = "claude", **more: Any) -> Linked:
    fields: dict[str, Any] = {
        "harness": harness,
        "session": session,
        "is_current": True,
        "told": 0,
        "linked_ms": WALL_MS,
    }
    return Linked(**{**fields, **more})


def run(id: str = "run-1", **more: Any) -> Run:
    fields: dict[str, Any] = {
        "id": id,
        "workstream": "w1",
        "harness": "claude",
        "cwd": CWD,
        "launcher": LAUNCHER,
        "boot": "boot-1",
        "expires_ms": 1_090_000,
        "began_ms": WALL_MS,
    }
    return Run(**{**fields, **more})


def handoff(id: str = "h1", **more: Any) -> Handoff:
    fields: dict[str, Any] = {
        "id": id,
        "workspace": PLACE.workspace,
        "project": PLACE.project,
        "cwd": CWD,
        "created_ms": WALL_MS,
        "expires_ms": WALL_MS + 86_400_000,
        "summary": "the port stays 8123",
    }
    return Handoff(**{**fields, **more})
