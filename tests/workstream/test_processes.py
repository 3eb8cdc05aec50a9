"""Processes that cannot be taken for another one, against real ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memd import processes


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_living_process_is_alive(child: subprocess.Popen[bytes]) -> None:
    assert processes.presence(child.pid, processes.start_of(child.pid)) == "alive"


def test_a_stopped_process_is_alive(child: subprocess.Popen[bytes]) -> None:
    start = processes.start_of(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert processes.presence(child.pid, start) == "alive"


def test_a_process_that_waits_to_be_reaped_is_gone(child: subprocess.Popen[bytes]) -> None:
    start = processes.start_of(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.presence(child.pid, start) == "gone"


def test_a_reaped_process_is_gone(child: subprocess.Popen[bytes]) -> None:
    start = processes.start_of(child.pid)
    child.kill()
    child.wait()
    assert processes.presence(child.pid, start) == "gone"


def test_another_process_of_the_same_number_is_not_the_one(child: subprocess.Popen[bytes]) -> None:
    assert processes.presence(child.pid, "1") == "gone"


def test_a_process_whose_start_was_never_known_is_unknown_while_its_number_is_there(
    child: subprocess.Popen[bytes],
) -> None:
    assert processes.presence(child.pid, "") == "unknown"
    child.kill()
    child.wait()
    assert processes.presence(child.pid, "") == "gone"


@pytest.mark.parametrize("pid", [0, -1, 1 << 31, 1 << 70])
def test_a_number_that_is_none_is_gone(pid: int) -> None:
    assert processes.presence(pid, "1") == "gone"
    assert processes.start_of(pid) == ""
    assert processes.parent_of(pid) == 0


def test_the_start_is_the_same_however_often_it_is_asked() -> None:
    assert processes.start_of(os.getpid()) == processes.start_of(os.getpid()) != ""


def test_a_process_with_an_odd_name_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen([str(program), "60"])
    try:
        assert processes.presence(process.pid, processes.start_of(process.pid)) == "alive"
        assert processes.parent_of(process.pid) == os.getpid()
    finally:
        process.kill()
        process.wait()


def test_a_grandchild_is_below_and_a_stranger_is_not(child: subprocess.Popen[bytes]) -> None:
    shell = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess as s; p=s.Popen(['sleep', '60']); print(p.pid); p.wait()",
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout is not None
    with shell.stdout as stdout:
        grandchild = int(stdout.readline())
    try:
        assert processes.is_below(grandchild, shell.pid)
        assert processes.is_below(grandchild, os.getpid())
        assert processes.is_below(shell.pid, shell.pid)
        assert not processes.is_below(grandchild, child.pid)
        assert not processes.is_below(os.getpid(), child.pid)
    finally:
        os.kill(grandchild, signal.SIGKILL)
        shell.wait()


def test_the_boot_has_a_name_and_its_clock_is_the_one_that_runs_through_a_suspend() -> None:
    assert processes.boot_id() == processes.boot_id() != ""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    before = time.clock_gettime_ns(clock) // 1_000_000
    assert before <= processes.boot_ms() <= time.clock_gettime_ns(clock) // 1_000_000


def test_time_asleep_counts_on_the_clock_of_leases() -> None:
    """A time namespace whose boot clock is ahead looks like a machine that slept."""
    program = "from memd import processes; print(processes.boot_ms())"
    command = ["unshare", "--time", "--boottime", "3600", "--fork", sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    began = processes.boot_ms()
    run = subprocess.run(command, env=environment, capture_output=True)
    if run.returncode:
        pytest.skip("needs root and time namespaces: " + run.stderr.decode("utf-8", "replace").strip()[:80])
    assert 3_600_000 <= int(run.stdout) - began < 3_700_000


def test_without_a_table_of_the_kernel_the_same_is_found(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_stat_fields", lambda pid: None)
    monkeypatch.setattr(processes.sys, "platform", "darwin")
    start = processes.start_of(child.pid)
    assert start == str(int(psutil.Process(child.pid).create_time() * 1000))
    assert processes.presence(child.pid, start) == "alive"
    assert processes.presence(child.pid, "1") == "gone"
    assert processes.parent_of(child.pid) == os.getpid()


def test_a_shell_between_a_program_and_its_command_is_looked_through(child: subprocess.Popen[bytes]) -> None:
    assert processes.behind_shells(child.pid) == child.pid  # no shell at all
    script = "echo $$; read line; exit"  # a shell that stays, below another that does
    with subprocess.Popen(
        ["sh", "-c", f"sh -c '{script}'; exit"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        inner = int(shell.stdout.readline())
        assert processes.parent_of(inner) == shell.pid
        assert processes.behind_shells(shell.pid) == os.getpid()
        assert processes.behind_shells(inner) == os.getpid()
        shell.kill()
    assert processes.behind_shells(shell.pid) == shell.pid  # gone
    assert processes.behind_shells(0) == 0
