"""A kill at every write in the life of a run: going on from there ends where an undisturbed life ends.

What a session is told is claimed once, however often it is tried. `MEMD_FULL_SWEEPS=1` tries every point,
otherwise every few.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from memd.ledger.store.workstreams import Work
from memd.workstream import closing, delivery, handoff, linking, opening, report
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.delivery import Claimed, Start
from memd.workstream.handoff import Note
from memd.workstream.lease import unseen
from memd.workstream.opening import Ask
from memd.workstream.room import Room
from support_faults import Killed
from support_ledger import S1, S2, batch, entry
from support_ledger_faults import LedgerFaults, faulty, is_dead, killing
from support_workstreams import CWD, LAUNCHER, PLACE, WALL_MS

pytestmark = pytest.mark.faults

STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 4
ROOM = Room(10_000, "characters")


def before(writer: SqliteWriter) -> None:
    """Another harness has worked here, and left a note."""
    ask = Ask(place=PLACE, cwd=CWD, harness="codex", launcher=LAUNCHER)
    writer.work(lambda work: opening.prepare(work, ask, "w1", "run-0", unseen))
    writer.work(lambda work: opening.plan(work, "run-0", expected=S2))
    writer.work(lambda work: opening.start(work, "run-0", None))
    writer.append(batch(entry("first request", session=S2), harness="codex"))
    writer.work(lambda work: closing.close(work, "run-0", is_imported=True))
    note = Note(workspace=PLACE.workspace, project=PLACE.project, cwd=CWD, summary="mind the port")
    writer.work(lambda work: handoff.create(work, note, "h1"))


def life(writer: SqliteWriter, told: list[Claimed]) -> None:
    """A run from its beginning, or from wherever it stands, to its end."""
    run = writer.work(lambda work: work.run("run-1"))
    if run is not None and run.state == "finished":
        return
    if run is None:
        ask = Ask(place=PLACE, cwd=CWD, harness="claude", launcher=LAUNCHER)
        run = writer.work(lambda work: opening.prepare(work, ask, "w2", "run-1", unseen)).run
    if run.phase in ("prepared", "planned"):
        writer.work(lambda work: opening.plan(work, "run-1", expected=S1))
        writer.work(lambda work: opening.start(work, "run-1", None))
    linked = writer.work(lambda work: linking.link(work, "run-1", "claude", S1, is_own=True, is_prompt=True))
    start = Start(
        harness="claude",
        cwd=CWD,
        workspace=PLACE.workspace,
        project=PLACE.project,
        session=S1,
        run=linked,
    )
    material = writer.work(lambda work: delivery.gather(work, start))
    offer = delivery.compose(material, ROOM, WALL_MS)
    claimed = writer.work(lambda work: delivery.claim(work, offer))
    if claimed.text():
        told.append(claimed)
    writer.append(batch(entry("go on", at=1), entry("done", at=2, role="assistant")))
    gone = writer.work(lambda work: closing.leave(work, "run-1", 3))
    said = report.texts(Checkpoint(head="a" * 40), ["something was left out"])
    writer.append(report.batch(gone, said, 1, WALL_MS))
    writer.work(lambda work: closing.close(work, "run-1", is_imported=True))


def outcome(root: Path) -> object:
    """All that is left of it, without times and numbers of processes."""
    writer = SqliteWriter(bytes(root))
    writer.close()
    reader = SqliteReader(bytes(root))
    try:
        assert reader.check().problems == []
        looking = reader.workstreams
        run, told, note = looking.run("run-1"), looking.delivery("run-1"), looking.handoff("h1")
        assert run is not None
        assert told is not None
        assert note is not None
        return (
            [(event.sequence, event.content, event.session) for event in looking.tail("w1", limit=99)],
            [(one.harness, one.session, one.is_current, one.told) for one in looking.linked("w1")],
            (run.state, run.phase, run.session, run.exit_code, run.is_told, run.sync_through),
            (told.session, told.after, told.through, told.shown),
            (note.state, note.taken_run),
            [one.id for one in looking.active_runs()],
        )
    finally:
        reader.close()


def dies(root: Path, at: int, told: list[Claimed]) -> bool:
    faults = LedgerFaults()
    with faulty(root, faults) as open_:
        writer = open_()
        faults.calls.clear()
        doomed = killing(at)
        faults.__dict__.update(doomed.__dict__)
        faults._happens = faults.kill
        with contextlib.suppress(Killed, MemdError):
            life(writer, told)
        return is_dead(faults)


def test_a_life_that_a_kill_cut_off_goes_on_to_the_same_end(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    writer = SqliteWriter(bytes(begun))
    before(writer)
    writer.close()
    traced = tmp_path / "traced"
    shutil.copytree(begun, traced)
    faults = LedgerFaults()
    undisturbed: list[Claimed] = []
    with faulty(traced, faults) as open_:
        writer = open_()
        faults.calls.clear()
        life(writer, undisturbed)
        count = len(faults.calls)
    expected = outcome(traced)
    assert len(undisturbed) == 1
    assert count > 30
    for at in range(0, count, STRIDE):
        root = tmp_path / f"try-{at}"
        shutil.copytree(begun, root)
        told: list[Claimed] = []
        assert dies(root, at, told)
        writer = SqliteWriter(bytes(root))
        life(writer, told)
        writer.close()
        assert len(told) <= 1
        assert outcome(root) == expected
        shutil.rmtree(root)


def test_a_claim_that_the_disk_refused_is_no_claim(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    writer = SqliteWriter(bytes(root))
    before(writer)

    def fails(work: Work) -> None:
        assert handoff.accept(work, "h1", handoff.Receiver(harness="claude", cwd=CWD)).state == "accepted"
        raise MemdError("the disk is full")

    with pytest.raises(MemdError):
        writer.work(fails)
    row = writer.work(lambda work: work.handoff("h1"))
    assert row is not None
    assert row.state == "open"
    writer.close()
