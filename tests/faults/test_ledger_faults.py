"""A kill or an error at every write of the ledger: a batch is in or not, forgetting goes to its end.

Whatever happened, the next start leaves segments, rows and index that agree; putting the same in again gives
what an undisturbed run gives. `MEMD_FULL_SWEEPS=1` tries every point of the long sweeps, otherwise every
few, begun at another one for each kind of fault.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.ledger.store.sqlite import SqliteWriter
from support_faults import Killed, failing
from support_ledger import S2, Ledger, batch, entry, holding
from support_ledger_faults import LedgerFaults, faulty, is_dead, killing
from support_ledger_flows import SOURCE, before, coming, forget, state, state_of_texts

pytestmark = pytest.mark.faults

IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    root = tmp_path / "begun"
    with Ledger(root) as ledger:
        ledger.writer.append(before())
    return root


@pytest.fixture
def expected(begun: Path, tmp_path: Path) -> object:
    root = tmp_path / "expected"
    shutil.copytree(begun, root)
    with Ledger(root) as ledger:
        ledger.writer.append(coming())
    return state(root)


def points(begun: Path, tmp_path: Path, work: Callable[[SqliteWriter], object]) -> list[str]:
    """The writes of `work` when nothing goes wrong."""
    root = tmp_path / "traced"
    shutil.copytree(begun, root)
    faults = LedgerFaults()
    with faulty(root, faults) as open_:
        writer = open_()
        faults.calls.clear()
        work(writer)
        count = len(faults.calls)
    return faults.calls[:count]


def copies(begun: Path, tmp_path: Path, numbers: range) -> Iterator[tuple[int, Path]]:
    for number in numbers:
        root = tmp_path / f"try-{number}"
        shutil.copytree(begun, root)
        yield number, root
        shutil.rmtree(root)


def some(count: int, stride: int, start: int = 0) -> range:
    return range(count) if IS_FULL else range(start % stride, count, stride)


def dies(root: Path, at: int, work: Callable[[SqliteWriter], object], *, is_torn: bool) -> bool:
    """Let `work` run in a process that dies at its write number `at`, counted after the ledger is open."""
    faults = LedgerFaults()
    with faulty(root, faults) as open_:
        writer = open_()
        faults.calls.clear()
        doomed = killing(at, is_torn=is_torn)
        faults.__dict__.update(doomed.__dict__)
        faults._happens = faults.kill
        with contextlib.suppress(Killed, MemdError):
            work(writer)
        return is_dead(faults)


@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_batch_that_a_kill_cut_off(begun: Path, expected: object, tmp_path: Path, is_torn: bool) -> None:
    def work(writer: SqliteWriter) -> None:
        writer.append(coming())

    calls = points(begun, tmp_path, work)
    assert {"write", "fsync", "xWrite", "xSync"} <= set(calls)
    for number, root in copies(begun, tmp_path, some(len(calls), 3 if is_torn else 1, 1)):
        assert dies(root, number, work, is_torn=is_torn)
        with Ledger(root) as ledger:
            assert ledger.problems() == []
            texts = ledger.texts(S2)
            assert texts in ([], ["alpha zebrafish", "delta"])
            cursor = ledger.reader.cursor(SOURCE)
            assert cursor in (b"1", b"2")
            if cursor == b"1":
                ledger.writer.append(coming())
        assert state(root) == expected


@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_first_start_that_a_kill_cut_off(tmp_path: Path, is_torn: bool) -> None:
    faults = LedgerFaults()
    with faulty(tmp_path / "traced", faults) as open_:
        open_().append(before())
        count = len(faults.calls)
    with Ledger(tmp_path / "expected") as ledger:
        ledger.writer.append(before())
    expected = state(tmp_path / "expected")
    for number in some(count, 3, int(is_torn)):
        root = tmp_path / f"try-{number}"
        doomed = killing(number, is_torn=is_torn)
        with faulty(root, doomed) as open_, contextlib.suppress(Killed, MemdError):
            open_().append(before())
        assert is_dead(doomed)
        with Ledger(root) as ledger:
            if ledger.reader.cursor(SOURCE) != b"1":
                ledger.writer.append(before())
        assert state(root) == expected


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("persists", [False, True], ids=["once", "for a while"])
def test_an_error_in_a_batch(
    begun: Path, expected: object, tmp_path: Path, number: int, persists: bool
) -> None:
    calls = points(begun, tmp_path, lambda writer: writer.append(coming()))
    told = 0
    for at, root in copies(begun, tmp_path, some(len(calls), 2, int(persists))):
        faults = LedgerFaults()
        with faulty(root, faults) as open_:
            writer = open_()
            faults.calls.clear()
            faults.__dict__.update(LedgerFaults(at, failing(number), persists=persists).__dict__)
            with contextlib.suppress(MemdError):
                writer.append(coming())
                told += 1
            faults._at = None
            if writer.cursor(SOURCE) == b"1":
                writer.append(coming())
            assert writer.cursor(SOURCE) == b"2"
        assert state(root) == expected
    assert told < len(calls) / 2


@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_forgetting_that_a_kill_cut_off(begun: Path, tmp_path: Path, is_torn: bool) -> None:
    with Ledger(begun) as ledger:
        ledger.writer.append(coming())
        ledger.writer.seal_all()
        ledger.put(entry("another zebrafish", at=20), entry("zeta", at=21))
    untouched = state_of_texts(begun)
    root = tmp_path / "expected"
    shutil.copytree(begun, root)
    with Ledger(root) as ledger:
        forget(ledger.writer)
    done = state_of_texts(root)
    calls = points(begun, tmp_path, forget)
    assert {"replace", "unlink", "xWrite", "xTruncate"} <= set(calls)
    for number, root in copies(begun, tmp_path, some(len(calls), 5, 2 * is_torn)):
        assert dies(root, number, forget, is_torn=is_torn)
        with Ledger(root) as ledger:
            while ledger.writer.tidy():
                pass
            if not ledger.writer.append(batch(entry("another zebrafish", at=20))).forgotten:
                assert state_of_texts(root) == untouched  # it was not written down yet
                forget(ledger.writer)
            assert ledger.problems() == []
        assert state_of_texts(root) == done
        assert holding(root, [b"zebrafish"]) == []


def test_an_error_while_forgetting_is_told_and_finished(begun: Path, tmp_path: Path) -> None:
    calls = points(begun, tmp_path, forget)
    for at, root in copies(begun, tmp_path, some(len(calls), 7)):
        faults = LedgerFaults()
        with faulty(root, faults) as open_:
            writer = open_()
            faults.calls.clear()
            faults.__dict__.update(LedgerFaults(at, failing(errno.EIO)).__dict__)
            with contextlib.suppress(MemdError):
                forget(writer)
            faults._at = None
            forget(writer)
        with Ledger(root) as ledger:
            assert ledger.texts() == ["beta"]
            assert ledger.problems() == []
        assert holding(root, [b"zebrafish"]) == []


@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_sealing_that_a_kill_cut_off(begun: Path, tmp_path: Path, is_torn: bool) -> None:
    expected = state_of_texts(begun)
    calls = points(begun, tmp_path, SqliteWriter.seal_all)
    for number, root in copies(begun, tmp_path, some(len(calls), 2, int(is_torn))):
        assert dies(root, number, SqliteWriter.seal_all, is_torn=is_torn)
        with Ledger(root) as ledger:
            assert ledger.problems() == []
            ledger.writer.seal_all()
            assert ledger.reader.stats().unsealed == 0
            assert ledger.problems() == []
        assert state_of_texts(root) == expected


def test_a_kill_during_the_recovery_from_a_kill(begun: Path, expected: object, tmp_path: Path) -> None:
    def work(writer: SqliteWriter) -> None:
        writer.append(coming())

    calls = points(begun, tmp_path, work)
    for number, root in copies(begun, tmp_path, some(len(calls), 4)):
        dies(root, number, work, is_torn=True)
        for again in range(0, 60, 9):
            doomed = killing(again)
            with faulty(root, doomed) as open_, contextlib.suppress(Killed, MemdError):
                open_()
            if not is_dead(doomed):
                break
        with Ledger(root) as ledger:
            if ledger.reader.cursor(SOURCE) == b"1":
                ledger.writer.append(coming())
        assert state(root) == expected
