"""Lines for people: on a terminal they end at words, elsewhere each is one line that programs can take."""

from __future__ import annotations

import os
import textwrap
from typing import IO

NARROWEST = 40


def filled(text: str, stream: IO[str], hang: str) -> list[str]:
    """A text as it goes to that stream; what follows its first line is moved in by `hang`.

    A long word, which is mostly a path, is never cut.
    """
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        width = 0
    if not width or len(text) < width:
        return [text]
    return textwrap.wrap(
        text,
        max(width - 1, NARROWEST),
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
