"""What is said and asked on standard error. Nothing is asked where nobody can answer."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Sequence


def say(text: str, lead: str = "", keep: Sequence[str] = ()) -> None:
    """A paragraph on standard error, in lines that fit.

    keep  what must not be broken at its blanks: paths, so that they can be copied. Long words never are
    """
    try:
        width = os.get_terminal_size(2).columns
    except OSError:
        width = 80
    for whole in keep:
        text = text.replace(whole, whole.replace(" ", "\0"))
    lines = textwrap.wrap(
        text,
        max(width, 40) - 1,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    print("\n".join(lines).replace("\0", " "), file=sys.stderr)


def can_ask() -> bool:
    """Whether somebody sits at a terminal, on both ends."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed
        return False


def agreed(question: str, read: Callable[[], str | None] | None = None) -> bool:
    """Yes in so many words; anything else, and the end of the input, is no. raises KeyboardInterrupt

    read  how a line is read, where not as any other: None is the end of the input
    """
    line = _answer(f"{question} [y/N] ", read or _typed)
    return (line or "").strip().casefold() in ("y", "yes")


def yes(question: str, *, usual: bool) -> bool | None:
    """What was answered; `usual` is what Enter means. None: the input ended. raises KeyboardInterrupt"""
    while True:
        line = _answer(f"{question} [{'Y/n' if usual else 'y/N'}] ", _typed)
        if line is None:
            return None
        word = line.strip().casefold()
        if not word:
            return usual
        if word in ("y", "yes"):
            return True
        if word in ("n", "no"):
            return False


def _answer(prompt: str, read: Callable[[], str | None]) -> str | None:
    """The line that was typed; None: the input ended."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = read()
    if line is None:
        sys.stderr.write("\n")
    return line


def _typed() -> str | None:
    return sys.stdin.readline() or None
