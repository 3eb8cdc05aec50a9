"""Whether a memory store is still as it was a moment ago, told by a few looks instead of reading it.

An agent's start asks for the block about the memory folder; in between hardly anything changes there.
"""

from __future__ import annotations

import time

import msgspec

from memd.memory.shared.access import Active
from memd.memory.shared.slugs import INDEX
from memd.memory.shared.tombstones import REMOVED
from memd.service import looks

SETTLED_NS = 2_000_000_000  # a file that changed later than that may change again without a sign


class Glance(msgspec.Struct, frozen=True):
    """The store and its settings, its folder, its index and its tombstones. Compare two of them."""

    active: Active
    facts: tuple[looks.Facts | None, ...]

    def is_same(self, other: Glance) -> bool:
        """Settings are read anew whenever their files changed, into another object."""
        return (
            self.active.in_force is other.active.in_force
            and self.active.path == other.active.path
            and self.facts == other.facts
        )

    def is_settled(self) -> bool:
        """Whether whatever comes after it shows."""
        newest = max((max(one[2:]) for one in self.facts if one is not None), default=0)
        return newest < time.time_ns() - SETTLED_NS


def glance(active: Active) -> Glance:
    """A few looks at the disk; raises nothing."""
    folder = active.path
    paths = (folder, folder + b"/" + INDEX, folder + b"/" + REMOVED)
    return Glance(active, tuple(looks.facts(path) for path in paths))
