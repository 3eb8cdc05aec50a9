"""Time as the shared folder needs it: three clocks, the local date, and waiting. Tests give another one."""

from __future__ import annotations

import datetime
import time

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The real one."""

    def now_ms(self) -> int:
        """The wall clock, which people and other machines set."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """A clock that is never set and goes on through a suspend."""
        return time.clock_gettime_ns(STEADY) // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def stamp(self) -> str:
        """The present as the index writes it: local time with its offset, to the second."""
        now = datetime.datetime.fromtimestamp(self.now_ms() / 1000).astimezone()
        return now.replace(microsecond=0).isoformat()
