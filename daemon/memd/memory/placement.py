"""Where new text goes in an index that somebody else ordered: under its own heading. Pure.

A section is found by the whole path of its headings, else by the words of its own heading wherever that
stands. A heading that is not there is added with what stands under it: at the end of the nearest section
above it that is there, else at the end of the file. Text that stood before any heading goes to the text
before any heading, or under a title that opens the file, or to the top.
"""

from __future__ import annotations

import bisect

import msgspec

from memd.memory.outline import Outline, Title, Unit, is_blank, is_item

Edits = dict[int, tuple[int, list[bytes]]]  # owned lines from a number up to another: what stands there now

END_OF_FILE = 1000  # sorts behind every level of heading


class _Group(msgspec.Struct):
    """Units that go to one place, and the heading to make above them there (None: it is there)."""

    at: int  # before this line of the owned text
    rank: int  # the order of groups at one place
    heading: Unit | None
    units: list[Unit]


def compose(ours: Outline, theirs: Outline, edits: Edits, additions: list[Unit]) -> bytes:
    """The owned text with `edits` made and `additions` put in their places, in the owned text's line ends."""
    eol = _line_end(ours.raw)
    sections = _Sections(ours)
    groups: dict[int, list[_Group]] = {}
    for group in _grouped(sections, theirs, additions):
        groups.setdefault(group.at, []).append(group)
    out: list[bytes] = []
    at = 0
    while True:
        for group in sorted(groups.get(at, ()), key=lambda g: g.rank):
            _append(out, group, sections.ends_in_list(at), eol)
        if at == len(ours.raw):
            return b"".join(out)
        if at in groups and not is_blank(ours.lines[at]):
            out.append(eol)
        if at in edits:
            at, new = edits[at]
            out += [line + eol for line in new]
        else:
            out.append(ours.raw[at])
            at += 1


def reindented(lines: tuple[bytes, ...], like: bytes) -> tuple[bytes, ...]:
    """An entry's lines with the indentation of the line it replaces, where both are or are not list items.

    An indented line that is no item would continue the entry above it.
    """
    indent = like[: len(like) - len(like.lstrip(b" \t"))] if is_item(lines[0]) == is_item(like) else b""
    return (indent + lines[0].lstrip(b" \t"), *lines[1:])


def _line_end(raw: list[bytes]) -> bytes:
    windows = sum(line.endswith(b"\r\n") for line in raw)
    return b"\r\n" if windows * 2 > sum(line.endswith((b"\n", b"\r")) for line in raw) else b"\n"


class _Sections:
    """Where the sections of an outline are; every question is answered in constant time but the first."""

    def __init__(self, outline: Outline) -> None:
        self._lines = outline.lines
        self._units = outline.units
        self._unit_ends = [u.end for u in outline.units]
        self._headings = [u for u in outline.units if u.kind == "heading"]
        self._by_path: dict[tuple[Title, ...], int] = {}
        self._by_words: dict[bytes, int] = {}
        for number, heading in enumerate(self._headings):
            self._by_path.setdefault(heading.section, number)
            self._by_words.setdefault(heading.section[-1][1], number)
        self._trees: dict[int, int] = {}

    def find(self, section: tuple[Title, ...]) -> int | None:
        """The number of a heading: the first with this path, else the first with its words at any place."""
        number = self._by_path.get(section)
        return self._by_words.get(section[-1][1]) if number is None else number

    def depth(self, number: int) -> int:
        return len(self._headings[number].section)

    def end_of_opening(self) -> int:
        """The line after the last text before any heading, or under a title that opens the file."""
        first = self._units[0] if self._units else None
        if first is not None and first.kind == "heading" and first.section[0][0] == 1:
            return self.end(0)
        return self._end_before(self._headings[0].start if self._headings else len(self._lines))

    def end(self, number: int) -> int:
        """The line after the last text that stands directly under a heading."""
        after = number + 1
        return self._end_before(
            self._headings[after].start if after < len(self._headings) else len(self._lines)
        )

    def end_of_tree(self, number: int) -> int:
        """The line after the last text under a heading or under the headings below it."""
        if number not in self._trees:
            path = self._headings[number].section
            last = number
            while last + 1 < len(self._headings) and self._headings[last + 1].section[: len(path)] == path:
                if len(self._headings[last + 1].section) == len(path):
                    break  # another section of the same name
                last += 1
            self._trees[number] = self.end(last)
        return self._trees[number]

    def end_of_text(self) -> int:
        return self._end_before(len(self._lines))

    def ends_in_list(self, at: int) -> bool:
        """Whether the last text before line `at` belongs to a list."""
        number = bisect.bisect_right(self._unit_ends, at) - 1
        return number >= 0 and is_item(self._units[number].lines[0])

    def _end_before(self, at: int) -> int:
        number = bisect.bisect_right(self._unit_ends, at) - 1
        return self._unit_ends[number] if number >= 0 else 0


def _grouped(sections: _Sections, theirs: Outline, additions: list[Unit]) -> list[_Group]:
    above: dict[int, Unit | None] = {}
    heading = None
    for unit in theirs.units:
        heading = unit if unit.kind == "heading" else heading
        above[unit.start] = heading
    groups: dict[Title | int, _Group] = {}  # by the heading that is made, or by the place in the owned text
    for unit in additions:
        group = _destination(sections, above[unit.start])
        name = group.heading.section[-1] if group.heading else group.at
        groups.setdefault(name, group).units.append(unit)
    return list(groups.values())


def _destination(sections: _Sections, heading: Unit | None) -> _Group:
    if heading is None:
        return _Group(sections.end_of_opening(), 0, None, [])
    found = sections.find(heading.section)
    if found is not None:
        return _Group(sections.end(found), 0, None, [])
    for depth in range(len(heading.section) - 1, 0, -1):
        found = sections.find(heading.section[:depth])
        if found is not None:
            return _Group(sections.end_of_tree(found), END_OF_FILE - sections.depth(found), heading, [])
    return _Group(sections.end_of_text(), END_OF_FILE, heading, [])


def _append(out: list[bytes], group: _Group, follows_list: bool, eol: bytes) -> None:
    """Put a group behind what is there, with a blank line where the incoming text or Markdown needs one."""
    if out and not out[-1].endswith((b"\n", b"\r")):
        out[-1] += eol
    last = None
    if group.heading:
        if out and not is_blank(out[-1]):
            out.append(eol)
        out.append(group.heading.lines[0] + eol)
        last = group.heading
    for unit in group.units:
        is_next = last is not None and last.end == unit.start
        listed = is_item(unit.lines[0])
        after_list = is_item(last.lines[0]) if last else follows_list
        if not is_next and not (listed and after_list) and out and not is_blank(out[-1]):
            out.append(eol)
        # away from the line it was nested under it would be nested under a stranger
        lines = (
            unit.lines if is_next or unit.kind == "prose" else (unit.lines[0].lstrip(b" \t"), *unit.lines[1:])
        )
        out += [line + eol for line in lines]
        last = unit
