"""A page for people: lines that fit, ages, counts, colours or none. Pure."""

from __future__ import annotations

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


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def age(then_ms: int, now_ms: int) -> str:
    """How long ago, in words: `just now` below a minute, then minutes, hours, days, months of 30 days."""
    seconds = max(now_ms - then_ms, 0) // 1000
    for size, noun in ((30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{count(seconds // size, noun)} ago"
    return "just now"


def until(then_ms: int, now_ms: int) -> str:
    """How long it still takes, in words."""
    seconds = max(then_ms - now_ms, 0) // 1000
    for size, noun in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"in {count(seconds // size, noun)}"
    return "within a minute"


class Ink:
    """ANSI colours, or nothing."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color else text

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
