"""How a file looks from outside: two looks that are alike mean that nobody changed it in between."""

from __future__ import annotations

import os

Facts = tuple[int, int, int, int]


def facts(path: bytes) -> Facts | None:
    """Of what a path leads to; None: nothing there, or it cannot be seen."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
