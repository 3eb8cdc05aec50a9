"""The block about the shared memory that an agent is given: the index, what it lacks, the rules. Pure.

It is bounded in lines and bytes, by whole lines only; what was left out is said in it. The index is other
agents' words, so it stands in the frame of untrusted text. The rules are the user's own.
"""

from __future__ import annotations

import msgspec

from memd.frame import NOTICE, framed, harmless
from memd.memory.shared.index import lines_of, parse_line
from memd.memory.shared.repairs import DRIFT
from memd.memory.shared.rules import Lists

MARKER = "<!-- memd:memory:v1 -->"
MAX_LINES = 200
MAX_BYTES = 25_000
LEFT_OUT_BYTES = 120  # for the comment that says what was left out

TITLES = (
    ("always_persist", "Always remember"),
    ("never_persist", "Never remember"),
    ("always_ask", "Ask first"),
)


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a block is made of."""

    folder: str  # the store, for people
    index: bytes
    unlisted: int  # topics that no line leads to; 0 where nobody looks, as in the local store
    max_lines: int
    lists: Lists
    rules_source: str  # the file with the rules


def render(contents: Contents, limit: int = 0) -> str:
    """The block, at most `limit` bytes in all where that is given and leaves room for anything at all.

    An empty text when not even the frame fits.
    """
    head = (
        f"{MARKER}\n# Global Memory\n\n"
        f"Topics that agents wrote down in earlier sessions, on this machine, in any project. {NOTICE} "
        "Read a topic with `memctl memory read TOPIC` or from its file.\n\n"
        f"Memory dir: {contents.folder}\n\n"
    )
    note = ""
    if contents.unlisted > DRIFT:
        note = (
            f"<!-- {contents.unlisted} topics in this folder are not in its index; "
            "`memctl memory repair` lists them. -->\n"
        )
    tail = f"{note}\n{_rules(contents)}"
    room = MAX_BYTES
    if limit:
        fixed = _size(head) + _size(tail) + _size(framed("memory-index", "")) + LEFT_OUT_BYTES
        if fixed > limit and _size(head) + LEFT_OUT_BYTES * 2 <= limit:
            tail = note  # the rules are too long for this harness: the index matters more
            fixed = _size(head) + _size(tail) + _size(framed("memory-index", "")) + LEFT_OUT_BYTES
        room = min(MAX_BYTES, limit - fixed)
        if room < 0:
            return ""
    shown, left_out = _cut(contents.index, min(MAX_LINES, contents.max_lines), room)
    more = f"<!-- {left_out} more lines of the index are not shown. -->\n" if left_out else ""
    return head + framed("memory-index", shown) + more + tail


def _cut(index: bytes, max_lines: int, max_bytes: int) -> tuple[str, int]:
    """The first lines of an index within bounds, and how many were left out. Unsafe entries are not shown."""
    shown: list[str] = []
    used = left_out = 0
    for raw in lines_of(index):
        entry = parse_line(raw)
        if entry is not None and not entry.is_safe:
            continue
        line = harmless(raw.decode("utf-8", "replace").rstrip("\r\n")) + "\n"
        size = _size(line)
        if left_out or len(shown) >= max_lines or used + size > max_bytes:
            left_out += 1
            continue
        shown.append(line)
        used += size
    return "".join(shown) or "(no topics yet)\n", left_out


def _rules(contents: Contents) -> str:
    source = contents.rules_source or "memd's defaults, since no memory.jsonc has any"
    parts = [f"# Memory Rules\n\nWhat to write down with `memctl memory write` (from {source}).\n"]
    for field, title in TITLES:
        items: tuple[str, ...] = getattr(contents.lists, field)
        if items:
            parts.append(f"\n### {title}\n\n" + "".join(f"- {harmless(item)}\n" for item in items))
    return "".join(parts)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
