"""What a search means: the words somebody typed, and which hit is better than which.

The language has no syntax errors. Every word is taken literally and all of them must be there; a word that
holds punctuation stands for its parts side by side (`foo_bar.py:12` finds exactly that). Two things more:

    "two words"   side by side
    begin*        any word that begins so; the star must follow a letter or digit

A quote that is never closed is a character like any other. What holds no letter and no digit is left out;
when nothing remains, nothing is found.

Engines rank the newest hits only (`NEWEST`): a word that a million events hold is not worth reading all of
them. Among those, relevance counts most and age a little (`score`).
"""

from __future__ import annotations

import datetime
import re
from typing import Final

import msgspec

NEWEST: Final = 500
"""How many of the newest hits are ranked."""

MAX_TERMS: Final = 32
MAX_TERM_CHARACTERS: Final = 512

HALF_LIFE_S: Final = 30 * 24 * 3600.0
SKEW_S: Final = 24 * 3600.0
"""How far ahead a clock or an unnamed zone may be."""

RECENCY_WEIGHT: Final = 0.5
"""A hit of this moment outweighs one from long ago that is half as relevant again."""

_part = re.compile(r'"([^"]*)"|(\S+)')


class Term(msgspec.Struct, frozen=True):
    """Words that stand side by side; of the last one only the beginning if `is_prefix`."""

    text: str
    is_prefix: bool = False


def parse(query: str) -> tuple[Term, ...]:
    """What must be there, all of it; at most `MAX_TERMS`. Empty: nothing can be found."""
    terms: list[Term] = []
    for match in _part.finditer(clean(query)):
        term = _term(match[1] if match[1] is not None else match[2])
        if term is not None and term not in terms:
            terms.append(term)
        if len(terms) == MAX_TERMS:
            break
    return tuple(terms)


def _term(text: str) -> Term | None:
    text = text[:MAX_TERM_CHARACTERS]
    if not any(character.isalnum() for character in text):
        return None
    is_prefix = len(text) > 1 and text.endswith("*") and text[-2].isalnum()
    return Term(text[:-1] if is_prefix else text, is_prefix)


def clean(text: str) -> str:
    """Text that any database takes: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def instant(text: str) -> float | None:
    """Seconds since the epoch of an RFC 3339 time (UTC where it names no offset); None: it is none."""
    if not text or not text[:4].isdigit():
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None


def score(relevance: float, age_s: float) -> float:
    """How good a hit is; higher is better. `relevance` is above 0, as far as engines agree on it."""
    if age_s < -SKEW_S:
        return relevance  # it says a time that has not come: nobody knows how old it is
    recency: float = 0.5 ** (max(age_s, 0.0) / HALF_LIFE_S)
    return relevance * (1.0 + RECENCY_WEIGHT * recency)
