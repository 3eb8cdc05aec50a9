"""Rows as values, for every engine: the columns come in the same order from all of them.

What an engine has no type for comes as another: truth as a number, bytes as a view of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from memd.ledger.store.interface import SessionRow
from memd.ledger.store.workstreams import Delivery, Handoff, Linked, Place, Process, Run, Workstream

HANDOFF = (
    "select id, workspace, project, cwd, workstream, harness, from_harness, from_session, from_run,"
    " is_automatic, summary, lists, state, created_ms, expires_ms, ended_ms, taken_harness, taken_session,"
    " taken_run from handoffs"
)

_metadata: Final = msgspec.json.Decoder(dict[str, str | bool | int])
_lists: Final = msgspec.json.Decoder(tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]])


def unpack(metadata: str) -> dict[str, str | bool | int]:
    if not metadata:
        return {}
    try:
        return _metadata.decode(metadata)
    except msgspec.MsgspecError:
        return {}


def session(row: Sequence[Any]) -> SessionRow:
    return SessionRow(
        id=row[0],
        harness=row[1],
        cwd=row[2],
        title=row[3],
        started=row[4],
        last_activity=row[5],
        events=row[6],
        side_events=row[7],
        losses=int(row[8]),
        version=row[9],
        is_side=bool(row[10]),
        parent=row[11],
        forked_from=row[12],
        forked_at=row[13],
    )


def workstream(row: Sequence[Any]) -> Workstream:
    return Workstream(
        id=row[0],
        place=Place(workspace=row[1], project=row[2], repository=row[3], worktree=row[4]),
        name=row[5],
        cwd=bytes(row[6]),
        created_ms=row[7],
        selected_ms=row[8],
        updated_ms=row[9],
        last_sequence=row[10],
    )


def linked(row: Sequence[Any]) -> Linked:
    harness, native, current, told, linked_ms, flavor = row
    return Linked(
        harness=harness,
        session=native,
        is_current=bool(current),
        told=told,
        linked_ms=linked_ms,
        flavor=flavor,
    )


def run(row: Sequence[Any], process: Callable[[int, str], Process] = Process) -> Run:
    """process: what a pid and the start of a process are; not those of this machine on every machine"""
    return Run(
        id=row[0],
        workstream=row[1],
        harness=row[2],
        flavor=row[3],
        state=row[4],
        phase=row[5],
        cwd=bytes(row[6]),
        launcher=process(row[7], row[8]),
        agent=None if row[9] is None else process(row[9], row[10]),
        boot=row[11],
        expires_ms=row[12],
        began_ms=row[13],
        ended_ms=row[14],
        expected=row[15],
        session=row[16],
        made_link=bool(row[17]),
        is_confirmed=bool(row[18]),
        is_passing=bool(row[19]),
        sync_after=row[20],
        sync_through=row[21],
        is_told=bool(row[22]),
        exit_code=row[23],
    )


def delivery(run: str, row: Sequence[Any]) -> Delivery:
    return Delivery(
        run=run,
        harness=row[0],
        session=row[1],
        after=row[2],
        through=row[3],
        shown=row[4],
        omitted=row[5],
        first=row[6],
        at_ms=row[7],
    )


def handoff(row: Sequence[Any]) -> Handoff:
    questions, steps, files = _lists.decode(row[11])
    return Handoff(
        id=row[0],
        workspace=row[1],
        project=row[2],
        cwd=bytes(row[3]),
        workstream=row[4],
        harness=row[5],
        from_harness=row[6],
        from_session=row[7],
        from_run=row[8],
        is_automatic=bool(row[9]),
        summary=row[10],
        questions=questions,
        steps=steps,
        files=files,
        state=row[12],
        created_ms=row[13],
        expires_ms=row[14],
        ended_ms=row[15],
        taken_harness=row[16],
        taken_session=row[17],
        taken_run=row[18],
    )
