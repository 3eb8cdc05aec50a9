"""All targets by name."""

from __future__ import annotations

from fuzz import harnesses, readers, texts
from fuzz.model import Target


def all_targets() -> dict[str, Target]:
    found: dict[str, Target] = {}
    for family in (harnesses, readers, texts):
        for target in family.targets():
            assert target.name not in found
            found[target.name] = target
    return found
