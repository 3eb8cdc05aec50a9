"""Which recorded directories are not there any more. Blocks: it belongs in a thread."""

from __future__ import annotations

import os
from collections.abc import Iterable

_NOT_AS_IT_WAS = ("\ufffd", "[REDACTED")  # a path that was recorded so cannot be looked at


def gone(cwds: Iterable[str]) -> set[str]:
    """Those that lead nowhere. What is no absolute path, or cannot be looked at, is not said to be gone."""
    return {cwd for cwd in set(cwds) if cwd.startswith("/") and _is_gone(cwd)}


def _is_gone(cwd: str) -> bool:
    if any(mark in cwd for mark in _NOT_AS_IT_WAS):
        return False
    try:
        os.stat(cwd)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return not os.path.isdir(cwd)
