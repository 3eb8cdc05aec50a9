"""Putting one value into a JSON file, comments allowed, so that every other byte stays as it is. Pure.

The text is scanned, not parsed and written anew: what is put in takes the form of its neighbours, with their
indentation and line ends. A file that is not understood is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.errors import Refused

MAX_DEPTH = 200
MAX_SLOW_BYTES = 1 << 16  # the parser for comments needs about 30 ms for a KiB

_space = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_string = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_scalar = re.compile(r"[^\s,\[\]{}\"/:]+")


class Member(msgspec.Struct, frozen=True):
    key: str
    start: int  # of the key
    value: Node


class Node(msgspec.Struct, frozen=True):
    """A value in the text. `members` only of an object; `comma` is a trailing one's place, or -1."""

    kind: str
    start: int
    end: int
    members: tuple[Member, ...] = ()
    comma: int = -1


def parse(text: str) -> Any:
    """The value of a JSON text, comments and trailing commas allowed. raises Refused"""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise Refused("the file is nested too deeply", remedy=REMEDY) from None
    except ValueError as plain:
        if len(text) > MAX_SLOW_BYTES:
            raise Refused(f"the file is not JSON: {plain}", remedy=REMEDY) from None
    import json5

    try:
        return json5.loads(text.removeprefix("\ufeff"), allow_duplicate_keys=False)
    except (ValueError, RecursionError) as reason:
        raise Refused(f"the file is not JSON: {reason}", remedy=REMEDY) from None


REMEDY = "Correct the file, or put the entry in by hand."


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`, objects on the way made where missing; the text itself when it is so.

    raises  Refused: not understood, or something on the way is no object
    """
    if not text.strip("\ufeff \t\r\n"):
        return text + _fresh(path, value, "", "  ", "\n") + "\n"
    before = parse(text)
    wanted = _with(before, path, value)
    if wanted == before:
        return text
    root, end = _scan(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise Refused("the file has something behind its value", remedy=REMEDY)
    made = _put(text, root, list(path), value)
    if parse(made) != wanted:
        raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
    return made


def _with(found: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    if not isinstance(found, dict):
        raise Refused(f"what should hold {path[0]!r} is no object", remedy=REMEDY)
    return {**found, path[0]: _with(found.get(path[0], {}), path[1:], value)}


def _put(text: str, node: Node, path: list[str], value: Any) -> str:
    if node.kind != "object":
        raise Refused(f"what should hold {path[0]!r} is no object", remedy=REMEDY)
    eol = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    for member in node.members:
        if member.key == path[0]:
            if len(path) > 1:
                return _put(text, member.value, path[1:], value)
            indent = _indent_at(text, member.start)
            fresh = _rendered(value, indent, unit, eol)
            return text[: member.value.start] + fresh + text[member.value.end :]
    is_inline = "\n" not in text[node.start : node.end] and bool(node.members)
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, node.members[0].start) if node.members and not is_inline else outer + unit
    key = json.dumps(path[0], ensure_ascii=False)
    if is_inline:
        body = f"{key}: {json.dumps(_nested(path[1:], value), ensure_ascii=False)}"
        lead, close = " ", ""
    else:
        body = f"{key}: {_fresh(path[1:], value, inner, unit, eol)}"
        lead, close = eol + inner, ""
    edge = node.end - 1
    last = len(text[:edge].rstrip(" \t\r\n"))
    last = max(last, node.start + 1)
    if not node.members:
        close = eol + outer if "\n" not in text[last:edge] else ""
        return text[:last] + lead + body + close + text[last:]
    if node.comma >= 0:
        return text[:last] + lead + body + "," + text[last:]
    value_end = node.members[-1].value.end
    return text[:value_end] + "," + text[value_end:last] + lead + body + text[last:]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _fresh(path: Sequence[str], value: Any, indent: str, unit: str, eol: str) -> str:
    return _rendered(_nested(path, value), indent, unit, eol)


def _rendered(value: Any, indent: str, unit: str, eol: str) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", eol + indent)


def _unit(text: str) -> str:
    """One step of indentation as this file has it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found and len(found[1]) <= 8 else "  "


def _indent_at(text: str, at: int) -> str:
    """The white space at the start of the line that a place is in."""
    start = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[start:at])
    return found[0] if found else ""


# ------------------------------------------------------------------ the scan


def _skip(text: str, at: int) -> int:
    found = _space.match(text, at)
    return found.end() if found else at


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
    comma = -1
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _string.match(text, at)
        colon = _skip(text, key.end()) if key else at
        if key is None or text[colon : colon + 1] != ":":
            raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY)
        value, end = _scan(text, _skip(text, colon + 1), depth + 1)
        members.append(Member(json.loads(key[0]), at, value))
        at, comma = _past_comma(text, end, "}")
    return Node("object", start, at + 1, tuple(members), comma), at + 1


def _scan_array(text: str, start: int, depth: int) -> tuple[Node, int]:
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        _, end = _scan(text, at, depth + 1)
        at, _ = _past_comma(text, end, "]")
    return Node("array", start, at + 1), at + 1


def _past_comma(text: str, at: int, close: str) -> tuple[int, int]:
    """Past the comma after a value, and its place when only the end follows; else -1."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        after = _skip(text, at + 1)
        return after, at if text[after : after + 1] == close else -1
    if text[at : at + 1] != close:
        raise Refused(f"the file is not JSON at character {at}", remedy=REMEDY)
    return at, -1
