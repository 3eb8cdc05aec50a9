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
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd import disk
from memd.protocol import Entry
from support_faults import Faults, failing, installed, killing, survives
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, read, snapshot, superseded, tree

STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 7
SECRET = b'{"token": "kept as it is"}'

Work = Callable[["Scene"], object]


class Scene:
    """An enrolled agent with memory of its own, and logins that appear with theirs."""

    def __init__(self, top: Path, logins: int) -> None:
        self.world = World(top)
        self.agent = self.world.agent()
        self.owned = self.world.owned(self.agent)
        with installed(Faults()):
            self.world.enroll(self.agent)
        put(self.owned + b"/both.md", b"owned, older", ns=OLD_NS)
        put(self.owned + b"/tie.md", b"owned, as old", ns=OLD_NS)
        put(self.owned + b"/clash", b"owned, a file", ns=OLD_NS)
        put(self.owned + b"/MEMORY.md", b"# M\n\n- [B](both.md) - owned\n", ns=OLD_NS)
        self.logins = [self.world.login(b".claude-%d" % n) for n in range(logins)]
        for n, login in enumerate(self.logins):
            put(login + b"/projects/other/memory/note.md", b"another project's %d" % n)
            self._fill(self.world.entry(login, self.agent), b"%d" % n, n)
        self.bodies = bodies(self.world.home, self.world.work)

    def _fill(self, memory: bytes, mark: bytes, later: int) -> None:
        put(memory + b"/both.md", b"incoming, newer " + mark, ns=OLD_NS + 1 + later)
        put(memory + b"/tie.md", b"incoming, as old " + mark, ns=OLD_NS)
        put(memory + b"/clash/inner.md", b"incoming, in a folder " + mark, ns=OLD_NS)
        put(memory + b"/sub/own.md", b"own " + mark, ns=OLD_NS + later)
        put(memory + b"/_superseded/h.md.x", b"history " + mark, ns=OLD_NS)
        put(memory + b"/MEMORY.md", b"# M\n\n- [B](both.md) - login\n- [O](sub/own.md)\n", ns=OLD_NS)

    def entries(self) -> list[bytes]:
        return [self.world.entry(login, self.agent) for login in self.logins]

    def heal(self) -> tuple[Entry, ...]:
        return self.world.heal()

    def unenroll(self) -> object:
        return self.world.ownership().unenroll(self.agent, now_ms=self.world.tick())

    def check_nothing_lost(self) -> None:
        found = bodies(self.world.home, self.world.work)
        missing = self.bodies - found
        assert not {body for body in missing if not body.startswith(b"# M")}, missing
        assert b"" not in found
        for rel, body in notes(self.owned).items():
            is_whole = body in self.bodies or rel == b"MEMORY.md"
            assert is_whole or disk.is_temporary(os.path.basename(rel)), (rel, body)
        for n, login in enumerate(self.logins):
            assert read(login + b"/.credentials.json") == SECRET
            assert read(login + b"/projects/other/memory/note.md") == b"another project's %d" % n

    def check_settled(self) -> None:
        """One more run changes nothing, and no half-written copy is left."""
        before = snapshot(self.world.home, self.world.work)
        assert not [path for path in before if disk.is_temporary(os.path.basename(path))]
        entries = self.heal()
        assert not [entry for entry in entries if entry.changed or entry.outcome == "failed"], entries
        assert snapshot(self.world.home, self.world.work) == before

    def check_healed(self, good: Scene) -> None:
        """The links are right, and the owned folder is as if nothing had happened."""
        for path in self.entries():
            assert leads_to(path, self.owned), path
        assert notes(self.owned) == notes(good.owned)
        assert len(superseded(self.owned)) <= len(superseded(good.owned)) + 2  # logins may change places
        self.check_settled()

    def check_returned(self, good: Scene) -> None:
        assert self.world.ownership().agents() == ()
        for path, other in zip(self.entries(), good.entries(), strict=True):
            assert not os.path.islink(path)
            assert notes(path) == notes(other)
        self.check_settled()


def healed(scene: Scene) -> object:
    return scene.heal()


def unenrolled(scene: Scene) -> object:
    return scene.unenroll()


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
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="memd-test-") as folder:
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
    for at in range(total):
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
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("only_writes", [True, False])
def test_an_error_at_any_call_is_told_and_caught_up_with(
    sweep: Sweep, number: int, only_writes: bool
) -> None:
    if number == errno.ENOSPC and not only_writes:
        pytest.skip("a full disk can be read")
    total = sweep.calls(only_writes=only_writes)
    for at in range(0, total, 1 if only_writes else STRIDE):
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
