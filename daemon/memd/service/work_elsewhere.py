"""Workstreams of other checkouts of a repository, for people and for launches: asked, shown, bound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import trio

from memctl.paths import shown
from memd.errors import NeedsConfirmation, NotFound
from memd.frame import harmless
from memd.git import Git
from memd.ledger.store.interface import Reader
from memd.ledger.store.workstreams import Elsewhere, Place, Workstream
from memd.service import page
from memd.service.runs import Records
from memd.service.work_view import Sheet, document
from memd.workstream import elsewhere
from memd.workstream.checkpoint import Checkpoint, git_checkpoint


async def offer(
    records: Records,
    place: Place,
    name: str,
    cwd: bytes,
    variables: dict[str, bytes],
    *,
    yes: bool,
    now_ms: int,
) -> None:
    """Before a launch that names a workstream: bind one of another checkout if somebody said yes.

    raises  NeedsConfirmation with the question while nobody has, UsageError for several of that name,
            NameTaken, Refused. A name that is known here, or nowhere, is left to the launch
    """

    def look(reader: Reader) -> Elsewhere | None:
        looking = reader.workstreams
        if any(row.name == name for row in looking.workstreams(place)):
            return None
        try:
            return elsewhere.named(looking, place, name=name)
        except NotFound:
            return None

    found = await records.ask(look)
    if found is None:
        return
    if not await records.ask(lambda reader: reader.workstreams.is_shared):
        raise NotFound(
            f"no managed workstream {name!r} in this checkout; there is one in {_cwd(found)}",
            remedy="Start it there; `memctl run --new NAME` makes one here.",
        )
    if yes:
        await records.work(lambda work: elsewhere.bind(work, place, found.workstream.id))
        return
    here = await checkpoint_of(cwd, variables)
    told = elsewhere.differences(found.checkpoint, here)
    reason = NeedsConfirmation(elsewhere.question(found, _where(found, now_ms), told), cwd)
    reason.remedy = f"Say yes when asked, or bind it first: memctl workstreams bind {name}"
    raise reason


async def checkpoint_of(cwd: bytes, variables: dict[str, bytes]) -> Checkpoint:
    """The state of a client's checkout, by the client's git."""
    return await trio.to_thread.run_sync(git_checkpoint, cwd, Git(variables))


def listing(rows: Sequence[Elsewhere], here: str, sheet: Sheet) -> str:
    """here: what was rendered of this checkout, in the same form"""
    if sheet.is_json:
        import msgspec

        return document({"here": msgspec.json.decode(here), "elsewhere": [_document(row) for row in rows]})
    out = [here, sheet.ink.bold("in other checkouts of this repository") + "\n"]
    if not rows:
        out.append("  none\n")
    for row in rows:
        out.append(f"  {sheet.ink.bold(harmless(row.workstream.name))}  {_where(row, sheet.now_ms)}\n")
        out.append(f"    {row.workstream.id}\n")
    if rows:
        out.append("  `memctl workstreams bind NAME` goes on with one of them here\n")
    return "".join(out)


def bound(row: Workstream, found: Elsewhere | None, told: Sequence[str], sheet: Sheet) -> str:
    """found: where it was before; None: it belonged to this checkout already"""
    if sheet.is_json:
        return document(
            {
                "workstream_id": row.id,
                "name": row.name,
                "was_bound": found is None,
                "elsewhere": None if found is None else _document(found),
                "differences": list(told),
            }
        )
    if found is None:
        return f"workstream {row.name!r} belongs to this checkout already\n"
    lines = [f"workstream {row.name!r} belongs to this checkout now; it was {_where(found, sheet.now_ms)}"]
    return "\n".join([*lines, *told]) + "\n"


def _document(one: Elsewhere) -> dict[str, Any]:
    return {
        "workstream_id": one.workstream.id,
        "name": one.workstream.name,
        "machine": one.machine,
        "directory": _cwd(one),
        "last_used_at": page.utc(one.used_ms),
        "commit": elsewhere.head_of(one.checkpoint),
        "was_dirty": elsewhere.is_dirty(one.checkpoint),
    }


def _where(one: Elsewhere, now_ms: int) -> str:
    return elsewhere.where(one, harmless(_cwd(one)), page.age(one.used_ms, now_ms))


def _cwd(one: Elsewhere) -> str:
    return shown(one.cwd) if not one.machine else os.fsdecode(one.cwd).encode("utf-8", "replace").decode()
