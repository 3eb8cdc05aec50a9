"""Workstreams and handoffs for people: each request becomes the text that is printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import trio
from msgspec.structs import replace

from memd import protocol
from memd import protocol_work as asked
from memd.errors import NotFound, UsageError
from memd.harness.registry import resolve
from memd.ledger.store.interface import Filter, Hit, Reader, StoredEvent
from memd.ledger.store.workstreams import Elsewhere, Handoff, Looking, Place, Run, Work, Workstream
from memd.service import work_elsewhere
from memd.service import work_view as view
from memd.service.handoffs import Handoffs
from memd.service.healer import now_ms
from memd.service.places import locate
from memd.service.runs import Records, Runs
from memd.service.work_sessions import Carrying, SessionAnswers
from memd.service.work_view import Found, Sheet
from memd.workstream import elsewhere, handoff, naming, packet, scope
from memd.workstream.handoff import Note, Receiver
from memd.workstream.naming import Listed

MAX_FOUND = 100
REACH = 64  # events after a tool call among which its result is looked for


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """Where the client stands. run: the one that it was started in, with its workstream"""

    place: Place
    notice: str = ""
    run: Run | None = None
    workstream: Workstream | None = None

    @property
    def scope(self) -> str:
        return f"{self.place.workspace}/{self.place.project}"


class WorkAnswers:
    """home: of a client that does not say its own."""

    def __init__(
        self,
        *,
        runs: Runs,
        handoffs: Handoffs,
        ledger: Records,
        carrying: Carrying,
        home: bytes,
        wall_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._runs = runs
        self._handoffs = handoffs
        self._records = ledger
        self._home = home
        self._wall_ms = wall_ms
        self._sessions = SessionAnswers(ledger=ledger, carrying=carrying, home=home, wall_ms=wall_ms)

    async def answer(self, request: protocol.Work) -> str:
        """raises what the action raises"""
        action = request.action
        sheet = Sheet(
            is_json=request.form == "json",
            color=request.color,
            width=request.width,
            is_framed=bool(action.run),
            now_ms=self._wall_ms(),
        )
        match action:
            case asked.Workstreams():
                return await self._workstreams(action, sheet)
            case asked.Projects():
                return view.projects(await self._records.ask(lambda reader: reader.workstreams.scopes()))
            case asked.BindWorkstream():
                return await self._bind(action, sheet)
            case asked.RenameWorkstream():
                return await self._rename(action, sheet)
            case asked.SearchWorkstream():
                return await self._search(action, sheet)
            case asked.CreateHandoff():
                return await self._create(action, sheet)
            case asked.ListHandoffs():
                return await self._list(action, sheet)
            case asked.ShowHandoff():
                return await self._show(action, sheet)
            case asked.AcceptHandoff():
                return await self._accept(action, sheet)
            case asked.CancelHandoff():
                return await self._cancel(action, sheet)
            case asked.CarrySession():
                return await self._sessions.carry(action, sheet)
            case asked.AdoptSession():
                return await self._sessions.adopt(action, (await self._stand(action)).place, sheet)
            case asked.RenameProject():
                return await self._rename_project(action, sheet)

    async def _stand(self, action: asked.Action, *, everywhere: bool = False) -> Stand:
        """Inside a run its scope holds unless the words say otherwise: in its checkout, or `everywhere`."""
        found = await trio.to_thread.run_sync(
            partial(
                locate,
                action.cwd,
                action.variables,
                home=self._home,
                path=action.path,
                workspace=action.workspace,
                project=action.project,
            )
        )
        run, workstream = await self._records.ask(partial(_run_of, action.run))
        stand = Stand(place=found.place, notice=found.scope.notice(), run=run, workstream=workstream)
        if workstream is None or action.workspace or action.project:
            return stand
        is_at_home = (workstream.place.repository, workstream.place.worktree) == (
            found.place.repository,
            found.place.worktree,
        )
        return replace(stand, place=workstream.place, notice="") if everywhere or is_at_home else stand

    # ------------------------------------------------------------------------- workstreams

    async def _workstreams(self, action: asked.Workstreams, sheet: Sheet) -> str:
        stand = await self._stand(action)

        def look(reader: Reader) -> tuple[list[Listed], int]:
            looking = reader.workstreams
            rows = naming.listing(looking, stand.place, action.limit, action.offset)
            return rows, len(looking.workstreams(stand.place)) - max(action.offset, 0) - len(rows)

        rows, left = await self._records.ask(look)
        here = view.workstreams(rows, left, stand.scope, stand.notice, sheet)
        if not action.everywhere:
            return here
        others = await self._records.ask(lambda reader: reader.workstreams.elsewhere(stand.place))
        return work_elsewhere.listing(others, here, sheet)

    async def _bind(self, action: asked.BindWorkstream, sheet: Sheet) -> str:
        place = (await self._stand(action)).place
        if bool(action.name) == bool(action.workstream_id):
            raise UsageError("say which workstream, by its name or by its id", remedy="Give one of them.")

        def bind(work: Work) -> tuple[Workstream, Elsewhere | None]:
            for row in work.workstreams(place):
                if row.id == action.workstream_id or row.name == action.name:
                    return row, None
            found = elsewhere.named(work, place, name=action.name, workstream_id=action.workstream_id)
            return elsewhere.bind(work, place, found.workstream.id), found

        row, found = await self._records.work(bind)
        variables = {**action.variables, "PATH": action.path}
        here = await work_elsewhere.checkpoint_of(action.cwd, variables)
        told = [] if found is None else elsewhere.differences(found.checkpoint, here)
        return work_elsewhere.bound(row, found, told, sheet)

    async def _rename(self, action: asked.RenameWorkstream, sheet: Sheet) -> str:
        stand = await self._stand(action)

        def rename(work: Work) -> tuple[str, Workstream]:
            row = naming.chosen(work, stand.place, name=action.name, workstream_id=action.workstream_id)
            return row.name, naming.rename_workstream(work, stand.place, action.to, workstream_id=row.id)

        before, row = await self._records.work(rename)
        if sheet.is_json:
            return view.document({"workstream_id": row.id, "name": row.name, "previous_name": before})
        if before == row.name:
            return f"workstream {row.name!r} is called that already\n"
        return f"workstream {before!r} is now called {row.name!r}\n"

    async def _rename_project(self, action: asked.RenameProject, sheet: Sheet) -> str:
        place = (await self._stand(action)).place
        old = place.workspace, place.project
        new = (
            scope.checked(action.to_workspace.strip(), "workspace") or old[0],
            scope.checked(action.to_project.strip(), "project") or old[1],
        )
        moved = await self._records.work(lambda work: naming.rename_project(work, old, new))
        return view.project_renamed(old, new, moved, sheet)

    async def _search(self, action: asked.SearchWorkstream, sheet: Sheet) -> str:
        limit = max(1, min(action.limit, MAX_FOUND))
        full = sheet.is_json
        rows = await self._records.ask(
            partial(_found, action.workstream_id, action.query, limit, 0 if full else view.MAX_SHOWN + 1)
        )
        if rows is None:
            raise NotFound(
                f"no workstream {action.workstream_id!r} is known",
                remedy="`memctl workstreams` lists those of a checkout with their ids.",
            )
        nothing = "nothing found" if action.query.strip() else "nothing in this workstream yet"
        return view.events(rows, nothing, sheet)

    # ---------------------------------------------------------------------------- handoffs

    async def _create(self, action: asked.CreateHandoff, sheet: Sheet) -> str:
        stand = await self._stand(action, everywhere=True)
        run = stand.run
        workstream = ""
        if action.workstream:
            workstream = await self._records.ask(partial(_named, stand.place, action.workstream))
        made, before = await self._handoffs.create(
            Note(
                workspace=stand.place.workspace,
                project=stand.place.project,
                cwd=action.cwd,
                summary=action.summary,
                questions=action.questions,
                steps=action.steps,
                files=action.files,
                workstream=workstream,
                harness=resolve(action.harness).name if action.harness else "",
                from_harness=run.harness if run is not None else "",
                from_session=run.session if run is not None else "",
                from_run=run.id if run is not None else "",
                lifetime_s=action.lifetime_s or handoff.LIFETIME_S,
            )
        )
        return view.handoff_made(made, before, await self._names([made]), sheet)

    async def _list(self, action: asked.ListHandoffs, sheet: Sheet) -> str:
        stand = await self._stand(action, everywhere=True)
        limit = max(1, min(action.limit, MAX_FOUND))
        rows = await self._handoffs.listing(stand.place.workspace, stand.place.project, limit)
        rows = [handoff.seen(row, sheet.now_ms) for row in rows]
        return view.handoffs(rows, stand.scope, await self._names(rows), sheet)

    async def _show(self, action: asked.ShowHandoff, sheet: Sheet) -> str:
        id = action.id or await self._open(await self._stand(action, everywhere=True), sheet)
        row, text = await self._handoffs.show(id)
        return view.handoff_shown(handoff.seen(row, sheet.now_ms), text, sheet)

    async def _accept(self, action: asked.AcceptHandoff, sheet: Sheet) -> str:
        stand = await self._stand(action, everywhere=True)
        run = stand.run
        receiver = Receiver(
            harness=run.harness if run is not None else "",
            cwd=action.cwd,
            session=run.session if run is not None else "",
            workstream=run.workstream if run is not None else "",
            run=run.id if run is not None else "",
        )
        row, text = await self._handoffs.accept(action.id or await self._open(stand, sheet), receiver)
        return view.handoff_shown(row, text, sheet)

    async def _cancel(self, action: asked.CancelHandoff, sheet: Sheet) -> str:
        id = action.id or await self._open(await self._stand(action, everywhere=True), sheet)
        row = await self._handoffs.cancel(id)
        return view.document(view.handoff(row)) if sheet.is_json else f"handoff {row.id} is cancelled\n"

    async def _open(self, stand: Stand, sheet: Sheet) -> str:
        rows = await self._handoffs.listing(stand.place.workspace, stand.place.project, 1)
        for row in rows:
            if handoff.seen(row, sheet.now_ms).state == "open":
                return row.id
        raise NotFound(
            f"there is no open handoff in {stand.scope}",
            remedy="`memctl handoff list` shows the others; name one of them by its id.",
        )

    async def _names(self, rows: list[Handoff]) -> dict[str, str]:
        wanted = {row.workstream for row in rows if row.workstream}

        def look(reader: Reader) -> dict[str, str]:
            found = [reader.workstreams.workstream(id) for id in wanted]
            return {row.id: row.name for row in found if row is not None}

        return await self._records.ask(look) if wanted else {}


def _run_of(id: str, reader: Reader) -> tuple[Run | None, Workstream | None]:
    """The run and its workstream; nothing when there is no such run."""
    run = reader.workstreams.run(id) if id else None
    return run, reader.workstreams.workstream(run.workstream) if run is not None else None


def _named(place: Place, name: str, reader: Reader) -> str:
    return naming.chosen(reader.workstreams, place, name=name).id


# --------------------------------------------------------------------------------- searching


def _found(id: str, query: str, limit: int, most: int, reader: Reader) -> list[Found] | None:
    """Rows for people, contents cut to `most` characters (0: whole); None: there is no such workstream."""
    looking = reader.workstreams
    if looking.workstream(id) is None:
        return None
    if not query.strip():
        rows = looking.tail(id, limit=limit, max_characters=most)
        rows.reverse()
        return [Found(event=event, label=label) for event, label in packet.labelled(rows)]
    hits: list[Hit] = reader.search(query, Filter(workstream=id), limit, view.MARKS)
    return [_of_hit(looking, id, hit) for hit in hits]


def _of_hit(looking: Looking, id: str, hit: Hit) -> Found:
    """With what the workstream knows of it: its metadata, and whether a call was answered."""
    reach = REACH if hit.kind == "tool_call" else 0
    near = looking.untold(
        id, "", "", after=hit.sequence - 1, through=hit.sequence + reach, limit=reach + 1, max_characters=1
    )
    for event, label in packet.labelled(near.events):
        if event.sequence == hit.sequence:
            return Found(event=replace(event, content=hit.content), label=label, snippet=hit.snippet)
    event = StoredEvent(
        sequence=hit.sequence,
        event_id=hit.event_id,
        harness=hit.harness,
        session=hit.session,
        kind=hit.kind,
        role=hit.role,
        content=hit.content,
        occurred_at=hit.occurred_at,
        metadata={},
    )
    return Found(event=event, label=packet.labelled([event])[0][1], snippet=hit.snippet)
