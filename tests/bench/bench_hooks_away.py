"""What an agent pays for a hook while the daemon is absent, hung, slow, dying, babbling or full.

A hook is the installed command with 2 KB on stdin, from its start to its end, beside the same interpreter
that does nothing, in turn. Every kind of event that harnesses have is tried against every fault: answers that
matter are waited for 2 s, others 250 ms; some hooks keep their stdin; what is printed differs. A hook that
ends with anything but 0, or prints anything but its harmless answer, stops the run. 400 notes of hooks are
there before.

The longest may take 300 ms, with a wait of 2 s 2,050 ms, and what the machine itself was late: as much as the
longest of the processes that do nothing took above their median. Beyond such a process half of them cost no
more than the wait and a tenth of it. Ten of those that wait for 2 s do so at
once, a tenth of a second apart, since they only sleep.

    MEMD_BENCH_FAULTS  hooks for each fault and kind of event, 100
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench_hooks import INTERPRETER, PASS
from measure import PYTHON, Row, at, in_turn, sandbox, section

from memctl import hook
from memd.harness.hooking import HookEvent, command_words
from memd.harness.registry import adapters

ROUNDS = int(os.environ.get("MEMD_BENCH_FAULTS", "100"))
NOTES = 400
AT_ONCE = 10
APART_S = 0.1
MOST_MS = {False: 300.0, True: 2050.0}  # by whether it waits for 2 s
STDIN = b'{"session_id":"7c1f2a0e","x":"' + b"y" * 2000 + b'"}'


class Kind(NamedTuple):
    """One kind of event: whoever has it, and what its command says."""

    harness: str
    event: HookEvent

    @property
    def title(self) -> str:
        if self.event.matters:
            return "a hook that is waited for"
        return "a hook that keeps its stdin" if self.event.keeps else "a hook"


def kinds() -> list[Kind]:
    """One event of each kind that there is."""
    found: dict[tuple[str, bool, bool], Kind] = {}
    for name, adapter in adapters().items():
        for event in adapter.hooks.events if adapter.hooks is not None else ():
            found.setdefault((event.harmless, event.matters, event.keeps), Kind(name, event))
    return list(found.values())


# ------------------------------------------------------------------------- daemons that are none


def _hang(peer: socket.socket) -> None:
    while peer.recv(65536):
        pass


def _babble(peer: socket.socket) -> None:
    peer.recv(65536)
    peer.sendall(b"\xff\0HTTP/1.1 200 OK\r\n" + b"x" * 4096)


def _die(peer: socket.socket) -> None:
    peer.recv(65536)
    peer.sendall(b"memd1 t 9000\n0\nhalf of what")


def _drip(peer: socket.socket) -> None:
    peer.sendall(b"memd1 t 90000\n0\n")
    while True:
        peer.sendall(b"x")
        time.sleep(0.02)


@contextlib.contextmanager
def answering(path: Path, talk: Callable[[socket.socket], None]) -> Iterator[None]:
    """A socket whose every peer is talked to like that, and dropped at the end of the talk."""

    def converse(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            talk(peer)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = listener.accept()[0]
                threading.Thread(target=converse, args=(peer,), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen(64)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def full(path: Path) -> Iterator[None]:
    """A socket that nobody accepts from, with as many who wait as it takes."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(os.fspath(path))
        listener.listen(4)
        with contextlib.suppress(BlockingIOError):
            while True:
                peer = waiting.enter_context(socket.socket(socket.AF_UNIX))
                peer.setblocking(False)
                peer.connect(os.fspath(path))
        yield


@contextlib.contextmanager
def dead(path: Path) -> Iterator[None]:
    """The socket of a daemon that was killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
    yield


FAULTS: dict[str, tuple[Callable[[Path], contextlib.AbstractContextManager[None]], bool]] = {
    "no socket": (lambda _path: contextlib.nullcontext(), False),
    "a dead socket": (dead, False),
    "a hung daemon": (lambda path: answering(path, _hang), True),
    "a full backlog": (full, True),
    "a slow daemon": (lambda path: answering(path, _drip), True),
    "killed in its answer": (lambda path: answering(path, _die), False),
    "garbage": (lambda path: answering(path, _babble), False),
}
"""How the socket is made, and whether a hook waits as long as it may."""


# ---------------------------------------------------------------------------------- measuring


def call_ms(argv: Sequence[str], environment: dict[str, str], expected: bytes) -> float:
    """Milliseconds of one process; ends the run when it did or said anything else."""
    began = time.perf_counter()
    done = subprocess.run(argv, input=STDIN, capture_output=True, env=environment, check=False)
    took = (time.perf_counter() - began) * 1e3
    if (done.returncode, done.stdout, done.stderr) != (0, expected, b""):
        raise SystemExit(f"{argv} ended with {done.returncode}, {done.stdout!r}, {done.stderr[:200]!r}")
    return took


def fresh_notes(base: Path) -> None:
    """The folder of notes as it is after a day without a daemon."""
    folder = base / "home" / ".local" / "state" / "memd" / "spool"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(NOTES):
        (folder / f"{number}-1").write_bytes(hook.NOTE + b"\0claude\0Stop\0/\0\x001\x001\0")


def samples(kind: Kind, hook_file: str, environment: dict[str, str], is_slow: bool) -> list[list[float]]:
    """Of the hook, and of a process that does nothing."""
    argv = [INTERPRETER, "-I", "-S", hook_file, *command_words(kind.harness, kind.event)]

    def ours() -> float:
        return call_ms(argv, environment, kind.event.harmless.encode())

    def floor() -> float:
        return call_ms(PASS, environment, b"")

    if not (is_slow and kind.event.matters):
        return in_turn(ROUNDS, ours, floor)

    def later(number: int) -> tuple[float, float]:
        if number < AT_ONCE:
            time.sleep(number * APART_S)
        return ours(), floor()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = list(pool.map(later, range(ROUNDS)))
    return [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]


def rows(fault: str) -> list[Row]:
    """Of one fault; kinds of events that cost the same are one."""
    make, is_slow = FAULTS[fault]
    beside: dict[str, list[list[float]]] = {}
    most: dict[str, float] = {}
    with sandbox() as (base, environment):
        place = "from memctl.hooks import files as f; f.place(); print(f.hook_file().decode())"
        done = subprocess.run([PYTHON, "-c", place], env=environment, capture_output=True, check=True)
        folder = base / "run" / "memd"
        folder.mkdir(mode=0o700)
        with make(folder / "memd.sock"):
            for kind in kinds():
                fresh_notes(base)
                made = samples(kind, done.stdout.decode().strip(), environment, is_slow)
                for held, more in zip(beside.setdefault(kind.title, [[], []]), made, strict=True):
                    held += more
                most[kind.title] = MOST_MS[is_slow and kind.event.matters]
    found = []
    for title, (ours, floor) in beside.items():
        late = max(floor) - at(floor, 0.5)
        found += [
            Row(f"{title} / pass (for scale)", ours, floor, "ms", 1e6),
            Row(f"{title} / pass (for scale)", ours, floor, "ms", 1e6, 0.95),
            Row(f"{title}, the longest / {most[title]:.0f} ms", ours, [most[title] + late], "ms", 1.0, 1.0),
        ]
        if is_slow:  # what the wait costs, whatever a process costs on this machine just now
            beyond = [one - other for one, other in zip(ours, floor, strict=True)]
            wait_ms = 1e3 * (hook.WAIT_S if most[title] == MOST_MS[True] else hook.HOOK_S)
            found.append(
                Row(f"{title}, beyond a pass / {wait_ms:.0f} ms", beyond, [wait_ms * 1.1], "ms", 1.0)
            )
    return found


def main() -> int:
    if not sys.platform.startswith("linux"):
        print("  left out: another system counts its backlog otherwise")
        return 0
    return sum(section(f"{ROUNDS} hooks of each kind, {fault}", rows(fault)) for fault in FAULTS)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
