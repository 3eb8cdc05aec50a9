"""A ping beside a crowd: 10,000 clients that say nothing and 1,000 that send a byte a second.

The floor is a server of bare trio that reads a message, answers it and lets go after the same two seconds.
The same crowd, a process of its own, is sent to either in turn, so that a busy machine is busy for both.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from measure import PYTHON, Row, cpu_s, daemon, pss_mib, sandbox, section

from memctl import hook

ROUNDS = min(2, int(os.environ.get("MEMD_BENCH_ROUNDS", "2")))
SECONDS = float(os.environ.get("MEMD_BENCH_CROWD", "8"))
SILENT, SLOW = 10_000, 1_000
JOIN_S = 10.0  # in which the silent ones come
HELD = 900  # silent ones that are all held at once, below the number at which the oldest makes room
PING = hook.frame(b"j", b'{"op":"ping"}')
PAUSE_S = 0.002
EVERY_MS = 5.0  # a ping is thought to come
CPU_S = 3.0
SETTLE_S = 2.5  # until the last of those who said nothing are let go
MAX_MS = 50.0

BARE = """
import resource, sys, trio
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
async def answer(stream):
    async with stream:
        with trio.move_on_after(2):
            held = b""
            while not held.endswith(b"}"):
                more = await stream.receive_some(65536)
                if not more:
                    return
                held += more
            await stream.send_all(held)
async def main():
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(sys.argv[1])
    sock.listen(1024)
    await trio.serve_listeners(answer, [trio.SocketListener(sock)])
trio.run(main)
"""


class Crowd:
    """The process that holds the clients: `python bench_crowd.py ADDRESS`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._silent: list[socket.socket] = []
        self._slow: list[socket.socket | None] = [None] * SLOW
        self._said = [0] * SLOW

    def _dialled(self) -> socket.socket | None:
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            sock.connect(self._address)
        except OSError:
            sock.close()
            return None
        return sock

    def come(self) -> None:
        """The silent ones, evenly over some seconds. Each dials once: who finds no room stays away."""
        began, tried = time.monotonic(), 0
        while tried < SILENT:
            due = min(SILENT, int((time.monotonic() - began) / JOIN_S * SILENT))
            for _ in range(tried, due):
                sock = self._dialled()
                if sock is not None:
                    self._silent.append(sock)
            tried = due
            time.sleep(0.005)

    def drip(self, is_over: Callable[[], bool]) -> None:
        """A byte a second from each slow one, evenly over the second; who was let go dials again."""
        began, turn = time.monotonic(), 0
        while not is_over():
            due = int((time.monotonic() - began) * SLOW)
            for number in range(turn, due):
                self._one(number % SLOW)
            turn = max(turn, due)
            time.sleep(0.005)

    def _one(self, at: int) -> None:
        sock = self._slow[at]
        if sock is None:
            self._slow[at], self._said[at] = self._dialled(), 0
            return
        try:
            sock.send(PING[self._said[at] : self._said[at] + 1])
            self._said[at] += 1
        except OSError:
            sock.close()
            self._slow[at], self._said[at] = self._dialled(), 0


def crowd(address: str) -> int:
    """Says what begins, and stays until its standard input ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, SILENT + SLOW + 100)), hard))
    os.set_blocking(0, False)
    there = Crowd(address)
    there.come()
    print("all here", flush=True)
    there.drip(lambda: os.read(0, 1) == b"" if _readable() else False)
    return 0


def _readable() -> bool:
    import select

    return bool(select.select([0], [], [], 0)[0])


class Served(NamedTuple):
    """A server that a crowd is sent to."""

    pid: int
    address: bytes


class Times:
    """Of one server: pings in ms while the silent ones come and beside the slow ones, and what that takes."""

    def __init__(self) -> None:
        self.alone: list[float] = []
        self.coming: list[float] = []
        self.beside: list[float] = []
        self.cpu: list[float] = []


def ping_ms(address: bytes) -> float:
    began = time.perf_counter()
    while True:
        with contextlib.suppress(hook.Late):  # its queue is full: this counts
            sock = hook.dial(address, 30.0)
            break
    try:
        sock.sendall(PING)
        assert sock.recv(4096).startswith(b"memd1 j ")
    finally:
        sock.close()
    return (time.perf_counter() - began) * 1e3


def pings(address: bytes, times: list[float], is_over: Callable[[], bool]) -> None:
    """One ping after the other. While one waits others would have come: they count with what was left."""
    while not is_over():
        times.append(ping_ms(address))
        while times[-1] >= 2 * EVERY_MS:
            times.append(times[-1] - EVERY_MS)
        time.sleep(PAUSE_S)


def meet(served: Served, times: Times) -> None:
    """One crowd comes, drips and goes."""
    end = time.monotonic() + 1.0
    pings(served.address, times.alone, lambda: time.monotonic() > end)
    child = subprocess.Popen(
        [PYTHON, __file__, os.fsdecode(served.address)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None and child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    try:
        pings(served.address, times.coming, lambda: child.stdout.read(16) is not None)  # type: ignore[union-attr]
        settled = time.monotonic() + SETTLE_S
        pings(served.address, [], lambda: time.monotonic() > settled)
        began = time.monotonic()
        pings(served.address, times.beside, lambda: time.monotonic() > began + SECONDS)
        before, began = cpu_s([served.pid]), time.monotonic()
        time.sleep(CPU_S)  # without a ping: what the crowd alone takes
        times.cpu.append((cpu_s([served.pid]) - before) / (time.monotonic() - began) * 100)
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()


def held_kib(served: Served) -> float:
    """What one silent client takes, when many are held at once."""
    ping_ms(served.address)
    before = pss_mib([served.pid])
    socks = []
    try:
        for _ in range(HELD):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(served.address)
            socks.append(sock)
        ping_ms(served.address)
        return (pss_mib([served.pid]) - before) * 1024 / HELD
    finally:
        for sock in socks:
            sock.close()


@contextlib.contextmanager
def bare(base: Path) -> Iterator[Served]:
    address = os.fsencode(base / "bare")
    child = subprocess.Popen([PYTHON, "-c", BARE, os.fsdecode(address)])
    try:
        while True:
            with contextlib.suppress(OSError, hook.Unreachable):
                ping_ms(address)
                break
            time.sleep(0.02)
        yield Served(child.pid, address)
    finally:
        child.terminate()
        child.wait(20)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Every processor has twice to do."""
    eaters = [subprocess.Popen([PYTHON, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in eaters:
            one.kill()
            one.wait()


def found_socket(environment: dict[str, str]) -> bytes:
    code = "from memctl import hook; print(hook.find_socket().hex())"
    done = subprocess.run([PYTHON, "-c", code], env=environment, capture_output=True, check=True)
    return bytes.fromhex(done.stdout.decode())


def rows(ours: Times, floor: Times) -> list[Row]:
    return [
        Row("alone", ours.alone, floor.alone, "ms", 2.0),
        Row("while 10,000 silent ones come", ours.coming, floor.coming, "ms", 2.0),
        Row("while 10,000 silent ones come", ours.coming, floor.coming, "ms", 1.5, 0.99),
        Row("beside 1,000 slow ones", ours.beside, floor.beside, "ms", 2.0),
        Row("beside 1,000 slow ones", ours.beside, floor.beside, "ms", 1.5, 0.99),
        Row("processor for 1,000 slow ones", ours.cpu, floor.cpu, "%", 1.0),
    ]


def crowds(ours: Served, floor: Served) -> tuple[Times, Times]:
    """The same crowd for either, in turn."""
    times = (Times(), Times())
    for _ in range(ROUNDS):
        for served, taken in zip((ours, floor), times, strict=True):
            meet(served, taken)
    return times


def main() -> int:
    with sandbox() as (base, environment), daemon(environment) as child, bare(base) as floor:
        ours = Served(child.pid, found_socket(environment))
        silent = Row("a silent client (PSS)", [held_kib(ours)], [held_kib(floor)], "KiB", 0.25)
        time.sleep(SETTLE_S)
        times = crowds(ours, floor)
        both = times[0].coming + times[0].beside
        allowed = Row("both / the 50 ms allowed", both, [MAX_MS], "ms", 1.0, 0.99)
        missed = section("a ping beside a crowd / bare trio", [*rows(*times), allowed, silent])
        with busy():
            times = crowds(ours, floor)
        return missed + section("the same, every processor with two more to run", rows(*times))


if __name__ == "__main__":
    raise SystemExit(crowd(sys.argv[1]) if len(sys.argv) > 1 else min(main(), 1))
