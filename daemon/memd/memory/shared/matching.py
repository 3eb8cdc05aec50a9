"""Which topic somebody means. Pure.

The exact name beats everything, then the exact file, then a part of a name. When several fit equally well,
none is chosen: the wrong topic would be changed or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memd.errors import NotFound, Refused
from memd.memory.shared.index import Entry
from memd.memory.shared.slugs import EXTENSION, comparable, folded

SHOWN = 8


def find(entries: Sequence[Entry], wanted: str) -> Entry:
    """The topic that is meant.

    raises  NotFound, Refused (several fit, or its line names an unsafe file)
    """
    name = comparable(wanted)
    if not name:
        raise NotFound("no topic was named", remedy="Name one; `memctl memory list` shows them.")
    file = folded(wanted.strip().encode("utf-8", "surrogateescape"))
    with_extension = file if file.endswith(".md") else file + EXTENSION.decode()
    tests: tuple[Callable[[Entry], bool], ...] = (
        lambda entry: comparable(entry.name) == name,
        lambda entry: folded(entry.file) == with_extension,
        lambda entry: name in comparable(entry.name),
    )
    for fits in tests:
        found = {entry.file: entry for entry in reversed(entries) if fits(entry)}
        safe = [entry for entry in found.values() if entry.is_safe]
        if len(safe) > 1:
            raise Refused(
                f"{wanted!r} may mean several topics: {_listed(safe)}",
                remedy="Give the whole name, or the file's.",
            )
        if safe:
            return safe[0]
        if found:
            raise Refused(
                f"the line of {wanted!r} names a file that may not be opened",
                remedy="Correct or remove that line of MEMORY.md.",
            )
    raise NotFound(f"no topic is called {wanted!r}", remedy="`memctl memory list` shows what there is.")


def _listed(entries: Sequence[Entry]) -> str:
    ordered = sorted(entries, key=lambda entry: entry.file)
    words = [f"{entry.name} ({entry.file.decode('utf-8', 'replace')})" for entry in ordered[:SHOWN]]
    return ", ".join(words) + (f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else "")


def exact(entries: Sequence[Entry], name: str) -> Entry | None:
    """The first topic of exactly that name, in any case."""
    wanted = comparable(name)
    return next((entry for entry in entries if comparable(entry.name) == wanted), None)
