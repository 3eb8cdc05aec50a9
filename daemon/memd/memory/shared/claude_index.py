"""The index of a Claude Code memory folder, turned into one of this kind. Pure.

Its lines are `- [Title](file.md) — words`, with whatever dash; it has no dates, so a note's time of change is
taken for its date.

source  Claude Code 2.1.197, read 2026-11
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from memd.memory.shared.index import INITIAL, Entry, lines_of, parse_line, render
from memd.memory.shared.slugs import EXTENSION, summary_of, topic_name

_epoch = datetime.datetime(1970, 1, 1)


def index_of_claude(index: bytes, changed_ns: Mapping[bytes, int]) -> bytes:
    """
    changed_ns  when each note was last changed
    """
    lines = [
        _line(line, entry, changed_ns) for line in lines_of(index) if (entry := parse_line(line)) is not None
    ]
    return INITIAL + b"".join(line + b"\n" for line in lines)


def _line(line: bytes, entry: Entry, changed_ns: Mapping[bytes, int]) -> bytes:
    text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
    words = text[text.index("](") :].partition(")")[2].strip().lstrip("—–-: ")
    name = topic_name(entry.name) or entry.file.removesuffix(EXTENSION).decode("utf-8", "replace")
    return render(
        Entry(
            name=name,
            file=entry.file,
            date=_date(changed_ns.get(entry.file)),
            summary=summary_of(words) or name,
        )
    )


def _date(changed_ns: int | None) -> str:
    if changed_ns is None:
        return ""
    try:
        return f"{_epoch + datetime.timedelta(microseconds=changed_ns // 1000):%Y-%m-%d}"
    except (OverflowError, ValueError):
        return ""
