"""When each hook last fired, for status: remembered over restarts, written seldom."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import structlog

from memd import disk
from memd.errors import DiskError

MAX_FILE_BYTES = 1 << 16

log = structlog.get_logger()


class HookLog:
    """Only harnesses and events that memd knows are noted, so it stays small.

    path     where it is kept
    wall_ms  the clock for people
    """

    def __init__(self, path: bytes, wall_ms: Callable[[], int]) -> None:
        self._path = path
        self._wall_ms = wall_ms
        self._fired = _load(path)
        self._is_saved = True
        self._trouble = ""

    def note(self, harness: str, event: str, at_ms: int = 0) -> None:
        """It fired, now or then."""
        known = self._fired.setdefault(harness, {})
        known[event] = max(known.get(event, 0), min(at_ms, self._wall_ms()) if at_ms else self._wall_ms())
        self._is_saved = False

    def fired(self) -> dict[str, dict[str, int]]:
        """Harness -> event -> when it last fired, in milliseconds of the wall clock."""
        return {harness: dict(events) for harness, events in sorted(self._fired.items())}

    def save(self) -> None:
        """Write down what is new. A disk that refuses costs only what status tells after the next start, and
        the next save tries again; the log hears of it once."""
        if self._is_saved:
            return
        self._is_saved = True
        try:
            disk.replace_file(self._path, msgspec.json.encode(self._fired))
            self._trouble = ""
        except DiskError as reason:
            self._is_saved = False
            if str(reason) != self._trouble:
                log.info("hooks.unsaved", reason=str(reason))
            self._trouble = str(reason)


def _load(path: bytes) -> dict[str, dict[str, int]]:
    try:
        text = disk.read_file(path, MAX_FILE_BYTES)
        return msgspec.json.decode(text, type=dict[str, dict[str, int]]) if text else {}
    except (DiskError, msgspec.MsgspecError, UnicodeError):
        return {}
