"""Handoffs for whoever asks over the socket: written scrubbed, shown framed."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from memd.harness.model import OutputLimit
from memd.ledger.store.workstreams import Handoff
from memd.service.runs import Records
from memd.workstream import handoff
from memd.workstream.handoff import Note, Receiver
from memd.workstream.ids import new_id
from memd.workstream.room import room_of

SHOWN = OutputLimit(200_000)  # more than any handoff has


class Handoffs:
    """All changes go through the ledger's writer, one transaction each."""

    def __init__(
        self, records: Records, *, wall_ms: Callable[[], int], noise: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._records = records
        self._wall_ms = wall_ms
        self._noise = noise

    async def create(self, note: Note) -> tuple[Handoff, Handoff | None]:
        """The new handoff, and the open one that it replaced; raises UsageError."""
        scrub = self._records.scrub
        handoff.checked(note)
        clean = replace(
            note,
            summary=await scrub(note.summary),
            questions=[await scrub(item) for item in note.questions],
            steps=[await scrub(item) for item in note.steps],
            files=[await scrub(item) for item in note.files],
        )
        id = new_id(self._wall_ms(), self._noise(10))
        return await self._records.work(lambda work: handoff.create(work, clean, id))

    async def listing(self, workspace: str, project: str, limit: int = 20) -> list[Handoff]:
        """Those of a scope, newest first, the open one before all others."""
        return await self._records.ask(lambda reader: reader.workstreams.handoffs(workspace, project, limit))

    async def show(self, id: str) -> tuple[Handoff, str]:
        """One and how it reads; consumes nothing. Raises NotFound."""
        row = handoff.found(await self._records.ask(lambda reader: reader.workstreams.handoff(id)), id)
        return row, handoff.render(row, room_of(SHOWN), is_preview=True)

    async def accept(self, id: str, receiver: Receiver) -> tuple[Handoff, str]:
        """Take it, because somebody says so; raises NotFound, Refused."""
        row = await self._records.work(lambda work: handoff.accept(work, id, receiver))
        return row, handoff.render(row, room_of(SHOWN))

    async def cancel(self, id: str) -> Handoff:
        """Take it back; raises NotFound, Refused."""
        return await self._records.work(lambda work: handoff.cancel(work, id))

    async def give_back(self, workspace: str, project: str, receiver: Receiver) -> None:
        """A session that ended without a prompt had never seen what it accepted."""
        await self._records.work(lambda work: handoff.give_back(work, workspace, project, receiver))
