from __future__ import annotations

import os
import signal
import subprocess
import sys

from memd import processes


def test_a_process_that_waits_to_be_reaped_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert processes.is_alive(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody reaped it
        os.kill(child.pid, 0)  # its number still answers
        assert not processes.is_alive(child.pid)
    finally:
        child.communicate()
    assert not processes.is_alive(child.pid)


def test_a_stopped_process_is_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert processes.is_alive(child.pid)
    finally:
        child.kill()
        child.communicate()


def test_numbers_that_no_process_can_have_are_not_alive() -> None:
    assert not any(processes.is_alive(pid) for pid in (0, -1, 1 << 31, 1 << 64))
