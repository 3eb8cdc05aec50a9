"""Where the values of a JSON text stand, comments and trailing commas allowed. Pure.

Nothing is written anew from this: `memctl.json_edit` cuts and pastes by these places, so that all other bytes
stay. A text that is not understood is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.errors import Refused

MAX_DEPTH = 200
REMEDY = "Correct the file, or put the entry in by hand."
BLANKS = " \t\r\n"

_string = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_scalar = re.compile(r"[^\s,\[\]{}\"/:]+")
_comment = r"//[^\r\n]*+|/\*(?>.*?\*/)"
_space = re.compile(rf"(?:[ \t\r\n\ufeff]|{_comment})*+", re.DOTALL)
_remark = re.compile(_comment, re.DOTALL)
# a string, a comment, or a comma with only the end of its container behind it
_token = re.compile(rf'"(?:[^"\\]|\\.)*"|{_comment}|,(?=(?:[ \t\r\n]|{_comment})*+[\]}}])', re.DOTALL)


class Member(msgspec.Struct, frozen=True):
    key: str
    start: int  # of the key
    value: Node


class Node(msgspec.Struct, frozen=True):
    """A value in the text: `members` of an object, `items` of an array.

    commas  the place of the comma behind each member or item; -1 where none is
    """

    kind: str
    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    commas: tuple[int, ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each member or item."""
        if self.kind == "object":
            return tuple((member.start, member.value.end) for member in self.members)
        return tuple((item.start, item.end) for item in self.items)

    def child(self, step: str | int) -> Node:
        """raises LookupError"""
        if isinstance(step, int):
            return self.items[step]
        for member in self.members:
            if member.key == step:
                return member.value
        raise KeyError(step)

    def place(self, step: str | int) -> int:
        """Which of `spans` that is; raises LookupError."""
        if isinstance(step, int):
            return range(len(self.items))[step]
        for at, member in enumerate(self.members):
            if member.key == step:
                return at
        raise KeyError(step)


def parse(text: str) -> Any:
    """The value of a JSON text, comments and trailing commas allowed. raises Refused"""
    text = text.removeprefix("\ufeff")
    try:
        return json.loads(text)
    except RecursionError:
        raise Refused("the file is nested too deeply", remedy=REMEDY) from None
    except ValueError:
        pass
    try:
        return json.loads(_token.sub(_plain, text))
    except RecursionError:
        raise Refused("the file is nested too deeply", remedy=REMEDY) from None
    except ValueError as reason:
        raise Refused(f"the file is not JSON: {reason}", remedy=REMEDY) from None


def _plain(found: re.Match[str]) -> str:
    """A string as it is; blanks of the same shape for all else, so that an error names the right place."""
    if found[0].startswith('"'):
        return found[0]
    return re.sub(r"[^\r\n]", " ", found[0])


def scan(text: str) -> Node:
    """The places of a whole text; raises Refused."""
    root, end = _scan(text, skip(text, 0), 0)
    if skip(text, end) != len(text):
        raise Refused("the file has something behind its value", remedy=REMEDY)
    return root


def find(root: Node, path: Sequence[str | int]) -> Node:
    """raises LookupError"""
    for step in path:
        root = root.child(step)
    return root


def skip(text: str, at: int) -> int:
    """Past white space and comments."""
    found = _space.match(text, at)
    return found.end() if found else at


def ends_in_line_comment(text: str, start: int, end: int) -> bool:
    """Whether what stands there, white space and comments, has a `//` comment as its last thing."""
    remarks = _remark.findall(text, start, end)
    return bool(remarks) and remarks[-1].startswith("//")


def _scan(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > MAX_DEPTH:
        raise Refused("the file is nested too deeply", remedy=REMEDY)
    first = text[at : at + 1]
    if first == "{":
        return _scan_object(text, at, depth)
    if first == "[":
        return _scan_array(text, at, depth)
    found = _string.match(text, at) or _scalar.match(text, at)
    if found is None:
        raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY)
    return Node("scalar", at, found.end()), found.end()


def _scan_object(text: str, start: int, depth: int) -> tuple[Node, int]:
    members: list[Member] = []
    commas: list[int] = []
    at = skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _string.match(text, at)
        colon = skip(text, key.end()) if key else at
        if key is None or text[colon : colon + 1] != ":":
            raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY)
        value, end = _scan(text, skip(text, colon + 1), depth + 1)
        members.append(Member(_key(key[0], at), at, value))
        at, comma = _past_comma(text, end, "}")
        commas.append(comma)
    return Node("object", start, at + 1, members=tuple(members), commas=tuple(commas)), at + 1


def _key(text: str, at: int) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # a control character or an escape that JSON does not know
        raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY) from None


def _scan_array(text: str, start: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    commas: list[int] = []
    at = skip(text, start + 1)
    while text[at : at + 1] != "]":
        item, end = _scan(text, at, depth + 1)
        items.append(item)
        at, comma = _past_comma(text, end, "]")
        commas.append(comma)
    return Node("array", start, at + 1, items=tuple(items), commas=tuple(commas)), at + 1


def _past_comma(text: str, at: int, close: str) -> tuple[int, int]:
    """To the next value or the end, and the place of the comma on the way; -1 where none is."""
    at = skip(text, at)
    if text[at : at + 1] == ",":
        return skip(text, at + 1), at
    if text[at : at + 1] != close:
        raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY)
    return at, -1
