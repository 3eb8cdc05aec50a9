"""A kill or an error at every file operation while conflict copies are merged: nothing is lost."""

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
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, read, snapshot, superseded
from support_points import share
from support_scratch import in_memory

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 7
MARK = b".sync-conflict-20260203-101500-ABCDEFG"
MERGED = {
    b"MEMORY.md": b"# M\n\n- [L](later.md) - theirs\n- [E](earlier.md)\n- [G](gone.md)\n",
    b"later.md": b"later, theirs",
    b"earlier.md": b"earlier, ours",
    b"sub/n.md": b"third",
    b"gone.md": b"gone here",
    b"alone.md": b"no copy of it",
}


class Scene:
    """An owned folder with conflict copies of every kind."""

    def __init__(self, top: Path) -> None:
        self.world = World(top)
        self.login, self.agent = self.world.login(), self.world.agent()
        self.owned = self.world.owned(self.agent)
        with installed(Faults()):
            self.world.enroll(self.agent)
        self._put(b"MEMORY.md", b"# M\n\n- [L](later.md) - ours\n- [E](earlier.md)\n")
        self._put(b"MEMORY" + MARK + b".md", b"# M\n\n- [L](later.md) - theirs\n- [G](gone.md)\n", 1)
        self._put(b"later.md", b"later, ours")
        self._put(b"later" + MARK + b".md", b"later, theirs", 1)
        self._put(b"earlier.md", b"earlier, ours", 1)
        self._put(b"earlier" + MARK + b".md", b"earlier, theirs")
        self._put(b"sub/n.md", b"first")
        self._put(b"sub/n" + MARK + b".md", b"second", 1)
        self._put(b"sub/n (laptop's conflicted copy 2026-02-03).md", b"third", 2)
        self._put(b"gone" + MARK + b".md", b"gone here")
        self._put(b"alone.md", b"no copy of it")
        self.bodies = bodies(self.owned)

    def _put(self, rel: bytes, body: bytes, later: int = 0) -> None:
        put(self.owned + b"/" + rel, body, ns=OLD_NS + later)

    def work(self) -> object:
        return self.world.heal()

    def check_kept(self) -> None:
        assert self.bodies <= bodies(self.owned)
        assert b"- [E](earlier.md)" in read(self.owned + b"/MEMORY.md")
        for rel in (b"later.md", b"earlier.md", b"sub/n.md", b"alone.md"):
            assert read(self.owned + b"/" + rel) in self.bodies | set(MERGED.values())

    def check_done(self, copies: int) -> None:
        self.check_kept()
        assert leads_to(self.world.entry(self.login, self.agent), self.owned)
        assert notes(self.owned) == MERGED
        assert len(superseded(self.owned)) <= copies  # fewer where the last of two copies came first
        before = snapshot(self.world.home, self.world.work)
        assert not [path for path in before if disk.is_temporary(os.path.basename(path))]
        assert not [entry for entry in self.world.heal() if entry.changed or entry.outcome != "linked"]
        assert snapshot(self.world.home, self.world.work) == before


class Sweep:
    def __init__(self, top: Path) -> None:
        self.top = top
        self._count = 0
        good = self.scene()
        with installed(Faults()):
            good.work()
            self.kept = len(superseded(good.owned))
            good.check_done(self.kept)

    def scene(self) -> Scene:
        self._count += 1
        return Scene(self.top / f"{self._count:04}")

    def calls(self, *, only_writes: bool) -> int:
        with installed(Faults(only_writes=only_writes)) as counted:
            self.scene().work()
        assert len(counted.calls) > 50
        return len(counted.calls)

    def check(self, scene: Scene) -> None:
        scene.check_kept()
        with installed(Faults()):
            scene.world.recover()
            scene.check_done(self.kept)
        shutil.rmtree(scene.world.top)


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    if in_memory() is None:
        yield Sweep(tmp_path)
        return
    with tempfile.TemporaryDirectory(dir=in_memory(), prefix="memd-test-") as folder:
        yield Sweep(Path(folder))


@pytest.mark.faults
def test_a_kill_at_any_write_loses_nothing_and_the_merge_comes_to_the_same_end(sweep: Sweep) -> None:
    for at in range(sweep.calls(only_writes=True)):
        scene = sweep.scene()
        with installed(killing(at)):
            survived = survives(scene.work)
        assert not survived, at
        sweep.check(scene)


@pytest.mark.faults
def test_a_second_kill_during_the_recovery_loses_nothing(sweep: Sweep) -> None:
    for at in range(5, sweep.calls(only_writes=True), 10):
        for second in range(0, 1000, STRIDE):
            scene = sweep.scene()
            with installed(killing(at)):
                survives(scene.work)
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
def test_an_error_at_any_call_is_caught_up_with(sweep: Sweep, number: int, only_writes: bool) -> None:
    if number == errno.ENOSPC and not only_writes:
        pytest.skip("a full disk can be read")
    total = sweep.calls(only_writes=only_writes)
    for at in share(total, ERRORS.index(number), len(ERRORS)) if only_writes else range(0, total, STRIDE):
        scene = sweep.scene()
        with installed(Faults(at, failing(number), only_writes=only_writes)):
            try:
                scene.work()
            except disk.DiskError as reason:
                assert reason.remedy
        sweep.check(scene)
