"""Whether `re` may be trusted with a pattern of the user's own on any text.

`re` tries every way in which a pattern could match: nested or neighbouring repetitions make that more than
any text is worth. This refuses whatever could be slow rather than proving what is; where google-re2 is
installed almost every pattern goes there and none of this applies.

Allowed are: repetitions of one character or class; repetitions of a group of fixed length without choices;
few choices (`|`, `?`) in all; and after a repetition that its successor cannot end, no other repetition.
"""

from __future__ import annotations

import importlib
from typing import Any

_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")

MAX_CHOICES = 64
_ALL = frozenset(range(129))  # ASCII, and 128 for everything else
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CATEGORIES = {
    "CATEGORY_DIGIT": frozenset(b"0123456789"),
    "CATEGORY_SPACE": frozenset(b" \t\n\r\f\v"),
    "CATEGORY_WORD": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"),
}


def objection(pattern: str, flags: int) -> str | None:
    """Why `pattern` may be slow on some text, as the end of a sentence; None when it cannot.

    pattern   compiles
    """
    vet = _Vet()
    reason = vet.sequence(list(_parser.parse(pattern, flags)), [])
    return reason or ("it has too many choices" if vet.choices > MAX_CHOICES else None)


def _number(code: int) -> int:
    return min(code, 128)


def _charset(op: str, value: Any) -> frozenset[int] | None:
    """The characters that one item of a pattern matches, in both cases; None for all that is not one."""
    if op == "LITERAL":
        return frozenset(
            _number(ord(c)) for c in {chr(value), chr(value).lower(), chr(value).upper()} if len(c) == 1
        )
    if op == "NOT_LITERAL":
        return _ALL - {value}
    if op == "ANY":
        return _ALL - {ord("\n")}
    if op != "IN":
        return None
    found: set[int] = set()
    is_negated = False
    for kind, what in value:
        name = str(kind)
        if name == "NEGATE":
            is_negated = True
        elif name == "LITERAL":
            found |= _charset("LITERAL", what) or _ALL
        elif name == "RANGE":
            for code in range(what[0], min(what[1], 128) + 1):
                found |= _charset("LITERAL", code) or _ALL
            if what[1] >= 128:
                found.add(128)
        else:
            category = _CATEGORIES.get(str(what))
            found |= _ALL if category is None else category
    return frozenset(_ALL - found) if is_negated else frozenset(found)


class _Vet:
    def __init__(self) -> None:
        self.choices = 1
        self._loose = False  # a repetition came by that what follows it cannot end

    def sequence(self, items: list[Any], after: list[Any]) -> str | None:
        """What is wrong with `items`, which stand before `after`."""
        for index, (kind, value) in enumerate(items):
            op = str(kind)
            rest = items[index + 1 :] + after
            if op in _REPEATS:
                reason = self._repeat(value, rest)
            elif op == "SUBPATTERN":
                reason = self.sequence(list(value[3]), rest)
            elif op == "ATOMIC_GROUP":
                reason = self.sequence(list(value), rest)
            elif op == "BRANCH":
                self.choices *= len(value[1])
                reason = next(filter(None, (self.sequence(list(branch), rest) for branch in value[1])), None)
            elif op in ("ASSERT", "ASSERT_NOT"):
                reason = self.sequence(list(value[1]), [])
            elif op in ("GROUPREF", "GROUPREF_EXISTS", "GROUPREF_IGNORE"):
                reason = "it refers back to a group"
            else:
                reason = None
            if reason:
                return reason
        return None

    def _repeat(self, value: Any, rest: list[Any]) -> str | None:
        low, high, body = value
        items = list(body)
        charset = _charset(str(items[0][0]), items[0][1]) if len(items) == 1 else None
        if charset is None:
            if high == 1:
                self.choices *= 2
                return self.sequence(items, rest)
            return (
                None
                if _is_fixed(items) and high <= 1000
                else "it repeats a group that can match in several ways"
            )
        if low == high:
            return None
        if self._loose:
            return "one repetition follows another that it may overlap"
        self._loose = not _is_disjoint(rest, charset)
        return None


def _is_disjoint(rest: list[Any], charset: frozenset[int]) -> bool:
    """Whether the item after a repetition of `charset` ends it: needs one character, none of `charset`."""
    if not rest:
        return True
    op, value = str(rest[0][0]), rest[0][1]
    if op in _REPEATS:
        items = list(value[2])
        if value[0] == 0 or len(items) != 1:
            return False
        op, value = str(items[0][0]), items[0][1]
    following = _charset(op, value)
    return following is not None and following.isdisjoint(charset)


def _is_fixed(items: list[Any]) -> bool:
    """Whether a group matches in one way only: single characters, and a fixed number of each."""
    for kind, value in items:
        op = str(kind)
        if op in _REPEATS and value[0] == value[1] and _is_fixed(list(value[2])):
            continue
        if op == "SUBPATTERN" and _is_fixed(list(value[3])):
            continue
        if _charset(op, value) is None:
            return False
    return True
