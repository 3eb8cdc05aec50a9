"""What one pass over a text has found, and the text without it. Linear, all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memd.ledger.sanitiser.custom import CUSTOM
from memd.ledger.sanitiser.table import SHAPES, TYPES

# Only types that exist: a hostile text cannot hide a secret in a replacement of its own making
_MARKER = re.compile(r"\[REDACTED(?::(?:" + "|".join(map(re.escape, TYPES)) + r"))?\]")


@dataclass(frozen=True, slots=True)
class Mark:
    """One stretch that a scrub replaces: `[start, end)` in characters, and what it is."""

    start: int
    end: int
    type: str


def replacement(type: str) -> str:
    return f"[REDACTED:{type}]"


def merged(found: list[tuple[int, int, int]]) -> list[Mark]:
    """Spans with their ranks, in any order, as disjoint marks: what overlaps is one, of the earliest row."""
    joined: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(found):
        if joined and start < joined[-1][1]:
            before, last, other = joined[-1]
            joined[-1] = (before, max(last, end), min(other, rank))
        else:
            joined.append((start, end, rank))
    return [
        Mark(start, end, SHAPES[rank].type if rank < len(SHAPES) else CUSTOM) for start, end, rank in joined
    ]


def outside_replacements(text: str, marks: list[Mark]) -> list[Mark]:
    """The parts of `marks` that are not replacements already.

    What is left beside a replacement counts only with a letter or digit in it: an ellipsis after one, or the
    signs between two, are no secret.
    """
    if "[REDACTED" not in text:
        return marks
    walls = [match.span() for match in _MARKER.finditer(text)]
    kept: list[Mark] = []
    index = 0
    for mark in marks:
        parts: list[Mark] = []
        at = mark.start
        while index < len(walls) and walls[index][1] <= at:
            index += 1
        while index < len(walls) and walls[index][0] < mark.end:
            start, end = walls[index]
            if start > at:
                parts.append(Mark(at, start, mark.type))
            at = max(at, end)
            if end > mark.end:  # the next mark may begin in the same one
                break
            index += 1
        if at < mark.end:
            parts.append(Mark(at, mark.end, mark.type))
        if parts == [mark]:
            kept.append(mark)
        else:
            kept += (part for part in parts if any(map(str.isalnum, text[part.start : part.end])))
    return kept


def _never(_mark: Mark) -> bool:
    return False


def replaced(text: str, marks: Sequence[Mark], is_quoted: Callable[[Mark], bool] = _never) -> str:
    """`text` with a replacement for each mark, in quotes where `is_quoted` says so."""
    pieces: list[str] = []
    done = 0
    for mark in marks:
        new = replacement(mark.type)
        pieces += (text[done : mark.start], f'"{new}"' if is_quoted(mark) else new)
        done = mark.end
    pieces.append(text[done:])
    return "".join(pieces)


def replaced_in_pieces(pieces: Sequence[str], marks: Sequence[Mark]) -> list[str]:
    """The pieces of one text, each with replacements for what it has of the marks on the whole."""
    written: list[str] = []
    offset = index = 0
    for piece in pieces:
        end = offset + len(piece)
        own: list[Mark] = []
        while index < len(marks) and marks[index].start < end:
            mark = marks[index]
            if offset < end:
                own.append(Mark(max(mark.start, offset) - offset, min(mark.end, end) - offset, mark.type))
            if mark.end > end:
                break
            index += 1
        written.append(replaced(piece, own))
        offset = end
    return written
