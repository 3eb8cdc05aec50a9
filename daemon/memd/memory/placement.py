"""Where new text goes in an index that somebody else ordered: under its own heading. Pure.

A section is found by the whole path of its headings, else by the words of its own heading wherever that
stands. A heading that is not there is added with what stands under it: at the end of the nearest section
above it that is there, else at the end of the file. Text that stood before any heading goes to the text
before any heading, or under a title that opens the file, or to the top.
"""

from __future__ import annotations

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
    groups: dict[int, list[_Group]] = {}
    for group in _grouped(ours, theirs, additions):
        groups.setdefault(group.at, []).append(group)
    out: list[bytes] = []
    at = 0
    while True:
        for group in sorted(groups.get(at, ()), key=lambda g: g.rank):
            _append(out, group, _ends_in_list(ours, at), eol)
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
    """An entry's lines with the indentation that the line it replaces had."""
    indent = like[: len(like) - len(like.lstrip(b" \t"))]
    return (indent + lines[0].lstrip(b" \t"), *lines[1:])


def _line_end(raw: list[bytes]) -> bytes:
    windows = sum(line.endswith(b"\r\n") for line in raw)
    return b"\r\n" if windows * 2 > sum(line.endswith((b"\n", b"\r")) for line in raw) else b"\n"


def _grouped(ours: Outline, theirs: Outline, additions: list[Unit]) -> list[_Group]:
    above: dict[int, Unit | None] = {}
    heading = None
    for unit in theirs.units:
        heading = unit if unit.kind == "heading" else heading
        above[unit.start] = heading
    groups: dict[Title | int, _Group] = {}  # by the heading that is made, or by the place in the owned text
    for unit in additions:
        group = _destination(ours, above[unit.start])
        name = group.heading.section[-1] if group.heading else group.at
        groups.setdefault(name, group).units.append(unit)
    return list(groups.values())


def _destination(ours: Outline, heading: Unit | None) -> _Group:
    if heading is None:
        end = ours.end_of_section(None)
        opening = ours.units[0] if ours.units else None
        if end == 0 and opening is not None and opening.kind == "heading" and opening.section[0][0] == 1:
            end = ours.end_of_section(opening)
        return _Group(end, 0, None, [])
    found = ours.find(heading.section)
    if found:
        return _Group(ours.end_of_section(found), 0, None, [])
    for depth in range(len(heading.section) - 1, 0, -1):
        found = ours.find(heading.section[:depth])
        if found:
            end = ours.end_of_section(found, with_subsections=True)
            return _Group(end, END_OF_FILE - len(found.section), heading, [])
    return _Group(ours.end_of_text(), END_OF_FILE, heading, [])


def _ends_in_list(ours: Outline, at: int) -> bool:
    """Whether the last text before line `at` belongs to a list."""
    for unit in reversed(ours.units):
        if unit.end <= at:
            return is_item(unit.lines[0])
    return False


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
        # without the line it was nested under it would be nested under a stranger
        lines = unit.lines if is_next or not listed else reindented(unit.lines, b"")
        out += [line + eol for line in lines]
        last = unit
