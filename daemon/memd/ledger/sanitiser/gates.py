"""Which rows of the table a text needs: one cheap look that may say too much and never too little.

Two gates answer the same question. `Re2Gate` matches one set of expressions in a single pass; without
`google-re2`, `LiteralGate` looks for plain substrings, most of them behind a few tests that settle
whole families at once. Either way the rows decide: a gate changes nothing but speed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol, get_args

from memd.ledger.sanitiser.named import GIVING, MAX_NAME
from memd.ledger.sanitiser.shape import TOKEN_CHARS, Family, Shape

Choice = Literal["auto", "re2", "stdlib"]

# The set's automaton grows while it runs. This is room for every state that ordinary text leads to; what
# hostile text leads to makes it slower, never silent
SET_MEMORY_BYTES = 64 << 20


class Gate(Protocol):
    def __call__(self, text: str, raw: bytes | None = None) -> Sequence[int]:
        """The rows that may find something in `text`, by number, in no order.

        raw  the same `as_bytes`, where the caller has it so
        """


def as_bytes(text: str) -> bytes:
    """UTF-8 in which a lone surrogate is three bytes like its neighbours, never a character of a pattern."""
    return text.encode("utf-8", "surrogatepass")


def load_re2() -> Any | None:
    """The module `re2` when google-re2 is installed."""
    try:
        return importlib.import_module("re2")
    except ImportError:
        return None


class Re2Gate:
    """One pass over the text, whatever the number of rows."""

    def __init__(self, re2: Any, shapes: Sequence[Shape]) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1  # bytes are characters: no UTF-8 in the automaton
        options.max_mem = SET_MEMORY_BYTES
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        for shape in shapes:
            self._set.Add(shape.gate.encode("ascii"))
        self._set.Compile()

    def __call__(self, text: str, raw: bytes | None = None) -> Sequence[int]:
        return self._set.Match(as_bytes(text) if raw is None else raw) or ()


def _table(letters: dict[str, str]) -> bytes:
    """A translation: the characters of each key become its value, all others a blank."""
    table = bytearray(b" " * 256)
    for chars, letter in letters.items():
        for char in chars:
            table[ord(char)] = ord(letter)
    return bytes(table)


_ALNUM = "".join(sorted(TOKEN_CHARS - set("_-")))
_RUNS = _table({_ALNUM: "a", "_-": "_"})
_TAIL = b"_" + b"a" * 16
_LONG = b"a" * 20
MANY_RUNS = 64  # of a text in which literals are sought everywhere
REACH = 40  # characters before a run in which its literal begins, and behind its beginning
BEFORE_TOKEN = 3  # characters that belong to it: `://`
_DOTS = _table({_ALNUM + "_-": "a", ".": ".", ":": ":"})
_DISCORD = b".aaaaaa." + b"a" * 27
_TELEGRAM = b":" + b"a" * 34
_RUN = b"a" * 24
_DOT = b"." + b"a" * 16
_ENCODED = _table({_ALNUM + "_-+/=%": "a"})
_BASE64 = b"a" * 36

# Names close to what assigns to them: lower case, every such sign a colon, what may stand between dropped
_ASSIGN = bytes(ord(":" if chr(i) in "=,|>(" else chr(i).lower()) if i < 128 else i for i in range(256))
_PERCENT = re.compile(rb"(?:25)*[2-7][0-9A-Fa-f]").match
LONG_NAME = MAX_NAME // 2  # of a longer one a finder may see the end only, and a blank may end it too early
_NAME = b"abcdefghijklmnopqrstuvwxyz0123456789_-."
_BETWEEN = b" \t\r\n\"'`\\];_-!?0123456789"


class _Literals:
    """Which rows have one of their literals in a text. A literal that several rows share is sought once."""

    def __init__(self) -> None:
        self._rows: dict[bytes, list[int]] = {}

    def add(self, number: int, literal: bytes) -> None:
        self._rows.setdefault(literal, []).append(number)

    def in_text(self, raw: bytes) -> list[int]:
        return [number for literal, rows in self._rows.items() if literal in raw for number in rows]


class _Near:
    """Literals that stand in the token that has a long run, or right before it.

    run       what the run looks like in a text that was translated
    is_ahead  whether they end with the run's first character
    """

    def __init__(self, literals: _Literals, run: bytes, *, is_ahead: bool = False) -> None:
        self._literals = literals
        self._run = run
        self._is_ahead = is_ahead

    def in_text(self, raw: bytes, runs: bytes, dots: bytes) -> list[int]:
        if runs.count(self._run) > MANY_RUNS:
            return self._literals.in_text(raw)
        tokens = []
        size = len(self._run)
        at = runs.find(self._run)
        while at >= 0:
            low = at - REACH if at > REACH else 0
            start = dots.rfind(b" ", low, at) + 1 or low
            end = at + 1
            if not self._is_ahead:
                end = dots.find(b" ", at + size, at + size + REACH)
                end = at + size + REACH if end < 0 else end
            tokens.append(raw[start - BEFORE_TOKEN if start > BEFORE_TOKEN else 0 : end])
            at = runs.find(self._run, at + size)
        return self._literals.in_text(b"\n\n".join(tokens)) if tokens else []


class _Ended:
    """Literals with a separator in them, told by what stands before it: one split settles them all."""

    def __init__(self, separator: bytes) -> None:
        self._separator = separator
        self._literals: dict[bytes, list[tuple[int, bytes]]] = {}
        self._two: set[bytes] = set()
        self._three: set[bytes] = set()

    def add(self, number: int, literal: bytes) -> bool:
        """Whether `literal` has enough before one of its separators to be told by."""
        ending = max(literal.split(self._separator)[:-1], key=len, default=b"")[-3:]
        if len(ending) < 2:
            return False
        (self._three if len(ending) > 2 else self._two).add(ending)
        self._literals.setdefault(ending, []).append((number, literal))
        return True

    def in_text(self, raw: bytes) -> list[int]:
        pieces = raw.split(self._separator)
        if len(pieces) == 1:
            return []
        found = self._three.intersection([piece[-3:] for piece in pieces])
        if self._two:
            found |= self._two.intersection([piece[-2:] for piece in pieces])
        return [number for ending in found for number, literal in self._literals[ending] if literal in raw]


class _Assigned:
    """One row of `named`: the word it looks for, and how a value follows one of its endings."""

    def __init__(self, number: int, word: bytes, endings: tuple[bytes, ...]) -> None:
        self.number = number
        self.word = word
        tails = b"|".join(ending.replace(b"_", b"")[len(word) :] for ending in endings)
        self._attached = re.compile(word + b"(?:" + tails + b")(?:base)?[nr]*(?:value)?(?::|is|was)")
        self._before_blank = re.compile(word + b"[a-z0-9_-]{0,20}[ \t\"'`\\\\]")

    def is_attached(self, close: bytes) -> bool:
        return self._attached.search(close) is not None

    def is_given(self, low: bytes) -> bool:
        """Whether an option or a setting of this name may be followed by its value."""
        for match in self._before_blank.finditer(low):
            head = low[max(0, match.start() - MAX_NAME) : match.start()]
            before = head.rstrip(_NAME)
            name = head[len(before) :]
            if name.startswith(b"-") or before.endswith(GIVING) or len(name) > LONG_NAME:
                return True
        return False


class LiteralGate:
    """Substrings only: about as fast as the standard library can look at every character."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._by_family = {family: _Literals() for family in get_args(Family)}
        self._ended = tuple(_Ended(separator) for separator in (b"-", b"_", b"=", b"~"))
        self._dots = _Ended(b".")
        self._tail = _Near(self._by_family["tail"], _TAIL, is_ahead=True)
        self._long = _Near(self._by_family["long"], _LONG)
        self._run = _Near(self._by_family["run"], _RUN)
        self._assigned: list[_Assigned] = []
        for number, shape in enumerate(shapes):
            literals = tuple(literal.encode() for literal in shape.literals)
            if shape.family == "assigned":
                self._assigned.append(_Assigned(number, literals[0], literals[1:]))
                continue
            for literal in literals:
                ended = {"any": self._ended, "dot": (self._dots,)}.get(shape.family, ())
                if not any(one.add(number, literal) for one in ended):
                    self._by_family[shape.family].add(number, literal)
        self._words = tuple({row.word for row in self._assigned})

    def __call__(self, text: str, raw: bytes | None = None) -> Sequence[int]:
        raw = as_bytes(text) if raw is None else raw
        low = raw.lower()
        runs = raw.translate(_RUNS)
        dots = raw.translate(_DOTS)
        fired = self._by_family["any"].in_text(raw) + self._by_family["lower"].in_text(low)
        for ended in self._ended:
            fired += ended.in_text(raw)
        fired += self._tail.in_text(raw, runs, dots)
        fired += self._long.in_text(raw, runs, dots)
        fired += self._run.in_text(raw, dots, dots)
        if _DOT in dots:
            fired += self._dots.in_text(raw)
            if _DISCORD in dots:
                fired += self._by_family["dotted"].in_text(raw)
        if _TELEGRAM in dots:
            fired += self._by_family["dotted"].in_text(raw)
        if _BASE64 in raw.translate(_ENCODED):
            fired += self._by_family["base64"].in_text(raw)
        if b"@" in raw or (b"%" in raw and b"%40" in raw):
            fired += self._by_family["at"].in_text(low)
        if b"pass" in low:
            fired += self._by_family["pass"].in_text(low)
        is_percent = b"%" in raw and any(map(_PERCENT, raw.split(b"%")[1:]))
        if is_percent or b"\\" in raw:
            fired += self._by_family["escaped"].in_text(raw)
        fired += self._those_assigned(raw, low, is_percent=is_percent)
        return sorted(set(fired))

    def _those_assigned(self, raw: bytes, low: bytes, *, is_percent: bool) -> list[int]:
        words = [word for word in self._words if word in low]
        named = [row for row in self._assigned if row.word in words]
        if not named:
            return []
        if is_percent or b"&" in low or b"u00" in low:  # quotes, blanks and signs may be encoded
            return [row.number for row in named]
        close = raw.translate(_ASSIGN, _BETWEEN)
        return [row.number for row in named if row.is_attached(close) or row.is_given(low)]
