"""A kill or an error at every file operation of healing and of unenrolling: nothing is lost.

Every body that was ever there is found in some file; a note is the old or the new one, never mixed or empty;
the links are right after recovery; one more run changes nothing; nothing else in a login is touched.
`MEMD_FULL_SWEEPS=1` also fails every single read; without it every seventh.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk
from support_faults import Faults, failing, installed, killing, survives
from support_heal_scene import Scene, Work, healed, unenrolled
from support_memory import bodies, tree
from support_points import share
from support_scratch import in_memory

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE)
STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 7


class Sweep:
    """One kind of work, undisturbed and with a fault at each of its calls in turn."""

    def __init__(self, top: Path, work: Work, *, logins: int) -> None:
        self.top = top
        self.work = work
        self.logins = logins
        self._count = 0
        self.good = self.scene()
        with installed(Faults()):
            work(self.good)

    def scene(self) -> Scene:
        self._count += 1
        scene = Scene(self.top / f"{self._count:04}", self.logins)
        if self.work is unenrolled:
            with installed(Faults()):
                scene.heal()
            scene.bodies = bodies(scene.world.home, scene.world.work)
        return scene

    def calls(self, *, only_writes: bool) -> int:
        with installed(Faults(only_writes=only_writes)) as counted:
            self.work(self.scene())
        assert len(counted.calls) > 50
        return len(counted.calls)

    def check(self, scene: Scene) -> None:
        """After the fault, and after a recovery."""
        scene.check_nothing_lost()
        with installed(Faults()):
            scene.world.recover()
            scene.check_nothing_lost()
            if self.work is unenrolled:
                if scene.world.ownership().agents():  # it did not get to the point of no return
                    scene.unenroll()
                scene.check_returned(self.good)
            else:
                scene.check_healed(self.good)
        shutil.rmtree(scene.world.top)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    """Thousands of small trees: in memory where that can be had, and gone afterwards."""
    if in_memory() is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=in_memory(), prefix="memd-test-") as folder:
        yield Path(folder)


@pytest.fixture(params=[healed, unenrolled])
def sweep(request: pytest.FixtureRequest, top: Path) -> Sweep:
    return Sweep(top, request.param, logins=1)


@pytest.mark.faults
@pytest.mark.parametrize("logins", [1, 2])
@pytest.mark.parametrize("work", [healed, unenrolled])
def test_a_kill_at_any_write_loses_nothing_and_is_recovered_from(top: Path, work: Work, logins: int) -> None:
    if work is unenrolled and logins > 1 and STRIDE > 1:
        pytest.skip("one login is given back like another: only in full sweeps")
    sweep = Sweep(top, work, logins=logins)
    total = sweep.calls(only_writes=True)
    for at in range(0, total, 1 if logins == 1 else min(STRIDE, 3)):
        scene = sweep.scene()
        with installed(killing(at)):
            survived = survives(lambda scene=scene: sweep.work(scene))  # type: ignore[misc]
        assert not survived, at
        sweep.check(scene)


@pytest.mark.faults
def test_a_second_kill_during_the_recovery_loses_nothing(sweep: Sweep) -> None:
    total = sweep.calls(only_writes=True)
    for at in range(5, total, 10):
        for second in range(0, 1000, STRIDE):
            scene = sweep.scene()
            with installed(killing(at)):
                survives(lambda scene=scene: sweep.work(scene))  # type: ignore[misc]
            with installed(killing(second)):
                survived = survives(scene.world.recover)
            sweep.check(scene)
            if survived:
                break
        else:
            raise AssertionError("the recovery never came to its end")


@pytest.mark.faults
@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("only_writes", [True, False])
def test_an_error_at_any_call_is_told_and_caught_up_with(
    sweep: Sweep, number: int, only_writes: bool
) -> None:
    if number == errno.ENOSPC and not only_writes:
        pytest.skip("a full disk can be read")
    total = sweep.calls(only_writes=only_writes)
    for at in share(total, ERRORS.index(number), len(ERRORS)) if only_writes else range(0, total, STRIDE * 2):
        scene = sweep.scene()
        faults = Faults(at, failing(number), only_writes=only_writes)
        with installed(faults):
            try:
                sweep.work(scene)
            except disk.DiskError as reason:
                assert reason.remedy
        sweep.check(scene)


@pytest.mark.faults
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_stays_full_or_read_only_leaves_every_entry_usable(top: Path, number: int) -> None:
    sweep = Sweep(top, healed, logins=1)
    total = sweep.calls(only_writes=True)
    for at in range(0, total, 3):
        scene = sweep.scene()
        with installed(Faults(at, failing(number), only_writes=True, persists=True)):
            entries = scene.heal()
        assert all(e.remedy for e in entries if e.outcome == "failed")
        for path in scene.entries():
            assert os.path.isdir(path), at
            assert tree(path)
        sweep.check(scene)


@pytest.mark.faults
def test_a_flush_that_failed_is_not_taken_for_done(top: Path) -> None:
    sweep = Sweep(top, healed, logins=1)
    with installed(Faults(only_writes=True)) as counted:
        sweep.work(sweep.scene())
    flushes = [n for n, name in enumerate(counted.calls) if name == "fsync"]
    assert len(flushes) > 10
    for at in flushes:
        scene = sweep.scene()
        with installed(Faults(at, failing(errno.EIO), only_writes=True)) as faults:
            entries = scene.heal()
            again = faults.calls[at + 1 :]
        if at < flushes[-1] - 5:  # the last ones are for what is remembered of the results
            assert [e.outcome for e in entries] == ["failed"], (at, again)
        sweep.check(scene)
