"""What a program that syncs a folder leaves when two machines changed one note: recognised, and merged. Pure.

A conflict copy is a note of the same name that lost a race, so it is merged like one that comes from another
folder: the later one has the name, the other is kept under `_superseded/`, an index is merged as one. What
is done with the copy itself afterwards is `rejoin`'s.

    note.sync-conflict-20260203-101500-ABCDEFG.md             Syncthing; older ones without the machine
    note (conflicted copy 2026-02-03 101500).md               Nextcloud, ownCloud, OpenCloud
    note (laptop's conflicted copy 2026-02-03).md             Dropbox
    note_conflict-20260203-101500.md                          older ownCloud
    note.md (SFConflict me@example.org 2026-02-03-10-15-00)   Seafile, with or without the address

Names that people give as well (`note (1).md`, `note-laptop.md`) are notes. Names that begin with a dot are
left to the programs whose they are: `.syncthing.note.md.tmp` and the like are not whole yet, `.stversions`
holds old versions. A file that git left with its
marks in it is no copy of anything: `has_marks` tells it; it stays as it is until somebody has decided.

source  manuals of Nextcloud's desktop client 3.12, ownCloud's 2.5, OpenCloud's, and Seafile's help, read
        2026-12; Syncthing's names as in its issues; those of Dropbox and of older ownCloud clients are from
        memory and were not checked. git-merge(1), "HOW CONFLICTS ARE PRESENTED"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from memd.memory.names import SUPERSEDED
from memd.memory.plan import Folding, Found, Plan, make_plan

LABEL: Final = b"conflict"
"""What such a copy is called in the names of what loses."""

_day = rb"\d{4}-?\d{2}-?\d{2}"
_FORMS: Final = (
    re.compile(
        rb"(?P<base>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z2-7]{7})?(?P<extension>\.[^./]*)?", re.DOTALL
    ),
    re.compile(
        rb"(?P<base>.+?) \((?:[^()/]{1,100} )?conflicted copy " + _day + rb"(?: \d{4,6})?(?: \d{1,3})?\)"
        rb"(?P<extension>\.[^./]*)?",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(rb"(?P<base>.+)_conflict-\d{8}-\d{6}(?P<extension>\.[^./]*)?", re.DOTALL),
    re.compile(
        rb"(?P<base>.+?) \(SFConflict (?:[^()/]{1,200} )?\d{4}(?:-\d{2}){5}\)(?P<extension>\.[^./]*)?",
        re.DOTALL,
    ),
)


_UNFINISHED: Final = (b".", b"~syncthing~")


class Round(msgspec.Struct, frozen=True):
    """A plan, and the copies that it is about."""

    plan: Plan
    copies: tuple[Found, ...]


def original_of(rel: bytes) -> bytes | None:
    """The note that a conflict copy is one of; None for anything else. Copies of copies lead to the first."""
    if any(part.startswith(_UNFINISHED) for part in rel.split(b"/")):
        return None
    folder, slash, name = rel.rpartition(b"/")
    found = None
    while made := _once(name):
        found = name = made
    return None if found is None else folder + slash + found


def _once(name: bytes) -> bytes | None:
    for form in _FORMS:
        match = form.fullmatch(name)
        if match is not None:
            return match["base"] + (match["extension"] or b"")
    return None


def has_marks(text: bytes) -> bool:
    """Whether git left a merge in it for somebody to finish: all three marks, each at the start of a line."""
    state = 0
    for line in text.split(b"\n"):
        if line.startswith(b"<<<<<<< "):
            state = 1
        elif state == 1 and line.rstrip(b"\r") == b"=======":
            state = 2
        elif state == 2 and line.startswith(b">>>>>>> "):
            return True
    return False


def split(owned: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """The tree without its conflict copies, and those, each under the name of its note.

    `target` of a copy is where its bytes are, as of a link. What lies under `_superseded/` is history.
    """
    notes: list[Found] = []
    copies: list[Found] = []
    for found in owned:
        original = original_of(found.rel) if found.kind == "file" else None
        if original is None or found.rel.startswith(SUPERSEDED + b"/"):
            notes.append(found)
        else:
            copies.append(replace(found, rel=original, target=found.rel))
    return notes, copies


def make(
    owned: Iterable[Found],
    *,
    carried_once: Mapping[tuple[bytes, bytes], int] | None = None,
    folding: Folding | None = None,
) -> Sequence[Round]:
    """The steps that bring the conflict copies of a folder into its notes; empty when there are none.

    One plan after the other, since several copies may be of one note: each is to be made anew when the one
    before has been done, from another look. No step touches a copy itself.

    carried_once  see `make_plan`
    """
    notes, copies = split(owned)
    rounds: list[list[Found]] = []
    for one in sorted(copies, key=lambda found: (found.rel, found.mtime_ns, found.target)):
        for held in rounds:
            if all(other.rel != one.rel for other in held):
                held.append(one)
                break
        else:
            rounds.append([one])
    return [
        Round(make_plan(notes, held, label=LABEL, carried_once=carried_once, folding=folding), tuple(held))
        for held in rounds
    ]
