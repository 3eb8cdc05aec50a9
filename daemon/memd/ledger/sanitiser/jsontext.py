"""JSON documents that stay JSON documents: strings are read, scrubbed and written back in their place.

The text is never parsed as a whole, so a document that is cut off, nested deeply or not quite JSON is
treated like any other; what is not replaced keeps its bytes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable

from memd.ledger.sanitiser.shape import Span

MAX_NESTED = 4  # documents in strings of documents

# The end of the text closes an open string, else each quote in it would be tried again
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
_OPENING = re.compile(r"\s*[\[{\"]")


def is_document(text: str) -> bool:
    """Whether `text` begins as a JSON object, array or string does."""
    return _OPENING.match(text) is not None


def scrub_strings(text: str, scrub: Callable[[str], str], depth: int = 0) -> str:
    """`text` with every string literal read, scrubbed, and written anew where that changed it."""

    def rewritten(match: re.Match[str]) -> str:
        literal = match.group()
        if len(literal) < 8:
            return literal
        try:
            value = json.loads(literal, strict=False)
        except ValueError:  # cut off, or not JSON's idea of an escape
            return literal
        if depth < MAX_NESTED and "\\" in literal and is_document(value):
            scrubbed = scrub_strings(value, scrub, depth + 1)
        else:
            scrubbed = scrub(value)
        return literal if scrubbed == value else json.dumps(scrubbed, ensure_ascii=literal.isascii())

    return _STRING.sub(rewritten, text)


def _escape_at(text: str, at: int) -> Span | None:
    """The escape in whose middle `at` lies."""
    for start in range(at - 1, max(-1, at - 6), -1):
        if text[start] != "\\":
            continue
        slashes = len(text[max(0, start - 64) : start]) - len(text[max(0, start - 64) : start].rstrip("\\"))
        end = start + (6 if text[start + 1 : start + 2] == "u" else 2)
        if slashes % 2 == 0:
            return (start, end) if end > at else None
    return None


def whole_escapes(text: str, start: int, end: int) -> Span:
    """The span grown to the ends of the escapes that it cuts in two."""
    first, last = _escape_at(text, start), _escape_at(text, end)
    return (first[0] if first else start), (min(last[1], len(text)) if last else end)


def string_spans(text: str) -> list[Span]:
    return [match.span() for match in _STRING.finditer(text)]


def is_inside(spans: list[Span], at: int) -> bool:
    """Whether `at` lies between the quotes of one of `spans`, which are in order."""
    index = bisect_right(spans, (at, -1)) - 1
    return index >= 0 and spans[index][0] < at < spans[index][1]
