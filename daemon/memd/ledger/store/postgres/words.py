"""Words as the index holds them, folded by the tokenizer that the engine of one machine uses.

SQLite's own tokenizer does it (letters and digits, no case, no accents), so that a query finds the same on
both engines, whatever the server's language, locale and extensions are. What comes out is put into a
`tsvector` as it is: no dictionary of the server has a say.

source  PostgreSQL 15, "tsvector": lexemes below 2 KiB, places up to 16,383, at most 255 of one lexeme
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from memd.ledger import search

MAX_CHARACTERS: Final = 500
MAX_PLACE: Final = 16_383
MAX_PLACES: Final = 255
SNIPPET_WORDS: Final = 24

Piece = tuple[int, int, str]
"""Where a word begins and ends, in bytes, and how it is folded."""


class Words:
    """Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._database = apsw.Connection(":memory:")
        self._tokenizer = self._database.fts5_tokenizer("unicode61", ["remove_diacritics", "2"])

    def of(self, text: str) -> list[str]:
        found = self._tokenizer(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return [str(word)[:MAX_CHARACTERS] for word in found]

    def pieces(self, text: bytes) -> list[Piece]:
        found: Any = self._tokenizer(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        return [(start, end, str(word)[:MAX_CHARACTERS]) for start, end, word in found]

    def vector(self, text: str, scope: str) -> tuple[str, bool]:
        """The words of a text and of its scope as a `tsvector`, and whether some places had no room."""
        places: dict[str, list[int]] = {}
        is_long = False
        for place, word in enumerate(self.of(text), 1):
            held = places.setdefault(word, [])
            if place > MAX_PLACE or len(held) >= MAX_PLACES:
                is_long = True
                if held:
                    continue
                place = MAX_PLACE  # that it is there at all must be known
            held.append(place)
        parts = [f"{_quoted(word)}:{','.join(map(str, held))}" for word, held in places.items()]
        parts += [scope_word(token) for token in scope.split()]
        return " ".join(parts), is_long

    def terms(self, query: str) -> list[tuple[list[str], bool]]:
        """What must be there, all of it: words side by side, of the last one only the beginning or not."""
        found = [(self.of(term.text), term.is_prefix) for term in search.parse(query)]
        return [(words, is_prefix) for words, is_prefix in found if words]

    def holds(self, text: str, terms: Sequence[tuple[list[str], bool]]) -> bool:
        """Whether all of it stands in a text, word by word."""
        words = self.of(text)
        return all(any(_stands(words, at, term) for at in range(len(words))) for term in terms)

    def snippet(self, text: str, terms: Sequence[tuple[list[str], bool]], marks: tuple[str, str]) -> str:
        """The stretch of a text with most of the terms, cut to `SNIPPET_WORDS`, with marks round them."""
        data = text.encode("utf-8", "replace")
        pieces = self.pieces(data)
        words = [word for _start, _end, word in pieces]
        found = sorted(
            (at, at + len(term[0]), number)
            for number, term in enumerate(terms)
            for at in range(len(words))
            if words[at].startswith(term[0][0]) and _stands(words, at, term)
        )
        first = _best(found)
        first = max(0, min(first, len(words) - SNIPPET_WORDS))
        last = min(first + SNIPPET_WORDS, len(words))
        begin = pieces[first][0] if first and pieces else 0
        end = pieces[last - 1][1] if last < len(words) else len(data)
        out, at = [b"" if not first else "…".encode()], begin
        covered = first
        for start, stop, _number in found:
            if start < covered or stop > last:
                continue
            out += [data[at : pieces[start][0]], marks[0].encode()]
            out += [data[pieces[start][0] : pieces[stop - 1][1]], marks[1].encode()]
            at, covered = pieces[stop - 1][1], stop
        out.append(data[at:end])
        if last < len(words):
            out.append("…".encode())
        return b"".join(out).decode("utf-8", "replace")


def _stands(words: Sequence[str], at: int, term: tuple[list[str], bool]) -> bool:
    wanted, is_prefix = term
    stop = at + len(wanted)
    if stop > len(words):
        return False
    if not is_prefix:
        return list(words[at:stop]) == wanted
    return list(words[at : stop - 1]) == wanted[:-1] and words[stop - 1].startswith(wanted[-1])


def _best(found: Sequence[tuple[int, int, int]]) -> int:
    """Where a stretch that holds most of the terms begins: a little before the first of them."""
    best, most = 0, 0
    for index, (start, _stop, _number) in enumerate(found):
        held = {number for at, stop, number in found[index : index + 64] if stop <= start + SNIPPET_WORDS}
        if len(held) > most:
            best, most = start, len(held)
            last = max((stop for at, stop, _n in found[index : index + 64] if stop <= start + SNIPPET_WORDS))
            best = max(0, start - (SNIPPET_WORDS - (last - start)) // 2)
    return best


def condition(terms: Sequence[tuple[list[str], bool]], *, side_by_side: bool) -> str:
    """The terms as a `tsquery`; without `side_by_side` their words may stand anywhere."""
    parts = []
    for words, is_prefix in terms:
        quoted = [_quoted(word) for word in words]
        if is_prefix:
            quoted[-1] += ":*"
        parts.append("(" + (" <-> " if side_by_side else " & ").join(quoted) + ")")
    return " & ".join(parts)


def scope_word(token: str) -> str:
    """A token of the scope, in a `tsvector` or a `tsquery`."""
    return _quoted("." + token[:MAX_CHARACTERS])


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
