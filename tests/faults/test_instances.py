"""Who serves when many start at once, winners are killed, and an old version meets a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from support_daemon import Home, eventually
from support_writers import Writers, sharing

pytestmark = pytest.mark.faults

ROUNDS = 20
IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))
MEETINGS, MEETING = (10, 50) if IS_FULL else (2, 4)
STARTERS = 50 if IS_FULL else 4


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def test_round_after_round_exactly_one_serves_although_each_winner_is_killed(home: Home) -> None:
    served = []
    for _ in range(ROUNDS):
        children = [home.spawn() for _ in range(STARTERS)]
        eventually(lambda these=children: sum(c.poll() is None for c in these) == 1 and home.answers(), 60)
        (winner,) = [child for child in children if child.poll() is None]
        assert home.json("status")["pid"] == winner.pid
        assert {child.returncode for child in children if child is not winner} <= {75}
        served.append(winner.pid)
        winner.kill()
        winner.wait()
    assert len(set(served)) == ROUNDS


def test_a_running_daemons_socket_is_never_stolen_by_another_home(home: Home, tmp_path: Path) -> None:
    child = home.start()
    inode = os.stat(home.socket()).st_ino
    other = Home(tmp_path / "other", runtime=tmp_path / "run")
    try:
        late = other.spawn()
        _, said = late.communicate(timeout=20)
        assert late.returncode == 75
        assert b"in use" in said
    finally:
        other.end_all()
    assert os.stat(home.socket()).st_ino == inode
    assert home.json("status")["pid"] == child.pid


def newer(tmp_path: Path, home: Home) -> dict[str, str]:
    """The environment of everything that is of a later version."""
    package = tmp_path / "newer/memd"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import os, sys\n__version__ = '9.9.9'\n"
        "__path__.extend(os.path.join(p, 'memd') for p in sys.path "
        "if os.path.isfile(os.path.join(p, 'memd', 'protocol.py')))\n"
    )
    return {"PYTHONPATH": f"{package.parent}{os.pathsep}{home.environment['PYTHONPATH']}"}


@pytest.mark.parametrize("is_newer_first", [False, True], ids=["the old one serves", "the new one serves"])
def test_where_two_versions_meet_one_serves_in_the_end_and_nothing_is_lost(
    home: Home, tmp_path: Path, is_newer_first: bool
) -> None:
    """Clients of both versions write all the while, and whoever serves is killed in between."""
    sharing(home)
    new = newer(tmp_path, home)
    first, second = (new, {}) if is_newer_first else ({}, new)
    writers = Writers(home, tmp_path / "heard")
    children = [home.start(**first)]
    served = home.json("status")
    try:
        for name, variables in (("one", first), ("two", second), ("three", second)):
            writers.start(name, **variables)
        late = [home.spawn(**second) for _ in range(MEETING)]
        assert {child.wait(120) for child in late} == {75}
        assert home.json("status")["pid"] == served["pid"], "whoever serves goes on serving"
        for _ in range(MEETINGS):
            os.kill(home.json("status")["pid"], signal.SIGKILL)
            children = [home.spawn(**(first, second)[n % 2]) for n in range(MEETING)]
            eventually(
                lambda these=children: sum(c.poll() is None for c in these) <= 1 and home.answers(), 120
            )
            status = home.json("status")
            assert {child.returncode for child in children if child.pid != status["pid"]} <= {75, None}
            support_points.tried(MEETING)
        before = writers.answered()
        ups = [begun_up(home, second) for _ in range(3)]
        assert {up.wait(120) for up in ups} <= {0, 75}
        assert home.memctl("up", **second).returncode == 0
        eventually(lambda: writers.answered() > before, 60)
    finally:
        writers.end()
    status = home.json("status", **second)
    assert (status["version"] == "9.9.9") is not is_newer_first
    alive = [child.pid for child in children if child.poll() is None]
    assert alive in ([], [status["pid"]])
    support_points.figure(f"{writers.check()} answered writes kept where two versions met")


def begun_up(home: Home, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "memctl", "up"],
        env={**home.environment, **variables},
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
