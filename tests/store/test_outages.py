"""A ledger on a server that goes away, comes back, and loses answers: nothing is lost, nothing is doubled."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.errors import DiskError, MemdError, TryAgain
from memd.ledger.store import buffered
from memd.ledger.store.buffered import BufferedWriter
from memd.ledger.store.interface import GROUP_BYTES, Filter, NotTaken, Selection, Unreachable
from memd.ledger.store.waiting import Queue
from support_ledger import S1, batch, entry, loss
from support_postgres import Server
from support_postgres import server as a_server
from support_proxy import Proxy
from support_workstreams import CWD, LAUNCHER, PLACE, Clock, handoff, linked, run, workstream

_count = itertools.count(1)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that keeps what it has answered, and that these tests may kill."""
    with a_server(options=("synchronous_commit=on",)) as running:
        yield running


class Way:
    """A ledger reached through a proxy, with readers that go straight to it."""

    def __init__(self, server: Server, proxy: Proxy, machine: str = "m1") -> None:
        from memd.ledger.store.postgres.engine import Machine, PostgresEngine

        self.server, self.proxy = server, proxy
        self.schema = f"o{next(_count)}"
        self.clock = Clock()
        self.here = Machine(machine, "host")
        self.engine = PostgresEngine(proxy.words(), self.schema, self.here, clock=self.clock)
        self.straight = PostgresEngine(server.connection(), self.schema, self.here, clock=self.clock)
        self.writer = self.engine.lazy_writer()
        self.writer.settle()

    def texts(self, session: str = S1) -> list[str]:
        reader = self.straight.reader()
        try:
            return [event.content for event in reader.export("claude", session)]
        finally:
            reader.close()

    def ask(self, question: Any) -> Any:
        reader = self.straight.reader()
        try:
            return question(reader)
        finally:
            reader.close()

    def close(self) -> None:
        self.writer.close()


@pytest.fixture
def way(mortal: Server) -> Iterator[Way]:
    with Proxy(mortal.folder / f".s.PGSQL.{mortal.port}") as proxy:
        made = Way(mortal, proxy)
        try:
            yield made
        finally:
            made.close()


def lossy(*texts: str, source: bytes = b"/a") -> Any:
    return batch(
        *(entry(text, at=at) for at, text in enumerate(texts)),
        source=source,
        cursor=texts[-1].encode(),
        losses=[loss("image")],
    )


def losses(way: Way) -> list[int]:
    return [row.count for row in way.ask(lambda reader: reader.losses("claude", S1))]


def test_an_answer_lost_in_a_commit_doubles_nothing(way: Way) -> None:
    way.writer.append(lossy("a"))
    way.proxy.lose_answer = b"commit"
    said = way.writer.append(lossy("b"))
    assert said.stored == 1
    assert (way.texts(), losses(way)) == (["a", "b"], [2])


def test_an_answer_lost_in_a_transaction_about_runs_does_nothing_twice(way: Way) -> None:
    done: list[int] = []

    def make(work: Any) -> int:
        done.append(1)
        work.put_workstream(workstream(f"w{len(done)}"))
        return len(done)

    way.proxy.lose_answer = b"commit"
    assert way.writer.work(make) == 1
    assert way.ask(lambda reader: reader.workstreams.workstream("w2")) is None


@pytest.mark.parametrize("what", ["append", "work"])
def test_a_connection_that_ends_anywhere_leaves_all_or_nothing(way: Way, what: str) -> None:
    """The link is cut before each piece that goes to the server, in turn; what is said again is in once."""
    way.writer.work(lambda work: work.put_workstream(workstream()))
    way.writer.work(lambda work: work.put_linked("w1", linked(S1)))

    def once(number: int) -> None:
        if what == "append":
            way.writer.append(lossy(f"text {number}"))
        else:
            way.writer.work(lambda work: work.put_run(run(f"run-{number}", state="finished")))

    once(0)
    before = way.proxy.pieces
    once(1)
    pieces = way.proxy.pieces - before
    assert pieces > 3
    for number in range(pieces):
        way.proxy.cut_at = number
        once(number + 2)
        way.proxy.cut_at = -1
    count = pieces + 2
    if what == "append":
        assert way.texts() == [f"text {number}" for number in range(count)]
        assert losses(way) == [count]
        sequences = [row.sequence for row in way.ask(lambda reader: reader.workstreams.tail("w1", limit=999))]
        assert sequences == list(range(count, 0, -1))
        assert way.ask(lambda reader: reader.check().problems) == []
    else:
        found = [way.ask(lambda reader, n=n: reader.workstreams.run(f"run-{n}")) for n in range(count)]
        assert None not in found


@pytest.mark.parametrize("at", [b"for update", b"the second text", b"commit"])
def test_a_server_killed_in_the_middle_of_an_import_has_it_once(way: Way, at: bytes) -> None:
    way.writer.append(lossy("a"))

    def kill(piece: bytes) -> None:
        if at in piece:
            way.proxy.on_piece = lambda _piece: None
            way.server.kill()

    way.proxy.on_piece = kill
    queue = Queue(bytes(way.server.folder.parent / way.schema))
    waiting = BufferedWriter(way.writer, queue)
    waiting.append(lossy("the second text"))
    waiting.append(lossy("c"))
    assert queue.state.groups == 2
    with pytest.raises(Unreachable):
        waiting.work(lambda work: work.active_runs())
    way.server.start()
    while waiting.drain_step():
        pass
    assert queue.state.groups == 0
    assert (way.texts(), losses(way)) == (["a", "the second text", "c"], [3])
    queue.close()


# ---------------------------------------------------------------------------- the queue alone


class Away:
    """A server that is away until it is let back."""

    def __init__(self) -> None:
        self.is_away = True
        self.groups: list[tuple[str, list[str]]] = []
        self.refused: set[str] = set()

    def append_all(self, batches: Any, is_awaited: Any = None, *, token: str = "") -> Any:
        from memd.ledger.store.interface import Appended

        if self.is_away:
            raise Unreachable("the server is away")
        texts = [one.content for group in batches for one in group.entries]
        if self.refused & set(texts):
            raise NotTaken("not this")
        self.groups.append((token, texts))
        return [Appended(stored=len(group.entries)) for group in batches]

    def has_taken(self, token: str) -> bool:
        if self.is_away:
            raise Unreachable("the server is away")
        return bool(self.groups) and self.groups[-1][0] == token

    def tidy(self) -> bool:
        return False

    def begin_forget(self, _selection: Any) -> str:
        return "forgotten"

    def close(self) -> None:
        pass

    @property
    def texts(self) -> list[str]:
        return [text for _token, texts in self.groups for text in texts]


def test_what_waits_survives_a_restart_and_comes_in_order_and_once(tmp_path: Path) -> None:
    remote = Away()
    writer = BufferedWriter(remote, Queue(bytes(tmp_path)))  # type: ignore[arg-type]
    for text in ("a", "b", "c"):
        writer.append(lossy(text))
    assert writer.waiting.groups == 3
    writer.close()
    writer = BufferedWriter(remote, Queue(bytes(tmp_path)))  # type: ignore[arg-type]
    assert writer.cursor(b"/a") == b"c"
    writer.append(lossy("d"))
    remote.is_away = False
    while writer.drain_step():
        pass
    writer.append(lossy("e"))
    assert remote.texts == ["a", "b", "c", "d", "e"]
    assert writer.waiting.groups == 0
    writer.close()
    assert Queue(bytes(tmp_path)).cursor(b"/a") == b"e"


@pytest.mark.parametrize("is_away", [False, True])
def test_who_needs_the_writer_waits_for_one_group_and_not_for_all_that_came(
    tmp_path: Path, is_away: bool
) -> None:
    remote, queue = Away(), Queue(bytes(tmp_path))
    remote.is_away = is_away
    writer = BufferedWriter(remote, queue)  # type: ignore[arg-type]
    coming = [batch(entry(letter * (GROUP_BYTES // 2))) for letter in "abcde"]
    assert len(writer.append_all(coming, lambda: True)) == 2
    assert len(writer.append_all(coming[2:])) == 3
    remote.is_away = False
    while writer.drain_step():
        pass
    assert [[text[0] for text in texts] for _token, texts in remote.groups] == [["a", "b"], ["c", "d"], ["e"]]
    assert len({token for token, _texts in remote.groups}) == 3
    writer.close()


def test_what_is_in_when_a_later_group_cannot_be_kept_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, queue = Away(), Queue(bytes(tmp_path))
    remote.is_away = False
    remote.refused = {"b" * GROUP_BYTES}
    writer = BufferedWriter(remote, queue)  # type: ignore[arg-type]

    def full(*_args: Any) -> None:
        raise DiskError("write", b"queue", OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(queue, "put", full)
    coming = [batch(entry(letter * GROUP_BYTES)) for letter in "ab"]
    assert len(writer.append_all(coming)) == 1
    with pytest.raises(DiskError):
        writer.append_all(coming[1:])
    writer.close()


def test_a_kill_between_the_server_and_the_queue_brings_nothing_twice(tmp_path: Path) -> None:
    remote = Away()
    queue = Queue(bytes(tmp_path))
    writer = BufferedWriter(remote, queue)  # type: ignore[arg-type]
    writer.append(lossy("a"))
    remote.is_away = False
    queue.drop = lambda _n: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        writer.drain_step()
    again = BufferedWriter(remote, Queue(bytes(tmp_path)))  # type: ignore[arg-type]
    while again.drain_step():
        pass
    assert remote.texts == ["a"]
    assert again.waiting.groups == 0


def test_what_the_server_never_takes_is_kept_and_holds_up_nobody(tmp_path: Path) -> None:
    remote = Away()
    remote.refused = {"b"}
    writer = BufferedWriter(remote, Queue(bytes(tmp_path)))  # type: ignore[arg-type]
    for text in ("a", "b", "c"):
        writer.append(lossy(text))
    remote.is_away = False
    while writer.drain_step():
        pass
    assert remote.texts == ["a", "c"]
    assert (writer.waiting.groups, writer.waiting.aside) == (0, 1)


def test_a_full_queue_refuses_and_drops_nothing(tmp_path: Path) -> None:
    remote = Away()
    writer = BufferedWriter(remote, Queue(bytes(tmp_path), max_bytes=2000))  # type: ignore[arg-type]
    taken = 0
    with pytest.raises(TryAgain, match="wait for the ledger's server"):
        for number in range(1000):
            writer.append(lossy(f"text {number}"))
            taken += 1
    remote.is_away = False
    while writer.drain_step():
        pass
    assert remote.texts == [f"text {number}" for number in range(taken)]
    writer.append(lossy("later"))
    assert remote.texts[-1] == "later"


def test_forgetting_brings_in_what_waits_first(tmp_path: Path) -> None:
    remote = Away()
    writer = BufferedWriter(remote, Queue(bytes(tmp_path)))  # type: ignore[arg-type]
    writer.append(batch(entry("a zebra")))
    with pytest.raises(Unreachable):
        writer.begin_forget(Selection(matching="zebra"))
    remote.is_away = False
    writer.begin_forget(Selection(matching="zebra"))
    assert remote.texts == ["a zebra"]
    writer.close()
    assert b"zebra" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_files_of_the_queue_are_private(tmp_path: Path) -> None:
    writer = BufferedWriter(Away(), Queue(bytes(tmp_path / "ledger")))  # type: ignore[arg-type]
    writer.append(lossy("a"))
    modes = {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "ledger").iterdir()}
    assert modes == {"0o600"}


def test_a_server_that_is_away_is_not_asked_for_every_batch(tmp_path: Path) -> None:
    now = [100.0]
    remote = Away()
    writer = BufferedWriter(remote, Queue(bytes(tmp_path)), clock=lambda: now[0])  # type: ignore[arg-type]
    writer.append(lossy("a"))
    remote.is_away = False
    assert not writer.tidy()
    assert remote.texts == []
    now[0] += buffered.RETRY_S
    assert writer.tidy()
    assert remote.texts == ["a"]


def test_cursors_are_told_from_here_while_something_waits(tmp_path: Path) -> None:
    queue = Queue(bytes(tmp_path))

    def away() -> dict[bytes, bytes]:
        raise Unreachable("away")

    assert buffered.page(queue, lambda: {b"/x": b"1"}, b"", 10) == {b"/x": b"1"}
    assert buffered.page(queue, away, b"", 10) == {b"/x": b"1"}
    queue.put([lossy("a")], "t")
    assert buffered.page(queue, lambda: {b"/x": b"9"}, b"", 10) == {b"/a": b"a", b"/x": b"1"}


def test_what_is_said_of_a_run_that_is_over_stays_without_a_place_in_the_view(
    way: Way, tmp_path: Path
) -> None:
    way.writer.work(lambda work: work.put_workstream(workstream()))
    way.writer.work(lambda work: work.put_run(run(boot="boot-1")))
    writer = BufferedWriter(way.writer, Queue(bytes(tmp_path)))
    way.proxy.is_refusing = True
    way.proxy.cut()
    said = batch(entry("HEAD abc", kind="checkpoint", role="", session="unresolved:run-1"), run="run-1")
    writer.append(said)
    assert writer.waiting.groups == 1
    way.proxy.is_refusing = False
    over = replace(run(boot="boot-1"), state="expired")
    way.writer.work(lambda work: work.put_run(over))
    assert writer.drain_step()
    assert way.texts("unresolved:run-1") == ["HEAD abc"]
    assert way.ask(lambda reader: reader.workstreams.tail("w1")) == []


def test_an_unreachable_server_is_told_with_what_to_do(mortal: Server) -> None:
    from memd.ledger.store.postgres.engine import Machine, PostgresEngine

    nowhere = PostgresEngine("host=127.0.0.1 port=1 sslmode=disable user=me", "memd", Machine("m", "h"))
    for ask in (
        lambda: nowhere.lazy_writer().append(batch(entry("a"))),
        lambda: nowhere.reader().search("a", Filter()),
        lambda: nowhere.reader().workstreams.active_runs(),
    ):
        with pytest.raises(MemdError) as caught:
            ask()
        assert caught.value.code == "unavailable"
        assert "server" in caught.value.remedy


@pytest.mark.parametrize("at", [b"for update", b"commit"])
@pytest.mark.parametrize("phase", ["prepare", "claim", "finish"])
def test_a_server_killed_in_the_middle_of_a_run_leaves_one_truth(way: Way, phase: str, at: bytes) -> None:
    from memd.workstream import closing, opening
    from memd.workstream import handoff as notes
    from memd.workstream.lease import unseen
    from memd.workstream.opening import Ask

    ask = Ask(place=PLACE, cwd=CWD, harness="claude", launcher=LAUNCHER)
    receiver = notes.Receiver(harness="claude", cwd=CWD, session=S1)
    tries = 0

    def step(work: Any) -> Any:
        nonlocal tries
        tries += 1
        if phase == "prepare":
            return opening.prepare(work, ask, f"w{tries}", f"run-{tries}", unseen)
        if phase == "claim":
            return notes.take(work, "h1", receiver)
        return closing.close(work, "run-0", is_imported=False)

    way.writer.work(lambda work: work.put_handoff(handoff()))
    if phase == "finish":
        way.writer.work(lambda work: opening.prepare(work, ask, "w0", "run-0", unseen))
        way.writer.work(lambda work: opening.start(work, "run-0", None))

    def kill(piece: bytes) -> None:
        if at in piece:
            way.proxy.on_piece = lambda _piece: None
            way.server.kill()

    way.proxy.on_piece = kill
    with pytest.raises(Unreachable):
        way.writer.work(step)
    way.server.start()
    way.writer.work(step)
    active = way.ask(lambda reader: reader.workstreams.active_runs())
    note = way.ask(lambda reader: reader.workstreams.handoff("h1"))
    assert len(active) == (1 if phase == "prepare" else 0)
    assert note.state == ("accepted" if phase == "claim" else "open")
    if phase == "prepare":
        [row] = way.ask(lambda reader: reader.workstreams.workstreams(PLACE))
        assert active[0].workstream == row.id
    if phase == "finish":
        assert way.ask(lambda reader: reader.workstreams.run("run-0")).state == "finished"
