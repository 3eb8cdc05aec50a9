"""Leases on the machine's own clocks: time asleep counts, and a boot takes all of them along.

The kernel pretends: a time namespace whose boot clock is ahead looks like a machine that slept, and a boot id
that is mounted over looks like one that was started anew. Both need root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import eventually
from support_desk import Desk

ASK = """
import os, sys
from memctl import client
from memctl.conversation import Conversation
from memd import protocol_runs as runs
line = Conversation()
line.open(start=False)
variables = {"HOME": os.environb[b"HOME"]}
try:
    step = runs.Prepare(cwd=os.getcwdb(), word=sys.argv[1], variables=variables, path=os.environb[b"PATH"])
    ready = line.say(step, runs.Ready)
except client.Rejected as reason:
    print(reason.code, reason)
else:
    line.say(runs.Plan(run=ready.run), runs.LaunchPlan)
    print("planned")
sys.stdout.flush()
os._exit(0)
"""
"""A launcher that dies between the plan and its child: of its lease only the clock knows when it is over."""

MOUNTED = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def ask(desk: Desk, word: str) -> str:
    """What a launcher hears."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK, word],
        env=desk.home.environment,
        cwd=desk.checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@contextlib.contextmanager
def daemon(desk: Desk, *before: str) -> Iterator[None]:
    """A memd that the kernel shows another clock or another boot."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    tried = subprocess.run([*before, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"needs root and namespaces: {tried.stderr.strip()[:80]}")
    child = subprocess.Popen(
        [*before, sys.executable, "-P", "-m", "memd"],
        env=desk.home.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: desk.home.answers() or child.poll() is not None)
        assert child.poll() is None
        yield
        assert desk.home.memctl("down").returncode == 0
        child.wait(20)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def asleep(seconds: int) -> tuple[str, ...]:
    return ("unshare", "--time", "--boottime", str(seconds), "--fork", "--kill-child")


@pytest.mark.parametrize("seconds", [95, 3600])
def test_a_lease_runs_out_while_the_machine_sleeps(desk: Desk, seconds: int) -> None:
    with daemon(desk):
        assert ask(desk, "claude") == "planned\n"
        assert ask(desk, "codex").startswith("busy workstream is already active: claude")
    with daemon(desk, *asleep(45)):
        assert ask(desk, "codex").startswith("busy workstream is already active: claude")
    with daemon(desk, *asleep(seconds)):
        assert ask(desk, "codex") == "planned\n"


def test_after_a_boot_no_lease_is_left_and_no_agent_is_disturbed(desk: Desk) -> None:
    boot = desk.home.path / "boot_id"
    boot.write_text("11111111-2222-4333-8444-555555555555\n")
    with daemon(desk):
        holder = desk.begin("claude", do="say:before wait say:after exit:4")
        eventually(lambda: [run for run in desk.home.json("status")["runs"] if run["agent_pid"]])
        assert ask(desk, "codex").startswith("busy")
    with daemon(desk, "unshare", "--mount", "sh", "-c", MOUNTED, os.fspath(boot)):
        done = desk.run("codex", do="say:next")
        assert done.returncode == 0, done.stderr
        assert "already active" not in done.stderr
        desk.fakes.go()
        assert holder.wait(20) == 4
        assert holder.stderr is not None
        said = holder.stderr.read().decode()  # by whether it had asked before it ended
        assert "does not follow this run any more" in said or "its lease ran out" in said, said
        eventually(lambda: "after" in desk.words())
