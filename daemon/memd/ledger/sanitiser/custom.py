"""Patterns of the user's own.

They are written in the syntax of `re`, of which ASCII classes and line-wise `^` and `$` hold (flags ASCII
and MULTILINE). With google-re2 they run there, in linear time; what RE2 does not know, and everything
without google-re2, runs in `re` under two conditions: `vetting` must not object, and a text is read in
overlapping windows, so that its cost stays proportional to its length. A match longer than half a
window is then found in parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memd import errors
from memd.ledger.sanitiser.shape import Span
from memd.ledger.sanitiser.vetting import objection

CUSTOM = "custom"
FLAGS = re.ASCII | re.MULTILINE
WINDOW = 1024
STEP = 512
MAX_PATTERN = 2000
SET_MEMORY_BYTES = 64 << 20  # for each pattern, and for the set of them

_SURROGATE = re.compile("[\ud800-\udfff]")
_END_OF_TEXT = re.compile(r"(?<!\\)((?:\\\\)*)\\Z")


class BadEntry(errors.ConfigError):
    """One entry of a list in the configuration that cannot be used: `number`, from 0 on, of `key`."""

    def __init__(self, key: str, number: int, message: str, *, remedy: str | None = None) -> None:
        super().__init__(f"{key}[{number}] {message}", remedy=remedy)
        self.key = key
        self.number = number


class CustomPatterns:
    """raises BadEntry, naming the pattern and the position in it"""

    def __init__(self, patterns: Sequence[str], re2: Any | None) -> None:
        self._plain: list[re.Pattern[str]] = []
        self._linear: list[Any] = []
        self._set: Any | None = None
        options = _options(re2) if re2 is not None else None
        for number, pattern in enumerate(patterns):
            compiled = _compiled(number, pattern)
            linear = _in_re2(re2, pattern, options)
            if linear is not None:
                self._linear.append(linear)
                continue
            reason = objection(pattern, FLAGS)
            if reason is not None:
                raise BadEntry(
                    "extra_patterns",
                    number,
                    f"{pattern!r} may take too long on some texts: {reason}",
                    remedy="Write it with fewer repetitions, or install google-re2.",
                )
            self._plain.append(compiled)
        if self._linear:
            self._set = _set_of(re2, self._linear, options)

    def find(self, text: str) -> Iterator[Span]:
        for plain in self._plain:
            for start in range(0, max(1, len(text) - STEP), STEP):
                for match in plain.finditer(text, start, start + WINDOW):
                    if match.end() > match.start():
                        yield match.span()
        if not self._linear:
            return
        readable = _SURROGATE.sub("\ufffd", text)
        for number in self.named(readable):
            for match in self._linear[number].finditer(readable):
                if match.end() > match.start():
                    yield match.span()

    def named(self, readable: str) -> Sequence[int]:
        """The patterns in RE2 that may find something, by number."""
        return range(len(self._linear)) if self._set is None else self._set.Match(readable) or ()


def _set_of(re2: Any, patterns: Sequence[Any], options: Any) -> Any | None:
    """One look for all of them; None where they are too large together: then each looks for itself."""
    one = re2.Set.SearchSet(options)
    for pattern in patterns:
        one.Add(pattern.pattern)
    try:
        one.Compile()
    except re2.error:
        return None
    return one


def _compiled(number: int, pattern: str) -> re.Pattern[str]:
    if not pattern or len(pattern) > MAX_PATTERN:
        raise BadEntry("extra_patterns", number, f"is empty or longer than {MAX_PATTERN} characters")
    try:
        return re.compile(pattern, FLAGS)
    except (re.error, OverflowError, RecursionError) as reason:
        at = f" at position {reason.pos}" if isinstance(reason, re.error) and reason.pos is not None else ""
        what = reason.msg if isinstance(reason, re.error) else str(reason)
        raise BadEntry("extra_patterns", number, f"{pattern!r}: {what}{at}") from None


def _options(re2: Any) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = SET_MEMORY_BYTES
    return options


def _in_re2(re2: Any | None, pattern: str, options: Any) -> Any | None:
    """The pattern compiled for RE2; None where RE2 is missing or does not know its syntax."""
    if re2 is None:
        return None
    try:
        return re2.compile("(?m)" + _END_OF_TEXT.sub(r"\1\\z", pattern), options)
    except (re2.error, UnicodeEncodeError):
        return None
