"""Going on in this checkout with what was begun in another one of the same repository.

A workstream belongs to a repository. Where it was used last, and at which commit, is told before a checkout
is bound to it; what is different here is said plainly, and nothing is changed in either checkout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memd.errors import NotFound, UsageError
from memd.ledger.store.workstreams import Elsewhere, Looking, Place, Work, Workstream
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.selection import NameTaken

SHORT = 12

_head = re.compile(r"^HEAD ([0-9a-f]{40,64})$", re.MULTILINE)
_dirty = re.compile(r"^Dirty [0-9a-f]", re.MULTILINE)


def head_of(checkpoint: str) -> str:
    """The commit that a checkpoint names; empty: none."""
    found = _head.search(checkpoint)
    return found[1] if found else ""


def is_dirty(checkpoint: str) -> bool:
    return _dirty.search(checkpoint) is not None


def differences(checkpoint: str, here: Checkpoint) -> list[str]:
    """What is not the same here as where the workstream was left, in sentences."""
    told = []
    head = head_of(checkpoint)
    if head and here.head and head != here.head:
        told.append(f"This checkout is at {here.head[:SHORT]}, not at {head[:SHORT]}.")
    elif head and not here.head:
        told.append(f"This checkout has no commit; there it was {head[:SHORT]}.")
    if is_dirty(checkpoint):
        told.append("There were changes there that were not committed; they are not here.")
    if here.dirty_hash:
        told.append("This checkout has changes that are not committed.")
    return told


def named(looking: Looking, place: Place, *, name: str = "", workstream_id: str = "") -> Elsewhere:
    """The one of another checkout that is meant. raises NotFound, and UsageError when there are several"""
    found = [
        one
        for one in looking.elsewhere(place)
        if (workstream_id and one.workstream.id == workstream_id)
        or (not workstream_id and one.workstream.name == name)
    ]
    if not found:
        raise NotFound(
            f"no managed workstream {name or workstream_id!r} in any checkout of this repository",
            remedy="`memctl workstreams --all` lists them.",
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} checkouts of this repository have a workstream {name!r}",
            remedy="Name one by its id: `memctl workstreams --all` shows them, `memctl workstreams bind"
            " --workstream-id ID` takes one.",
        )
    return found[0]


def bind(work: Work, place: Place, workstream_id: str) -> Workstream:
    """Let it belong to this checkout too; one that does already stays so.

    raises  NotFound; NameTaken when there is another of its name here; Refused by a ledger of one machine
    """
    rows = work.workstreams(place)
    known = next((row for row in rows if row.id == workstream_id), None)
    if known is not None:
        return known
    chosen = named(work, place, workstream_id=workstream_id).workstream
    if any(row.name == chosen.name for row in rows):
        raise NameTaken(
            f"this checkout has a workstream {chosen.name!r} of its own",
            remedy="Rename one of the two first: `memctl rename-workstream`.",
        )
    work.bind(chosen.id, place)
    return chosen


def where(one: Elsewhere, shown_cwd: str, ago: str) -> str:
    """Where it was last used, in words. shown_cwd: for people"""
    machine = f"on {one.machine} " if one.machine else ""
    commit = head_of(one.checkpoint)
    at = f", at commit {commit[:SHORT]}" if commit else ", at no commit that is known"
    return f"last used {machine}in {shown_cwd} ({ago}){at}"


def question(one: Elsewhere, said: str, told: Sequence[str]) -> str:
    """What a person is asked before the checkout is bound."""
    return " ".join(
        [
            f"Workstream {one.workstream.name!r} is none of this checkout: it was {said}.",
            *told,
            "Go on with it here?",
        ]
    )
