"""What one kind of secret looks like: a row of the table, and how a row finds its secrets in a text.

A row never decides alone whether it runs. A gate looks at the whole text first, so a row states three
things beside its finder: `gate`, an RE2 expression over UTF-8 bytes that matches every text in which
the finder finds something, and `literals` with `family`, the same promise in plain substrings.

Finders run in time linear in the text. Three habits keep it so: an expression begins with a literal, it
takes its whole run at once (what stands left of it is looked at afterwards), and a run that is followed
by something else cannot be entered again in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Span = tuple[int, int]
Finder = Callable[[str], Iterator[Span]]

# What `gates.LiteralGate` asks of a text before it looks for a row's literals:
#   any       nothing
#   tail      `_` or `-` and sixteen letters or digits after it; the literal in the same token, near that
#   long      twenty letters or digits in a row; the literal in the same token, near that, or right before it
#   run       twenty-four characters of a token in a row; the literal among them, near their beginning
#   base64    thirty-six characters of base64, or of it in a URL, in a row
#   dot       a dot and sixteen characters of a token after it
#   dotted    the middle of a Discord or a Telegram token
#   at        an `@`, also percent-encoded
#   lower     nothing; literals are sought in the lower-cased text
#   pass      the word `pass`; literals as in `lower`
#   escaped   a percent sign counts with two digits after it
#   assigned  the first literal is a word, the others are names' endings that something is attached to
Family = Literal[
    "any", "tail", "long", "run", "base64", "dot", "dotted", "at", "lower", "pass", "escaped", "assigned"
]

TOKEN_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
HEX = frozenset("0123456789abcdefABCDEF")

# A sequence that colours or erases, as it stands in a terminal's output and as other texts write that down
_SEQUENCE = re.compile(
    r"(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033|e|E)|%1[bB])(?:\[|%5[bB])"
    r"[0-9;?]{0,12}(?:%3[bB][0-9]{1,3}){0,4}[A-Za-z]\Z",
    re.ASCII,
)
_SEQUENCE_CHARS = 48


@dataclass(frozen=True, slots=True)
class Shape:
    """One row.

    type       what the replacement says: `[REDACTED:<type>]`
    find       yields the spans to replace, left to right; pure
    gate       RE2, matched against UTF-8 bytes read as Latin-1: one byte is one character
    literals   one of them is in every text with a match
    family     which cheaper test comes before the literals
    made_up    a recipe for values of this shape: text with `{class:count}` pieces, see the tests
    """

    type: str
    find: Finder
    gate: str
    literals: tuple[str, ...]
    family: Family
    made_up: str


def starts_token(text: str, at: int) -> bool:
    """Whether a token may begin at `at`: not in the middle of a longer word.

    A letter that belongs to an escape (`\\n`, `%3D`, `\\u003d`, the end of a sequence) is no part of
    a word.
    """
    if at == 0 or text[at - 1] not in TOKEN_CHARS:
        return True
    if at >= 2 and text[at - 2] == "\\" and text[at - 1] in "nrtbf":
        return True
    if at >= 3 and text[at - 3] == "%" and text[at - 2] in HEX and text[at - 1] in HEX:
        return True
    if at >= 6 and text[at - 6 : at - 4] == "\\u" and all(c in HEX for c in text[at - 4 : at]):
        return True
    return text[at - 1].isalpha() and _SEQUENCE.search(text, max(0, at - _SEQUENCE_CHARS), at) is not None


def ends_token(text: str, at: int) -> bool:
    return at == len(text) or text[at] not in TOKEN_CHARS


def _is_in_base64(text: str, start: int, end: int) -> bool:
    """Whether base64 goes on at either side; a lone sign before it is a diff's or a path's."""
    if text[end : end + 1] in ("+", "/", "="):
        return True
    return start >= 2 and text[start - 1] in "+/" and not starts_token(text, start - 1)


_COUNTED = re.compile(r"\{([0-9]{2,})(?:,[0-9]*)?\}")
GATE_RUN = 10  # characters of a run that a gate waits for: each one more is a state more of its automaton


def beginning(core: str) -> str:
    """The part of an expression up to its first long run, and the beginning of that: enough for a gate."""
    counted = _COUNTED.search(core)
    if counted is None:
        return core
    return f"{core[: counted.start()]}{{{min(GATE_RUN, int(counted[1]))}}}"


def token(
    type: str,
    core: str,
    literals: tuple[str, ...],
    made_up: str,
    *,
    family: Family = "any",
    is_bound: bool = True,
    is_alone: bool = False,
    is_whole: bool = False,
    accept: Callable[[str], bool] | None = None,
    gate: str = "",
) -> Shape:
    """A row for a key that is recognised by its own form.

    core       begins with a literal, ends in a greedy run; where it has a group `s`, that alone is replaced.
               Only syntax that `re` and RE2 read alike: ASCII classes, no look-around
    is_bound   whether it must stand at the start of a word: for prefixes that words can end in
    is_alone   whether base64 may not go on at either side
    is_whole   whether no character of a token may follow
    accept     a last look at the matched text
    gate       a part of `core` that is rarer than how it begins. A counted run that can begin at every other
               letter is counted from all of them at once, and each set of counts is a state of the automaton
    """
    pattern = re.compile(core, re.ASCII)
    group = "s" if "s" in pattern.groupindex else 0

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            if is_bound and not starts_token(text, match.start()):
                continue
            if is_alone and _is_in_base64(text, *match.span()):
                continue
            if is_whole and not ends_token(text, match.end()):
                continue
            if accept is not None and not accept(match.group()):
                continue
            yield match.span(group)

    # what stands left is no part of the gate: it doubles the automaton's states and hardly ever settles it
    return Shape(type, find, gate or core, literals, family, made_up)


def grown(
    type: str,
    core: str,
    literals: tuple[str, ...],
    made_up: str,
    *,
    before: str,
    least: int,
    most: int,
    family: Family = "any",
) -> Shape:
    """A row for a key whose mark stands in its middle: the match grows leftwards over `before`.

    before         a character class, as inside brackets
    least, most    how many characters of the class stand left of the mark, at least and at most. No character
                   of a token may follow the match
    """
    pattern = re.compile(core, re.ASCII)
    head = re.compile(f"[{before}]*\\Z", re.ASCII)

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            at = match.start()
            window = text[max(0, at - most) : at]
            length = len(window) - len(window.rstrip(chars))
            if length < least or not ends_token(text, match.end()):
                continue
            start = next((i for i in range(at - length, at - least + 1) if starts_token(text, i)), None)
            if start is not None:
                yield start, match.end()

    chars = "".join(chr(i) for i in range(128) if head.fullmatch(chr(i)))
    return Shape(type, find, f"[{before}]" + beginning(core), literals, family, made_up)
