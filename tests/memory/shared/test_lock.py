"""The lock of a memory store: who is waited for, who is robbed, and that nothing waits for ever."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import support_cases
from memd import disk, processes
from memd.disk import Folder
from memd.errors import DiskError
from memd.memory.shared.clock import Clock
from memd.memory.shared.lock import Busy, StoreLock
from memd.memory.shared.lock_rules import Seen, age_ms, may_reclaim, pid_of, since_ms
from memd.memory.shared.mounts import kind_of
from support_faults import Faults, installed
from support_topics import NOW_MS, FakeClock, Home, put, read

DEAD = 2_000_000_000  # above every system's highest process id
DAY_MS = 86_400_000


class Bench:
    """A store and its lock, with processes as a test says they are."""

    def __init__(self, top: Path) -> None:
        self.clock = FakeClock()
        self.path = os.fsencode(top) + b"/store"
        os.makedirs(self.path)
        self.state = os.fsencode(top) + b"/state"
        self.file = self.path + b"/.lock"
        self.alive: set[int] = {os.getpid()}
        self.started: dict[int, int] = {}
        self.lock = self.another()

    def another(self) -> StoreLock:
        return StoreLock(
            self.state, self.clock, alive=self.alive.__contains__, started=lambda pid: self.started.get(pid)
        )

    def put(self, payload: bytes, age_ms: int) -> None:
        put(self.file, payload, mtime_ms=self.clock.wall - age_ms)

    def take(self, *, is_shared: bool = True, lock: StoreLock | None = None) -> None:
        with disk.open_folder(self.path) as folder, (lock or self.lock).held(folder, is_shared=is_shared):
            assert os.path.exists(self.file) or not is_shared


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_lock_says_who_holds_it_since_when_and_is_gone_afterwards(bench: Bench) -> None:
    with disk.open_folder(bench.path) as folder, bench.lock.held(folder, is_shared=True):
        pid, since, nonce = read(bench.file).split(b"\t")
        assert (int(pid), int(since)) == (os.getpid(), NOW_MS)
        assert len(nonce) >= 8
    assert os.listdir(bench.path) == []


def test_a_live_holder_is_waited_for_in_two_windows_and_never_robbed(bench: Bench) -> None:
    bench.alive.add(4711)
    for age in (2_000, 600_000, 40 * DAY_MS):
        bench.put(b"4711\t%d\tabc" % (NOW_MS - age), age)
        before = read(bench.file), os.stat(bench.file).st_ino
        slept = bench.clock.slept
        with pytest.raises(Busy, match="memory store is busy, retry in a moment"):
            bench.take()
        assert 4.9 <= bench.clock.slept - slept <= 5.2
        assert (read(bench.file), os.stat(bench.file).st_ino) == before
        assert os.listdir(bench.path) == [b".lock"]
        bench.clock = bench.lock._clock = FakeClock()


def test_a_dead_holder_is_left_ten_seconds_and_then_robbed_at_once(bench: Bench) -> None:
    bench.put(b"%d\t%d\tabc" % (DEAD, NOW_MS - 3_000), 3_000)
    with pytest.raises(Busy):
        bench.take()
    bench.put(b"%d\t%d\tabc" % (DEAD, bench.clock.wall - 14_000), 14_000)
    slept = bench.clock.slept
    bench.take()
    assert bench.clock.slept == slept
    assert os.listdir(bench.path) == []


def test_a_dead_holder_that_turns_ten_seconds_old_while_we_wait_is_robbed(bench: Bench) -> None:
    bench.put(b"%d\t%d\tabc" % (DEAD, NOW_MS - 9_000), 9_000)
    bench.take()
    assert 1.0 <= bench.clock.slept <= 1.1


@pytest.mark.parametrize(
    "payload", [b"", b"held by some tool", b"0\t1\tx", b"-7\t1\tx", b"9" * 40, b"x" * 9000]
)
def test_a_lock_that_names_no_process_is_left_sixty_seconds(bench: Bench, payload: bytes) -> None:
    bench.put(payload, 30_000)
    with pytest.raises(Busy):
        bench.take()
    assert read(bench.file) == payload
    bench.put(payload, 65_000)
    bench.take()


def test_the_pid_alone_is_a_payload_of_older_tools(bench: Bench) -> None:
    bench.put(b"%d" % DEAD, 11_000)
    bench.take()
    bench.alive.add(77)
    bench.started[77] = (
        NOW_MS  # it began after the file's time; the payload says nothing, so nothing is compared
    )
    bench.put(b"77", 600_000)
    with pytest.raises(Busy):
        bench.take()


def test_a_process_that_was_given_the_number_of_a_dead_holder_is_no_holder(bench: Bench) -> None:
    bench.alive.add(77)
    bench.started[77] = NOW_MS - 5_000
    bench.put(b"77\t%d\tabc" % (NOW_MS - 30_000), 30_000)
    bench.take()
    bench.started[77] = bench.clock.wall - 31_000
    bench.put(b"77\t%d\tabc" % (bench.clock.wall - 30_000), 30_000)
    with pytest.raises(Busy):
        bench.take()


@pytest.mark.parametrize("to_ms", [NOW_MS - 2 * DAY_MS, NOW_MS + 3 * DAY_MS, 0, 2_145_916_800_000])
def test_a_clock_that_is_set_robs_no_live_holder(bench: Bench, to_ms: int) -> None:
    bench.alive.add(77)
    bench.started[77] = NOW_MS - 1_000
    bench.put(b"77\t%d\tabc" % NOW_MS, 0)
    bench.clock.set_wall(to_ms)
    bench.started[77] += to_ms - NOW_MS  # a system tells start times by its clock of now
    with pytest.raises(Busy):
        bench.take()
    assert read(bench.file).startswith(b"77\t")


@pytest.mark.parametrize("to_ms", [NOW_MS - 2 * DAY_MS, 0])
def test_a_dead_holders_lock_from_the_future_goes_after_ten_seconds_of_looking(
    bench: Bench, to_ms: int
) -> None:
    bench.put(b"%d\t%d\tabc" % (DEAD, NOW_MS), 0)
    bench.clock.set_wall(to_ms)
    with pytest.raises(Busy):
        bench.take()
    bench.clock.pass_ms(10_000)
    bench.take()


def test_the_smaller_of_two_ages_counts_and_the_future_counts_for_nothing() -> None:
    def seen(payload: bytes, mtime_ms: int) -> Seen:
        return Seen(payload=payload, ino=1, mtime_ms=mtime_ms, watched_ms=123)

    assert age_ms(seen(b"5\t%d\tx" % (NOW_MS - 20_000), NOW_MS - 3_000), NOW_MS) == 3_000
    assert age_ms(seen(b"5\t%d\tx" % (NOW_MS - 20_000), NOW_MS + DAY_MS), NOW_MS) == 20_000
    assert age_ms(seen(b"5", NOW_MS + DAY_MS), NOW_MS) == 123
    assert not may_reclaim(seen(b"5", NOW_MS - 10_000), NOW_MS, "dead")
    assert may_reclaim(seen(b"5", NOW_MS - 10_001), NOW_MS, "dead")
    assert (pid_of(b" 12\t9\tx"), since_ms(b"12\t9\tx"), since_ms(b"12\t9"), since_ms(b"12")) == (
        12,
        9,
        9,
        None,
    )


def test_on_a_network_file_system_a_dead_number_may_live_elsewhere(bench: Bench) -> None:
    lock = StoreLock(
        bench.state, bench.clock, alive=lambda pid: False, foreign=lambda path: path == bench.path
    )
    bench.put(b"77\t%d\tabc" % (NOW_MS - 30_000), 30_000)
    with pytest.raises(Busy):
        bench.take(lock=lock)
    bench.put(b"77\t%d\tabc" % (bench.clock.wall - 61_000), 61_000)
    bench.take(lock=lock)


def test_the_kind_of_a_file_system_is_read_from_the_nearest_mount() -> None:
    table = (
        b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        b"40 22 0:44 / /home rw - nfs4 server:/home rw\n"
        b"41 40 0:45 / /home/a\\040b rw shared:9 - ext4 /dev/x rw\nnonsense\n"
    )
    assert kind_of(table, b"/home/x/.agents/memory") == b"nfs4"
    assert kind_of(table, b"/home/a b/.agents") == b"ext4"
    assert kind_of(table, b"/homework") == b"ext4"
    assert kind_of(b"", b"/x") == b""


def test_a_lock_of_another_user_is_alive(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(processes.os, "kill", refuse)
    assert processes.is_alive(1)
    monkeypatch.undo()
    assert not processes.is_alive(DEAD)
    assert not processes.is_alive(0)


def test_a_lock_that_was_replaced_between_looking_and_taking_is_put_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put(b"%d\t%d\tabc" % (DEAD, NOW_MS - 60_000), 60_000)
    swap = Folder.swap
    swaps: list[bytes] = []

    def late(self: Folder, name: bytes, other: Folder, other_name: bytes) -> None:
        if not swaps:
            put(bench.path + b"/.new", b"1\t%d\tsomebody" % NOW_MS)
            os.replace(bench.path + b"/.new", bench.file)
        swaps.append(name)
        swap(self, name, other, other_name)

    monkeypatch.setattr(Folder, "swap", late)
    bench.alive.add(1)
    with pytest.raises(Busy):
        bench.take()
    assert read(bench.file) == b"1\t%d\tsomebody" % NOW_MS
    assert len(swaps) == 2
    assert os.listdir(bench.path) == [b".lock"]


def test_release_leaves_a_lock_alone_that_is_not_ours(bench: Bench) -> None:
    with disk.open_folder(bench.path) as folder, bench.lock.held(folder, is_shared=True):
        os.unlink(bench.file)
        put(bench.file, b"%d\t%d\tabc" % (os.getpid(), NOW_MS))
    assert read(bench.file).endswith(b"abc")


def test_a_lock_of_ours_that_could_not_be_removed_is_taken_over_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Folder.remove

    def fail(self: Folder, name: bytes) -> None:
        if name == b".lock":
            raise DiskError("remove", name, OSError(errno.EIO, "I/O error"))
        remove(self, name)

    monkeypatch.setattr(Folder, "remove", fail)
    bench.take()
    assert os.path.exists(bench.file)
    monkeypatch.undo()
    bench.take()
    assert not os.path.exists(bench.file)


def test_a_lock_that_cannot_be_exchanged_is_waited_for_and_no_longer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Folder, name: bytes, other: Folder, other_name: bytes) -> None:
        raise DiskError("exchange", name, OSError(errno.EACCES, "Permission denied"))

    monkeypatch.setattr(Folder, "swap", fail)
    bench.put(b"%d" % DEAD, 20_000)
    with pytest.raises(Busy):
        bench.take()
    assert bench.clock.slept < 5.2


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_a_lock_that_is_no_file_is_named_and_left(bench: Bench, kind: str) -> None:
    match kind:
        case "folder":
            os.mkdir(bench.file)
        case "link":
            os.symlink(b"/nowhere", bench.file)
        case _:
            os.mkfifo(bench.file)
    with pytest.raises(Busy, match="is no file"):
        bench.take()
    assert os.path.lexists(bench.file)


def test_the_local_store_waits_half_a_second_and_goes_on(bench: Bench) -> None:
    bench.alive.add(4711)
    bench.put(b"4711\t%d\tabc" % NOW_MS, 0)
    bench.take(is_shared=False)
    assert 0.45 <= bench.clock.slept <= 0.6
    assert read(bench.file).startswith(b"4711")


def test_two_daemons_of_ours_are_kept_apart_by_more_than_the_file(bench: Bench) -> None:
    other = StoreLock(bench.state + b"2", Clock())
    with disk.open_folder(bench.path) as folder, bench.lock.held(folder, is_shared=False):
        os.unlink(bench.file)
        with (
            disk.open_folder(bench.path) as again,
            pytest.raises(Busy),
            other.held(again, is_shared=True, waits=False),
        ):
            pass


def test_a_store_that_cannot_be_written_says_so_instead_of_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Folder, chunks: object, **more: Any) -> bytes:
        raise DiskError("write", self.path, OSError(errno.EROFS, "Read-only file system"))

    monkeypatch.setattr(Folder, "write_temporary", fail)
    with pytest.raises(DiskError, match="Read-only"):
        bench.take()


# ------------------------------------------------------------------ the table of holders, with real processes


@pytest.fixture
def sleeper() -> Iterator[Callable[[], int]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started.append(child)
        return child.pid

    yield start
    for child in started:
        child.communicate()


ROWS = 9


@pytest.mark.parametrize("row", range(ROWS))
@pytest.mark.parametrize(
    ("payload", "is_shared"), [("{pid}", True), ("{pid}\t{ms}\tabcdef", True), ("{pid}", False)]
)
def test_case_37_who_holds_the_lock_and_for_how_long(
    tmp_path: Path, sleeper: Callable[[], int], row: int, payload: str, is_shared: bool
) -> None:
    support_cases.make("37-lock-table", tmp_path)
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert len(rows) == ROWS
    who, age_s, verdict = rows[row]
    pid = sleeper() if who == "live" else 1 if who == "other-user" else DEAD
    clock = FakeClock(Clock().now_ms())
    since = max(clock.wall - age_s * 1000, processes.started_at_ms(pid) or 0)
    words = ["--row", str(row), "--pid", str(pid), "--payload", payload.replace("{ms}", str(since))]
    support_cases.make("37-lock-table", tmp_path, *words)
    home = Home(tmp_path)
    home.clock = clock
    if not is_shared:
        home.shared, home.local = home.local, home.shared
        put(home.config, b"{}")
    folder = home.home + b"/.agents/memory/"
    before = {name: read(folder + name) for name in (b"MEMORY.md", b"first.md", b".lock")}
    if verdict == "busy" and is_shared:
        with pytest.raises(Busy, match="busy"):
            home.write("Second")
        assert {name: read(folder + name) for name in before} == before
        assert 3.5 <= clock.slept <= 8
        return
    home.write("Second")
    assert b"(second.md)" in read(folder + b"MEMORY.md")
    assert clock.slept <= 0.6
    assert os.path.exists(folder + b".lock") == (verdict == "busy")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_errors_while_a_lock_of_the_dead_is_taken_leave_none_that_stays(tmp_path: Path, count: int) -> None:
    """Nor after so many in a row: a disk that is well again has no lock of ours that nobody gives back."""
    total = 0
    at = 0
    while at <= total:
        bench = Bench(tmp_path / str(at))
        bench.put(b"%d\t%d\tabc" % (DEAD, NOW_MS - 60_000), 60_000)

        def fail(number: int, at: int = at) -> None:
            if at <= number < at + count:
                raise OSError(errno.EIO, "broken")

        with installed(Faults(each=fail)) as faults, contextlib.suppress(Busy, DiskError):
            bench.take()
        total = max(total, min(len(faults.calls), 60))
        bench.take()
        assert not os.path.exists(bench.file), at
        at += 1
