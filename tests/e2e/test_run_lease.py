"""Who may work in a workstream, and what becomes of a run when memd, its launcher or its agent dies."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support_daemon import eventually
from support_desk import Desk


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    shared.home.memctl("up")
    return shared


def runs(desk: Desk) -> list[dict[str, Any]]:
    """The active runs of this checkout, as the status tells them."""
    mine = {one["workstream_id"] for one in desk.workstreams()}
    return [run for run in desk.home.json("status")["runs"] if run["workstream_id"] in mine]


def started(desk: Desk, *words: str, do: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run whose agent is known to memd; the launcher, and the agent's pid."""
    launcher = desk.begin(*words, do=do)
    eventually(lambda: runs(desk) and runs(desk)[0]["agent_pid"])
    return launcher, int(runs(desk)[0]["agent_pid"])


def spoken(desk: Desk, text: str) -> bool:
    """Whether an agent wrote that into its store."""
    return any(text in path.read_text() for path in desk.home.path.glob(".claude/projects/*/*.jsonl"))


def test_the_status_lists_the_run_while_it_goes_on(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:hello wait")
    [run] = runs(desk)
    assert (run["harness"], run["workstream"], run["launcher_pid"]) == ("claude", "default", launcher.pid)
    assert agent == desk.fakes.last()["pid"]
    page = desk.home.memctl("status").stdout
    assert "claude in workstream 'default'" in page
    assert "began just now" in " ".join(page.split())
    assert run["since"] not in page  # a moment is told by how long ago it was, whatever the time zone
    assert str(agent) in page
    desk.fakes.go()
    assert launcher.wait(20) == 0
    assert runs(desk) == []


def test_events_are_in_the_workstream_while_the_agent_still_runs(desk: Desk) -> None:
    launcher, _ = started(desk, "claude", do="say:hello wait")
    eventually(lambda: desk.words() == ["hello", "re hello"])
    assert launcher.poll() is None
    desk.fakes.go()
    assert launcher.wait(20) == 0


def test_a_contender_is_told_who_has_it_and_gets_it_when_it_is_free(desk: Desk) -> None:
    holder, agent = started(desk, "claude", do="say:first wait")
    contender = desk.begin("codex", do="say:second")
    assert contender.stderr is not None
    line = contender.stderr.readline().decode()
    assert "waiting briefly" in line
    for word in ("claude", "'default'", str(holder.pid), str(agent)):
        assert word in line
    desk.fakes.go()
    assert contender.wait(20) == 0
    assert holder.wait(20) == 0
    assert desk.words() == ["first", "re first", "second", "re second"]


def test_a_contender_that_gives_up_never_starts_its_child(desk: Desk) -> None:
    _, agent = started(desk, "claude", do="say:first wait")
    done = desk.run("codex", do="say:second")
    assert done.returncode == 75
    assert done.stderr.count("waiting briefly") == 1
    assert f"agent pid {agent}" in done.stderr
    assert "--wait" in done.stderr
    assert len(desk.fakes.starts()) == 1


def test_forgetting_during_a_run_leaves_the_run_and_its_lease(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:forget_me wait say:after exit:3")
    eventually(lambda: desk.words() == ["forget me", "re forget me"])
    assert desk.home.memctl("forget", "--matching", "forget", "--yes").returncode == 0
    eventually(lambda: desk.words() == [])
    assert [run["agent_pid"] for run in runs(desk)] == [agent]
    desk.fakes.go()
    assert launcher.wait(20) == 3
    assert desk.words() == ["after", "re after"]
    assert runs(desk) == []
    assert desk.run("codex", "--version").returncode == 0


def test_a_utility_passes_while_somebody_has_the_workstream(desk: Desk) -> None:
    holder, _ = started(desk, "claude", do="say:first wait exit:4")
    before = desk.said()
    done = desk.run("codex", "--version", "--yolo", do="exit:3")
    assert done.returncode == 3
    assert desk.args() == ["--version"]
    assert not {"MEMD_RUN_ID", "MEMD_WORKSTREAM_ID"} & set(desk.fakes.last()["env"])
    assert done.stderr.count("\n") == 1
    assert "workstream 'default' is in use" in done.stderr
    assert desk.said() == before
    assert len(runs(desk)) == 1
    assert desk.run("--executable", "/nothing", "codex", "--version").returncode == 69
    desk.fakes.go()
    assert holder.wait(20) == 4


def test_two_workstreams_of_one_checkout_run_side_by_side(desk: Desk) -> None:
    _, _ = started(desk, "claude", do="say:first wait")
    assert desk.run("--new", "side", "codex", do="say:second").returncode == 0
    names = {one["name"]: one for one in desk.workstreams()}
    assert names["side"]["linked_harnesses"] == ["codex"]
    assert names["default"]["linked_harnesses"] == ["claude"]


def test_when_launcher_and_agent_are_killed_the_next_one_starts_at_once_and_sees_the_tail(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:the_tail wait")
    eventually(lambda: spoken(desk, "the tail"))
    os.kill(launcher.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    launcher.wait()
    done = desk.run("codex", do="say:next")
    assert done.returncode == 0, done.stderr
    assert "waiting" not in done.stderr
    assert desk.words()[:2] == ["the tail", "re the tail"]


def test_nobody_need_come_for_the_tail_to_be_imported_and_the_run_closed(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:the_tail wait")
    eventually(lambda: spoken(desk, "the tail"))
    os.kill(launcher.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    launcher.wait()
    eventually(lambda: runs(desk) == [])
    assert desk.words()[:2] == ["the tail", "re the tail"]
    assert any("ended without a word" in text for text in desk.said())


def test_an_agent_that_outlives_its_launcher_keeps_the_workstream_until_it_ends(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:first wait say:last")
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    eventually(lambda: runs(desk)[0]["agent_pid"] == agent)
    waiting = desk.begin("--wait", "codex", do="say:next")
    assert waiting.stderr is not None
    assert "waiting for it to end" in waiting.stderr.readline().decode()
    desk.fakes.go()
    assert waiting.wait(20) == 0
    assert desk.words() == ["first", "re first", "last", "re last", "next", "re next"]


def test_an_agent_that_is_killed_ends_the_run_with_what_it_wrote(desk: Desk) -> None:
    launcher, agent = started(desk, "opencode", do="say:whole open:cut_off mark:written wait")
    eventually((desk.home.path / "written").exists)
    os.kill(agent, signal.SIGKILL)
    assert launcher.wait(20) == 1
    assert desk.words() == ["whole", "re whole", "cut off", "re cut off"]


def restart(desk: Desk, number: int = signal.SIGTERM) -> int:
    """End the daemon and start another one; the new one's pid."""
    old = desk.home.json("status")["pid"]
    os.kill(old, number)
    eventually(lambda: not os.path.exists(f"/proc/{old}"))
    assert desk.home.memctl("up").returncode == 0
    return int(desk.home.json("status")["pid"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_of_memd_during_a_run_disturbs_nobody(desk: Desk, number: int) -> None:
    launcher, agent = started(desk, "claude", do="say:before wait say:after exit:5")
    restart(desk, number)
    eventually(lambda: runs(desk) and runs(desk)[0]["agent_pid"] == agent)
    assert desk.run("--new", "side", "codex", "--version").returncode == 0
    desk.fakes.go()
    assert launcher.wait(20) == 5
    assert desk.words(runs_of(desk)) == ["before", "re before", "after", "re after"]
    assert launcher.stderr is not None
    said = launcher.stderr.read().decode()
    assert "4 new events" in said or "5 new events" in said
    assert "Traceback" not in said


def runs_of(desk: Desk) -> str:
    names = {one["name"]: one["workstream_id"] for one in desk.workstreams()}
    return str(names["default"])


def test_an_outage_is_told_once_and_its_end_too(desk: Desk) -> None:
    launcher, _ = started(desk, "claude", do="say:before wait")
    assert launcher.stderr is not None
    for _ in range(2):
        assert desk.home.memctl("down").returncode == 0
        assert "memd is away" in launcher.stderr.readline().decode()
        assert desk.home.memctl("up").returncode == 0
        assert "memd is back" in launcher.stderr.readline().decode()
    desk.fakes.go()
    assert launcher.wait(20) == 0
    assert launcher.stderr.read().decode().count("memd is") == 0
    assert desk.words() == ["before", "re before"]


def test_a_run_that_ends_while_memd_is_away_brings_it_back_and_is_closed(desk: Desk) -> None:
    launcher, _ = started(desk, "claude", do="say:before wait say:after exit:3")
    assert desk.home.memctl("down").returncode == 0
    desk.fakes.go()
    assert launcher.wait(30) == 3
    assert desk.words() == ["before", "re before", "after", "re after"]
    assert runs(desk) == []


def test_an_agent_that_ended_while_memd_was_away_is_found_by_the_next_one(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:before wait")
    assert desk.home.memctl("down").returncode == 0
    os.kill(launcher.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    launcher.wait()
    assert desk.home.memctl("up").returncode == 0
    eventually(lambda: desk.words()[:2] == ["before", "re before"] and runs(desk) == [])
    assert desk.run("codex", do="say:next").returncode == 0


def test_a_stopped_agent_is_alive(desk: Desk) -> None:
    launcher, agent = started(desk, "claude", do="say:first wait")
    os.kill(agent, signal.SIGSTOP)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    contender = desk.begin("codex", do="say:second")
    assert contender.stderr is not None
    assert "waiting briefly" in contender.stderr.readline().decode()
    os.kill(agent, signal.SIGKILL)
    assert contender.wait(20) == 0
