"""Several machines with one ledger: what is shared, what belongs to one, and who may write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from memd.harness.model import Session
from memd.ledger.store.workstreams import Place, Process
from memd.workstream import lease, opening
from memd.workstream.opening import Ask
from support_engines import Engines, Lines
from support_ledger import S1, S2, batch, entry, loss
from support_workstreams import CWD, LAUNCHER, PLACE, WALL_MS, Clock, linked, run, workstream


@pytest.fixture
def shared(engines: Engines) -> Engines:
    if engines.server is None:
        pytest.skip("the engine of one machine")
    return engines


@pytest.fixture
def two(shared: Engines) -> Iterator[tuple[Lines, Lines]]:
    clock = Clock()
    with shared.open("laptop", clock) as laptop, shared.open("desktop", clock) as desktop:
        yield laptop, desktop


def test_sources_of_one_name_belong_to_their_machines(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    laptop.put(entry("a"), source=b"/t", cursor=b"1", losses=[loss("image")])
    desktop.put(entry("b"), source=b"/t", cursor=b"2", losses=[loss("image", 2)])
    assert (laptop.reader.cursor(b"/t"), desktop.reader.cursor(b"/t")) == (b"1", b"2")
    assert [row.count for row in laptop.reader.losses("claude", S1)] == [3]
    desktop.put(is_restart=True, source=b"/t", cursor=b"0")
    assert [row.count for row in laptop.reader.losses("claude", S1)] == [1]
    desktop.writer.drop_source(b"/t")
    assert laptop.reader.cursors() == {b"/t": b"1"}


def test_an_event_that_two_machines_have_is_there_once(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    assert laptop.put(entry("a"), entry("b")).stored == 2
    said = desktop.put(entry("a"), entry("b"), entry("c"))
    assert (said.stored, said.duplicates) == (1, 2)
    assert laptop.texts() == desktop.texts() == ["a", "b", "c"]
    assert laptop.problems() == []


def test_what_one_machine_links_the_other_adds_to(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    laptop.workstream()
    laptop.link(S1)
    desktop.put(entry("from the desktop"))
    laptop.put(entry("from the laptop"))
    assert (laptop.view(), laptop.sequences_of()) == (["from the desktop", "from the laptop"], [1, 2])


def test_checkouts_of_one_path_on_two_machines_are_not_one(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    laptop.workstream()
    assert [row.id for row in laptop.reader.workstreams.workstreams(PLACE)] == ["w1"]
    assert desktop.reader.workstreams.workstreams(PLACE) == []
    desktop.workstream("w2", name="w1")
    assert [row.id for row in desktop.reader.workstreams.workstreams(PLACE)] == ["w2"]


def test_a_workstream_is_found_from_another_machine_with_where_it_was_used(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    laptop.workstream()
    laptop.work(lambda work: work.put_run(run(cwd=b"/home/me/proj")))
    said = entry("HEAD abc", kind="checkpoint", role="", session="unresolved:run-1")
    laptop.writer.append(batch(said, run="run-1"))
    here = replace(PLACE, worktree="d" * 64)
    [found] = desktop.reader.workstreams.elsewhere(here)
    assert (found.workstream.id, found.machine, found.cwd) == ("w1", "host-laptop", b"/home/me/proj")
    assert (found.used_ms, found.checkpoint) == (WALL_MS, "HEAD abc")
    assert laptop.reader.workstreams.elsewhere(PLACE) == []
    assert desktop.reader.workstreams.elsewhere(replace(here, repository="another")) == []


def test_a_bound_workstream_is_one_of_the_checkout(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    laptop.workstream(selected_ms=5)
    here = Place(workspace="default", project="other-name", repository=PLACE.repository, worktree="d" * 64)
    desktop.work(lambda work: work.bind("w1", here))
    desktop.work(lambda work: work.bind("w1", here))
    [row] = desktop.reader.workstreams.workstreams(here)
    assert (row.id, row.place) == ("w1", here)
    assert desktop.reader.workstreams.workstream("w1").place == here  # type: ignore[union-attr]
    assert laptop.reader.workstreams.workstream("w1").place == PLACE  # type: ignore[union-attr]
    assert desktop.reader.workstreams.elsewhere(here) == []
    desktop.work(lambda work: work.put_workstream(replace(row, name="renamed")))
    assert [one.name for one in laptop.reader.workstreams.workstreams(PLACE)] == ["renamed"]


def test_a_name_that_is_taken_there_is_not_bound(two: tuple[Lines, Lines], shared: Engines) -> None:
    laptop, desktop = two
    here = replace(PLACE, worktree="d" * 64)
    laptop.workstream()
    desktop.workstream("w2", name="w1", place=here)
    with pytest.raises(shared.refusals):
        desktop.work(lambda work: work.bind("w1", here))
    assert [row.id for row in desktop.reader.workstreams.workstreams(here)] == ["w2"]


# ------------------------------------------------------------------------------------- leases


def ask(place: Place = PLACE, launcher: Process = LAUNCHER) -> Ask:
    return Ask(place=place, cwd=CWD, harness="claude", launcher=launcher)


def gone(process: Process) -> Any:
    """All processes of this machine are gone; of another nothing is known."""
    return "unknown" if process.machine else "gone"


def test_a_lease_of_another_machine_ends_by_the_clock_alone(two: tuple[Lines, Lines]) -> None:
    laptop, desktop = two
    made = laptop.work(lambda work: opening.prepare(work, ask(), "w1", "run-1", gone))
    laptop.work(lambda work: opening.start(work, made.run.id, Process(4243, "101")))
    desktop.work(lambda work: work.bind("w1", PLACE))
    with pytest.raises(lease.Busy, match="on host-laptop"):
        desktop.work(lambda work: opening.prepare(work, ask(), "w2", "run-2", gone))
    laptop.clock.go(lease.LEASE_S - 1)
    with pytest.raises(lease.Busy):
        desktop.work(lambda work: opening.prepare(work, ask(), "w2", "run-2", gone))
    laptop.clock.go(1)
    taken = desktop.work(lambda work: opening.prepare(work, ask(), "w2", "run-2", gone))
    assert taken.superseded is not None
    assert taken.superseded.id == "run-1"
    with pytest.raises(lease.RunGone):
        laptop.work(lambda work: opening.beat(work, "run-1"))


def test_a_link_that_was_cut_for_longer_than_a_lease_is_taken_up_if_nobody_came(
    two: tuple[Lines, Lines],
) -> None:
    laptop, _desktop = two
    made = laptop.work(lambda work: opening.prepare(work, ask(), "w1", "run-1", gone))
    laptop.clock.go(100)
    assert laptop.work(lambda work: opening.beat(work, made.run.id)).state == "active"


def test_equal_processes_of_two_machines_are_two(two: tuple[Lines, Lines]) -> None:
    """The same number and start: one does not call off what the other prepared."""
    laptop, desktop = two
    laptop.work(lambda work: opening.prepare(work, ask(), "w1", "run-1", lease.unseen))
    desktop.work(lambda work: opening.prepare(work, ask(), "w2", "run-2", lease.unseen))
    assert {one.id: one.launcher.machine for one in laptop.reader.workstreams.active_runs()} == {
        "run-1": "",
        "run-2": "host-desktop",
    }
    held = desktop.reader.workstreams.run("run-1")
    assert held is not None
    desktop.work(lambda work: work.put_run(replace(held, expires_ms=held.expires_ms + 1)))
    again = laptop.reader.workstreams.run("run-1")
    assert again is not None
    assert again.launcher == LAUNCHER


def test_processes_of_an_earlier_boot_are_none_of_today(
    two: tuple[Lines, Lines], monkeypatch: pytest.MonkeyPatch
) -> None:
    from memd import processes

    laptop, _desktop = two
    laptop.workstream()
    laptop.work(lambda work: work.put_run(run()))
    monkeypatch.setattr(processes, "boot_id", lambda: "the next boot")
    found = laptop.reader.workstreams.run("run-1")
    assert found is not None
    assert found.launcher.pid == LAUNCHER.pid
    assert found.launcher.start != LAUNCHER.start


def test_leases_go_by_the_clock_of_the_server(shared: Engines) -> None:
    writer = shared.engine("laptop").writer()
    moment = writer.work(lambda work: work.moment)
    assert shared.server is not None
    [(now_s,)] = shared.server.sql("select extract(epoch from clock_timestamp())::float")
    assert moment.boot == "postgresql"
    assert abs(moment.ms / 1000 - now_s) < 60
    writer.close()


# ------------------------------------------------------------------------------- many at once


def test_eight_machines_that_write_at_once_leave_dense_numbers_and_nothing_twice(shared: Engines) -> None:
    names = [f"m{number}" for number in range(8)]
    with shared.open("m0") as first:
        first.workstream()
        first.work(lambda work: work.put_linked("w1", linked(S1)))
    failures: list[BaseException] = []
    gate = threading.Barrier(len(names))

    def work(name: str) -> None:
        try:
            writer = shared.engine(name).writer()
            gate.wait(timeout=30)
            for turn in range(6):
                shared_text = entry(f"everybody {turn}", at=turn)
                own = entry(f"{name} {turn}", at=turn)
                beside = entry(f"{name} beside {turn}", session=S2)
                writer.append(batch(shared_text, own, beside, source=b"/t", cursor=b"%d" % turn))
                writer.work(lambda work: work.put_handoff(_handoff(work, name)))
            writer.close()
        except BaseException as bug:  # noqa: BLE001 - told in the test's own thread
            failures.append(bug)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert failures == []
    with shared.open("m0") as again:
        assert again.sequences() == list(range(1, 6 + 48 + 1))
        assert again.sequences_of() == list(range(1, 6 + 48 + 1))
        assert again.reader.stats().events == 6 + 48 + 48
        assert again.problems() == []


def _handoff(work: Any, name: str) -> Any:
    """Take the open one's place, as a new one does."""
    from support_workstreams import handoff

    for row in work.handoffs(PLACE.workspace, PLACE.project, 1):
        if row.state == "open":
            work.put_handoff(replace(row, state="replaced"))
    found = work.handoffs(PLACE.workspace, PLACE.project, 1000)
    return handoff(f"{name}-{len(found)}")


def test_two_that_claim_one_lease_at_once_do_not_both_get_it(shared: Engines) -> None:
    with shared.open("m0") as first:
        first.work(lambda work: work.put_workstream(workstream(selected_ms=5)))
    got: list[str] = []
    gate = threading.Barrier(6)

    def claim(name: str) -> None:
        writer = shared.engine(name).writer()
        writer.work(lambda work: work.bind("w1", PLACE))
        gate.wait(timeout=30)
        try:
            writer.work(lambda work: opening.prepare(work, ask(), "new-" + name, "run-" + name, gone))
            got.append(name)
        except lease.Busy:
            pass
        writer.close()

    threads = [threading.Thread(target=claim, args=(f"c{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(got) == 1


def test_what_was_forgotten_on_one_machine_does_not_come_from_another(two: tuple[Lines, Lines]) -> None:
    from memd.ledger.store.interface import Selection

    laptop, desktop = two
    desktop.put(entry("something else", session=S2))
    laptop.put(entry("a zebra"), entry("kept"))
    laptop.forget(Selection(matching="zebra"))
    assert desktop.put(entry("a zebra"), entry("new")).forgotten == 1
    laptop.forget(Selection(session=S2))
    late = batch(entry("a tail", session=S2), sessions=[Session(id=S2, cwd="/w")])
    assert desktop.writer.append(late).forgotten == 1
    assert desktop.texts() == ["kept", "new"]


def test_machines_that_come_first_at_once_make_one_ledger(shared: Engines) -> None:
    failures: list[BaseException] = []
    gate = threading.Barrier(6)

    def come(name: str) -> None:
        try:
            engine = shared.engine(name)
            gate.wait(timeout=30)
            writer = engine.writer()
            writer.append(batch(entry(f"from {name}")))
            writer.close()
        except BaseException as bug:  # noqa: BLE001 - told in the test's own thread
            failures.append(bug)

    threads = [threading.Thread(target=come, args=(f"c{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    with shared.open("c0") as lines:
        assert lines.sequences() == [1, 2, 3, 4, 5, 6]


def test_a_ledger_of_a_later_memd_is_refused_and_what_is_read_waits(shared: Engines, tmp_path: Any) -> None:
    from memd.ledger.store.buffered import BufferedWriter
    from memd.ledger.store.interface import TooNew
    from memd.ledger.store.waiting import Queue

    shared.engine("m1").writer().close()
    assert shared.server is not None
    shared.server.sql(f"update {shared.schema}.ledger set version = 99")
    with pytest.raises(TooNew, match="version 99"):
        shared.engine("m1").writer()
    writer = BufferedWriter(shared.engine("m1").lazy_writer(), Queue(bytes(tmp_path)))
    writer.append(batch(entry("a")))
    assert (writer.waiting.groups, "version 99" in writer.trouble) == (1, True)
    writer.close()


def test_a_transaction_that_is_left_open_gives_the_ledger_back(shared: Engines) -> None:
    """A machine that stops in the middle of a transaction holds up the others for a bounded time only."""
    from memd.ledger.store.postgres import connecting

    stuck = shared.engine("stuck").writer()
    stuck._link.run("set idle_in_transaction_session_timeout = 200")
    stuck._link.run("begin")
    stuck._link.run("select 1 from ledger for update")
    assert connecting.IDLE_MS <= 5000
    with shared.open("other") as lines:
        assert lines.put(entry("a")).stored == 1
    assert stuck.append(batch(entry("b"))).stored == 1
    stuck.close()
