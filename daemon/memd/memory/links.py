"""The file a Markdown line links to, in one spelling. Pure.

Indexes are written by models and by hand, so this reads what people mean rather than what CommonMark allows:
a target with bare spaces counts, and one whose parentheses do not balance ends at the first `)`.
"""

from __future__ import annotations

import re

MAX_LINKS = 32  # looked at in one line
MAX_TARGET_BYTES = 4096

_scheme = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:")
_title = re.compile(rb"""[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$""")
_percent = re.compile(rb"%([0-9A-Fa-f]{2})")
_escape = re.compile(rb"\\([!-/:-@\[-`{-~])")


def linked_file(line: bytes) -> bytes:
    """The first file that `line` links to, relative to the folder of the index; empty when there is none."""
    at = line.find(b"[")
    if at < 0:
        return b""
    for _ in range(MAX_LINKS):
        at = line.find(b"](", at)
        if at < 0:
            return b""
        at += 2
        name = normal_name(_target(line[at : at + MAX_TARGET_BYTES]))
        if name:
            return name
    return b""


def _target(rest: bytes) -> bytes:
    """The target at the start of `rest`, which follows `](`; a title behind it is taken off."""
    text = rest.lstrip(b" \t")
    if text.startswith(b"<"):
        end = _unescaped(text, b">", 1)
        if end > 0:
            return text[1:end]
    depth = 1
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        if char == b"\\":
            at += 1
        elif char == b"(":
            depth += 1
        elif char == b")":
            depth -= 1
            if depth == 0:
                break
        at += 1
    if depth:
        at = text.find(b")")
        if at < 0:
            return b""
    return _title.sub(b"", text[:at])


def _unescaped(text: bytes, char: bytes, at: int) -> int:
    while True:
        at = text.find(char, at)
        if at < 0 or text[at - 1 : at] != b"\\":
            return at
        at += 1


def normal_name(target: bytes) -> bytes:
    """One spelling for a link target: anchor, escapes, percent signs and `./` resolved; empty for no file."""
    target = target.strip()
    if _scheme.match(target) or target.startswith(b"//"):
        return b""
    name = _escape.sub(rb"\1", target.partition(b"#")[0])
    name = _percent.sub(lambda code: bytes.fromhex(code[1].decode("ascii")), name)
    parts: list[bytes] = []
    for part in name.split(b"/"):
        if part == b".." and parts and parts[-1] != b"..":
            parts.pop()
        elif part not in (b"", b"."):
            parts.append(part)
    root = b"/" if name.startswith(b"/") else b""
    return root + b"/".join(parts)
