"""A page for people: lines that fit, ages, counts, colours or none. Pure."""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Callable

NARROWEST = 20


def filled(text: str, room: int) -> list[str]:
    """`text` broken at spaces into lines of at most `room` characters; a longer word stays whole, so that a
    path can be copied."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= max(room, NARROWEST):
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def wrapped(text: str, width: int, lead: str = "", paint: Callable[[str], str] = str) -> list[str]:
    """The filled lines, `lead` before the first, as many blanks before the others."""
    blank = " " * len(lead)
    return [
        (blank if number else lead) + paint(line)
        for number, line in enumerate(filled(text, width - len(lead)))
    ]


def cut(text: str, width: int) -> str:
    """One line of at most `width` characters; what is cut off is shown by an ellipsis."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: max(width, 1) - 1] + "…"


def padded(text: str, width: int) -> str:
    """The text with blanks up to `width` columns of a terminal; signs of East Asia take two."""
    taken = sum(
        0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )
    return text + " " * max(width - taken, 0)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def span(ms: int) -> str:
    """A length of time in words, rounded down: minutes, hours, days, months of 30 days."""
    seconds = max(ms, 0) // 1000
    for size, noun in ((30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return count(seconds // size, noun)
    return "less than a minute"


def left(ms: int) -> str:
    """How much time there still is, in words: the nearest count, in a unit of which there are several.

    A moment after seven days were given there are seven days left, and of one and a half 36 hours.
    """
    seconds = max(ms, 0) / 1000
    for size, least, noun in ((86400, 3, "day"), (3600, 3, "hour"), (60, 1, "minute")):
        if round(seconds / size) >= least:
            return count(round(seconds / size), noun)
    return "less than a minute"


def age(then_ms: int, now_ms: int) -> str:
    """How long ago, in words."""
    return f"{span(now_ms - then_ms)} ago" if now_ms - then_ms >= 60_000 else "just now"


def utc(at_ms: int) -> str:
    """RFC 3339, to the second."""
    try:
        moment = datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


class Ink:
    """ANSI colours, or nothing."""

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_on else text

    def bold(self, text: str) -> str:
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        return self._paint("2", text)

    def green(self, text: str) -> str:
        return self._paint("32", text)

    def yellow(self, text: str) -> str:
        return self._paint("33", text)

    def red(self, text: str) -> str:
        return self._paint("31", text)
