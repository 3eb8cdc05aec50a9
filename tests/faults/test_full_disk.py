"""A disk that is full, of bytes or of names, while any flow works: it is told, and nothing is lost.

Ten times it is filled and freed again; the same process goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from memd.errors import MemdError
from support_daemon import Home, eventually
from support_flow import clear
from support_flows import FLOWS
from support_full_disk import fill, free
from support_ledger_faults import LedgerFaults

pytestmark = pytest.mark.faults

PASSES = 10


@pytest.fixture(params=["size=4m", "size=64m,nr_inodes=150"], ids=["bytes", "names"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("name", FLOWS)
def test_a_full_disk_is_told_and_gone_on_with_when_there_is_room(small: Path, name: str) -> None:
    told = 0
    for number in range(PASSES):
        flow = FLOWS[name](small / str(number))
        fill(small, rest=number % 5 * 4096)
        with flow.under(LedgerFaults(is_flushing=True)):
            try:
                flow.work()
            except MemdError as reason:
                assert reason.remedy
                told += 1
        free(small)
        flow.check_kept()
        with flow.under(LedgerFaults(is_flushing=True)):
            flow.recover()
            flow.check_done()
        clear(flow)
        support_points.tried()
    assert told or flow.is_quiet or name == "spool drain"
    assert os.listdir(small) == []


def converse(home: Home, number: int, records: int) -> None:
    """A session of Claude Code with so many messages of a kilobyte."""
    name = f"{number:08d}-0000-4000-8000-000000000000"
    folder = home.path / ".claude/projects/-work"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.jsonl").open("w") as file:
        for record in range(records):
            one = {
                "type": "user",
                "uuid": f"{number:08d}-0000-4000-8000-{record + 1:012d}",
                "timestamp": "2026-03-01T10:00:00.000Z",
                "cwd": "/work",
                "sessionId": name,
                "message": {"role": "user", "content": f"said {record} " + "x" * 1000},
            }
            file.write(json.dumps(one) + "\n")


def test_a_full_disk_is_in_the_status_with_what_is_held_back_and_leaves_it_when_there_is_room(
    small: Path, tmp_path: Path
) -> None:
    home = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run", XDG_DATA_HOME=str(small))
    (home.path / ".claude").mkdir()
    with home.daemon():
        eventually(lambda: home.json("status")["ledger"]["state"] == "running")
        fill(small)
        for number in range(5):
            converse(home, number, 100)
        home.memctl("import")
        eventually(lambda: home.json("status")["health"] == "degraded")
        status = home.json("status")
        assert str(small) in status["health_line"]
        assert "held back" in status["health_line"]
        told = [one for one in home.json("doctor")["findings"] if one["level"] == "problem"]
        assert any(str(small) in one["message"] and "space" in one["remedy"] for one in told)
        free(small)
        eventually(lambda: home.json("status")["health"] == "healthy")
        status = home.json("status")
        assert status["errors"] == []
        assert status["ledger"]["events"] == 500
