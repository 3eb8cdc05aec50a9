"""Lists of workstreams, and other names for them and for their projects; changes are inside a transaction."""

from __future__ import annotations

import msgspec

from memd.errors import NotFound, UsageError
from memd.ledger.store.workstreams import Looking, Place, Work, Workstream
from memd.workstream import selection
from memd.workstream.selection import NameTaken, Wanted

MAX_LISTED = 100


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `memctl workstreams`; no path, fingerprint or session. Harnesses: last linked first."""

    workstream_id: str
    name: str
    created_ms: int
    last_active_ms: int
    current: bool
    linked_harnesses: tuple[str, ...]


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """How much bears the new name now."""

    workstreams: int
    handoffs: int


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


def rename_project(work: Work, old: tuple[str, str], new: tuple[str, str]) -> Renamed:
    """Let all of a project bear another name, or belong to another workspace. Nothing moves on the disk.

    old, new  workspace and project; the new ones checked by `scope.checked`
    raises    NotFound when there is nothing of that project, NameTaken when there is something of the other
    """
    is_other = old != new
    if is_other and (work.in_scope(*new) or work.handoffs(*new, 1)):
        raise NameTaken(
            f"a project {new[1]!r} exists in workspace {new[0]!r} already", remedy="Choose another name."
        )
    workstreams, handoffs = work.move_scope(old, new)
    if not workstreams and not handoffs:
        raise NotFound(
            f"nothing is known of a project {old[1]!r} in workspace {old[0]!r}",
            remedy="Check both names; `memctl workstreams` says those of a checkout.",
        )
    return Renamed(workstreams=workstreams, handoffs=handoffs)
