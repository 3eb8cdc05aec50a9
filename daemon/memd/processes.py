"""Whether a process is there, and since when: what leases and locks ask about their holders."""

from __future__ import annotations

import os

import psutil

MAX_PID = (1 << 31) - 1


def is_alive(pid: int) -> bool:
    """Whether a process has this number, also one of another user, which may not be signalled."""
    if not 0 < pid <= MAX_PID:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def started_at_ms(pid: int) -> int | None:
    """When it began, by the wall clock as it is set now, right to about 1 s; None when that is hidden."""
    try:
        return int(psutil.Process(pid).create_time() * 1000)
    except (psutil.Error, OSError, ValueError):
        return None
