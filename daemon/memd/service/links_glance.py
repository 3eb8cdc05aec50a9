"""Whether the memory link of a place is as it was when it was last put right, told by a few looks.

An agent's start has its link put right first; in between hardly anything changes there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from memd.protocol import Entry

MAX_PLACES = 200

Place = tuple[bytes, bytes]
"""A directory that an agent works in, and its login."""

Facts = tuple[int, ...]


class _Seen(msgspec.Struct, frozen=True):
    """The registry of agents, and the links with what they lead to."""

    registry: Facts
    links: tuple[tuple[bytes, Facts], ...]


class LinksGlance:
    """Remembers the last `MAX_PLACES` places. Threads may use it at once.

    registry  the file that says which agents own their memory
    """

    def __init__(self, registry: bytes) -> None:
        self._registry = registry
        self._seen: OrderedDict[Place, _Seen] = OrderedDict()

    def registry(self) -> Facts:
        """How the registry looks: take it before the links are put right."""
        return _facts(self._registry)

    def remember(self, place: Place, registry: Facts, entries: Sequence[Entry]) -> None:
        """entries  what putting right came to, for every login; a place with one that failed is forgotten"""
        if any(entry.outcome not in ("linked", "migrated") for entry in entries):
            self._seen.pop(place, None)
            return
        self._seen[place] = _Seen(registry, tuple((entry.path, _link(entry.path)) for entry in entries))
        while len(self._seen) > MAX_PLACES:
            self._seen.popitem(last=False)

    def is_same(self, place: Place) -> bool:
        """Whether nothing changed there since; False where nothing is remembered. Looks at the disk."""
        seen = self._seen.get(place)
        return (
            seen is not None
            and seen.registry == _facts(self._registry)
            and all(_link(path) == facts for path, facts in seen.links)
        )


def _link(path: bytes) -> Facts:
    """The link itself and where it leads."""
    try:
        link, there = os.lstat(path), os.stat(path)
    except OSError:
        return ()
    return link.st_ino, link.st_ctime_ns, there.st_dev, there.st_ino


def _facts(path: bytes) -> Facts:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
