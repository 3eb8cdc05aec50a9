"""What a `.lock` says and whether it may be taken from its holder. Pure.

The content is `pid TAB milliseconds TAB random`; older tools write the pid alone, or nothing. A lock may be
reclaimed when it is older than 10 s and its holder is gone, and one that names no holder after 60 s.

Its age is the smallest that its file's time and its own milliseconds allow, since each may be wrong. One
that lies in the future says nothing; when both do, the time for which this process has seen the lock
unchanged counts. So neither a clock that was set nor a file from the future keeps a lock for ever.

A holder that began after the lock was written is another process that was given the same number. The two
times are compared only when the lock itself says when it was written, and only while the clock was not set:
a clock that jumps forward makes every process look younger than it is.

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

RECLAIM_MS = 10_000
UNREADABLE_MS = 60_000
MAX_PID = (1 << 31) - 1
SKEW_MS = 2_000  # two clocks that agree may differ by this much

Holder = Literal["alive", "dead", "unnamed"]

_pid = re.compile(rb"\s*(\d+)")
_since = re.compile(rb"[^\t]*\t(\d{1,15})(?:\t|\s*$)")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that was looked at."""

    payload: bytes
    ino: int
    mtime_ms: int
    watched_ms: int = 0  # for how long this process has seen it just so


def payload(pid: int, now_ms: int, nonce: str) -> bytes:
    return b"%d\t%d\t%s" % (pid, now_ms, nonce.encode("ascii"))


def pid_of(content: bytes) -> int | None:
    """The process that a lock names; None when it names none that there could be."""
    found = _pid.match(content)
    pid = int(found[1]) if found else 0
    return pid if 0 < pid <= MAX_PID else None


def since_ms(content: bytes) -> int | None:
    """When a lock was written by its own account; None when it does not say."""
    found = _since.match(content)
    return int(found[1]) if found and pid_of(content) is not None else None


def is_reused(written_ms: int | None, started_ms: int | None, is_clock_steady: bool) -> bool:
    """Whether the process of that number began after the lock was written."""
    if written_ms is None or started_ms is None or not is_clock_steady:
        return False
    return started_ms > written_ms + SKEW_MS


def age_ms(seen: Seen, now_ms: int) -> int:
    """How old a lock is at least."""
    times = [seen.mtime_ms]
    written = since_ms(seen.payload)
    if written is not None:
        times.append(written)
    ages = [max(0, now_ms - at) for at in times if now_ms - at >= -SKEW_MS]
    return min(ages) if ages else seen.watched_ms


def may_reclaim(seen: Seen, now_ms: int, holder: Holder) -> bool:
    if holder == "alive":
        return False
    return age_ms(seen, now_ms) > (RECLAIM_MS if holder == "dead" else UNREADABLE_MS)
