"""A whole ledger is copied from one engine into the other, is the same there, and stays as it was here."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.errors import Refused
from memd.harness.model import Session, Turn
from memd.ledger.store.copying import Copied, Copy
from memd.ledger.store.interface import Filter, Selection
from memd.ledger.store.workstreams import Delivery
from support_engines import Engines, Lines
from support_ledger import CWD, S1, S2, all_bytes, batch, entry, loss
from support_workstreams import PLACE, WALL_MS, Clock, handoff, run


@pytest.fixture
def both(engines: Engines, tmp_path: Path) -> tuple[Engines, Engines]:
    """A ledger of one machine, and one on a server."""
    if engines.server is None:
        pytest.skip("both engines are in every copy")
    return Engines(tmp_path, None, ""), engines


def fill(lines: Lines) -> None:
    """Something of everything that a ledger holds."""
    lines.workstream(selected_ms=5)
    lines.put(
        entry("a", at=0, metadata={"tool": "Bash", "n": 3, "is_error": True}),
        entry("aside", at=1, is_side=True),
        entry("gone soon", at=2),
        entry("zebra", at=3),
        source=b"/t/\xff",
        cursor=b"\x00\x01",
        losses=[loss("image", 3)],
        sessions=[Session(id=S1, cwd=CWD, title="A title", version="1.2", started="2026-02-03T09:00:00Z")],
    )
    lines.link(S1, told=2)
    lines.put(entry("b", at=4, replaces=2), entry("größer 東京", at=5, occurred_at="2026-02-04T00:00:00Z"))
    fork = Session(id=S2, cwd=CWD + "/sub", forked_from=S1, forked_at=2)
    lines.writer.append(batch(entry("c", session=S2, at=9), sessions=[fork]))
    lines.link(S2)
    lines.writer.append(batch(turns=[Turn(session=S1, first=5, last=5, is_side=True)]))
    lines.work(lambda work: work.put_run(run(state="finished", exit_code=3, session=S1)))
    lines.work(lambda work: work.put_delivery(delivery()))
    said = entry("HEAD abc", id="managed-run:run-1:checkpoint", kind="checkpoint", role="", session=S1)
    lines.put(said)
    lines.work(lambda work: work.put_handoff(handoff()))
    lines.forget(Selection(matching="zebra"))


def delivery() -> Delivery:
    return Delivery(
        run="run-1",
        harness="claude",
        session=S1,
        after=0,
        through=4,
        shown=3,
        omitted=1,
        first=2,
        at_ms=WALL_MS,
    )


def facts(lines: Lines) -> dict[str, object]:
    """All that two ledgers should agree on."""
    looking = lines.reader.workstreams
    return {
        "sessions": [replace(row, title="", last_activity="") for row in lines.reader.sessions(Filter())],
        "events": {
            name: [(one.event_id, one.content, one.metadata, one.at, one.is_side) for one in found]
            for name in (S1, S2)
            for found in [list(lines.reader.export("claude", name, side=True))]
        },
        "losses": lines.reader.losses("claude", S1),
        "cursors": lines.reader.cursors(),
        "view": [(one.sequence, one.content) for one in looking.tail("w1", limit=99)],
        "links": looking.linked("w1"),
        "run": looking.run("run-1"),
        "delivery": looking.delivery("run-1"),
        "handoffs": looking.handoffs(PLACE.workspace, PLACE.project),
        "workstream": looking.workstream("w1"),
        "search": [hit.content for hit in lines.reader.search("größer", Filter())],
    }


def copy(source: Lines, target: Lines) -> Copied:
    return Copy(source.reader, target.reader, target.writer, lambda *_: None).run()


def test_there_and_back_again_everything_is_the_same(both: tuple[Engines, Engines], tmp_path: Path) -> None:
    here, server = both
    clock = Clock()
    with here.open(clock=clock) as first, server.open("laptop", clock) as there:
        fill(first)
        before = facts(first)
        files = dict(all_bytes(first.root))
        done = copy(first, there)
        assert (done.problems, done.kept, done.events) == ((), 0, 6)
        assert facts(there) == before
        assert there.problems() == []
        assert facts(first) == before
        assert {path: data for path, data in all_bytes(first.root) if b"-shm" not in bytes(path)} == {
            path: data for path, data in files.items() if b"-shm" not in bytes(path)
        }
        assert there.put(entry("zebra")).forgotten == 1
        with Engines(tmp_path / "second", None, "").open(clock=clock) as second:
            done = copy(there, second)
            assert (done.problems, done.kept) == ((), 0)
            assert facts(second) == before
            assert second.problems() == []


def test_a_copy_that_is_begun_again_changes_nothing(both: tuple[Engines, Engines]) -> None:
    here, server = both
    with here.open() as first, server.open("laptop") as there:
        fill(first)
        copy(first, there)
        before = facts(there)
        copy(first, there)
        assert facts(there) == before


def test_a_copy_that_was_cut_off_is_gone_on_with(both: tuple[Engines, Engines]) -> None:
    here, server = both
    with here.open() as first, server.open("laptop") as there:
        fill(first)
        count = 0
        append = there.writer.append

        def cut_off(one: object) -> object:
            nonlocal count
            count += 1
            if count == 3:
                raise KeyboardInterrupt
            return append(one)  # type: ignore[arg-type]

        there.writer.append = cut_off  # type: ignore[method-assign,assignment]
        with pytest.raises(KeyboardInterrupt):
            copy(first, there)
        there.writer.append = append  # type: ignore[method-assign]
        assert copy(first, there).problems == ()
        assert facts(there) == facts(first)


def test_two_machines_bring_their_ledgers_to_one_server(
    both: tuple[Engines, Engines], tmp_path: Path
) -> None:
    _here, server = both
    laptop_files, desktop_files = (Engines(tmp_path / name, None, "") for name in ("l", "d"))
    with laptop_files.open() as laptop, desktop_files.open() as desktop:
        laptop.workstream("w1")
        laptop.link(S1, workstream="w1")
        laptop.put(entry("on both"), entry("on the laptop"), source=b"/t", cursor=b"1")
        desktop.workstream("w2")
        desktop.link(S1, workstream="w2")
        desktop.put(entry("on both"), entry("on the desktop"), source=b"/t", cursor=b"2")
        with server.open("laptop") as one, server.open("desktop") as two:
            assert copy(laptop, one).problems == ()
            assert copy(desktop, two).problems == ()
            assert sorted(one.texts()) == ["on both", "on the desktop", "on the laptop"]
            assert one.view("w1")[:2] == ["on both", "on the laptop"]
            assert two.view("w2")[:2] == ["on both", "on the desktop"]
            assert (one.reader.cursor(b"/t"), two.reader.cursor(b"/t")) == (b"1", b"2")
            assert one.problems() == []


def test_nothing_is_copied_while_an_agent_runs(both: tuple[Engines, Engines]) -> None:
    here, server = both
    with here.open() as first, server.open("laptop") as there:
        first.workstream()
        first.work(lambda work: work.put_run(run()))
        with pytest.raises(Refused, match="an agent is running"):
            copy(first, there)


def test_what_both_have_forgotten_apart_is_not_dropped_in_silence(both: tuple[Engines, Engines]) -> None:
    here, server = both
    with here.open() as first, server.open("laptop") as there:
        for lines in (first, there):
            lines.put(entry("zebra"), entry("kept"))
            lines.forget(Selection(matching="zebra"))
        with pytest.raises(Refused, match="each under its own secret"):
            copy(first, there)
        done = Copy(first.reader, there.reader, there.writer, lambda *_: None).run(with_forgotten=False)
        assert done.problems == ()
