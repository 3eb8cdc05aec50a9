"""Launchers that are stopped while memd goes on or is killed: leases, exit codes, and what is told.

`MEMD_FULL_SWEEPS=1` leaves them stopped for ten minutes, `MEMD_STOPPED_S` for as long as it says; without
either the same is tried at once, and `tests/service/test_runs_stopped.py` sets the clock instead.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import support_points
from support_daemon import eventually
from support_desk import Desk

pytestmark = pytest.mark.faults

STOPPED_S = float(os.environ.get("MEMD_STOPPED_S") or (600 if os.environ.get("MEMD_FULL_SWEEPS") else 0))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.home.memctl("up")
    yield made
    made.close()


def runs(desk: Desk) -> dict[str, dict[str, Any]]:
    """The active runs, by the names of their workstreams."""
    return {run["workstream"]: run for run in desk.home.json("status")["runs"]}


def begin(desk: Desk, name: str, do: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run in a workstream of that name; the launcher, and the agent's pid."""
    launcher = desk.begin("--new", name, "claude", do=do)
    eventually(lambda: name in runs(desk) and runs(desk)[name]["agent_pid"])
    return launcher, int(runs(desk)[name]["agent_pid"])


def stop(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)


def is_refused(desk: Desk, name: str, holder: int) -> bool:
    """Whether somebody else is told who has the workstream; whoever asks does not stay for the answer."""
    contender = desk.begin("--workstream", name, "codex", do="say:never")
    assert contender.stderr is not None
    line = contender.stderr.readline().decode()
    contender.kill()
    return "waiting briefly" in line and f"pid {holder}" in line


def said_in(desk: Desk, name: str) -> list[str]:
    (id,) = [one["workstream_id"] for one in desk.workstreams() if one["name"] == name]
    return desk.words(id)


@pytest.mark.parametrize("memd", ["stays", "is killed"])
def test_a_stopped_launcher_keeps_its_workstream_and_returns_its_agents_exit_code(
    desk: Desk, memd: str
) -> None:
    support_points.tried(3)  # agent alive, agent killed, both killed
    living, agent = begin(desk, "living", "say:before wait say:after exit:4")
    bereft, second = begin(desk, "bereft", "say:before wait")
    doomed, third = begin(desk, "doomed", "say:before wait")
    eventually(lambda: all(said_in(desk, name) for name in ("living", "bereft", "doomed")))
    for launcher in (living, bereft, doomed):
        stop(launcher)
    for pid in (second, third):
        os.kill(pid, signal.SIGKILL)
    if memd == "is killed":
        os.kill(desk.home.json("status")["pid"], signal.SIGKILL)
    time.sleep(STOPPED_S)  # all of it is waited for here, so that no sweep without it waits at all
    desk.home.memctl("up")

    assert set(runs(desk)) == {"living", "bereft", "doomed"}
    assert is_refused(desk, "living", living.pid)
    assert is_refused(desk, "bereft", bereft.pid)

    doomed.kill()
    doomed.wait()
    done = desk.run("--workstream", "doomed", "codex", do="say:next")
    assert done.returncode == 0, done.stderr
    assert "waiting" not in done.stderr
    assert said_in(desk, "doomed")[:2] == ["before", "re before"]

    desk.fakes.go()  # the agent ends before its launcher can see it
    eventually(lambda: not _runs_still(agent))
    for launcher, status, words in (
        (living, 4, ["before", "re before", "after", "re after"]),
        (bereft, 1, ["before", "re before"]),
    ):
        launcher.send_signal(signal.SIGCONT)
        assert launcher.wait(30) == status
        assert said_in(desk, "living" if launcher is living else "bereft") == words
        assert launcher.stderr is not None
        said = launcher.stderr.read().decode()
        assert "does not follow this run any more" not in said
        assert said.count("memd is away") == said.count("memd is back")
    assert runs(desk) == {}


def _runs_still(pid: int) -> bool:
    """Whether it still does something; one whose launcher is stopped waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
