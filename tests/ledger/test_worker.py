"""The worker alone, over a pair of pipes: what goes first, how much is under way, what it says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.ledger import messages
from memd.ledger.store.interface import GROUP_BYTES, GROUP_EVENTS
from memd.ledger.worker import WINDOW
from support_opencode import Store
from support_shim import Shim, why_not
from support_worker import Worker, entries

CWD = "/work/somewhere"


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    made = Worker(tmp_path)
    yield made
    made.end()


def write(home: Path, session: int, lines: int, words: str = "", first: int = 0) -> Path:
    folder = home / ".claude" / "projects" / "-work-somewhere"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{session:08d}-0000-4000-8000-000000000000"
    path = folder / f"{name}.jsonl"
    with path.open("a") as file:
        for n in range(first, first + lines):
            record = {
                "parentUuid": None,
                "type": "user",
                "uuid": f"{session:08d}-0000-4000-8000-{n:012d}",
                "timestamp": "2026-03-01T10:00:00.000Z",
                "cwd": CWD,
                "sessionId": name,
                "message": {"role": "user", "content": f"text{n} {words}"},
            }
            file.write(json.dumps(record) + "\n")
    return path


def test_no_more_groups_are_under_way_than_the_window_holds(worker: Worker, tmp_path: Path) -> None:
    write(tmp_path, 1, (WINDOW + 2) * GROUP_EVENTS)
    worker.begin()
    numbers = []
    for _ in range(WINDOW):
        read = worker.read()
        assert read is not None
        numbers.append(read.number)
    assert worker.read(0.5) is None
    worker.tell(messages.Acknowledge(number=numbers[0]))
    assert worker.read() is not None


def test_small_sessions_go_in_together_within_the_bounds_of_a_group(worker: Worker, tmp_path: Path) -> None:
    for session in range(60):
        write(tmp_path, session, 10, words="x" * 2000)
    worker.begin()
    sizes = []
    while sum(events for events, _size, _batches in sizes) < 600:
        read = worker.read()
        assert read is not None
        sizes.append((len(entries(read)), sum(len(entry.content) for entry in entries(read)), read.count))
        worker.tell(messages.Acknowledge(number=read.number))
    assert len(sizes) <= 5  # 1.2 MB
    assert all(events <= GROUP_EVENTS and size <= GROUP_BYTES for events, size, _batches in sizes)
    assert sizes[0][2] > 10


def test_what_was_just_written_overtakes_a_back_fill(worker: Worker, tmp_path: Path) -> None:
    for session in range(40):
        write(tmp_path, session, 300, words="x" * 3000)
    worker.begin()
    first = worker.read()
    assert first is not None
    live = write(tmp_path, 999, 1, words="the live line")
    worker.tell(messages.Look(paths=(os.fsencode(live),)))
    worker.tell(messages.Acknowledge(number=first.number))
    before = 0
    while True:
        read = worker.read()
        assert read is not None
        worker.tell(messages.Acknowledge(number=read.number))
        if any("the live line" in entry.content for entry in entries(read)):
            break
        before += sum(len(entry.content) for entry in entries(read))
    assert read.is_live
    assert before < 8 << 20  # one slice and what was under way, of 36 MB


def test_a_worker_goes_on_from_the_cursors_it_is_given(worker: Worker, tmp_path: Path) -> None:
    path = write(tmp_path, 1, 10)
    worker.begin()
    read = worker.read()
    assert read is not None
    assert len(entries(read)) == 10
    cursor = list(messages.batches(read))[-1].cursor
    assert cursor
    write(tmp_path, 1, 5, first=10)
    again = Worker(tmp_path)
    try:
        again.begin({os.fsencode(path): cursor})
        read = again.read()
        assert read is not None
        assert [entry.content.split()[0] for entry in entries(read)] == [f"text{n}" for n in range(10, 15)]
        assert not next(messages.batches(read)).is_restart
    finally:
        again.end()


def test_a_hint_at_a_folder_finds_a_file_that_grew_though_no_name_came(
    worker: Worker, tmp_path: Path
) -> None:
    folder = write(tmp_path, 1, 10).parent
    os.utime(folder, (1_000_000_000, 1_000_000_000))  # long at rest
    worker.begin()
    worker.tell(messages.Watched(is_watched=True))
    read = worker.read()
    assert read is not None
    worker.tell(messages.Acknowledge(number=read.number))
    write(tmp_path, 1, 1, first=10)
    worker.tell(messages.Look(paths=(os.fsencode(folder),)))
    read = worker.read()
    assert read is not None
    assert [entry.content.split()[0] for entry in entries(read)] == ["text10"]


def test_a_flush_is_answered_when_everything_is_acknowledged(worker: Worker, tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    worker.begin()
    worker.tell(messages.Flush(token=7))
    read = worker.read()
    assert read is not None
    assert not any(isinstance(worker.news(0.3), messages.Flushed) for _ in range(3))
    worker.tell(messages.Acknowledge(number=read.number))
    while (news := worker.news()) is not None:
        if isinstance(news, messages.Flushed):
            break
    assert news == messages.Flushed(token=7)


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "files can fail to open")
def test_a_file_that_could_not_be_opened_for_a_moment_is_read_soon_without_a_hint(tmp_path: Path) -> None:
    shim = Shim(tmp_path, tmp_path)
    worker = Worker(tmp_path, shim.variables)
    try:
        write(tmp_path, 1, 3)
        with shim.failing(1000):
            worker.begin()
            worker.tell(messages.Watched(is_watched=True))  # nothing else makes it look again
            while (news := worker.news()) is not None:
                if isinstance(news, messages.Progress) and news.unreadable:
                    break
            assert news is not None
            assert worker.read(0.5) is None
        read = worker.read()
        assert read is not None
        assert len(entries(read)) == 3
    finally:
        worker.end()


def test_a_worker_whose_daemon_is_gone_ends(worker: Worker, tmp_path: Path) -> None:
    worker.begin()
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(20) == 0


def test_a_session_that_ended_is_read_to_its_end_and_no_other(worker: Worker) -> None:
    store = Store(worker.home / ".local/share/opencode/opencode.db")
    began_ms = store.now = time.time_ns() // 1_000_000
    for session in ("ses_1", "ses_2"):
        store.session(session)
        store.say(f"msg_{session}_1", f"asked in {session}", session)
        store.message(f"msg_{session}_2", "assistant", session)
        store.part(f"prt_{session}", f"msg_{session}_2", type="text", text=f"cut off in {session}")
    store.db.close()
    worker.begin()
    worker.tell(messages.Flush(token=1))
    assert contents_until(worker, 1) == {"asked in ses_1", "asked in ses_2"}
    ended = messages.Ended(harness="opencode", session="ses_1", since_ms=began_ms)
    worker.tell(messages.Flush(token=2, ended=ended))
    assert contents_until(worker, 2) == {"cut off in ses_1"}
    ended = messages.Ended(harness="opencode", session="ses_2", since_ms=store.now + 1)
    worker.tell(messages.Flush(token=3, ended=ended))
    assert contents_until(worker, 3) == set()


def contents_until(worker: Worker, token: int) -> set[str]:
    """What it read until the flush was answered, everything acknowledged at once."""
    found: set[str] = set()
    while (news := worker.news()) is not None:
        match news:
            case messages.Read():
                found |= {entry.content for entry in entries(news)}
                worker.tell(messages.Acknowledge(number=news.number))
            case messages.Flushed(token=answered):
                assert answered == token
                return found
    raise AssertionError("the flush was never answered")


def many(home: Path, count: int) -> float:
    """So many sessions that nobody has touched for a day, and one that is new; the time now."""
    now = time.time()
    for number in range(count):
        os.utime(write(home, number, 1, words=f"old {number}"), (now - 86_400, now - 86_400))
    write(home, 99_999_999, 1, words="the new one")
    return now


def test_who_waits_for_what_is_new_need_not_wait_for_a_long_back_fill(worker: Worker, tmp_path: Path) -> None:
    now = many(tmp_path, 600)
    worker.begin()
    worker.tell(messages.Flush(token=1, since_ms=int(now * 1000) - 60_000))
    found = contents_until(worker, 1)
    assert any("the new one" in text for text in found)
    assert len(found) < 600
    worker.tell(messages.Flush(token=2))
    assert len(found | contents_until(worker, 2)) == 601


def test_that_is_answered_only_when_the_ledger_has_it(worker: Worker, tmp_path: Path) -> None:
    now = many(tmp_path, 600)
    worker.begin()
    worker.tell(messages.Flush(token=1, since_ms=int(now * 1000) - 60_000))
    held = []
    while (news := worker.news(0.5)) is not None:
        assert not isinstance(news, messages.Flushed)
        if isinstance(news, messages.Read):
            held.append(news.number)
    for number in held:
        worker.tell(messages.Acknowledge(number=number))
    contents_until(worker, 1)


def test_with_little_to_be_read_all_of_it_is_waited_for(worker: Worker, tmp_path: Path) -> None:
    now = many(tmp_path, 20)
    worker.begin()
    worker.tell(messages.Flush(token=1, since_ms=int(now * 1000) + 60_000))
    assert len(contents_until(worker, 1)) == 21


def test_a_session_that_is_written_all_the_time_keeps_nobody_waiting(worker: Worker, tmp_path: Path) -> None:
    path = write(tmp_path, 1, 1)
    worker.begin()
    for number in range(1, 6):
        write(tmp_path, 1, 1, first=number)
        worker.tell(messages.Flush(token=number))
        worker.tell(messages.Look(paths=(os.fsencode(path),)))
        assert any(f"text{number} " in text for text in contents_until(worker, number))
