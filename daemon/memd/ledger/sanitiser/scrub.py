"""`Sanitiser`: texts in, the same texts out with every secret replaced by `[REDACTED:<type>]`.

A pass lets the gate name the rows a text needs, collects their spans over the unchanged text, joins
spans that overlap, and replaces them. Passes are repeated until nothing is found, so the result is one
that a further scrub leaves alone; a text that does not come to rest (only patterns of the user's own can
do that) is replaced as a whole. What already stands as a replacement is never touched.

Pure: no clock, no files, no state but what the constructor built. One instance serves all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from memd import errors
from memd.ledger.sanitiser import gates
from memd.ledger.sanitiser.custom import CUSTOM, BadEntry, CustomPatterns
from memd.ledger.sanitiser.escapes import ESCAPED, read_escapes
from memd.ledger.sanitiser.jsontext import is_document, is_inside, scrub_strings, string_spans, whole_escapes
from memd.ledger.sanitiser.marks import (
    Mark,
    merged,
    outside_replacements,
    replaced,
    replaced_in_pieces,
    replacement,
)
from memd.ledger.sanitiser.table import SHAPES

MAX_PASSES = 6


def check_settings(extra_patterns: Sequence[str], allowlist: Sequence[str]) -> None:
    """raises BadEntry for whatever a `Sanitiser` would refuse; cheaper than making one"""
    check_allowlist(allowlist)
    CustomPatterns(extra_patterns, gates.load_re2())


def check_allowlist(allowlist: Sequence[str]) -> None:
    if not all(allowlist):
        raise BadEntry("allowlist", list(allowlist).index(""), "is empty: every secret would contain it")


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
        check_allowlist(allowlist)
        rows = (*SHAPES, ESCAPED)
        self._gate: gates.Gate = gates.LiteralGate(rows) if re2 is None else gates.Re2Gate(re2, rows)
        self._custom = CustomPatterns(extra_patterns, re2) if extra_patterns else None
        self._allowed = tuple(allowlist)
        self.gate_name: gates.Choice = "stdlib" if re2 is None else "re2"

    def scrub(self, text: str, raw: bytes | None = None) -> str:
        """`text` with its secrets replaced; scrubbing the result again changes nothing.

        A secret is found in the text it stands in: pass whole records, never pieces of one.

        raw  the text as `gates.as_bytes` gives it, where the caller has it so
        """
        for _ in range(MAX_PASSES):
            marks = self.marks(text, raw)
            if not marks:
                return text
            text, raw = replaced(text, marks), None
        return text if not self.marks(text) else replacement(CUSTOM)

    def is_clean(self, texts: Iterable[str]) -> bool:
        """Whether `scrub` would leave all of these as they are, as far as one look at them together tells.

        For names, ids and other short texts. False may be said of clean ones; they are scrubbed in vain then.
        """
        return self._custom is None and not self._gate("\0".join(texts))

    def scrub_split(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of one text; a secret of the whole is replaced in every piece that has a part of it.

        For streams that cut a text anywhere. As many pieces come back as went in.
        """
        whole = list(pieces)
        for _ in range(MAX_PASSES):
            marks = self.marks("".join(whole))
            if not marks:
                return whole
            whole = replaced_in_pieces(whole, marks)
        return whole if not self.marks("".join(whole)) else [replacement(CUSTOM) for _ in whole]

    def scrub_json(self, text: str) -> str:
        """A JSON document that stays one: strings are read for what they say, a number becomes a string.

        text   a document, whole or cut off; anything else is scrubbed as it stands
        """
        if not is_document(text):
            return self.scrub(text)
        if self._custom is None and "\\" not in text and not self._gate(text):
            return text
        text = scrub_strings(text, self.scrub)
        for _ in range(MAX_PASSES):
            marks = self.marks(text)
            if not marks:
                return text
            text = replaced(text, _in_whole_escapes(text, marks), _is_bare(text))
        return text if not self.marks(text) else f'"{replacement(CUSTOM)}"'

    def marks(self, text: str, raw: bytes | None = None) -> list[Mark]:
        """What one pass replaces: disjoint, left to right."""
        fired = self._gate(text, raw)
        if not fired and self._custom is None:
            return []
        found = list(self._found(text, fired))
        if not found:
            return []
        return outside_replacements(text, merged(found))

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


def _in_whole_escapes(document: str, marks: Sequence[Mark]) -> list[Mark]:
    whole: list[Mark] = []
    done = 0
    for mark in marks:
        start, end = whole_escapes(document, mark.start, mark.end)
        start = max(start, done)
        if start < end:
            whole.append(Mark(start, end, mark.type))
            done = end
    return whole


def _is_bare(document: str) -> Callable[[Mark], bool]:
    """Whether a mark stands outside of all strings of a JSON document."""
    spans = string_spans(document)
    return lambda mark: not is_inside(spans, mark.start)
