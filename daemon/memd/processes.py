"""Whether a process is there, and since when: what leases and locks ask about their holders."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Literal

import psutil

Presence = Literal["alive", "gone", "unknown"]

MAX_PID = (1 << 31) - 1
MAX_ANCESTORS = 64
SHELLS = frozenset({"ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"})

# Linux's monotonic clock stands still while the machine sleeps, that of macOS does not.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def is_alive(pid: int) -> bool:
    """Whether a process of this number can still do anything, also one of another user.

    A stopped one can, one that waits to be reaped cannot: whoever started it may not ask for it for days.
    """
    if not 0 < pid <= MAX_PID:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not _is_ended(pid)


def started_at_ms(pid: int) -> int | None:
    """When it began, by the wall clock as it is set now, right to about 1 s; None when that is hidden."""
    try:
        return int(psutil.Process(pid).create_time() * 1000)
    except (psutil.Error, OSError, ValueError):
        return None


def start_of(pid: int) -> str:
    """The kernel's word for when a process began: with the number it names one process of this boot.

    No clock that somebody sets comes into it on Linux. Empty: there is no such process, or it is hidden.
    """
    facts = _stat(pid)
    if facts is not None:
        return facts[1]
    if sys.platform == "linux":
        return ""
    began = started_at_ms(pid)
    return "" if began is None else str(began)


def presence(pid: int, start: str) -> Presence:
    """Whether the very process of that number and start lives.

    A stopped one does, one that waits to be reaped does not. Unknown when the system will not say, or when it
    was never known when it began.
    """
    if not is_alive(pid):
        return "gone"
    facts = _stat(pid)
    now = facts[1] if facts is not None else start_of(pid)
    if not start or not now:
        return "unknown"
    return "alive" if now == start else "gone"


def parent_of(pid: int) -> int:
    """The process that started it; 0 when that is not known."""
    fields = _stat_fields(pid)
    if fields is not None:
        return int(fields[1])
    try:
        return int(psutil.Process(pid).ppid())
    except (psutil.Error, OSError, ValueError):
        return 0


def is_below(pid: int, ancestor: int) -> bool:
    """Whether a process is that one or was started below it, over at most `MAX_ANCESTORS` steps."""
    for _ in range(MAX_ANCESTORS):
        if pid == ancestor:
            return True
        if pid <= 1:
            return False
        pid = parent_of(pid)
    return False


def behind_shells(pid: int) -> int:
    """The process, or where it is a shell the nearest above it that is none: who had the shell run something.

    Many programs start a command through `sh -c`, and not every shell makes way for the command.
    """
    at = pid
    for _ in range(MAX_ANCESTORS):
        if at <= 1:
            break
        if _name(at) not in SHELLS:
            return at
        at = parent_of(at)
    return pid


def boot_id() -> str:
    """What tells one boot of this machine from the next; empty when the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return _boot_session() if sys.platform == "darwin" else ""


def boot_ms() -> int:
    """Milliseconds on a clock that nobody sets and that runs through a suspend."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def _is_ended(pid: int) -> bool:
    """Whether it is a zombie, or gone by now."""
    facts = _stat(pid)
    if facts is not None:
        return facts[0] in "ZX"
    if sys.platform == "linux":
        return False  # hidden from us, so somebody else's, and there
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except (psutil.Error, OSError):
        return False


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start of a process as the kernel's table has them; None where there is no such table."""
    fields = _stat_fields(pid)
    return None if fields is None else (fields[0], fields[19])


def _name(pid: int) -> str:
    """The name of its program, without a folder; empty when there is no such process, or it is hidden."""
    name = _told(f"/proc/{pid}/comm")
    if name is not None:
        return os.path.basename(name.decode("utf-8", "replace").strip())
    if sys.platform == "linux":
        return ""
    try:
        return str(psutil.Process(pid).name()).lstrip("-")
    except (psutil.Error, OSError, ValueError):
        return ""


def _stat_fields(pid: int) -> list[str] | None:
    """What stands behind the name in `/proc/PID/stat`, which may hold anything, also blanks and brackets."""
    text = _told(f"/proc/{pid}/stat")
    if text is None:
        return None
    fields = text[text.rfind(b")") + 1 :].decode("ascii", "replace").split()
    return fields if len(fields) >= 20 else None


def _told(path: str) -> bytes | None:
    """What one of the kernel's short files says. Hooks wait for this: a file object asks for far more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)


def _boot_session() -> str:
    """`kern.bootsessionuuid` of macOS."""
    libc = ctypes.CDLL(None)
    size = ctypes.c_size_t(64)
    buffer = ctypes.create_string_buffer(size.value)
    if libc.sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0):
        return ""
    return buffer.value.decode("ascii", "replace")
