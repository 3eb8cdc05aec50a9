"""Thousands of clients that say nothing or next to nothing: the others are answered at once.

10,000 connections that stay silent, and 1,000 that send a byte a second, while a ping is sent over and over.
The times and the memory are figures of the table; asserted is what holds on any machine: every ping is
answered, memory and descriptors come back. `MEMD_FULL_SWEEPS=1` keeps it up for a minute.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import support_points
from memctl import hook
from support_daemon import Home, eventually, request

pytestmark = pytest.mark.faults

IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))
SECONDS = 60 if IS_FULL else 6
PING = b'{"op":"ping"}'
MAX_RSS = 150 << 20
MAX_LEFT = 10 << 20


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.end_all()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 12_000)), hard))
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 11_500:
            pytest.skip(f"11,500 descriptors are needed, {hard} are allowed")
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Connections that are held open, and made anew when the daemon lets go of them."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.silent: list[socket.socket] = []
        self.slow: list[socket.socket] = []

    def join(self, count: int, among: list[socket.socket]) -> None:
        for _ in range(count):
            with contextlib.suppress(OSError, hook.Unreachable):
                among.append(self._dialled())

    def _dialled(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(2.0)
        sock.connect(self.path)
        sock.setblocking(False)
        return sock

    def drip(self, number: int) -> int:
        """One more byte from each slow one; those that were let go begin anew. How many were."""
        message = hook.frame(b"j", PING)
        let_go = 0
        for at, sock in enumerate(self.slow):
            try:
                sock.send(message[number % 6 : number % 6 + 1])
            except OSError:
                let_go += 1
                sock.close()
                with contextlib.suppress(OSError):
                    self.slow[at] = self._dialled()
        return let_go

    def leave(self) -> None:
        for sock in (*self.silent, *self.slow):
            sock.close()


def timed(path: bytes) -> float:
    began = time.perf_counter()
    assert request(path, b"j", PING)[1].startswith(b'{"re":"pong"')
    return time.perf_counter() - began


def memory_of(pid: int) -> int:
    daemon = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (daemon, *daemon.children(recursive=True)))


def told(times: list[float], what: str) -> None:
    p99 = statistics.quantiles(times, n=100)[98] * 1000
    support_points.figure(f"{what}: ping p50 {statistics.median(times) * 1000:.1f} ms, p99 {p99:.1f} ms")


def test_ten_thousand_silent_clients_and_a_thousand_slow_ones(home: Home, many_descriptors: None) -> None:
    child = home.start()
    path = home.socket()
    told([timed(path) for _ in range(300)], "alone")
    base, files = psutil.Process(child.pid).memory_info().rss, psutil.Process(child.pid).num_fds()
    crowd = Crowd(path)
    times: list[float] = []
    highest = base
    try:
        crowd.join(1000, crowd.slow)
        for part in range(100):
            crowd.join(100, crowd.silent)
            times.append(timed(path))
            if part % 20 == 0:
                highest = max(highest, psutil.Process(child.pid).memory_info().rss)
        assert len(crowd.silent) > 9_000
        end = time.monotonic() + SECONDS
        number = 0
        while time.monotonic() < end:
            crowd.drip(number)
            number += 1
            next_drip = time.monotonic() + 1.0
            while time.monotonic() < next_drip:
                times.append(timed(path))
                select.select([], [], [], 0.005)
            highest = max(highest, psutil.Process(child.pid).memory_info().rss)
    finally:
        crowd.leave()
    told(times, "11,000 clients")
    support_points.tried(11_000)
    support_points.figure(f"daemon at most {highest >> 20} MiB")
    assert child.poll() is None
    assert highest < MAX_RSS
    eventually(lambda: psutil.Process(child.pid).num_fds() <= files + 2)
    eventually(lambda: psutil.Process(child.pid).memory_info().rss < base + MAX_LEFT)
    assert home.answers()
