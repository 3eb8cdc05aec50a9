"""The ledger's answers to the socket's questions: each turns a request into what is sent back."""

from __future__ import annotations

import itertools
import os
from functools import partial
from typing import get_args

import trio

from memd import protocol
from memd.errors import NotFound, UsageError
from memd.harness.model import Kind, Role
from memd.harness.registry import adapters, canonical, resolve
from memd.ledger.store.interface import Filter, Forgetting, Hit, Reader, Selection, SessionRow, StoredEvent
from memd.service import ledger_view as view
from memd.service import orphans
from memd.service.ledger import Ledger

PAGE_EVENTS = 400  # of an export; a page is at most about 25 MiB
MAX_HITS = 1000
KINDS = get_args(Kind)
ROLES = get_args(Role)


async def sessions(ledger: Ledger, request: protocol.Sessions) -> str:
    where = Filter(harness=_harness(request.harness), cwd=os.fsdecode(request.cwd))
    limit = 0 if request.orphaned else request.limit
    rows: list[SessionRow] = await ledger.ask(lambda reader: reader.sessions(where, limit))
    if request.orphaned:
        missing = await trio.to_thread.run_sync(orphans.gone, [row.cwd for row in rows])
        rows = [row for row in rows if row.cwd in missing][: request.limit or None]
    if request.form == "json":
        return view.sessions_json(rows)
    return view.sessions_text(rows, color=request.color, width=request.width)


async def search(ledger: Ledger, request: protocol.Search) -> str:
    """raises UsageError for a kind or a role that no event is of"""
    for what, named, known in (("kind", request.kind, KINDS), ("role", request.role, ROLES)):
        if named and named not in known:
            raise UsageError(
                f"no event is of the {what} {named!r}", remedy=f"Use one of: {', '.join(known)}."
            )
    where = Filter(
        harness=_harness(request.harness),
        cwd=os.fsdecode(request.cwd),
        role=request.role,
        kind=request.kind,
        since=request.since,
    )
    limit = max(1, min(request.limit, MAX_HITS))
    hits: list[Hit] = await ledger.ask(partial(_search, request.query, where, limit))
    if request.form == "json":
        return view.hits_json(hits)
    return view.hits_text(hits, color=request.color, width=request.width)


def _search(query: str, where: Filter, limit: int, reader: Reader) -> list[Hit]:
    return reader.search(query, where, limit, view.MARKS)


async def export(ledger: Ledger, request: protocol.Export) -> str:
    """The highest sequence of the page, a newline, and the page; nothing after the newline is the end."""
    harness = _harness(request.harness)
    found = await ledger.ask(partial(_find, request.session, harness))
    if not found:
        raise NotFound(
            f"no session {request.session!r} in the ledger",
            remedy="`memctl sessions` lists them; `memctl import --wait` reads what is new.",
        )
    if len(found) > 1:
        names = ", ".join(row.harness for row in found)
        raise UsageError(
            f"several harnesses have a session {request.session!r}: {names}", remedy="Add --harness."
        )
    page = await ledger.ask(partial(_page, found[0].harness, found[0].id, request.after))
    if not page:
        return f"{request.after}\n"
    render = view.event_markdown if request.form == "markdown" else view.event_lines
    return f"{page[-1].sequence}\n{render(page)}"


def _find(session: str, harness: str, reader: Reader) -> list[SessionRow]:
    """The sessions of that id; where there is none, those that have it behind their harness's prefix."""
    found = reader.find(session, harness)
    if found:
        return found
    prefixes = [one for one in adapters().values() if one.id_prefix and harness in ("", one.name)]
    return [row for one in prefixes for row in reader.find(one.id_prefix + session, one.name)]


def _page(harness: str, session: str, after: int, reader: Reader) -> list[StoredEvent]:
    return list(itertools.islice(reader.export(harness, session, after=after), PAGE_EVENTS))


async def import_now(ledger: Ledger, request: protocol.Import) -> protocol.Done:
    if request.store:
        adapter = resolve(request.harness)
        await ledger.add_store(adapter.name, request.store)
    await ledger.import_now(wait=request.wait)
    return protocol.Done(message="everything visible is in the ledger" if request.wait else "looking")


async def forget(ledger: Ledger, request: protocol.Forget) -> protocol.Forgotten:
    selection = Selection(
        harness=_harness(request.harness),
        session=request.session,
        project=os.fsdecode(request.project),
        before=request.before,
        matching=request.matching,
    )
    gone: Forgetting = await ledger.forget(selection, dry_run=request.dry_run)
    return protocol.Forgotten(
        events=gone.events,
        session_count=gone.session_count,
        segments=gone.segments,
        elsewhere=gone.elsewhere,
        sessions=tuple(gone.sessions),
        handoffs=gone.handoffs,
    )


async def check(ledger: Ledger, request: protocol.CheckLedger) -> protocol.LedgerReport:
    report = await ledger.check()
    repaired = await ledger.repair() if request.repair and report.problem_count else 0
    return protocol.LedgerReport(
        events=report.events,
        standings=report.standings,
        segments=report.segments,
        problem_count=report.problem_count,
        problems=tuple((problem.what, problem.where, problem.sentence) for problem in report.problems),
        repaired=repaired,
    )


def _harness(word: str) -> str:
    """The harness that a word names; empty stays empty. raises UsageError"""
    return (canonical(word) or resolve(word).name) if word else ""
