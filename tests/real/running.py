"""A program in a closed world, seen from the test: what it said, whether it lives, its end by pid."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

_END_S = 10.0


class RigError(AssertionError):
    """The rig itself, not the promise under test, went wrong."""


@dataclass(frozen=True)
class Finished:
    """A program that has ended: its status (128 + the signal's number when killed) and what it said."""

    argv: tuple[str, ...]
    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nexit {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Running:
    """A program at work in the world."""

    def __init__(self, argv: Sequence[str], process: subprocess.Popen[str], pid_inside: int) -> None:
        self.argv = tuple(argv)
        self.pid_inside = pid_inside  # 0: it could not be started
        self._process = process

    @property
    def pid(self) -> int:
        """The program's own pid, as seen from outside; raises RigError when it has ended."""
        try:
            children = psutil.Process(self._process.pid).children()
        except psutil.NoSuchProcess:
            children = []
        if not children or not self.is_alive:
            raise RigError(f"{' '.join(self.argv)} has ended already")
        return int(children[0].pid)

    def send(self, text: str) -> None:
        """Write to its input, where it was started with a pipe for one."""
        if self._process.stdin is None:
            raise RigError(f"{' '.join(self.argv)} has no input")
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RigError(f"{' '.join(self.argv)} has ended: {self.finish()}") from None

    def receive(self, timeout_s: float) -> bytes:
        """What it says next, as soon as it says anything; empty at its end or when the time is up."""
        if self._process.stdout is None:
            raise RigError(f"{' '.join(self.argv)} has no output of its own")
        fd = self._process.stdout.fileno()
        return os.read(fd, 65536) if select.select([fd], [], [], max(0.0, timeout_s))[0] else b""

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def _kill_all(self) -> None:
        """The program and what it started: a child that holds the pipe would keep us waiting."""
        try:
            for each in psutil.Process(self._process.pid).children(recursive=True):
                each.kill()
        except psutil.NoSuchProcess:
            pass

    def finish(self, timeout_s: float = 60, *, stdin: str = "") -> Finished:
        """What it said and how it ended, once it has read `stdin`.

        raises  RigError when it still runs after `timeout_s` seconds; it is killed then
        """
        try:
            out, err = self._process.communicate(stdin or None, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._kill_all()
            out, err = self._process.communicate(timeout=_END_S)
            late = f"still running after {timeout_s:.0f} s: {' '.join(self.argv)}"
            raise RigError(f"{late}\n{out}\n{err}") from None
        status = self._process.returncode
        return Finished(self.argv, status if status >= 0 else 128 - status, out, err)
