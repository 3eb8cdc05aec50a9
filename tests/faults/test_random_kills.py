"""Three clients write without a pause, and the daemon is killed at any moment, over and over.

What a client was told is kept is there once, whole; what it was not told is there whole or not at all. The
same key twice is one write. Of many who want to work in one workstream meanwhile there is one at a time, and
what is handed over to the next is taken once. `MEMD_FULL_SWEEPS=1` kills 300 times, otherwise 20.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import support_points
from support_daemon import Home, eventually
from support_desk import MEMCTL, Desk
from support_fake_harness import Fakes
from support_hooks import placed
from support_writers import Writers, sharing

pytestmark = pytest.mark.faults

ROUNDS = 300 if os.environ.get("MEMD_FULL_SWEEPS") else 20


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = sharing(Home(tmp_path / "home", runtime=tmp_path / "run"))
    yield made
    made.memctl("down")
    made.end_all()


def test_daemons_killed_at_any_moment_keep_what_they_answered(home: Home, tmp_path: Path) -> None:
    chance = random.Random(11)
    writers = Writers(home, tmp_path / "heard")
    try:
        for name in ("one", "two", "three"):
            writers.start(name)
        for _ in range(ROUNDS):
            child = home.spawn()
            # 1 to 500 ms after it answers, or while it starts
            if chance.random() < 0.8:
                while child.poll() is None and not home.answers():
                    pass
            select.select([], [], [], chance.uniform(0.001, 0.5))
            child.kill()
            child.wait()
            support_points.tried()
    finally:
        writers.end()
    home.memctl("down")
    home.start()
    answered = writers.check()
    assert answered
    support_points.figure(f"{answered} answered writes kept over {ROUNDS} kills")


AGENT = """#!/bin/sh
case "$1" in --help|--version) exec "$REAL/${0##*/}" "$@";; esac
[ -n "$MEMD_RUN_ID" ] || { echo bare >> "$HOME/bare"; exit 0; }
if mkdir "$HOME/writing"; then
    echo "$MEMD_RUN_ID" >> "$HOME/runs"
    "$REAL/${0##*/}" "$@"
    read -r line < "$HOME/pause" || true
    rmdir "$HOME/writing"
else
    echo "$MEMD_RUN_ID" >> "$HOME/overlaps"
fi
"""
"""Works for a moment, alone as it thinks, and notes when somebody else works as well."""

DO = "say:something hook:SessionStart hook:UserPromptSubmit say:more"
AGAIN = 'while :; do timeout 60 "$@"; done'


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.home.environment["FAKE_HOOK"] = str(placed(made.home.path / ".local/share"))
    made.home.environment["REAL"] = str(Fakes(tmp_path / "real", made.home.path).folder)
    for name in ("claude", "codex"):
        (tmp_path / "bin" / name).write_text(AGENT)
    yield made
    made.close()


def end_session(leader: int) -> None:
    """Kill a process and all that it started: `timeout` gives its own a process group each."""
    while members := [pid for pid in psutil.pids() if session_of(pid) == leader]:
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if members == [leader]:
            return  # a zombie until it is waited for


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_one_at_a_time_works_in_a_workstream_however_often_the_daemon_is_killed(desk: Desk) -> None:
    """A killed daemon neither lets a second one in nor leaves the workstream to nobody; what is handed over
    is told to one agent."""
    chance = random.Random(12)
    home = desk.home
    os.mkfifo(home.path / "pause")
    pause = os.open(home.path / "pause", os.O_RDWR)
    launchers = [
        subprocess.Popen(
            ["sh", "-c", AGAIN, "sh", *MEMCTL, "run", name],
            env={**home.environment, "FAKE_DO": DO},
            cwd=desk.checkout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for name in ("claude", "codex", "claude")
    ]
    handed: list[str] = []
    try:
        for round_ in range(ROUNDS // 2):
            home.memctl("up")
            pid = home.json("status")["pid"]
            active = home.json("status")["runs"]
            assert len({run["run_id"] for run in active}) <= 1, json.dumps(active, indent=1)
            text = f"handed over {round_:04}"
            done = home.memctl("handoff", "create", text, "--expires", "1h", cwd=desk.checkout)
            handed += [text] if done.returncode == 0 else []
            os.write(pause, b"go\n" * chance.randrange(3))
            select.select([], [], [], chance.uniform(0.001, 0.5))
            os.kill(pid, signal.SIGKILL)
            support_points.tried()
        done_before = len(lines(home.path / "runs"))
        os.write(pause, b"go\n" * 50)
        eventually(lambda: len(lines(home.path / "runs")) > done_before + 2, 90)
    finally:
        for launcher in launchers:
            end_session(launcher.pid)
            launcher.wait()
        os.close(pause)
        home.memctl("up")  # one that a launcher was starting still would come after it was told to end
    runs = lines(home.path / "runs")
    assert lines(home.path / "overlaps") == []
    assert len(runs) == len(set(runs)), "a run starts one agent"
    told = "\n".join(lines(home.path / "hooked"))
    assert {text: told.count(text) for text in handed if told.count(text) > 1} == {}
    taken = sum(text in told for text in handed)
    assert taken
    support_points.figure(
        f"{len(runs)} runs, one at a time, {taken} handoffs taken once, over {ROUNDS // 2} kills"
    )
