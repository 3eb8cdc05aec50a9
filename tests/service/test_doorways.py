"""A harness without a telling hook: what is due goes in with the child, and counts once that is there."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from memd import disk
from memd.errors import ConfigError
from memd.harness import registry
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Launch, Said
from memd.harness.model import Adapter
from memd.ledger.store.workstreams import Run
from memd.protocol_memory import Block, Context
from memd.service.doorways import Doorways, read_small
from memd.service.handoffs import Handoffs
from memd.service.runs import Runs
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.handoff import Note
from memd.workstream.opening import Ask
from support_fake_ledger import FakeRecords, Processes
from support_ledger import S1, entry
from support_workstreams import AGENT, CWD, LAUNCHER, PLACE, Lines

WHERE = (PLACE.workspace, PLACE.project)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


class Topics:
    """A memory folder with that block."""

    def __init__(self) -> None:
        self.text = ""

    def block(self, action: Context) -> Block:
        return Block(text=self.text, store=b"", is_shared=False)


class Door:
    """A way in that puts the text into a file; `trouble`: it refuses, `is_shut`: there is none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.trouble = ""
        self.is_shut = False
        plain = registry.resolve("claude")
        assert plain.launch is not None
        self.adapter: Adapter = replace(plain, launch=replace(plain.launch, deliver=self.deliver))

    def deliver(self, text: str, argv: Argv, doorway: Doorway) -> Delivered:
        self.texts.append(text)
        if self.trouble:
            raise ConfigError(self.trouble)
        if self.is_shut:
            return Delivered(argv=replace(argv, notices=("no way in",)), is_told=False)
        folder = doorway.folder.decode()
        return Delivered(
            argv=replace(argv, set={"TOLD": f"{folder}/text.md"}), files={"text.md": text.encode()}
        )


class Desk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.lines = Lines(root / "ledger")
        self.records = FakeRecords(self.lines)
        self.alive = Processes()
        self.topics = Topics()
        self.door = Door()
        self.anew()

    def anew(self) -> None:
        """Another daemon on the same ledger and the same folder."""
        self.runs = Runs(
            self.records, checkpoint=_nothing, wall_ms=lambda: self.lines.clock.wall_ms, see=self.alive
        )
        self.doors = Doorways(self.runs, self.topics, bytes(self.root / "runs"))
        self.runs.on_over = self.doors.clear

    async def history(self) -> None:
        """A workstream in which another agent has said something."""
        made = await self.runs.prepare(self.ask("codex"))
        await self.runs.plan(made.run.id, expected="c1")
        await self.runs.started(made.run.id, AGENT)
        self.lines.put(entry("codex words", session="c1"), harness="codex")
        await self.runs.exited(made.run.id, 0)

    def ask(self, harness: str = "claude") -> Ask:
        return Ask(place=PLACE, cwd=CWD, harness=harness, launcher=LAUNCHER)

    async def planned(self) -> tuple[Run, Argv]:
        made = await self.runs.prepare(self.ask())
        run = await self.runs.plan(made.run.id, expected=S1)
        doorway = Doorway(
            said=Said(),
            intent=Intent(),
            cwd=CWD,
            home=b"/home/dev",
            variables={},
            folder=self.doors.folder(run.id),
            read=read_small,
        )
        return run, await self.doors.put(self.door.adapter, run, *WHERE, doorway, Argv(arguments=("-x",)))

    async def start(self, run: Run) -> None:
        there = await self.runs.started(run.id, AGENT)
        await self.doors.told(self.door.adapter, there, *WHERE)

    def told(self, run: Run) -> bool:
        found = self.lines.reader.workstreams.run(run.id)
        assert found is not None
        return found.is_told

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.root / "runs").rglob("*") if path.is_file())


async def _nothing(_run: Run) -> Checkpoint:
    await trio.lowlevel.checkpoint()
    return Checkpoint()


def looked_at(name: str) -> tuple[str, tuple[int, int]]:
    """A file's text, its mode and that of its folder; nothing of what is not there."""
    path = Path(name)
    if not path.parent.exists():
        return "", (0, 0)
    return path.read_text(), (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with made.lines:
        yield made


async def test_what_is_due_goes_in_and_counts_once_the_child_is_there(desk: Desk) -> None:
    await desk.history()
    run, argv = await desk.planned()
    assert argv.arguments == ("-x",)
    text, modes = looked_at(argv.set["TOLD"])
    assert "codex words" in text
    assert text.startswith("<!-- memd:workstream-packet:v1 -->")
    assert modes == (0o600, 0o700)
    assert not desk.told(run)
    await desk.start(run)
    assert desk.told(run)
    assert desk.files() == ["text.md"]
    await desk.runs.exited(run.id, 0)
    assert looked_at(argv.set["TOLD"]) == ("", (0, 0))


async def test_said_twice_nothing_is_told_twice(desk: Desk) -> None:
    await desk.history()
    run, _ = await desk.planned()
    await desk.start(run)
    delivery = desk.lines.reader.workstreams.delivery(run.id)
    await desk.start(run)
    assert desk.lines.reader.workstreams.delivery(run.id) == delivery


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_launcher_that_dies_before_its_child_was_there_leaves_it_due(
    desk: Desk, is_started: bool, autojump_clock: trio.testing.MockClock
) -> None:
    await desk.history()
    run, _ = await desk.planned()
    if is_started:  # the word of the child came, what follows it did not
        await desk.runs.started(run.id, AGENT)
    desk.alive.gone.update((LAUNCHER, AGENT))
    desk.lines.clock.go(91)
    desk.anew()
    again, _ = await desk.planned()
    assert "codex words" in desk.door.texts[-1]
    assert len(desk.door.texts) == 2
    desk.alive.gone.clear()
    await desk.start(again)
    assert desk.told(again)


async def test_a_daemon_that_is_started_anew_knows_what_the_child_was_started_with(desk: Desk) -> None:
    await desk.history()
    run, _ = await desk.planned()
    desk.anew()
    await desk.start(run)
    assert desk.told(run)


async def test_files_without_the_last_one_were_not_given_to_anybody(desk: Desk) -> None:
    await desk.history()
    run, _ = await desk.planned()
    (desk.root / "runs" / run.id / "offered.json").unlink()
    await desk.start(run)
    assert not desk.told(run)


async def test_where_there_is_no_way_in_it_stays_due(desk: Desk) -> None:
    await desk.history()
    desk.door.is_shut = True
    run, argv = await desk.planned()
    assert argv.notices == ("no way in",)
    await desk.start(run)
    assert not desk.told(run)
    closed = await desk.runs.exited(run.id, 0)
    assert closed.was_untold


async def test_a_way_in_that_fails_leaves_nothing(desk: Desk) -> None:
    await desk.history()
    desk.door.trouble = "crush.json is not an object"
    with pytest.raises(ConfigError):
        await desk.planned()
    assert desk.files() == []
    [run] = desk.lines.reader.workstreams.active_runs()
    assert not desk.told(run)


async def test_with_nothing_due_nobody_is_called_and_the_run_counts_as_told(desk: Desk) -> None:
    run, argv = await desk.planned()
    assert desk.door.texts == []
    assert argv == Argv(arguments=("-x",))
    await desk.start(run)
    assert desk.told(run)


async def test_the_memory_block_goes_in_after_what_is_due(desk: Desk) -> None:
    await desk.history()
    desk.topics.text = "<memd-memory>\nnotes\n</memd-memory>\n"
    await desk.planned()
    [text] = desk.door.texts
    assert text.index("codex words") < text.index("notes")
    assert text.endswith(desk.topics.text)


async def test_a_handoff_goes_first_and_is_taken_with_the_packet(desk: Desk) -> None:
    await desk.history()
    handoffs = Handoffs(desk.records, wall_ms=lambda: desk.lines.clock.wall_ms)
    made, _ = await handoffs.create(
        Note(workspace=WHERE[0], project=WHERE[1], cwd=CWD, summary="mind the gap")
    )
    run, _ = await desk.planned()
    [text] = desk.door.texts
    assert text.index("mind the gap") < text.index("codex words")
    assert (await handoffs.show(made.id))[0].state == "open"
    await desk.start(run)
    assert (await handoffs.show(made.id))[0].state == "accepted"


async def test_a_handoff_that_came_later_is_not_taken_for_the_one_that_was_shown(desk: Desk) -> None:
    await desk.history()
    handoffs = Handoffs(desk.records, wall_ms=lambda: desk.lines.clock.wall_ms)
    note = Note(workspace=WHERE[0], project=WHERE[1], cwd=CWD, summary="first")
    await handoffs.create(note)
    run, _ = await desk.planned()
    later, _ = await handoffs.create(replace(note, summary="second"))
    await desk.start(run)
    assert desk.told(run)
    assert (await handoffs.show(later.id))[0].state == "open"


async def test_a_utility_is_given_nothing(desk: Desk) -> None:
    await desk.history()
    made = await desk.runs.prepare(desk.ask())
    run = await desk.runs.plan(made.run.id, is_passing=True)
    argv = Argv(arguments=("--version",))
    doorway: Any = None
    assert await desk.doors.put(desk.door.adapter, run, *WHERE, doorway, argv) == argv
    assert desk.door.texts == []


async def test_what_was_left_for_runs_that_are_over_is_swept(desk: Desk) -> None:
    await desk.history()
    run, _ = await desk.planned()
    other = desk.root / "runs" / "of-a-run-long-gone"
    other.mkdir()
    (other / "text.md").write_text("old")
    desk.doors.sweep({run.id})
    assert desk.files() == ["offered.json", "text.md"]
    desk.doors.sweep(())
    assert list((desk.root / "runs").iterdir()) == []


async def test_without_a_folder_there_is_nothing_to_sweep_or_to_clear(desk: Desk) -> None:
    desk.doors.sweep(())
    desk.doors.clear("nothing")


def test_a_file_of_the_client_is_read_through_its_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "crush.json").symlink_to(tmp_path / "real.json")
    assert read_small(bytes(tmp_path / "crush.json")) == b"{}"
    assert read_small(bytes(tmp_path / "nothing")) is None


def test_a_launch_has_no_way_in_unless_it_says_so() -> None:
    names = [name for name, one in registry.adapters().items() if one.launch is not None]
    assert "claude" in names
    launch = registry.resolve("claude").launch
    assert isinstance(launch, Launch)
    assert launch.deliver is None
