"""Who serves when many start at once and winners are killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home, eventually

pytestmark = pytest.mark.faults

ROUNDS = 20
STARTERS = 50 if os.environ.get("MEMD_FULL_SWEEPS") else 4


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
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
