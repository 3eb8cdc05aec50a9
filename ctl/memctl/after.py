"""Standard error behind what standard output was given before it, also when both go into one file."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, TextIO, cast


class After:
    """A stream in front of standard error: before anything is written to it, standard output is flushed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):  # it fails again where that is looked after
            sys.stdout.flush()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def arrange() -> None:
    """From now on."""
    if not isinstance(sys.stderr, After):
        sys.stderr = cast(TextIO, After(sys.stderr))
