"""Topic files: their front matter and body, read and written without touching what is not ours. Pure.

    ---
    name: "..."
    description: "..."
    created: 2026-11-03T10:00:00+01:00
    last_updated: 2026-11-03T10:00:00+01:00
    metadata:
      node_type: memory
    ---

    body

Values are JSON strings, or bare text in older files. Fields that memd does not know stay as they are. A file
without front matter is a topic too; front matter that never closes is none.

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

from memd.memory.shared.index import eol_of, first_date, lines_of

MAX_FRONT_LINES = 200

_field = re.compile(r"([A-Za-z_][\w-]*):[ \t]*(.*)")


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """What the front matter says; empty where it says nothing, or there is none."""

    name: str = ""
    description: str = ""
    created: str = ""
    last_updated: str = ""
    length: int = 0  # of the front matter in lines, both fences included; 0: there is none


def read_front(text: bytes) -> Front:
    lines = lines_of(text)
    length = _length(lines)
    found: dict[str, str] = {}
    for line in lines[1 : length - 1] if length else ():
        match = _field.fullmatch(line.decode("utf-8", "replace").rstrip("\r\n"))
        if match and match[1] not in found:
            found[match[1]] = _value(match[2].strip())
    return Front(
        name=found.get("name", ""),
        description=found.get("description", ""),
        created=first_date(found.get("created", "")),
        last_updated=first_date(found.get("last_updated", "")),
        length=length,
    )


def body_of(text: bytes) -> bytes:
    """What follows the front matter and the blank line after it."""
    lines = lines_of(text)
    length = _length(lines)
    if not length:
        return text
    body = lines[length:]
    if body and not body[0].strip():
        body = body[1:]
    return b"".join(body)


def new_file(name: str, summary: str, date: str, body: str, *, created: str = "") -> bytes:
    """A topic as it is first written."""
    return (
        f"---\nname: {_quoted(name)}\ndescription: {_quoted(summary)}\n"
        f"created: {created or date}\nlast_updated: {date}\nmetadata:\n  node_type: memory\n---\n\n"
        f"{body.strip(chr(10))}\n"
    ).encode()


def section(date: str, body: str, eol: bytes = b"\n") -> bytes:
    """What an append adds: a heading with the date, and the text."""
    text = f"## {date}\n\n{body.strip(chr(10))}\n".encode()
    return text.replace(b"\n", eol)


def appended(old: bytes, summary: str, date: str, body: str) -> bytes:
    """A topic with one more section, its front matter brought up to date."""
    eol = eol_of(old)
    kept = _updated(old, summary, date).rstrip(b"\r\n")
    return (kept + eol + eol if kept else b"") + section(date, body, eol)


def replaced(old: bytes, name: str, summary: str, date: str, body: str) -> bytes:
    """A topic with another body; its front matter stays, or is made where there was none."""
    length = _length(lines_of(old))
    if not length:
        return new_file(name, summary, date, body)
    eol = eol_of(old)
    head = b"".join(lines_of(_updated(old, summary, date))[: _length(lines_of(_updated(old, summary, date)))])
    text = body.strip("\n").encode() + b"\n"
    return head.rstrip(b"\r\n") + eol + eol + text.replace(b"\n", eol)


def _updated(text: bytes, summary: str, date: str) -> bytes:
    """The text with `last_updated` and `description` set in its front matter, if it has one."""
    lines = lines_of(text)
    length = _length(lines)
    if not length:
        return text
    wanted = {"last_updated": date, **({"description": _quoted(summary)} if summary else {})}
    return b"".join(_with_fields(lines[:length], wanted) + lines[length:])


def _with_fields(front: list[bytes], wanted: Mapping[str, str]) -> list[bytes]:
    eol = b"\r\n" if front[0].endswith(b"\r\n") else b"\n"
    left = dict(wanted)
    out = []
    for line in front[:-1]:
        match = _field.fullmatch(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
        if match and match[1] in left:
            line = f"{match[1]}: {left.pop(match[1])}".encode() + eol
        out.append(line)
    at = next((n for n, line in enumerate(out) if line.startswith(b"metadata:")), len(out))
    fresh = [f"{key}: {value}".encode() + eol for key, value in left.items()]
    return [*out[:at], *fresh, *out[at:], front[-1]]


def _length(lines: list[bytes]) -> int:
    if not lines or lines[0].rstrip(b"\r\n") != b"---":
        return 0
    for at, line in enumerate(lines[1:MAX_FRONT_LINES], 2):
        if line.rstrip(b"\r\n ") == b"---":
            return at
    return 0


def _value(text: str) -> str:
    if text.startswith('"'):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, str):
            return found
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
