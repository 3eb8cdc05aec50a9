"""Every flow that changes the disk, under every kind of fault at every one of its calls.

After a kill nothing is gone or half there, and a second try ends as an undisturbed run does. An error is told
with what to do next, or costs only what is remembered; afterwards the same process goes on. A flush that
failed is not called done. `MEMD_FULL_SWEEPS=1` tries every point of the double kills, and every error at each
point; otherwise every few.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import support_points
from memd.errors import MemdError
from support_faults import failing, survives
from support_flow import Flow, clear
from support_flows import FLOWS
from support_ledger_faults import LedgerFaults, is_dead, killing
from support_scratch import in_memory

pytestmark = pytest.mark.faults

IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE, errno.EDQUOT)
RANDOM_ROUNDS = 200 if IS_FULL else 20


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where the system has such a place: thousands of runs need no disk."""
    made = tempfile.mkdtemp(prefix="memd-flows-", dir=in_memory())
    yield Path(made)
    shutil.rmtree(made)


def calls_of(folder: Path, name: str) -> list[str]:
    """The calls of an undisturbed run, each of which is a point."""
    flow = FLOWS[name](folder / "count")
    faults = LedgerFaults()
    with flow.under(faults):
        flow.work()
    with flow.under(LedgerFaults()):
        flow.check_done()
    assert len(faults.calls) > 2
    return faults.calls


def points(total: int) -> range:
    """All of them; of the many of a ledger only some when it shall not take long."""
    return range(total) if IS_FULL or total < 110 else range(0, total, total // 40)


def points_of(number: int, total: int) -> Iterable[int]:
    """Those at which this error happens: every point, or one in five of what a kill tries."""
    tried = points(total)
    return [tried[at] for at in support_points.share(len(tried), ERRORS.index(number), len(ERRORS))]


def is_killed(flow: Flow, work: Callable[[], object], at: int) -> bool:
    """Whether the work met its end at that call; some of it says so by an error of its own."""
    faults = killing(at)
    with flow.under(faults), contextlib.suppress(MemdError):
        survives(work)
    flow.restart()
    return is_dead(faults)


def recovered(flow: Flow) -> None:
    flow.check_kept()
    with flow.under(LedgerFaults()):
        flow.recover()
        flow.check_done()
    clear(flow)


@pytest.mark.parametrize("name", FLOWS)
def test_a_kill_at_any_call_loses_nothing(folder: Path, name: str) -> None:
    for at in points(len(calls_of(folder, name))):
        flow = FLOWS[name](folder / str(at))
        assert is_killed(flow, flow.work, at), at
        recovered(flow)


@pytest.mark.parametrize("name", FLOWS)
def test_a_second_kill_in_the_recovery_loses_nothing(folder: Path, name: str) -> None:
    total = len(calls_of(folder, name))
    for first in range(1, total, max(1, total // (20 if IS_FULL else 5))):
        for second in range(0, 2000, 1 if IS_FULL else 4 + total // 8):
            flow = FLOWS[name](folder / f"{first}-{second}")
            is_killed(flow, flow.work, first)
            is_through = not is_killed(flow, flow.recover, second)
            recovered(flow)
            if is_through:
                break
        else:
            raise AssertionError("the recovery never came to its end")


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", FLOWS)
def test_an_error_at_any_call_is_told_and_the_work_can_be_done_again(
    folder: Path, name: str, number: int
) -> None:
    for at in points_of(number, len(calls_of(folder, name))):
        flow = FLOWS[name](folder / str(at))
        with flow.under(LedgerFaults(at, failing(number))):
            try:
                flow.work()
            except MemdError as reason:
                assert reason.remedy, (at, reason)
        recovered(flow)


@pytest.mark.parametrize("name", FLOWS)
def test_a_flush_that_failed_is_told_and_what_it_was_for_is_written_anew(folder: Path, name: str) -> None:
    flushes = [at for at, call in enumerate(calls_of(folder, name)) if call in ("fsync", "xSync")]
    assert flushes or name == "spool drain"
    for at in flushes if IS_FULL or len(flushes) < 50 else flushes[:: len(flushes) // 20]:
        flow = FLOWS[name](folder / str(at))
        is_told = flow.is_quiet
        faults = LedgerFaults(at, failing(errno.EIO))
        with flow.under(faults):
            try:
                flow.work()
            except MemdError as reason:
                is_told = bool(reason.remedy)
        if not is_told:  # what it was for came later, or is only what is remembered of the results
            assert {"write", "xWrite"} & set(faults.calls[at + 1 :]) or at >= len(faults.calls) - 8, at
        recovered(flow)


@pytest.mark.parametrize("name", FLOWS)
def test_writes_that_take_only_a_part_are_gone_on_with(folder: Path, name: str) -> None:
    flow = FLOWS[name](folder / "short")
    with flow.under(LedgerFaults(is_short=True)):
        flow.work()
        flow.check_done()


@pytest.mark.parametrize("name", FLOWS)
def test_errors_at_random_lose_nothing(folder: Path, name: str) -> None:
    """Each call fails with a chance of one in twenty, as on a disk that is dying."""
    for round_ in range(RANDOM_ROUNDS):
        chance = random.Random(f"{name} {round_}")
        flow = FLOWS[name](folder / str(round_))

        def perhaps(_: int, chance: random.Random = chance) -> None:
            if chance.random() < 0.05:
                support_points.tried()
                number = chance.choice(ERRORS)
                raise OSError(number, os.strerror(number))

        with flow.under(LedgerFaults(each=perhaps)):
            for _ in range(3):
                try:
                    flow.work()
                except MemdError as reason:
                    assert reason.remedy
        recovered(flow)
