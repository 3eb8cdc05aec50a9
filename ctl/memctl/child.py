"""A child on the caller's terminal, as if nobody stood between.

The child stays in this process group, with this process's descriptors, and with every signal as a shell would
have left it. What the terminal sends (Ctrl-C, Ctrl-\\, Ctrl-Z, a change of size) reaches it without us; this
process only sees to it that it survives:

    SIGINT, SIGQUIT      the terminal's: not ours to die of
    SIGTSTP and the like left alone: a group that is stopped stops us too, and goes on with us
    a child that stops   by itself, or by its own number: we stop as well, or its shell would wait for ever
    SIGTERM, SIGHUP      sent to a group the child has them already; sent to us alone they are meant for it,
                         so they are passed on if it is still there after `PASS_ON_S`
    SIGCHLD              wakes whoever waits here

What was ignored when this process began stays ignored, for the child too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

PASS_ON_S = 0.5
CONTINUES_S = 0.05  # between a stop and the continuation of a group that is told late

_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_MEANT_FOR_IT = (signal.SIGTERM, signal.SIGHUP)
_STOPS_OF_TERMINALS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class Terminal:
    """How the terminal was set before the child. A child that is killed may leave it as it used it; a shell
    puts it right after one of its own that was, but for the shell it is us that ended, and well."""

    def __init__(self) -> None:
        try:
            self._settings = termios.tcgetattr(0)
        except (termios.error, OSError, ValueError):
            self._settings = []

    def restore(self) -> None:
        """Nothing happens where there is no terminal, or somebody else has it in the foreground."""
        try:
            if self._settings and os.tcgetpgrp(0) == os.getpgrp():
                termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
        except (termios.error, OSError):
            pass


class Ended(BaseException):
    """Somebody ended this process before there was a child."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _raise_ended(number: int, _frame: FrameType | None) -> None:
    raise Ended(number)


@contextlib.contextmanager
def endable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Ended`, as Ctrl-C raises KeyboardInterrupt."""
    before = {}
    for number in _MEANT_FOR_IT:
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, _raise_ended)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Child:
    """One child and what is to be done while it runs. To be used in the `with` of `watching`."""

    def __init__(self, wake: int) -> None:
        self._wake = wake
        self._process: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._pass_on: dict[int, float] = {}
        self.was_interrupted = False

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    def start(
        self, executable: bytes, arguments: Sequence[bytes], cwd: bytes, environment: Mapping[bytes, bytes]
    ) -> None:
        """raises OSError"""
        self._process = subprocess.Popen(
            [executable, *arguments], env=environment, cwd=cwd, close_fds=False, restore_signals=True
        )

    def heed(self, number: int, _frame: FrameType | None) -> None:
        """A signal came for this process."""
        if number in _MEANT_FOR_IT:
            self._pass_on[number] = time.monotonic() + PASS_ON_S
        elif number != signal.SIGCHLD:
            self.was_interrupted = True

    def wait(self, others: Callable[[], Sequence[int]], serve: Callable[[], float | None]) -> int:
        """The child's exit status, negative for a signal.

        others  descriptors whose input wakes too
        serve   what else is to be done, called again and again; gives seconds until it must be called anew
        """
        while self._look() is None:
            left = serve()
            due = [at - time.monotonic() for at in self._pass_on.values()]
            left = min([*due, *([] if left is None else [left])], default=None)
            waiting = select.poll()
            for descriptor in (self._wake, *others()):
                waiting.register(descriptor, select.POLLIN)
            waiting.poll(None if left is None else max(0.0, left) * 1000)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
            self._hand_on()
        assert self._status is not None
        return self._status

    def _look(self) -> int | None:
        """What became of the child; None while it is there."""
        assert self._process is not None
        if self._status is not None:
            return self._status
        pid, word = os.waitpid(self._process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if pid == 0 or os.WIFCONTINUED(word):
            return None
        if os.WIFSTOPPED(word):
            self._stop_too(os.WSTOPSIG(word))
            return None
        self._status = self._process.returncode = os.waitstatus_to_exitcode(word)
        return self._status

    def _hand_on(self) -> None:
        for number, at in list(self._pass_on.items()):
            if time.monotonic() >= at:
                del self._pass_on[number]
                self._send(number)

    def _send(self, number: int) -> None:
        assert self._process is not None
        if self._process.returncode is None:  # not reaped: the number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._process.pid, number)

    def _stop_too(self, number: int) -> None:
        """The child stopped alone: give the terminal back to the shell, and go on together."""
        if self._has_continued() or not is_job():
            return
        os.kill(os.getpid(), number if number in _STOPS_OF_TERMINALS else signal.SIGSTOP)
        if not self._has_continued():
            self._send(signal.SIGCONT)

    def _has_continued(self) -> bool:
        """Whether the child is told to go on within a moment."""
        assert self._process is not None
        until = time.monotonic() + CONTINUES_S
        while time.monotonic() < until:
            facts = os.waitpid(self._process.pid, os.WNOHANG | os.WCONTINUED)
            if facts[0] and os.WIFCONTINUED(facts[1]):
                return True
            if facts[0]:
                self._status = self._process.returncode = os.waitstatus_to_exitcode(facts[1])
                return True
            select.select([], [], [], 0.005)
        return False


@contextlib.contextmanager
def watching() -> Iterator[Child]:
    """A child to be started and waited for, with the signals of this process as the module says."""
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    child = Child(wake)
    before = {}
    for number in (*_TERMINAL, *_MEANT_FOR_IT, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
            before[number] = signal.signal(number, child.heed)
    old = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    try:
        yield child
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wake)
        os.close(woken)


def is_job() -> bool:
    """Whether a shell with job control watches this process: it gets the terminal back when we stop."""
    try:
        parent = os.getppid()
        return os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != os.getpgrp()
    except OSError:
        return False
