"""Putting values into a JSON file and taking them out, so that every other byte stays as it is. Pure.

The text is scanned, not parsed and written anew: what is put in takes the form of its neighbours, with their
indentation and line ends, and taking it out again gives the text that was there before. Comments and trailing
commas are allowed. A file that is not understood is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from memctl.json_scan import BLANKS, REMEDY, Node, ends_in_line_comment, find, parse, scan
from memd.errors import Refused

__all__ = ["REMEDY", "add", "append", "drop", "inside", "parse", "put", "put_inside", "replace"]

Path = Sequence[str | int]


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`, objects on the way made where missing; the text itself when it is so.

    raises  Refused: not understood, or something on the way is no object
    """
    if is_blank(text):
        return fresh(text, path, value)
    before = parse(text)
    wanted = _with(before, path, value)
    if wanted == before:
        return text
    made = _put(text, scan(text), list(path), value)
    return checked(made, wanted)


def checked(made: str, wanted: Any) -> str:
    """The text, which must mean `wanted`; raises Refused when it does not."""
    if parse(made) != wanted:
        raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
    return made


def is_blank(text: str) -> bool:
    return not text.strip("\ufeff" + BLANKS)


def fresh(text: str, path: Sequence[str], value: Any) -> str:
    """Blank text with a first value in it."""
    return text + _rendered(_nested(path, value), "", "  ", "\n") + "\n"


def append(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` as the last of the array at `path`, what is missing on the way made.

    Only the result tells whether it went well: compare what it means. raises Refused
    """
    if is_blank(text):
        return fresh(text, path, [value])
    root = scan(text)
    try:
        array = find(root, path)
    except LookupError:
        return _put(text, root, list(path), [value])
    if array.kind != "array":
        raise Refused(f"what should be a list, {'.'.join(path)!r}, is none", remedy=REMEDY)
    return _insert(text, array, lambda style: style(value))


def add(text: str, path: Path, key: str, value: Any) -> str:
    """The text with one more member in the object at `path`; raises LookupError, Refused."""
    name = json.dumps(key, ensure_ascii=False)
    return _insert(text, find(scan(text), path), lambda style: f"{name}: {style(value)}")


def replace(text: str, path: Path, value: Any) -> str:
    """The text with another value in a place that is there. raises LookupError, Refused"""
    node = find(scan(text), path)
    if "\n" in text[node.start : node.end] or not node.spans:
        made = _rendered(value, _indent_at(text, node.start), _unit(text), _eol(text))
    else:
        made = json.dumps(value, ensure_ascii=False)
    return text[: node.start] + made + text[node.end :]


def drop(text: str, path: Path) -> str:
    """The text without the member or item at `path`, with its comma and the white space before it.

    The undoing of `append` and `put`. raises LookupError, Refused
    """
    parent = find(scan(text), path[:-1])
    at = parent.place(path[-1])
    start, end = parent.spans[at]
    before = (parent.commas[at - 1] if at else parent.start) + 1
    after = parent.commas[at] + 1 if parent.commas[at] >= 0 else end
    lead = len(text[:start].rstrip(BLANKS))
    lead = max(lead, before)
    if at == 0 and len(parent.spans) > 1 and "\n" not in text[before:start]:
        lead = start  # the next one takes its place in the line
        after = skip_blanks(text, after)
    elif ends_in_line_comment(text, before, start) and text[after : after + 1] not in ("\n", "\r"):
        lead = start  # the comment must not swallow what follows
    head, tail = text[:lead], text[after:]
    if after == end and at:  # the last one, without a comma of its own: the one before it goes
        comma = parent.commas[at - 1]
        head = head[:comma] + head[comma + 1 :]
    made = head + tail
    if len(parent.spans) == 1:
        inner = made[parent.start + 1 : parent.end - 1 - (len(text) - len(made))]
        if not inner.strip(BLANKS):
            made = made[: parent.start + 1] + made[parent.start + 1 + len(inner) :]
    return made


def inside(text: str, path: Path) -> str | None:
    """What stands between the brackets of the empty object or array at `path`; None when it is not empty."""
    try:
        node = find(scan(text), path)
    except LookupError:
        return None
    if node.kind == "scalar" or node.spans:
        return None
    return text[node.start + 1 : node.end - 1]


def put_inside(text: str, path: Path, inner: str) -> str:
    """The undoing of `inside`; raises LookupError, Refused."""
    node = find(scan(text), path)
    return text[: node.start + 1] + inner + text[node.end - 1 :]


def skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


# ----------------------------------------------------------------------- putting in


def _with(found: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    if not isinstance(found, dict):
        raise Refused(f"what should hold {path[0]!r} is no object", remedy=REMEDY)
    return {**found, path[0]: _with(found.get(path[0], {}), path[1:], value)}


def _put(text: str, node: Node, path: list[str], value: Any) -> str:
    if node.kind != "object":
        raise Refused(f"what should hold {path[0]!r} is no object", remedy=REMEDY)
    for member in node.members:
        if member.key == path[0]:
            if len(path) > 1:
                return _put(text, member.value, path[1:], value)
            made = _rendered(value, _indent_at(text, member.start), _unit(text), _eol(text))
            return text[: member.value.start] + made + text[member.value.end :]
    key = json.dumps(path[0], ensure_ascii=False)
    return _insert(text, node, lambda style: f"{key}: {style(_nested(path[1:], value))}")


def _insert(text: str, node: Node, body_in: Callable[[Callable[[Any], str]], str]) -> str:
    """The text with one more member or item at the end of an object or array.

    body_in  the new text, given how a value is rendered there
    """
    eol, unit = _eol(text), _unit(text)
    spans = node.spans
    is_inline = "\n" not in text[node.start : node.end] and bool(spans)
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, spans[0][0]) if spans and not is_inline else outer + unit
    if is_inline:
        body = body_in(lambda value: json.dumps(value, ensure_ascii=False))
        lead = " "
    else:
        body = body_in(lambda value: _rendered(value, inner, unit, eol))
        lead = eol + inner
    edge = node.end - 1
    last = max(len(text[:edge].rstrip(BLANKS)), node.start + 1)
    if not spans:
        close = eol + outer if "\n" not in text[last:edge] else ""
        return text[:last] + lead + body + close + text[last:]
    if node.commas[-1] >= 0:
        return text[:last] + lead + body + "," + text[last:]
    value_end = spans[-1][1]
    return text[:value_end] + "," + text[value_end:last] + lead + body + text[last:]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _rendered(value: Any, indent: str, unit: str, eol: str) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", eol + indent)


def _eol(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """One step of indentation as this file has it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found and len(found[1]) <= 8 else "  "


def _indent_at(text: str, at: int) -> str:
    """The white space at the start of the line that a place is in."""
    start = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[start:at])
    return found[0] if found else ""
