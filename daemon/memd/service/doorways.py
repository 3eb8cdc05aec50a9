"""Telling sessions of harnesses whose hooks cannot: what is due goes into the child's command line, its
environment or files, and counts as told once the child is there.

    <root>/<run>/           private, one per run that is told something
        <name> ...          what the adapter asked for
        offered.json        written last: something was put before the child, and which handoff was in it

Whoever reads that after a crash knows what the child was started with; without it the text stays due. The
folder goes when the run is over.
"""

from __future__ import annotations

import os
from collections.abc import Collection

import msgspec
import structlog
import trio
from msgspec.structs import replace

from memd import disk
from memd.errors import DiskError, MemdError
from memd.harness.launching import Argv, Delivered, Doorway
from memd.harness.model import Adapter
from memd.ledger.store.workstreams import Run
from memd.service.runs import Runs
from memd.service.telling import Topics, block_of
from memd.workstream.delivery import Start
from memd.workstream.room import room_of

MAX_READ_BYTES = 1 << 20
BLOCK_S = 1.0  # for the memory block, without which a child starts all the same
OFFERED = b"offered.json"

log = structlog.get_logger()


class _Offered(msgspec.Struct, frozen=True):
    """handoff: the id of the one that was in the text; empty: none was."""

    handoff: str = ""


class Doorways:
    """root: a folder of memd's own for what children are given"""

    def __init__(self, runs: Runs, topics: Topics, root: bytes) -> None:
        self._runs = runs
        self._topics = topics
        self._root = root

    def folder(self, run: str) -> bytes:
        return self._root + b"/" + os.fsencode(run)

    async def put(
        self, adapter: Adapter, run: Run, workspace: str, project: str, doorway: Doorway, argv: Argv
    ) -> Argv:
        """What the child is started with, so that its session is told what is due.

        run     planned, not started
        raises  what `deliver` raises, DiskError; nothing was told then
        """
        assert adapter.launch is not None
        deliver = adapter.launch.deliver
        if deliver is None or run.is_passing:
            return argv
        block = ""
        start = _start(run, workspace, project)
        offer = await self._runs.offer(start, room_of(adapter.start_output_limit))
        packet = offer.packet.text if offer.packet is not None else ""
        with trio.move_on_after(BLOCK_S):
            block = await block_of(self._topics, adapter.name, offer.left)
        text = "\n".join(part for part in (offer.handoff_text, packet, block) if part)
        made = Delivered(argv=argv)
        if text:
            made = await trio.to_thread.run_sync(deliver, text, argv, doorway)
        files = {os.fsencode(name): content for name, content in made.files.items()}
        if made.is_told:
            note = _Offered(offer.handoff.id if offer.handoff is not None else "")
            files[OFFERED] = msgspec.json.encode(note)  # the last one
        await trio.to_thread.run_sync(self._write, run.id, files)
        return made.argv

    def _write(self, run: str, files: dict[bytes, bytes]) -> None:
        self.clear(run)
        if not files:
            return
        with disk.make_folders(self.folder(run)) as folder:
            for name, content in files.items():
                folder.create(name, content)

    async def told(self, adapter: Adapter, run: Run, workspace: str, project: str) -> None:
        """The child is there: what was put before it counts as told. Said twice, nothing is told twice."""
        note = await trio.to_thread.run_sync(self._read, run.id)
        if note is None:
            return
        offer = await self._runs.offer(_start(run, workspace, project), room_of(adapter.start_output_limit))
        if offer.handoff is not None and offer.handoff.id != note.handoff:
            offer = replace(offer, handoff=None, handoff_text="")
        await self._runs.claim(offer)
        await trio.to_thread.run_sync(self._forget, run.id)

    def _read(self, run: str) -> _Offered | None:
        try:
            text = disk.read_file(self.folder(run) + b"/" + OFFERED, MAX_READ_BYTES)
            return None if text is None else msgspec.json.decode(text, type=_Offered)
        except (DiskError, msgspec.DecodeError) as reason:
            log.warning("doorway.unreadable", reason=str(reason))
            return None

    def _forget(self, run: str) -> None:
        with disk.open_folder(self.folder(run)) as folder:
            folder.remove(OFFERED)

    # -------------------------------------------------------------------------------- afterwards

    def clear(self, run: str) -> None:
        """Take away what a run's child was given."""
        try:
            if disk.look(self.folder(run)) is None:
                return
            with disk.open_folder(self._root) as root:
                with root.folder(os.fsencode(run)) as folder:
                    for name in folder.names():
                        folder.remove(name)
                root.remove_folder(os.fsencode(run))
        except MemdError as reason:
            log.warning("doorway.left", reason=str(reason))

    def sweep(self, active: Collection[str]) -> None:
        """Take away what was left for runs that are over."""
        try:
            with disk.open_folder(self._root) as root:
                names = root.names()
        except DiskError:
            return
        for name in names:
            if os.fsdecode(name) not in active:
                self.clear(os.fsdecode(name))


def read_small(path: bytes) -> bytes | None:
    """For `Doorway.read`: a file of the client's, links followed. raises DiskError"""
    return disk.read_file(os.path.realpath(path), MAX_READ_BYTES)


def _start(run: Run, workspace: str, project: str) -> Start:
    return Start(
        harness=run.harness,
        cwd=run.cwd,
        workspace=workspace,
        project=project,
        session=run.session or run.expected,
        run=run,
    )
