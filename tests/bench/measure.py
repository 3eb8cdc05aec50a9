"""Measuring beside a floor: samples taken in turn, medians and spreads, ratios pair by pair."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.path.realpath(sys.executable) if sys.prefix == sys.base_prefix else sys.executable
SIX = "import apsw, msgspec, psutil, structlog, trio, watchfiles"


class Row(NamedTuple):
    """One line of the table: ours and its floor in the same unit, and the most that ours may be of it."""

    what: str
    ours: Sequence[float]
    floor: Sequence[float]
    unit: str
    target: float
    quantile: float = 0.5

    @property
    def ratio(self) -> float:
        floor = at(self.floor, self.quantile)
        return at(self.ours, self.quantile) / floor if floor else float("inf")

    def __str__(self) -> str:
        word = "p50" if self.quantile == 0.5 else f"p{self.quantile * 100:.0f}"
        verdict = "ok" if self.ratio <= self.target else "MISSED"
        return (
            f"{self.what:<44} {word} {at(self.ours, self.quantile):9.2f} {self.unit:<6}"
            f" floor {at(self.floor, self.quantile):9.2f}   ratio {self.ratio:6.2f}"
            f"   target {self.target:5.2f}   {verdict}"
            f"   (ours {min(self.ours):.2f}-{max(self.ours):.2f},"
            f" floor {min(self.floor):.2f}-{max(self.floor):.2f})"
        )


def at(samples: Sequence[float], quantile: float) -> float:
    ordered = sorted(samples)
    if quantile == 0.5:
        return statistics.median(ordered)
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]


def in_turn(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """A, B, A, B, ... after one uncounted round, so that a drifting machine drifts under both."""
    for measure in measures:
        measure()
    found: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for samples, measure in zip(found, measures, strict=True):
            samples.append(measure())
    return found


def wall_ms(command: Sequence[str], environment: dict[str, str]) -> float:
    """Milliseconds from the start of a process to its end."""
    began = time.perf_counter()
    subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return (time.perf_counter() - began) * 1e3


@contextlib.contextmanager
def sandbox() -> Iterator[tuple[Path, dict[str, str]]]:
    """A temporary home, short enough for a socket, and the environment of what runs in it."""
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        base = Path(folder).resolve()
        for name in ("home", "run"):
            (base / name).mkdir(mode=0o700)
        yield (
            base,
            {
                "HOME": str(base / "home"),
                "XDG_RUNTIME_DIR": str(base / "run"),
                "PATH": os.environ.get("PATH", ""),
                "LANG": "C.UTF-8",
                "PYTHONPATH": f"{ROOT / 'daemon'}{os.pathsep}{ROOT / 'ctl'}",
            },
        )


@contextlib.contextmanager
def daemon(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A memd that answers."""
    child = subprocess.Popen(
        [PYTHON, "-P", "-m", "memd", "--detached"], env=environment, cwd="/", stdin=subprocess.DEVNULL
    )
    try:
        while memctl(environment, "status") != 0:
            if child.poll() is not None:
                raise SystemExit("memd did not start")
        yield child
    finally:
        child.terminate()
        child.wait(20)


def memctl(environment: dict[str, str], *words: str) -> int:
    return subprocess.run(
        [PYTHON, "-P", "-m", "memctl", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def pss_mib(pids: Sequence[int]) -> float:
    """Proportional set size of these processes together."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for entry in Path(f"/proc/{pid}/task").iterdir():
        for child in (entry / "children").read_text().split():
            found += family(int(child))
    return found


def cpu_s(pids: Sequence[int]) -> float:
    """Processor time of these processes, of threads that have ended too, to the nanosecond.

    source  clock_getcpuclockid(3): how Linux numbers the clock of another process
    """
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids) / 1e9


def wakeups(pids: Sequence[int], seconds: float) -> float:
    """Voluntary context switches of all threads a second: how often somebody slept and was woken.

    Looked at every half second, since what a thread did is gone with it.
    """
    total = 0
    before = _switches(pids)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        time.sleep(0.5)
        now = _switches(pids)
        total += sum(count - before.get(task, 0) for task, count in now.items())
        before = now
    return total / (time.perf_counter() - began)


def _switches(pids: Sequence[int]) -> dict[str, int]:
    found = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                for line in (task / "status").read_text().splitlines():
                    if line.startswith("voluntary_ctxt"):
                        found[task.name] = int(line.split()[1])
    return found


SECTIONS: list[tuple[str, Sequence[Row]]] = []
"""What was measured so far, for whoever writes it down."""


def section(title: str, rows: Sequence[Row]) -> int:
    """Print the rows; how many missed their target."""
    SECTIONS.append((title, rows))
    print(f"\n{title}")
    for row in rows:
        print(f"  {row}")
    return sum(row.ratio > row.target for row in rows)
