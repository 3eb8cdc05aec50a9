"""A second reading of a text in which a secret's own characters are escaped: `\\u0067hp_...`, `ghp%5F...`.

Rows know the escapes that stand round secrets. This is for the rest: every printable ASCII character that
is written as an escape is read, and a span found in the reading becomes the span it was read from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from memd.ledger.sanitiser.shape import Shape

_ESCAPE = re.compile(r"\\{1,8}(?:u00[2-7][0-9A-Fa-f]|/)|(?:%(?:25){0,4}[2-7][0-9A-Fa-f])", re.ASCII)

_GATE = r"\\u00[2-7][0-9A-Fa-f]|\\/|%(?:25)*[2-7][0-9A-Fa-f]"

# No row that finds: the gate's word that a second reading is due
ESCAPED = Shape("escaped", lambda text: iter(()), _GATE, ("\\u00", "\\/", "%"), "escaped", "")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text with its escapes read, and the way back.

    The reading is a row of stretches: `starts` are their offsets in it, `origins` the same places in the
    original (one more than starts: its length), `is_escape` says which of them are one escape.
    """

    text: str
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    is_escape: tuple[bool, ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that reads as `[start, end)`, in whole escapes."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        begin = self.origins[first] + (0 if self.is_escape[first] else start - self.starts[first])
        if self.is_escape[last]:
            return begin, self.origins[last + 1]
        return begin, self.origins[last] + end - self.starts[last]


def _character(escape: str) -> str:
    if escape[0] == "%":
        return chr(int(escape[-2:], 16))
    return chr(int(escape[-2:], 16)) if "u00" in escape else escape[-1]


def read_escapes(text: str) -> Reading | None:
    """None when nothing is escaped in `text`."""
    pieces: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    is_escape: list[bool] = []
    length = done = 0
    for match in _ESCAPE.finditer(text):
        for piece, origin, escape in (
            (text[done : match.start()], done, False),
            (_character(match.group()), match.start(), True),
        ):
            if piece:
                pieces.append(piece)
                starts.append(length)
                origins.append(origin)
                is_escape.append(escape)
                length += len(piece)
        done = match.end()
    if not pieces:
        return None
    pieces.append(text[done:])
    starts.append(length)
    origins += [done, len(text)]
    is_escape.append(False)
    return Reading("".join(pieces), tuple(starts), tuple(origins), tuple(is_escape))
