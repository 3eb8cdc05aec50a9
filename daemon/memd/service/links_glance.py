"""Whether the memory link of a place is as it was when it was last put right, told by a few looks.

An agent's start has its link put right first; in between hardly anything changes there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from memd.protocol import Entry
from memd.service import looks

MAX_PLACES = 200

Place = tuple[bytes, bytes]
"""A directory that an agent works in, and its login."""


class _Seen(msgspec.Struct, frozen=True):
    """The registry of agents, and the links with what they lead to."""

    registry: looks.Facts | None
    links: tuple[tuple[bytes, tuple[int, ...]], ...]


class LinksGlance:
    """Remembers the last `MAX_PLACES` places. Threads may use it at once.

    registry  the file that says which agents own their memory
    """

    def __init__(self, registry: bytes) -> None:
        self._registry = registry
        self._seen: OrderedDict[Place, _Seen] = OrderedDict()

    def registry(self) -> looks.Facts | None:
        """How the registry looks: take it before the links are put right."""
        return looks.facts(self._registry)

    def remember(self, place: Place, registry: looks.Facts | None, entries: Sequence[Entry]) -> None:
        """entries  what putting right came to, for every login; a place with one that failed, or that leads
        nowhere, is forgotten"""
        links = tuple((entry.path, _link(entry.path)) for entry in entries)
        is_right = all(entry.outcome in ("linked", "migrated") for entry in entries)
        if not is_right or not all(facts for _path, facts in links):
            self._seen.pop(place, None)
            return
        self._seen[place] = _Seen(registry, links)
        while len(self._seen) > MAX_PLACES:
            self._seen.popitem(last=False)

    def is_same(self, place: Place) -> bool:
        """Whether nothing changed there since; False where nothing is remembered. Looks at the disk."""
        seen = self._seen.get(place)
        return (
            seen is not None
            and seen.registry == looks.facts(self._registry)
            and all(_link(path) == facts for path, facts in seen.links)
        )


def _link(path: bytes) -> tuple[int, ...]:
    """The link itself and where it leads."""
    try:
        link, there = os.lstat(path), os.stat(path)
    except OSError:
        return ()
    return link.st_ino, link.st_ctime_ns, there.st_dev, there.st_ino
