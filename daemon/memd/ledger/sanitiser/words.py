"""Whether a string reads as words: names in programs, labels and prose do, keys and passwords do not.

Judged by letter pairs. The three hundred commonest make up 98 in 100 pairs of English words and of the
words in identifiers, and 44 in 100 pairs of random letters.
"""

from __future__ import annotations

import re
from operator import add

_FOLLOWERS = {
    "a": "bcdfgiklmnprstuvwxy",
    "b": "aceijlorsuy",
    "c": "acehiklorstuy",
    "d": "adeilorsuy",
    "e": "abcdefghilmnopqrstuvwxy",
    "f": "aefilorstuy",
    "g": "aeghilnorsu",
    "h": "aeiortu",
    "i": "abcdefgklmnoprstvxz",
    "j": "aeou",
    "k": "einsw",
    "l": "adefilopstuvy",
    "m": "abeimopsu",
    "n": "acdefgiklnopstuvy",
    "o": "abcdefgiklmnoprstuvw",
    "p": "aehiloprstuy",
    "q": "u",
    "r": "acdefgiklmnoprstuvwy",
    "s": "acefhiklmnopstuwy",
    "t": "acdefhilmoprstuwy",
    "u": "abcdefgilmnprst",
    "v": "aeio",
    "w": "aehinors",
    "x": "aceipt",
    "y": "eimnopst",
    "z": "eo",
}
JUDGED = 256  # a string is judged by its first characters
_PAIRS = frozenset(first + second for first, seconds in _FOLLOWERS.items() for second in seconds)

_CHUNKS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]|[0-9]+")
_PART = re.compile(r"[_.:/>?-]+")
_PLAIN_PART = re.compile(r"(?:[A-Z]{0,16}|[A-Z]?[a-z]{1,16}(?:[A-Z][a-z]{1,16}){0,4})[0-9]{0,4}\Z")


def is_wordy(value: str) -> bool:
    """Whether the letters of `value` read as words: `created_at_v2`, `getAuthToken`, `sort-by-name`."""
    words = 0
    letters = 0
    digits = 0
    numbers = 0
    pairs = 0
    common = 0
    for chunk in _CHUNKS.findall(value[:JUDGED]):
        if "0" <= chunk[0] <= "9":
            digits += len(chunk)
            numbers += 1
            continue
        words += 1
        letters += len(chunk)
        low = chunk.lower()
        pairs += len(low) - 1
        common += sum(map(_PAIRS.__contains__, map(add, low, low[1:])))
    # words that only case tells apart must be longer: `aBcdEfgHi` is none
    shortest = 3 if any(c in value[:JUDGED] for c in "_-./: ") else 4
    if (
        not words
        or numbers > 2
        or digits * 4 > letters
        or value[0].isdigit()
        or (words > 1 and letters < shortest * words)
    ):
        return False
    return common * 5 >= pairs * 4


def is_identifier(value: str) -> bool:
    """Whether `value` reads as a name in a program: several parts, each a word or a number."""
    parts = _PART.split(value.strip("_$@&*!"))
    return len(parts) > 1 and all(map(_PLAIN_PART.match, parts)) and any(len(part) > 2 for part in parts)
