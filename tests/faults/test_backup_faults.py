"""A kill or an error at any call of a backup or a restore: the old state or the new one, never between.

`MEMD_FULL_SWEEPS=1` tries every point, otherwise every few.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.service import backup_replace
from memd.service.backup_places import Roots
from support_backups import Facts, back_up, facts, fill, folders, restore, small, strays
from support_faults import Faults, failing, installed, killing, survives
from support_scratch import in_memory

pytestmark = pytest.mark.faults

IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))
INSTALLED = "data/hook/installed.json"  # a restore leaves it as it is


class Scene:
    """A state, a backup of it, and another state with the first one's backup waiting to be restored."""

    def __init__(self, base: Path) -> None:
        self.base = base
        first = folders(base / "first")
        fill(first)
        self.new = facts(first)
        self.backup = base / "b.tar.zst"
        back_up(first, self.backup)
        second = folders(base / "second")
        fill(second, "second")
        small(second, "second")
        self.old = facts(second)
        self.new[INSTALLED] = self.old[INSTALLED]

    def copy(self, name: str, which: str = "second") -> Roots:
        target = self.base / "tries" / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.base / which, target)
        return folders(target)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    made = tempfile.mkdtemp(prefix="memd-backups-", dir=in_memory())
    yield Scene(Path(made))
    shutil.rmtree(made)


def points(count: int, stride: int, start: int = 0) -> range:
    return range(count) if IS_FULL else range(start % stride, count, stride)


def calls_of(scene: Scene, *, only_writes: bool) -> int:
    faults = Faults(only_writes=only_writes)
    roots = scene.copy("count")
    with installed(faults):
        restore(roots, scene.backup)
    return len(faults.calls)


def unfinished(scene: Scene) -> list[Path]:
    """Parts of backups; a name without any content may be somebody else's beginning."""
    return [path for path in scene.base.glob(".memd-*.tmp") if path.stat().st_size]


def settled(roots: Roots) -> Facts:
    """What the next start of memd finds."""
    backup_replace.finish_begun(roots)
    return facts(roots)


def test_a_kill_at_any_write_of_a_restore_leaves_the_old_or_the_new(scene: Scene) -> None:
    ends = []
    for at in points(calls_of(scene, only_writes=True), 3):
        roots = scene.copy(str(at))
        with installed(killing(at)):
            assert not survives(lambda roots=roots: restore(roots, scene.backup)), at
        found = settled(roots)
        assert found in (scene.old, scene.new), at
        ends.append(found == scene.new)
        restore(roots, scene.backup)
        assert facts(roots) == scene.new, at
        assert strays(roots) == [], at
    assert ends == sorted(ends)  # from one instant on it is the new one
    assert True in ends
    assert False in ends


def test_a_second_kill_while_a_restore_is_finished_changes_nothing(scene: Scene) -> None:
    total = calls_of(scene, only_writes=True)
    for first in range(total - 30, total, 1 if IS_FULL else 7):
        for second in range(0, 200, 1 if IS_FULL else 5):
            roots = scene.copy(f"{first}-{second}")
            with installed(killing(first)):
                survives(lambda roots=roots: restore(roots, scene.backup))
            with installed(killing(second)):
                is_through = survives(lambda roots=roots: backup_replace.finish_begun(roots))
            assert settled(roots) in (scene.old, scene.new), (first, second)
            if is_through:
                break
        else:
            raise AssertionError("it never came to its end")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
def test_an_error_at_any_call_of_a_restore_is_told(scene: Scene, number: int) -> None:
    for at in points(calls_of(scene, only_writes=False), 17, number):
        roots = scene.copy(str(at))
        with installed(Faults(at, failing(number))):
            try:
                restore(roots, scene.backup)
                is_done = True
            except MemdError as reason:
                assert reason.remedy, at
                is_done = False
        found = settled(roots)
        assert found in (scene.old, scene.new), at
        if is_done:
            assert found == scene.new, at
        restore(roots, scene.backup)
        assert facts(roots) == scene.new, at
        assert strays(roots) == [], at


def test_a_kill_at_any_write_of_a_backup_leaves_a_whole_one_or_none(scene: Scene) -> None:
    roots = scene.copy("source", "first")
    before = facts(roots)
    faults = Faults(only_writes=True)
    with installed(faults):
        back_up(roots, scene.base / "counted")
    for at in points(len(faults.calls), 2):
        path = scene.base / f"killed-{at}"
        with installed(killing(at)):
            assert not survives(lambda path=path: back_up(roots, path)), at
        if path.exists():
            whole = scene.copy("whole")
            restore(whole, path)
            assert facts(whole)["texts"] == before["texts"], at
        else:
            back_up(roots, path)
        assert facts(roots) == before, at
        assert strays(roots) == [], at
    back_up(roots, scene.base / "last")
    assert not unfinished(scene)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_an_error_at_any_call_of_a_backup_is_told_and_leaves_nothing(scene: Scene, number: int) -> None:
    roots = scene.copy("source", "first")
    faults = Faults(is_flushing=False)
    with installed(faults):
        back_up(roots, scene.base / f"counted-{number}")
    for at in points(len(faults.calls), 11, number):
        path = scene.base / f"failed-{number}-{at}"
        with installed(Faults(at, failing(number))):
            try:
                back_up(roots, path)
            except MemdError as reason:
                assert reason.remedy, at
        if path.exists():
            restore(scene.copy("whole"), path)
        else:
            back_up(roots, path)
        assert strays(roots) == [], at
    back_up(roots, scene.base / f"last-{number}")
    assert not unfinished(scene)
