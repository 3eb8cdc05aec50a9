"""An index taken apart: headings, entries for files, list items, paragraphs. Pure, and on bytes throughout.

Lines end in LF, CR LF or CR. A fence that is never closed is no fence, so that a stray one cannot hide the
rest of the file.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from memd.memory.links import linked_file

Title = tuple[int, bytes]  # level and words of a heading; the words in lower case, to compare

_line = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_heading = re.compile(rb" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_item = re.compile(rb"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)")
_fence = re.compile(rb" {0,3}(`{3,}|~{3,})(.*)$")


class Unit(msgspec.Struct, frozen=True):
    """One piece of an index: `lines`, without their ends, from line number `start` on.

    kind     `heading`; `entry`: a line that links to a file, with the lines that continue it; `item`: any
             other list item, likewise; `prose`: a paragraph or a fenced block
    section  the headings it stands under, outermost first; a heading's own is the last of them
    """

    kind: Literal["heading", "entry", "item", "prose"]
    start: int
    lines: tuple[bytes, ...]
    section: tuple[Title, ...]
    key: bytes = b""  # of an entry: the file, in one spelling

    @property
    def end(self) -> int:
        return self.start + len(self.lines)


class Outline(msgspec.Struct, frozen=True):
    """An index in lines, with and without their ends, and in units."""

    raw: list[bytes]
    lines: list[bytes]
    units: list[Unit]

    @classmethod
    def of(cls, text: bytes) -> Outline:
        """`text` without a byte order mark"""
        raw = split(text)
        lines = bare(raw)
        return cls(raw, lines, units(lines))


def split(text: bytes) -> list[bytes]:
    """The lines of a text with their ends; joined they are the text."""
    return _line.findall(text)


def bare(lines: list[bytes]) -> list[bytes]:
    """The lines without their ends."""
    return [line.rstrip(b"\r\n") for line in lines]


def is_item(line: bytes) -> bool:
    return _item.match(line) is not None


def is_blank(line: bytes) -> bool:
    return not line.strip(b" \t\r\n")


def units(lines: list[bytes]) -> list[Unit]:
    """Everything but blank lines, in order; `lines` without their ends and without a byte order mark."""
    fences = _fences(lines)[0]
    found: list[Unit] = []
    section: list[Title] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if is_blank(line):
            at += 1
            continue
        heading = _heading.match(line)
        if at in fences:
            unit = Unit("prose", at, tuple(lines[at : fences[at]]), tuple(section))
        elif heading:
            level = len(heading[1])
            section = [t for t in section if t[0] < level]
            section.append((level, _words(heading[2] or b"")))
            unit = Unit("heading", at, (line,), tuple(section))
        else:
            key = linked_file(line)
            kind: Literal["entry", "item", "prose"] = "entry" if key else "item" if is_item(line) else "prose"
            take = _paragraph_end if kind == "prose" else _item_end
            unit = Unit(kind, at, tuple(lines[at : take(lines, at + 1, fences)]), tuple(section), key)
        found.append(unit)
        at = unit.end
    return found


def _words(title: bytes) -> bytes:
    """A heading's words, without a closing run of `#`."""
    title = title.strip(b" \t")
    closed = title.rstrip(b"#")
    if closed != title and (not closed or closed.endswith((b" ", b"\t"))):
        title = closed.rstrip(b" \t")
    return title.lower()


def _item_end(lines: list[bytes], at: int, fences: dict[int, int]) -> int:
    """Past the indented lines from `at` on. A nested item that links to a file is an entry of its own."""
    end = at
    while at < len(lines):
        line = lines[at]
        if is_blank(line):
            at += 1
            continue
        if not line.startswith((b"  ", b"\t") if at > end else (b" ", b"\t")):
            break
        if is_item(line) and linked_file(line):
            break
        at = end = fences.get(at, at + 1)
    return end


def _paragraph_end(lines: list[bytes], at: int, fences: dict[int, int]) -> int:
    while at < len(lines) and at not in fences:
        line = lines[at]
        if is_blank(line) or is_item(line) or _heading.match(line) or linked_file(line):
            break
        at += 1
    return at


def has_stray_fence(lines: list[bytes]) -> bool:
    """Whether a fence is opened and never closed: then one more line decides what is code and what is not."""
    return _fences(lines)[1]


def _fences(lines: list[bytes]) -> tuple[dict[int, int], bool]:
    """First line of every closed fenced block, and the line after its last; and whether one is left open."""
    marks: dict[bytes, list[tuple[int, int]]] = {b"`": [], b"~": []}  # lines that can close: number, length
    openers: list[tuple[int, bytes, int]] = []
    for at, line in enumerate(lines):
        mark = _fence.match(line)
        if not mark or (mark[1].startswith(b"`") and b"`" in mark[2]):
            continue
        char = mark[1][:1]
        openers.append((at, char, len(mark[1])))
        if is_blank(mark[2]):
            marks[char].append((at, len(mark[1])))
    blocks: dict[int, int] = {}
    hopeless = {b"`": len(lines) + 1 << 32, b"~": len(lines) + 1 << 32}  # this long or longer: none closes it
    is_stray = False
    upto = 0
    cursor = {b"`": 0, b"~": 0}
    for at, char, length in openers:
        if at < upto:
            continue
        if length >= hopeless[char]:
            is_stray = True
            continue
        closers = marks[char]
        while cursor[char] < len(closers) and closers[cursor[char]][0] <= at:
            cursor[char] += 1
        ahead = range(cursor[char], len(closers))
        last = next((closers[n][0] for n in ahead if closers[n][1] >= length), None)
        if last is None:
            hopeless[char] = length
            is_stray = True
        else:
            upto = blocks[at] = last + 1
    return blocks, is_stray
