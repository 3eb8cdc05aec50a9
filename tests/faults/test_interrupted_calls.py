"""A signal interrupts a system call of every flow: what was interrupted is done again, and nobody is told.

The system itself gives the error, in a real process: in a run of its own for each flow every second call
that may wait is interrupted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import support_points
from support_daemon import eventually
from support_flows import FLOWS

PROGRAM = Path(__file__).parent.parent / "support_flow_run.py"
ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join(str(ROOT / part) for part in ("daemon", "ctl", "tests"))
CALLS = ("write", "fsync", "read", "flock", "pwrite64")


TRACER = ["strace", "-f", "-qq", "-e", f"trace={','.join(CALLS)}"]
TRACER += [word for call in CALLS for word in ("-e", f"inject={call}:error=EINTR:when=1+2")]


def _is_traced(pid: int) -> bool:
    return "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text()


def why_not() -> str:
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this process may not trace others"


pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(why_not()), reason=why_not() or "strace works")]


@pytest.mark.parametrize("name", FLOWS)
def test_interrupted_calls_are_made_again(tmp_path: Path, name: str) -> None:
    log = tmp_path / "trace"
    child = subprocess.Popen(
        [sys.executable, "-B", str(PROGRAM), name, str(tmp_path / "scene")],
        env={**os.environ, "PYTHONPATH": SOURCES},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    tracer = subprocess.Popen([*TRACER, "-o", str(log), "-p", str(child.pid)], stderr=subprocess.PIPE)
    try:
        eventually(lambda: _is_traced(child.pid) or tracer.poll() is not None)
        _, said = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
        tracer.communicate(timeout=20)
    assert child.returncode == 0, said[-3000:]
    interrupted = log.read_text(errors="replace").count("EINTR (Interrupted system call) (INJECTED)")
    assert interrupted > 4
    support_points.tried(interrupted)
