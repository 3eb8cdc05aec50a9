"""Agents inside agents, told apart by who started whom."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk, processes
from memd.service import lineage
from memd.service.lineage import Lineage
from support_hook_service import Desk
from support_workstreams import Lines

OUTER, INNER = ("claude", "outer"), ("codex", "inner")


class Tree:
    """Made-up processes: pid -> parent; each begins at a moment of its own."""

    def __init__(self, **parents: int) -> None:
        self.parents = {int(pid[1:]): parent for pid, parent in parents.items()}
        self.reused: set[int] = set()

    def lineage(self) -> Lineage:
        return Lineage(self.start_of, lambda pid: self.parents.get(pid, 0))

    def start_of(self, pid: int) -> str:
        if pid not in self.parents:
            return ""
        return f"later-{pid}" if pid in self.reused else f"{pid}"


def test_what_an_agent_started_is_inside_and_its_own_sessions_are_not() -> None:
    tree = Tree(p10=1, p20=10, p30=20, p40=30)
    known = tree.lineage()
    assert not known.is_inside(40, INNER)
    known.note(20, OUTER)
    assert known.is_inside(40, INNER)
    assert known.is_inside(30, INNER)
    assert not known.is_inside(20, ("claude", "after-clear"))
    assert not known.is_inside(10, INNER)
    assert not known.is_inside(30, OUTER)
    assert not known.is_inside(0, INNER)


def test_a_session_that_ended_has_nothing_inside() -> None:
    known = Tree(p20=1, p30=20).lineage()
    known.note(20, OUTER)
    known.end(OUTER)
    assert not known.is_inside(30, INNER)


def test_a_number_that_was_given_again_is_another_process() -> None:
    tree = Tree(p20=1, p30=20)
    known = tree.lineage()
    known.note(20, OUTER)
    tree.reused.add(20)
    assert not known.is_inside(30, INNER)


def test_a_session_follows_another_in_the_very_same_process() -> None:
    tree = Tree(p20=1, p30=20)
    known = tree.lineage()
    assert not known.is_next(20, OUTER)
    known.note(20, OUTER)
    assert known.is_next(20, ("claude", "after"))
    assert not known.is_next(20, OUTER)
    assert not known.is_next(20, ("codex", "after"))
    assert not known.is_next(30, ("claude", "after"))
    tree.reused.add(20)
    assert not known.is_next(20, ("claude", "after"))


def test_the_oldest_are_forgotten_and_circles_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "MAX_AGENTS", 2)
    known = Tree(p20=1, p21=1, p22=1, p30=20, p31=22, p50=51, p51=50).lineage()
    for pid in (20, 21, 22):
        known.note(pid, ("claude", str(pid)))
    assert not known.is_inside(30, INNER)
    assert known.is_inside(31, INNER)
    assert not known.is_inside(50, INNER)
    known.note(99, OUTER)  # no such process


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(disk, "flush", lambda fd: None)
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


async def test_an_agent_started_in_a_session_without_a_run_takes_no_handoff(desk: Desk) -> None:
    agent = processes.parent_of(os.getpid())
    assert await desk.start("outer", pid=agent) == ""
    id = await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    assert await desk.start("inner") == "MEMORY BLOCK"
    assert desk.handoff_state(id) == "open"
    async with desk.keeping():
        await desk.fire("SessionEnd", session_id="outer", pid=agent)
    assert "the port stays 8123" in await desk.start("next")
