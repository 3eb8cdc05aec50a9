"""`Sanitiser`: texts in, the same texts out with every secret replaced by `[REDACTED:<type>]`.

A pass lets the gate name the rows a text needs, collects their spans over the unchanged text, joins
spans that overlap, and replaces them. Passes are repeated until nothing is found, so the result is one
that a further scrub leaves alone; a text that does not come to rest (only patterns of the user's own can
do that) is replaced as a whole. What already stands as a replacement is never touched.

Pure: no clock, no files, no state but what the constructor built. One instance serves all threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd import errors
from memd.ledger.sanitiser import context, gates, models, named, pem, services
from memd.ledger.sanitiser.clouds import SHAPES as CLOUDS
from memd.ledger.sanitiser.custom import CUSTOM, CustomPatterns
from memd.ledger.sanitiser.escapes import ESCAPED, read_escapes
from memd.ledger.sanitiser.shape import Shape

# The order is the order of rank: where spans overlap, the replacement names the earliest row
SHAPES: tuple[Shape, ...] = (
    *pem.SHAPES,
    *models.SHAPES,
    *CLOUDS,
    *services.SHAPES,
    *context.SHAPES,
    *named.SHAPES,
)

TYPES: tuple[str, ...] = tuple(dict.fromkeys((*(shape.type for shape in SHAPES), CUSTOM)))

MAX_PASSES = 6


@dataclass(frozen=True, slots=True)
class Mark:
    """One stretch that a scrub replaces: `[start, end)` in characters, and what it is."""

    start: int
    end: int
    type: str


# Only types that exist: a hostile text cannot hide a secret in a made-up replacement
_MARKER = re.compile(r"\[REDACTED(?::(?:" + "|".join(map(re.escape, TYPES)) + r"))?\]")


def replacement(type: str) -> str:
    return f"[REDACTED:{type}]"


class Sanitiser:
    """Scrubs texts.

    extra_patterns  `re` patterns of the user's own, replaced as `[REDACTED:custom]`; see `custom`
    allowlist       a match that contains one of these is left alone
    gate            auto takes google-re2 where it is installed; the result is the same with all three
    raises          errors.ConfigError for a pattern that is wrong or an empty allowlist entry, and for
                    gate="re2" without google-re2
    """

    def __init__(
        self,
        extra_patterns: Sequence[str] = (),
        allowlist: Sequence[str] = (),
        gate: gates.Choice = "auto",
    ) -> None:
        re2 = None if gate == "stdlib" else gates.load_re2()
        if gate == "re2" and re2 is None:
            raise errors.ConfigError(
                "the sanitiser's gate is set to re2, and google-re2 is not installed",
                remedy="Install google-re2, or set the gate to auto.",
            )
        if not all(allowlist):
            raise errors.ConfigError("allowlist has an empty entry, which every secret would contain")
        rows = (*SHAPES, ESCAPED)
        self._gate: gates.Gate = gates.LiteralGate(rows) if re2 is None else gates.Re2Gate(re2, rows)
        self._custom = CustomPatterns(extra_patterns, re2) if extra_patterns else None
        self._allowed = tuple(allowlist)
        self.gate_name: gates.Choice = "stdlib" if re2 is None else "re2"

    def scrub(self, text: str) -> str:
        """`text` with its secrets replaced; scrubbing the result again changes nothing.

        A secret is found in the text it stands in: pass whole records, never pieces of one.
        """
        for _ in range(MAX_PASSES):
            marks = self.marks(text)
            if not marks:
                return text
            text = _replaced(text, marks)
        return text if not self.marks(text) else replacement(CUSTOM)

    def marks(self, text: str) -> list[Mark]:
        """What one pass replaces: disjoint, left to right."""
        fired = self._gate(text)
        if not fired and self._custom is None:
            return []
        found = list(self._found(text, fired))
        if not found:
            return []
        return _outside_markers(text, _merged(found))

    def _found(self, text: str, fired: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Spans with the rank of their row, in no order."""
        for rank in fired:
            if rank == len(SHAPES):
                yield from self._found_in_escapes(text)
                continue
            for start, end in SHAPES[rank].find(text):
                if not self._is_allowed(text[start:end]):
                    yield start, end, rank
        if self._custom is not None:
            for start, end in self._custom.find(text):
                if not self._is_allowed(text[start:end]):
                    yield start, end, len(SHAPES)

    def _found_in_escapes(self, text: str) -> Iterator[tuple[int, int, int]]:
        reading = read_escapes(text)
        if reading is None:
            return
        for rank in self._gate(reading.text):
            if rank == len(SHAPES):
                continue  # escapes in escapes: the repeated passes see to them
            for start, end in SHAPES[rank].find(reading.text):
                if end > start and not self._is_allowed(reading.text[start:end]):
                    yield (*reading.original(start, end), rank)

    def _is_allowed(self, matched: str) -> bool:
        return any(entry in matched for entry in self._allowed)


def _merged(found: list[tuple[int, int, int]]) -> list[Mark]:
    """Spans that overlap become one, named by the earliest row of the table among them."""
    found.sort()
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in found:
        if merged and start < merged[-1][1]:
            before, last, other = merged[-1]
            merged[-1] = (before, max(last, end), min(other, rank))
        else:
            merged.append((start, end, rank))
    return [
        Mark(start, end, SHAPES[rank].type if rank < len(SHAPES) else CUSTOM) for start, end, rank in merged
    ]


def _outside_markers(text: str, marks: list[Mark]) -> list[Mark]:
    """The parts of `marks` that are not already replacements."""
    if "[REDACTED" not in text:
        return marks
    walls = [match.span() for match in _MARKER.finditer(text)]
    kept: list[Mark] = []
    first = 0
    for mark in marks:
        at = mark.start
        while first < len(walls) and walls[first][1] <= at:
            first += 1
        for start, end in walls[first:]:
            if start >= mark.end:
                break
            if start > at:
                kept.append(Mark(at, start, mark.type))
            at = max(at, end)
        if at < mark.end:
            kept.append(Mark(at, mark.end, mark.type))
    return kept


def _replaced(text: str, marks: list[Mark]) -> str:
    pieces: list[str] = []
    done = 0
    for mark in marks:
        pieces += (text[done : mark.start], replacement(mark.type))
        done = mark.end
    pieces.append(text[done:])
    return "".join(pieces)
