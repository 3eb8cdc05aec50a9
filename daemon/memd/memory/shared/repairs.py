"""Which files of a store the index has lost, and the lines to add for them. Pure.

Repair adds, and only when somebody asks: another tool may be between its file and its line. What the other
tools would refuse is not listed but reported, since they would drop its line again. Links are never listed,
because they may lead out of the folder; neither are folders, hidden files, and topics removed on purpose.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence

import msgspec

from memctl.paths import shown
from memd.memory.shared.front import read_front
from memd.memory.shared.index import Entry, entries_of, parse_line, render
from memd.memory.shared.slugs import (
    EXTENSION,
    INDEX,
    comparable,
    file_of,
    folded,
    is_safe,
    stem_of,
    summary_of,
    topic_name,
)

DRIFT = 5  # more unlisted topics than this are worth a word


class Misnamed(msgspec.Struct, frozen=True):
    """A file that cannot be listed because of its name."""

    file: bytes
    reason: str
    remedy: str


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What a store has that its index has not."""

    files: tuple[bytes, ...]  # to be listed, in the order of their names
    misnamed: tuple[Misnamed, ...]


def lost(
    index: bytes, names: Collection[bytes], regular: Collection[bytes], removed: Collection[bytes]
) -> Lost:
    """
    names    all names in the store
    regular  those of them that are regular files
    removed  the store's tombstones
    """
    listed = {folded(entry.file) for entry in entries_of(index)}
    candidates = sorted(
        name
        for name in names
        if name.endswith(EXTENSION)
        and not name.startswith(b".")
        and name != INDEX
        and name in regular
        and folded(name) not in listed
        and name not in removed
    )
    return Lost(
        files=tuple(name for name in candidates if is_safe(name)),
        misnamed=tuple(_misnamed(name, names) for name in candidates if not is_safe(name)),
    )


def lines_for(
    index: bytes, topics: Sequence[tuple[bytes, bytes]], remembered: Mapping[bytes, bytes]
) -> list[tuple[bytes, bytes]]:
    """The file and line of each topic, each under a name that means no other.

    topics      file and content
    remembered  lines that these files had before, by file
    """
    taken = {comparable(entry.name) for entry in entries_of(index) if entry.is_safe}
    out = []
    for file, content in topics:
        old = parse_line(remembered.get(file, b""))
        entry = _entry(file, content, taken) if old is None else old
        taken.add(comparable(entry.name))
        out.append((file, render(msgspec.structs.replace(entry, is_stale=not entry.is_pinned, file=file))))
    return out


def entry_for(file: bytes, content: bytes, taken: Collection[str]) -> Entry:
    """An entry for a topic that has none, from what its front matter says."""
    return _entry(file, content, taken)


def _entry(file: bytes, content: bytes, taken: Collection[str]) -> Entry:
    front = read_front(content)
    stem = topic_name(file.removesuffix(EXTENSION).decode("utf-8", "replace"))
    names = (topic_name(front.name), stem, *(f"{stem} {number}" for number in range(2, 10_000)))
    name = next(name for name in names if name and comparable(name) not in taken)
    return Entry(
        name=name,
        file=file,
        date=front.last_updated or front.created,
        summary=summary_of(front.description) or name,
    )


def _misnamed(name: bytes, names: Collection[bytes]) -> Misnamed:
    stem = stem_of(name.removesuffix(EXTENSION).decode("utf-8", "ignore")) or "topic"
    free = next(new for n in range(1, 10_000) if (new := file_of(stem, n)) not in names)
    text = name.decode("utf-8", "surrogateescape")
    if any(c in "[]()" for c in text):
        reason = "its name has brackets, which the other tools of this folder refuse"
    elif any(unicodedata.category(c) == "Cs" for c in text):
        reason = "its name is not UTF-8"
    else:
        reason = "the other tools of this folder refuse its name"
    return Misnamed(name, reason, f"Rename it, for example to {shown(free)}, and repair again.")
