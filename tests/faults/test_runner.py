"""A run of the faults that is ended takes down what it made: processes, mounts, folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import eventually
from support_scratch import PREFIX

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")

TESTS = Path(__file__).resolve().parents[1]

# A suite that leaves what it can: processes that heed no SIGTERM, one in a session of its own, and a mount.
SUITE = """
import os, signal, subprocess, sys
from pathlib import Path
import support_scratch
ends, places = sys.argv[1], tuple(sys.argv[2:])

def suite(folder):
    memory = Path(support_scratch.in_memory())
    (memory / "tree").mkdir()
    (folder / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder / "mounted")], stderr=subprocess.DEVNULL)
    code = "import os, signal; signal.signal(15, 1); os.fork() or os.setsid()"
    code += "; os.write(1, b'%d' % os.getpid() + bytes((10,))); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    pids = [child.stdout.readline().decode().strip() for _ in range(2)]
    try:
        print(folder, memory, *pids, flush=True)
        if ends == "killed":
            os.kill(os.getppid(), signal.SIGKILL)
        if ends in ("0", "1"):
            return int(ends)
        signal.pause()
    except KeyboardInterrupt:
        (Path(places[0]) / "taken down").touch()
        return 2

sys.exit(support_scratch.keep(suite, places))
"""


class Run:
    """That suite, under way in places of its own."""

    def __init__(self, top: Path, ends: str) -> None:
        self.places = [top / "disk", top / "memory"]
        for place in self.places:
            place.mkdir(exist_ok=True)
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-c", SUITE, ends, str(self.places[1])],
            env={**os.environ, "TMPDIR": str(self.places[0]), "PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
        )
        assert self.child.stdout is not None
        *self.folders, one, two = self.child.stdout.readline().decode().split()
        self.pids = [int(one), int(two)]

    def ended(self) -> int:
        status = self.child.wait(60)
        assert self.child.stdout is not None
        self.child.stdout.close()
        return status

    def left(self) -> list[str]:
        """Folders, mounts and processes that are still there."""
        mounts = Path("/proc/self/mountinfo").read_text()
        alive = [str(pid) for pid in self.pids if _is_alive(pid)]
        return (
            [one for one in self.folders if Path(one).exists()]
            + alive
            + [line for line in mounts.splitlines() if any(one in line for one in self.folders)]
        )


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for place in tmp_path.glob(f"*/{PREFIX}*/mounted"):
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_a_signal_takes_the_fixtures_down_and_leaves_nothing(top: Path, number: signal.Signals) -> None:
    run = Run(top, "waits")
    run.child.send_signal(number)
    run.child.send_signal(number)  # whoever is impatient does no harm
    assert run.ended() == 2
    assert (run.places[1] / "taken down").exists()
    assert run.left() == []


def test_what_tests_left_running_or_mounted_is_gone_at_the_end(top: Path) -> None:
    run = Run(top, "0")
    assert run.ended() == 0
    assert run.left() == []


def test_after_failures_the_files_stay_until_the_next_run(top: Path) -> None:
    first = Run(top, "1")
    assert first.ended() == 1
    assert first.left() == first.folders
    second = Run(top, "0")
    assert second.ended() == 0
    assert first.left() == second.left() == []


def test_a_run_that_was_killed_is_cleaned_up_after_by_the_next_one_alone(top: Path) -> None:
    killed = Run(top, "killed")
    assert killed.ended() == -signal.SIGKILL
    for pid in killed.pids:
        os.kill(pid, signal.SIGKILL)  # nobody is left who would do it
    waits = Run(top, "waits")
    eventually(lambda: killed.left() == [])
    assert Path(waits.folders[0]).exists()
    assert Run(top, "0").ended() == 0
    assert Path(waits.folders[0]).exists(), "somebody is at work in it"
    waits.child.send_signal(signal.SIGTERM)
    assert waits.ended() == 2
