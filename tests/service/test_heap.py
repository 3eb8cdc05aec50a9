"""What the allocator holds of freed memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support_daemon import SOURCES

SCRIPT = """
from memd import heap

def resident():
    with open("/proc/self/smaps_rollup", "rb") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(b"Rss:"))

heap.settle()
held = [bytearray(50_000) for _ in range(1000)]
pin = bytearray(50_000)
full = resident()
held.clear()
before = resident()
heap.give_back()
print(full, before, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_what_is_free_goes_back_to_the_system_when_told() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=True,
    )
    full, kept, left = map(int, done.stdout.split())
    assert kept > full - 10_000  # a value above all of them pins the heap
    assert left < full - 40_000
