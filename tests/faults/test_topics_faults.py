"""A kill or an error at every file operation of write, remove, repair and carry-over.

After it somebody tries the same again with a daemon of its own, as an agent would. Then each topic is whole,
what was asked is there once, what was there before is still there, and nothing half-written is left. An error
says so and leaves the old state or the new one.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.errors import MemdError
from support_faults import Faults, failing, installed, killing, survives
from support_scratch import in_memory
from support_topic_flows import (
    FLOWS,
    check_done,
    check_nothing_lost,
    check_settled,
    check_whole,
    retry,
    scene,
)
from support_topics import tree

pytestmark = pytest.mark.faults


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where the system has such a place: hundreds of runs need no disk."""
    made = tempfile.mkdtemp(prefix="memd-topics-", dir=in_memory())
    yield Path(made)
    shutil.rmtree(made)


@pytest.mark.parametrize("flow", FLOWS)
def test_a_kill_at_any_point_loses_nothing_and_a_retry_does_it_once(folder: Path, flow: str) -> None:
    work, prepare = FLOWS[flow]
    at = 0
    while True:
        home = prepare(scene(folder / str(at)))
        faults = killing(at)
        with installed(faults):
            survived = survives(lambda: work(home.topics()))  # noqa: B023
        check_nothing_lost(home, flow)
        check_whole(home)
        home.clock.pass_ms(12_000)  # a retry within ten seconds is busy: the dead one's lock is too young
        with installed(Faults()):
            retry(work, home, flow)
        check_nothing_lost(home, flow)
        check_whole(home)
        check_done(home, flow)
        check_settled(home)
        shutil.rmtree(folder / str(at))
        if survived:
            break
        at += 1
    assert at > 8, "there were hardly any points to be killed at"


@pytest.mark.parametrize("flow", FLOWS)
def test_a_second_kill_during_recovery_changes_nothing_about_that(folder: Path, flow: str) -> None:
    work, prepare = FLOWS[flow]
    total = _count(folder, flow)
    for first in range(3, total, max(1, total // 6)):
        second = 0
        while True:
            top = folder / f"{first}-{second}"
            home = prepare(scene(top))
            with installed(killing(first)):
                survives(lambda: work(home.topics()))  # noqa: B023
            home.clock.pass_ms(12_000)
            with installed(killing(second)):
                survived = survives(lambda: retry(work, home, flow))  # noqa: B023
            home.clock.pass_ms(12_000)
            with installed(Faults()):
                retry(work, home, flow)
            check_nothing_lost(home, flow)
            check_whole(home)
            check_done(home, flow)
            shutil.rmtree(top)
            if survived:
                break
            second += 5


def _count(folder: Path, flow: str) -> int:
    work, prepare = FLOWS[flow]
    home = prepare(scene(folder / "count"))
    faults = Faults(only_writes=True)
    with installed(faults):
        work(home.topics())
    return len(faults.calls)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("flow", FLOWS)
def test_an_error_at_any_point_is_told_and_a_retry_does_it_once(folder: Path, flow: str, number: int) -> None:
    work, prepare = FLOWS[flow]
    for at in range(_count(folder, flow)):
        home = prepare(scene(folder / f"{number}-{at}"))
        topics = home.topics()
        before = tree(home.shared)
        failed = None
        with installed(Faults(at, failing(number), only_writes=True)):
            try:
                work(topics)
            except MemdError as reason:
                failed = reason
        check_nothing_lost(home, flow)
        check_whole(home)
        if failed is None:
            check_done(home, flow)
        else:
            assert failed.remedy
            if flow in ("append", "replace"):
                now = {k: v for k, v in tree(home.shared).items() if k.endswith(b".md")}
                old = {k: v for k, v in before.items() if k.endswith(b".md")}
                assert now == old or b"the addition" in now[b"one.md"]
        home.clock.pass_ms(12_000)
        with installed(Faults()):
            if failed is not None:
                work(topics)
            topics.pin("Two", True)  # whoever comes next finds the lock free, and a place to work in
        check_done(home, flow)
        check_settled(home)
        shutil.rmtree(folder / f"{number}-{at}")
