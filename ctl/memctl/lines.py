"""Lines for people: on a terminal they end at words, elsewhere each is one line that programs can take."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from typing import IO

NARROWEST = 40


def filled(text: str, stream: IO[str], hang: str) -> list[str]:
    """A text as it goes to that stream; what follows its first line is moved in by `hang`.

    A long word, which is mostly a path, is never cut; a command in backticks, which is to be copied, is
    broken only when it alone is longer than a line.
    """
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        width = 0
    if not width or len(text) < width:
        return [text]
    width = max(width - 1, NARROWEST)

    def whole(command: re.Match[str]) -> str:
        return command[0].replace(" ", "\0") if len(hang + command[0]) <= width else command[0]

    lines = textwrap.wrap(
        re.sub("`[^`]+`", whole, text),
        width,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def say(text: str, hang: str = "  ") -> None:
    """On standard output, on lines of its own."""
    print("\n".join(filled(text, sys.stdout, hang)))


def remark(text: str, hang: str = "  ") -> None:
    """On standard error, on lines of its own."""
    print("\n".join(filled(text, sys.stderr, hang)), file=sys.stderr)
