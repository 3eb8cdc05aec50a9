"""Lists of workstreams, and other names for them and for their projects; changes are inside a transaction."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memd.errors import NotFound, UsageError
from memd.ledger.store.workstreams import Looking, Place, Work, Workstream
from memd.workstream import selection
from memd.workstream.selection import NameTaken, Wanted

MAX_LISTED = 100
MAX_NOTES = 1000


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `memctl workstreams`; no path, fingerprint or session. Harnesses: last linked first."""

    workstream_id: str
    name: str
    created_ms: int
    last_active_ms: int
    current: bool
    linked_harnesses: tuple[str, ...]


def listing(looking: Looking, place: Place, limit: int = MAX_LISTED, offset: int = 0) -> list[Listed]:
    """The workstreams of a checkout: the one that the next launch uses first, then by last use."""
    rows = looking.workstreams(place)
    chosen = selection.choose(rows, Wanted())
    rows.sort(key=lambda row: (row is chosen, row.updated_ms, row.id), reverse=True)
    first = max(0, offset)
    return [
        Listed(
            workstream_id=row.id,
            name=row.name,
            created_ms=row.created_ms,
            last_active_ms=row.updated_ms or row.created_ms,
            current=row is chosen,
            linked_harnesses=tuple(dict.fromkeys(one.harness for one in looking.linked(row.id))),
        )
        for row in rows[first : first + max(1, min(limit, MAX_LISTED))]
    ]


def rename_workstream(
    work: Work, place: Place, to: str, *, name: str = "", workstream_id: str = ""
) -> Workstream:
    """The workstream under its new name; nothing else of it changes.

    place   of the caller: one of another checkout or scope is not found
    raises  UsageError, NotFound, NameTaken
    """
    row = chosen(work, place, name=name, workstream_id=workstream_id)
    named = selection.renamed(work.workstreams(place), row, to)
    work.put_workstream(named)
    return named


def chosen(looking: Looking, place: Place, *, name: str = "", workstream_id: str = "") -> Workstream:
    """The workstream of a checkout that is meant. raises UsageError, NotFound"""
    if bool(name) == bool(workstream_id):
        raise UsageError("say which workstream, by its name or by its id", remedy="Give one of them.")
    for row in looking.workstreams(place):
        if row.name == name or row.id == workstream_id:
            return row
    raise NotFound(
        f"no managed workstream {name or workstream_id!r} in this checkout",
        remedy="`memctl workstreams` lists them.",
    )


def rename_project(work: Work, workspace: str, old: str, new: str) -> int:
    """Let all of a project bear another name; how many workstreams that were. Nothing moves on the disk.

    new     checked by `scope.checked`
    raises  NotFound when there is nothing of that project, NameTaken when there is something of the other
    """
    rows, notes = work.in_scope(workspace, old), work.handoffs(workspace, old, MAX_NOTES)
    if not rows and not notes:
        raise NotFound(f"nothing is known of a project {old!r} in workspace {workspace!r}")
    if old == new:
        return len(rows)
    if work.in_scope(workspace, new) or work.handoffs(workspace, new, 1):
        raise NameTaken(
            f"a project {new!r} exists in workspace {workspace!r} already", remedy="Choose another name."
        )
    for row in rows:
        work.put_workstream(replace(row, place=replace(row.place, project=new)))
    for note in notes:
        work.put_handoff(replace(note, project=new))
    return len(rows)
