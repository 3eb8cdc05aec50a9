"""A disk that is full, of bytes or of names, while any flow works: it is told, and nothing is lost.

Ten times it is filled and freed again; the same process goes on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from memd.errors import MemdError
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
