"""Faults at any system call that `memd.disk` makes: a proxy for its `os` that counts, fails or ends it all.

A kill is an exception that nobody catches, and from then on every call raises it: a dead process has no
effect on the disk any more, only its handles are closed. Flushes are counted and not carried out, unless it
is asked for. Each fault that happened counts as a point that was tried (`support_points`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import support_points
from memctl import files
from memd import append, disk

WRITES = frozenset(
    {
        "mkdir",
        "symlink",
        "write",
        "fchmod",
        "utime",
        "replace",
        "rename",
        "link",
        "unlink",
        "fsync",
        "renameat2",
        "rmdir",
    }
)
READS = frozenset({"open", "read", "stat", "fstat", "listdir", "readlink", "access", "dup", "close"})


class Killed(BaseException):
    """The process is gone."""


class Faults:
    """What happens at which call. `calls` lists the calls that counted, in order.

    at          the number of the call, from 0; None: none of them
    persists    at all later ones too
    each        is told the number of every call that counts, before it is made
    is_flushing whether flushes are carried out
    is_short    whether every write takes only a part of what it is given
    """

    def __init__(
        self,
        at: int | None = None,
        happens: Callable[[], None] | None = None,
        *,
        only_writes: bool = False,
        persists: bool = False,
        each: Callable[[int], None] | None = None,
        is_flushing: bool = False,
        is_short: bool = False,
    ) -> None:
        self.calls: list[str] = []
        self._each = each
        self._is_flushing = is_flushing
        self._is_short = is_short
        self._at = at
        self._happens = happens
        self._only_writes = only_writes
        self._persists = persists
        self._dead = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name in WRITES or name in READS:
            return lambda *args, **kwargs: self._call(name, real, args, kwargs)
        return real

    def renameat2(self, *args: Any) -> None:
        self._call("renameat2", _renameat2, args, {})

    def _call(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name == "close":
            real(*args)  # whatever happens, the system takes the handle back
        elif self._dead:
            raise Killed
        if self._counts(name, args):
            self.calls.append(name)
            if self._each is not None:
                self._each(len(self.calls) - 1)
            if self._is_due(len(self.calls) - 1) and self._happens is not None:
                support_points.tried()
                self._happens()
        if name == "close" or (name == "fsync" and not self._is_flushing):
            return None
        if name == "write" and self._is_short and len(args[1]) > 1:
            support_points.tried()
            args = (args[0], args[1][: (len(args[1]) + 1) // 2])
        return real(*args, **named)

    def _is_due(self, number: int) -> bool:
        return self._at is not None and (number == self._at or (self._persists and number > self._at))

    def _counts(self, name: str, args: tuple[Any, ...]) -> bool:
        if self._dead:
            return False
        if not self._only_writes or name in WRITES:
            return True
        return name == "open" and bool(args[1] & os.O_CREAT)

    def kill(self) -> None:
        self._dead = True
        raise Killed


_renameat2 = disk._renameat2


@contextlib.contextmanager
def installed(faults: Faults) -> Iterator[Faults]:
    """Every system call of `memd.disk` and of `memd.append` goes through `faults`."""
    real_os, real_rename = disk.os, disk._renameat2
    disk.os, disk._renameat2 = faults, faults.renameat2  # type: ignore[assignment,misc]
    append.os = faults  # type: ignore[assignment]
    try:
        yield faults
    finally:
        disk.os, disk._renameat2 = real_os, real_rename  # type: ignore[misc]
        append.os = real_os  # type: ignore[misc]


@contextlib.contextmanager
def installed_in_memctl(faults: Faults) -> Iterator[Faults]:
    """Every system call of `memctl.files` goes through `faults`."""
    real = files.os
    files.os = faults  # type: ignore[assignment]
    try:
        yield faults
    finally:
        files.os = real  # type: ignore[misc]


def failing(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def killing(at: int) -> Faults:
    """A process that dies at a call that writes."""
    faults = Faults(at, only_writes=True)
    faults._happens = faults.kill
    return faults


def survives(work: Callable[[], object]) -> bool:
    """Whether `work` came to its end before it was killed."""
    try:
        work()
    except Killed:
        return False
    return True
