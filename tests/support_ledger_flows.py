"""What changes a ledger (a batch, a forgetting, the life of a run), and what it must be afterwards."""

from __future__ import annotations

from pathlib import Path

from memd.harness.model import Session, Turn
from memd.ledger.store.interface import Batch, Filter, Selection
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from memd.workstream import closing, delivery, handoff, linking, opening, report
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.delivery import Claimed, Start
from memd.workstream.handoff import Note
from memd.workstream.lease import unseen
from memd.workstream.opening import Ask
from memd.workstream.room import Room
from support_ledger import S1, S2, Ledger, batch, entry, loss
from support_workstreams import CWD, LAUNCHER, PLACE, WALL_MS

SOURCE = b"claude\0/a.jsonl"


def before() -> Batch:
    return batch(
        entry("alpha zebrafish", at=0),
        entry("beta", at=1, role="assistant"),
        source=SOURCE,
        cursor=b"1",
        losses=[loss("image")],
    )


def coming() -> Batch:
    return batch(
        entry("gamma", at=2),
        entry("alpha zebrafish", session=S2, at=0),
        entry("delta", session=S2, at=1),
        entry("epsilon", at=3, replaces=1),
        turns=[Turn(session=S1, first=2, last=2, is_side=True)],
        source=SOURCE,
        cursor=b"2",
        losses=[loss("image", 2), loss("reasoning", session=S2)],
        sessions=[Session(id=S2, cwd="/w/two", title="the second")],
    )


def state(root: Path) -> object:
    """All that can be asked; also that everything agrees."""
    with Ledger(root) as ledger:
        ledger.writer.seal_all()
        assert ledger.problems() == []
        rows = ledger.reader.sessions(Filter())
        texts = {row.id: list(ledger.reader.export("claude", row.id, side=True)) for row in rows}
        losses = {row.id: ledger.reader.losses("claude", row.id) for row in rows}
        found = [
            len(ledger.reader.search(word, Filter())) for word in ("zebrafish", "beta", "gamma", "delta")
        ]
        return rows, texts, losses, found, ledger.reader.cursor(SOURCE)


def forget(writer: SqliteWriter) -> None:
    writer.begin_forget(Selection(matching="zebrafish"))
    while writer.forget_step():
        pass


def state_of_texts(root: Path) -> object:
    with Ledger(root) as ledger:
        return [ledger.texts(name, side=True) for name in (S1, S2)], ledger.reader.stats().events


ROOM = Room(10_000, "characters")


def begin(writer: SqliteWriter) -> None:
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
