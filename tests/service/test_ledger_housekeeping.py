"""Housekeeping waits for the end of a back-fill, but not for ever, and the log is brought in meanwhile."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
import trio
from trio.testing import MockClock

from memd.ledger.store import sqlite
from memd.service import ledger as module
from memd.service.ledger import Ledger
from memd.service.watcher import Watcher
from support_ledger import Ledger as Store
from support_ledger import batch, entry


def made(tmp_path: Path, **importer: Any) -> tuple[Ledger, Any]:
    ledger = Ledger(bytes(tmp_path), Watcher(step_ms=50, poll=False))
    told = SimpleNamespace(put_at=trio.current_time(), untidied=0, **importer)
    ledger.importer = told
    return ledger, told


async def test_it_waits_until_nothing_comes_any_more(tmp_path: Path, autojump_clock: MockClock) -> None:
    ledger, importer = made(tmp_path)
    began = trio.current_time()

    async def back_fill() -> None:
        for _ in range(20):
            await trio.sleep(2)
            importer.put_at = trio.current_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(back_fill)
        await ledger._calm(importer)
    assert trio.current_time() - began == pytest.approx(40 + module.TIDY_S)
    await ledger._calm(importer)  # nothing came since: no second wait
    assert trio.current_time() - began == pytest.approx(40 + module.TIDY_S)


async def test_it_does_not_wait_when_too_much_has_come(tmp_path: Path, autojump_clock: MockClock) -> None:
    ledger, importer = made(tmp_path)
    began = trio.current_time()

    async def back_fill() -> None:
        for _ in range(20):
            await trio.sleep(2)
            importer.put_at = trio.current_time()
            importer.untidied += module.BACKLOG_BYTES // 10

    async with trio.open_nursery() as nursery:
        nursery.start_soon(back_fill)
        await ledger._calm(importer)
        assert trio.current_time() - began < 30
        nursery.cancel_scope.cancel()


async def test_what_the_last_daemon_left_is_tidied_soon_although_nothing_comes(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, _ = made(tmp_path, next_batch=trio.sleep_forever)
    looks: list[float] = []

    def tidy() -> bool:
        looks.append(trio.current_time())
        return False

    async def at_once(do: Any, *_args: object, **_options: object) -> Any:
        await trio.lowlevel.checkpoint()
        return do()

    async def nothing(*_args: object, **_options: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(ledger._lane, "run", at_once)
    monkeypatch.setattr(trio.to_thread, "run_sync", nothing)
    writer: Any = SimpleNamespace(tidy=tidy, wants_checkpoint=lambda *, is_quiet=False: False)
    with trio.move_on_after(module.TIDY_S * 3):
        await ledger._tidy(writer)
    assert [at - looks[0] for at in looks] == pytest.approx([0, module.TIDY_S])


async def test_the_log_is_brought_in_while_more_comes(tmp_path: Path) -> None:
    came = trio.Event()
    ledger, _ = made(tmp_path, next_batch=came.wait)
    done = threading.Event()
    writer: Any = SimpleNamespace(
        wants_checkpoint=lambda *, is_quiet=False: not done.is_set(), checkpoint=done.set
    )
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger._shorten_log, writer)
            came.set()
            while not done.is_set():
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


def test_after_all_housekeeping_the_log_takes_no_room(tmp_path: Path) -> None:
    with Store(tmp_path / "ledger") as store:
        log = tmp_path / "ledger/ledger.sqlite3-wal"
        store.put(entry("word " * 4000))
        assert not store.writer.wants_checkpoint(is_quiet=True), "more may come at once"
        store.writer.rest()
        reader = apsw.Connection(str(tmp_path / "ledger/ledger.sqlite3"))
        reader.execute("begin; select count(*) from events")
        assert store.writer.wants_checkpoint(is_quiet=True)
        store.writer.checkpoint()
        assert log.stat().st_size, "somebody reads in it"
        reader.close()
        assert store.writer.wants_checkpoint(is_quiet=True)
        store.writer.checkpoint()
        assert log.stat().st_size == 0
        assert not store.writer.wants_checkpoint(is_quiet=True)
        store.put(entry("more"))
        assert store.problems() == []


def test_the_log_that_a_killed_daemon_left_is_brought_in(tmp_path: Path) -> None:
    with Store(tmp_path / "ledger") as killed:
        killed.put(entry("word"))
        shutil.copytree(tmp_path / "ledger", tmp_path / "after")
    log = tmp_path / "after/ledger.sqlite3-wal"
    assert log.stat().st_size
    with Store(tmp_path / "after") as store:
        store.writer.rest()
        assert store.writer.wants_checkpoint(is_quiet=True)
        store.writer.checkpoint()
        assert log.stat().st_size == 0
        assert store.texts() == ["word"]


def test_at_rest_a_shorter_log_is_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LOG_PAGES", 10_000)
    monkeypatch.setattr(sqlite, "QUIET_LOG_PAGES", 20)
    with Store(tmp_path / "ledger") as store:
        for number in range(20):
            store.writer.append(batch(entry(f"{number} " + "word " * 400, at=number)))
        assert not store.writer.wants_checkpoint()
        assert store.writer.wants_checkpoint(is_quiet=True)
        store.writer.checkpoint()
        store.put(entry("one more"))
        assert not store.writer.wants_checkpoint(is_quiet=True)
        assert store.problems() == []
