"""The whole import under kills and a full disk: nothing doubled, nothing missing, no restart needed."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home, eventually

pytestmark = pytest.mark.faults

ROUNDS = 20
SESSIONS, LINES = 60, 40


def line(session: str, n: int, text: str) -> str:
    parent = f"{session[:24]}{n - 1:012d}" if n else None
    return (
        json.dumps(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "type": "user",
                "uuid": f"{session[:24]}{n:012d}",
                "timestamp": f"2026-03-01T10:{n // 60:02d}:{n % 60:02d}.000Z",
                "cwd": "/work/somewhere",
                "sessionId": session,
                "version": "2.1.197",
                "message": {"role": "user", "content": text},
            }
        )
        + "\n"
    )


def sid(n: int) -> str:
    return f"{n:08d}-0000-4000-8000-000000000000"


def write_sessions(home: Home, lines: int = LINES, words: str = "") -> None:
    folder = home.path / ".claude" / "projects" / "-work-somewhere"
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(SESSIONS):
        with (folder / f"{sid(n)}.jsonl").open("w") as file:
            file.writelines(line(sid(n), i, f"text{n}x{i} {words}") for i in range(lines))


def count(home: Home) -> int:
    return sum(row["events"] for row in home.json("sessions"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    yield made
    made.end_all()


def test_kills_at_random_moments_of_an_import_lose_and_double_nothing(home: Home) -> None:
    chance = random.Random(7)
    write_sessions(home)
    for _ in range(ROUNDS):
        child = home.start()
        home.memctl("import")
        select.select([], [], [], chance.uniform(0.001, 0.5))
        child.kill()
        child.wait()
    home.start()
    assert home.memctl("import", "--wait").returncode == 0
    assert count(home) == SESSIONS * LINES
    check = home.memctl("ledger", "check")
    assert check.returncode == 0, check.stdout


def test_a_full_disk_stops_nothing_for_good(home: Home, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to mount a small tmpfs")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode().strip()}")
    home.environment["XDG_DATA_HOME"] = str(small)
    try:
        write_sessions(home, words=os.urandom(2000).hex())
        child = home.start()
        eventually(lambda: home.json("status")["ledger"]["trouble"] != "", 60)
        assert child.poll() is None
        assert home.json("search", "nothing-like-this") == []
        subprocess.run(["mount", "-o", "remount,size=200m", small], check=True)
        assert home.memctl("import", "--wait").returncode == 0
        assert count(home) == SESSIONS * LINES
        assert home.json("status")["ledger"]["trouble"] == ""
        assert home.memctl("ledger", "check").returncode == 0
    finally:
        home.end_all()
        subprocess.run(["umount", "-l", small], check=True)
