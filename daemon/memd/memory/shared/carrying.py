"""Carry-over: where each topic of another folder goes in this store, and under which line. Pure.

A topic keeps its name where that is free, or has the very same bytes. Else it gets `-memd`, `-memd-2`, ...:
the first that is free or has the same bytes. So a run that was cut off is recognised by its copies, and
goes on. A name is taken by anything that has it, also by a line of the index whose file is missing.
Topics that were removed on purpose, in either folder, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from memd.memory.shared.index import Entry, entries_of, lines_of, parse_line, render, with_file
from memd.memory.shared.repairs import entry_for
from memd.memory.shared.slugs import EXTENSION, INDEX, comparable, folded, is_safe, suffixed

SUFFIX = b"-memd"
MAX_NUMBER = 10_000


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """The folder that is carried over, as it was read."""

    index: bytes
    topics: Mapping[bytes, str]  # the digest of each regular file that could be read
    removed: frozenset[bytes] = frozenset()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The store that takes it, as it was read."""

    index: bytes
    names: Collection[bytes]
    digests: Callable[[bytes], str]  # of a regular file in it; empty for anything else
    removed: frozenset[bytes] = frozenset()


class Carry(msgspec.Struct, frozen=True, kw_only=True):
    """One topic and where it goes."""

    file: bytes
    to: bytes
    is_copied: bool  # else the store has it already
    line: bytes = b""  # without its end; empty: there is one


class Skipped(msgspec.Struct, frozen=True):
    file: bytes
    reason: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    carries: tuple[Carry, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def has_anything(incoming: Incoming) -> bool:
    """Whether there is a topic to carry."""
    return any(is_safe(file) and file not in incoming.removed for file in incoming.topics)


def plan(incoming: Incoming, standing: Standing, content: Callable[[bytes], bytes]) -> Plan:
    """What to copy and which lines to add, in the order of the incoming index; topics it lists not, last.

    content  of an incoming file
    """
    state = _State(standing)
    carries: list[Carry] = []
    skipped: list[Skipped] = []
    done: set[bytes] = set()
    for line, entry in _lines(incoming.index):
        if entry.file in done:
            continue
        done.add(entry.file)
        reason = _reason_to_skip(entry.file, incoming, standing)
        carry = None if reason else state.place(entry.file, incoming.topics[entry.file], line)
        if carry is None:
            skipped.append(Skipped(entry.file, reason or "it was removed on purpose"))
        else:
            carries.append(carry)
    for file in sorted(set(incoming.topics) - done):
        reason = _reason_to_skip(file, incoming, standing)
        if reason:
            if file.endswith(EXTENSION) and file != INDEX:
                skipped.append(Skipped(file, reason))
            continue
        line = render(entry_for(file, content(file), state.names_taken))
        carry = state.place(file, incoming.topics[file], line)
        if carry is not None:
            carries.append(carry)
    return Plan(carries=tuple(carries), skipped=tuple(skipped))


def _lines(index: bytes) -> list[tuple[bytes, Entry]]:
    found = ((line, parse_line(line)) for line in lines_of(index))
    return [(line, entry) for line, entry in found if entry is not None]


def _reason_to_skip(file: bytes, incoming: Incoming, standing: Standing) -> str:
    if not is_safe(file):
        return "its name is not safe"
    if file in incoming.removed or file in standing.removed:
        return "it was removed on purpose"
    if file not in incoming.topics:
        return "there is no such file"
    return ""


class _State:
    """What is taken in the store while the plan grows."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        entries = entries_of(standing.index)
        self._on_disk = {folded(name): name for name in standing.names}
        self._listed = {folded(entry.file) for entry in entries}
        self._planned: dict[str, str] = {}  # folded name: digest
        self.names_taken = {comparable(entry.name) for entry in entries}

    def place(self, file: bytes, digest: str, line: bytes) -> Carry | None:
        """None where the very text was carried once and then removed."""
        for number in range(MAX_NUMBER):
            to = file if not number else suffixed(file, SUFFIX, number)
            key = folded(to)
            there = self._on_disk.get(key)
            is_same = self._planned.get(key) == digest or (
                there is not None and self._standing.digests(there) == digest
            )
            if is_same and there in self._standing.removed:
                return None
            is_taken = there is not None or key in self._listed or key in self._planned
            if is_taken and not is_same:
                continue
            to = there or to
            is_listed = key in self._listed
            self._listed.add(key)
            self._planned[key] = digest
            fresh = b"" if is_listed else with_file(line, to)
            entry = parse_line(fresh)
            if entry is not None:
                self.names_taken.add(comparable(entry.name))
            return Carry(file=file, to=to, is_copied=not is_same, line=fresh)
        return None


def only(found: Plan, files: Sequence[bytes]) -> Plan:
    """The same for some of the topics."""
    wanted = frozenset(files)
    return Plan(carries=tuple(c for c in found.carries if c.file in wanted), skipped=found.skipped)
