"""git's configuration files, as far as a checkout's identity needs them. Pure: bytes in, entries out.

source  git-config(1), "Syntax", git 2.39 to 2.51
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_BYTES = 1 << 20

_blank = re.compile(rb"(?:[\s\0]|[#;][^\n]*)+")
_header = re.compile(rb'\[([-.A-Za-z0-9]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_key = re.compile(rb"([A-Za-z][-A-Za-z0-9]*)[ \t]*(=?)[ \t]*")
_value = re.compile(rb'(?:[^\\"#;\n]|\\[^\r]|"(?:[^\\"\n]|\\[^\r])*")*')
_piece = re.compile(rb'\\(\n)|\\(.)|(")|([^\\"]+)', re.DOTALL)

_ESCAPED = {b"n": b"\n", b"t": b"\t", b"b": b"\b", b'"': b'"', b"\\": b"\\"}


class Entry(msgspec.Struct, frozen=True):
    """section and key in lower case; a subsection keeps its case, unless it was written `[a.b]`."""

    section: bytes
    subsection: bytes
    key: bytes
    value: bytes


def parse(text: bytes) -> list[Entry]:
    """The entries of a file in their order; a key without `=` has the value `true`.

    raises  ValueError for what git would refuse
    """
    return list(_entries(text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")))


def _entries(text: bytes) -> Iterator[Entry]:
    section = subsection = b""
    at = 0
    while True:
        blank = _blank.match(text, at)
        if blank is not None:
            at = blank.end()
        if at == len(text):
            return
        header = _header.match(text, at)
        if header is not None:
            name, quoted = header[1].lower(), header[2]
            section, _, subsection = name.partition(b".")
            if quoted is not None:
                section, subsection = name, re.sub(rb"\\(.)", rb"\1", quoted)
            at = header.end()
            continue
        key = _key.match(text, at)
        if key is None:
            raise ValueError(f"not a configuration of git at byte {at}")
        at = key.end()
        written = b"true"
        if key[2]:
            value = _value.match(text, at)
            assert value is not None
            at = value.end()
            written = _unquoted(value[0])
        if at < len(text) and text[at : at + 1] not in (b"\n", b"#", b";"):
            raise ValueError(f"not a configuration of git at byte {at}")
        yield Entry(section, subsection, key[1].lower(), written)


def _unquoted(value: bytes) -> bytes:
    """A value without its quotes, escapes and the blanks behind it."""
    out = b""
    kept = 0  # what is quoted or escaped is not trimmed
    is_quoted = False
    for piece in _piece.finditer(value):
        if piece[1]:
            continue
        if piece[2]:
            if piece[2] not in _ESCAPED:
                raise ValueError("an escape that git does not know")
            out += _ESCAPED[piece[2]]
            kept = len(out)
        elif piece[3]:
            is_quoted = not is_quoted
            kept = len(out)
        else:
            out += piece[4]
            if is_quoted:
                kept = len(out)
    return out[:kept] + out[kept:].rstrip()


def remotes(entries: list[Entry]) -> tuple[bytes, ...]:
    """The addresses of `origin`, in the file's order."""
    return tuple(
        entry.value
        for entry in entries
        if (entry.section, entry.subsection, entry.key) == (b"remote", b"origin", b"url") and entry.value
    )


def is_whole(entries: list[Entry]) -> bool:
    """Whether the file says all there is: it includes none, and no worktree has one of its own."""
    return not any(
        entry.section in (b"include", b"includeif")
        or ((entry.section, entry.key) == (b"extensions", b"worktreeconfig") and _is_true(entry.value))
        for entry in entries
    )


def _is_true(value: bytes) -> bool:
    return value.lower() in (b"true", b"yes", b"on", b"1")
