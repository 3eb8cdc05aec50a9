"""Binding a session to a workstream because somebody says so. Inside a transaction; nothing is guessed.

A session that was held in a directory that bears another name by now, or was never part of a workstream, goes
on as part of the one it is bound to: what was said in it stands in the view, and the next run of its harness
resumes it. A workstream that it was linked to before keeps it too.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memd.ledger.store.workstreams import Linked, Place, Work, Workstream
from memd.workstream import lease, selection
from memd.workstream.lease import See
from memd.workstream.selection import New, Wanted


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """is_new: the workstream was made for it; others: ids of further workstreams that have the session."""

    workstream: Workstream
    is_new: bool
    others: tuple[str, ...]


def adopt(
    work: Work, place: Place, cwd: bytes, harness: str, session: str, wanted: Wanted, new_id: str, see: See
) -> Adopted:
    """Make the session the current one of its harness in a workstream, and the workstream the selected one.

    cwd     a directory of the checkout; new_id: for a workstream that has to be made
    raises  lease.Busy while a run has the workstream, and what `selection.choose` raises
    """
    moment = work.moment
    rows = work.workstreams(place)
    chosen = selection.choose(rows, wanted)
    is_new = isinstance(chosen, New)
    if isinstance(chosen, New):
        chosen = Workstream(id=new_id, place=place, name=chosen.name, cwd=cwd, created_ms=moment.wall_ms)
    holder = work.active(chosen.id)
    if holder is not None and lease.standing(holder, moment, lease.evidence(holder, see)) == "held":
        raise lease.conflict(holder, chosen.name, moment)
    others = tuple(id for id in work.workstreams_of(harness, session) if id != chosen.id)
    chosen = replace(
        chosen, selected_ms=selection.selected_at(rows, moment.wall_ms), updated_ms=moment.wall_ms
    )
    work.put_workstream(chosen)
    known = next(
        (one for one in work.linked(chosen.id) if (one.harness, one.session) == (harness, session)), None
    )
    if known is None:
        known = Linked(harness=harness, session=session, is_current=True, told=0, linked_ms=0)
    work.put_linked(chosen.id, replace(known, is_current=True, linked_ms=moment.wall_ms))
    return Adopted(workstream=chosen, is_new=is_new, others=others)
