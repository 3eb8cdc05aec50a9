"""When what could not be read for a moment is tried again. Pure: the caller says what time it is.

Nothing else would bring it back: no look tells that a file can be read again, and nobody hints at it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

PAUSES_S: Final = (0.5, 2.0, 10.0, 60.0, 300.0)
"""Before the first try, the second and so on; the last one repeats."""

MAX_PATHS: Final = 1000
"""Of more than these the oldest wait for the next look at everything."""


class Retries:
    """Paths of sources and folders, each with the number of its tries."""

    def __init__(self) -> None:
        self._tries: dict[bytes, int] = {}
        self._at: dict[bytes, float] = {}

    @property
    def due(self) -> float:
        """When the next one is to be tried."""
        return min(self._at.values(), default=math.inf)

    def note(self, path: bytes, now: float) -> None:
        """It could not be read just now."""
        tries = self._tries.pop(path, 0)
        self._tries[path] = tries + 1
        self._at[path] = now + PAUSES_S[min(tries, len(PAUSES_S) - 1)]
        if len(self._tries) > MAX_PATHS:
            self._drop(next(iter(self._tries)))

    def settle(self, paths: Iterable[bytes]) -> None:
        """These were read."""
        if self._tries:
            for path in paths:
                self._drop(path)

    def take(self, now: float) -> list[bytes]:
        """Those to be tried now; each is noted again, or read."""
        taken = [path for path, at in self._at.items() if at <= now]
        for path in taken:
            del self._at[path]
        return taken

    def _drop(self, path: bytes) -> None:
        self._tries.pop(path, None)
        self._at.pop(path, None)
