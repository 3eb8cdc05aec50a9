"""Restoring a backup, in a process of its own: `memctl restore` starts it, and stops the daemon for it.

    python -m memd.service.backup_restore FILE [--into FOLDER]

With a folder everything is put below it and nothing else is touched. Otherwise the process says on standard
output, a line of JSON each, how far it is, and goes on when it is told to on standard input:

    looked    what the backup is, and what is there now      waits for `stage`
    staged    all of it lies beside its place, checked       waits for `replace`, with the daemon stopped
    restored  it is in its place                             the end

When the input ends earlier, all is as it was. From `replace` on nothing calls it off any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator

import msgspec

from memctl import paths
from memctl.paths import shown
from memd import disk
from memd.errors import AlreadyRunning, DiskError, MemdError, Refused, TryAgain, UsageError
from memd.ledger.store import moment
from memd.ledger.store.interface import Damaged, TooNew
from memd.memory.leftovers import remove_temporaries
from memd.service import backup_format as form
from memd.service import backup_read, backup_replace
from memd.service.backup_format import BackupDamaged, BackupTooNew, Header
from memd.service.backup_places import Roots, below
from memd.service.backup_replace import STAGED, Plan, Step

LOCK_WAIT_S = 10.0

Note = Callable[[str, int, int], None]

OWNED = (
    form.DATABASE,
    form.DATABASE + b"-wal",
    form.DATABASE + b"-shm",
    form.SEGMENTS,
    *form.TREES,
    *(name for name in form.FILES if name not in form.ONLY_IF_MISSING),
)
"""What a restore puts something in the place of, or takes aside where the backup has nothing of it."""


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line to memctl."""

    step: str
    made_ms: int = 0
    memd: str = ""
    there: tuple[str, ...] = ()  # what stands in the places now
    kept: bytes = b""  # the name of the folders for it
    folders: tuple[bytes, ...] = ()  # in which those are


class Backup:
    """A backup on the disk. Raises DiskError, BackupDamaged, BackupTooNew."""

    def __init__(self, path: bytes) -> None:
        self._folder = disk.open_folder(os.path.dirname(path) or b".")
        self._name = os.path.basename(path)
        facts = self._folder.look(self._name)
        self._size = facts.st_size if facts else 0
        try:
            self.header: Header = backup_read.header_of(self._folder, self._name)
        except BaseException:
            self._folder.close()
            raise

    def close(self) -> None:
        self._folder.close()

    def extract(self, roots: Roots, place: Callable[[bytes], bytes], note: Note) -> set[bytes]:
        """Write every member to `place` of its name, and check all of it; the names.

        After an error what was written is worth nothing. raises DiskError, BackupDamaged, BackupTooNew
        """
        names: set[bytes] = set()
        folders: dict[bytes, disk.Folder] = {}

        def put(name: bytes, mtime_s: int, chunks: Iterator[bytes]) -> None:
            path = place(name)
            parent = os.path.dirname(path)
            folder = folders.get(parent)
            if folder is None:
                folder = folders[parent] = disk.make_folders(parent)
            fresh = folder.write_temporary(chunks, mtime_ns=mtime_s * 1_000_000_000)
            folder.move(fresh, folder, os.path.basename(path))
            names.add(name)

        try:
            backup_read.read(
                self._folder, self._name, put, lambda done: note("reading", done, max(done, self._size))
            )
            for folder in folders.values():
                folder.sync()
        finally:
            for folder in folders.values():
                folder.close()
        if form.DATABASE not in names:
            raise BackupDamaged("the backup holds no ledger")
        _check_ledger(place)
        return names


def _check_ledger(place: Callable[[bytes], bytes]) -> None:
    """raises BackupDamaged when database and segments do not belong together, BackupTooNew"""
    path = place(form.DATABASE)
    try:
        moment.check(path)
        for held in moment.segments_of(path):
            name = b"%s/%s/%08d.jsonl" % (form.SEGMENTS, held.harness.encode(), held.number)
            facts = disk.look(place(name + (b".zst" if held.is_sealed else b"")))
            if facts is None or (not held.is_sealed and facts.st_size != held.size):
                raise BackupDamaged(f"the backup lacks {shown(name)}, which its ledger names")
    except TooNew as reason:
        raise BackupTooNew(f"the ledger in the backup is of a later memd: {reason}") from None
    except Damaged as reason:
        raise BackupDamaged(f"the ledger in the backup is damaged: {reason}") from None


# ------------------------------------------------------------------------- into a folder


def into(backup: Backup, target: bytes, note: Note) -> None:
    """Put all of it below a folder that is empty or not there; it is complete or as it was.

    raises  Refused, and what `Backup.extract` raises
    """
    parent, name = os.path.split(target)
    with disk.make_folders(parent) as folder:
        facts = folder.look(name)
        if facts is not None:
            if not stat.S_ISDIR(facts.st_mode):
                raise Refused(f"{shown(target)} is there and no folder", remedy="Name another folder.")
            with folder.folder(name) as there:
                if there.names():
                    raise Refused(f"{shown(target)} is not empty", remedy="Name a new folder.")
        fresh = STAGED + b"-" + name
        backup_replace.remove_tree(folder, fresh)
        try:
            roots = below(folder.at(fresh))
            backup.extract(roots, roots.path, note)
            if facts is not None:
                folder.remove_folder(name)
            folder.move(fresh, folder, name)
        except BaseException:
            _quietly(lambda: backup_replace.remove_tree(folder, fresh))
            raise
        folder.sync()


# -------------------------------------------------------------------------- in its place


class Restore:
    """A restore to memd's own folders, in steps; `close` takes back what was not finished."""

    def __init__(self, backup: Backup, roots: Roots) -> None:
        """raises TryAgain while another restore is under way, and what finishing an earlier one raises"""
        self._backup = backup
        self._roots = roots
        self._plan: Plan | None = None
        self._lock = disk.take_lock(roots.state + b"/restore.lock")
        try:
            backup_replace.finish_begun(roots)
            self._clear()
        except BaseException:
            self._lock.release()
            raise

    def _parents(self) -> list[bytes]:
        names = (*OWNED, *form.FILES)
        return list(dict.fromkeys(os.path.dirname(self._roots.path(name)) for name in names))

    def _clear(self) -> None:
        for parent in self._parents():
            backup_replace.clear_staged(parent)

    def there(self) -> list[bytes]:
        """The places where something stands now."""
        return [path for name in OWNED if disk.look(path := self._roots.path(name)) is not None]

    def stage(self, note: Note) -> Plan:
        """Write all of the backup beside its places, and the plan of what goes where.

        raises  what `Backup.extract` raises
        """
        names = self._backup.extract(self._roots, self._staged_path, note)
        new = {_top(name) for name in names}
        steps = []
        for name in (*OWNED, *form.ONLY_IF_MISSING):
            path = self._roots.path(name)
            folder, own = os.path.split(path)
            is_there = disk.look(path) is not None
            if name in form.ONLY_IF_MISSING and (is_there or name not in new):
                continue
            if name in new and is_there and name in form.FILES and self._is_same(name):
                continue  # also where it is a link to somebody's own place for it
            if name in new or is_there or name in (form.DATABASE + b"-wal", form.DATABASE + b"-shm"):
                steps.append(Step(folder=folder, name=own, is_new=name in new))
        folders = [step.folder for step in steps]
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._plan = Plan(kept=backup_replace.kept_name(self._roots, folders, stamp), steps=tuple(steps))
        return self._plan

    def _staged_path(self, name: bytes) -> bytes:
        top = _top(name)
        folder, own = os.path.split(self._roots.path(top))
        return folder + b"/" + STAGED + b"/" + own + name[len(top) :]

    def _is_same(self, name: bytes) -> bool:
        place, staged = self._roots.path(name), self._staged_path(name)
        try:
            old = disk.read_file(os.path.realpath(place), 64 << 20)
            return old is not None and old == disk.read_file(staged, 64 << 20)
        except DiskError:
            return False

    def replace(self) -> Plan:
        """Put it in its place; expects that the daemon was stopped.

        raises  AlreadyRunning while one runs, TryAgain, DiskError; nothing was replaced then, unless the
                plan was written: the next start of memd goes to its end
        """
        assert self._plan is not None
        try:
            lock = disk.take_lock(self._roots.state + b"/memd.lock", wait_s=LOCK_WAIT_S)
        except TryAgain:
            raise AlreadyRunning(
                "memd still runs, or runs again", remedy="Stop it with `memctl down`, then restore."
            ) from None
        with lock, disk.take_lock(self._roots.data + b"/projects.lock", wait_s=LOCK_WAIT_S):
            remove_temporaries(self._roots.state)  # of a restore that was killed; nobody else is at work
            backup_replace.begin(self._roots, self._plan)
            backup_replace.finish(self._roots)
        done, self._plan = self._plan, None
        return done

    def close(self) -> None:
        try:
            if disk.look(self._roots.state + b"/" + backup_replace.PLAN) is None:
                _quietly(self._clear)
        finally:
            self._lock.release()


def _top(name: bytes) -> bytes:
    """The part that is replaced as one."""
    for tree in (form.SEGMENTS, *form.TREES):
        if name.startswith(tree + b"/"):
            return tree
    return name


def _quietly(work: Callable[[], None]) -> None:
    """Clean up after an error, which is what is told."""
    try:
        work()
    except DiskError:
        return


# -------------------------------------------------------------------------- the process


def main() -> int:
    words = [os.fsencode(word) for word in sys.argv[1:]]
    os.umask(0o077)
    try:
        match words:
            case [path, b"--into", folder]:
                with contextlib.closing(Backup(path)) as backup:
                    into(backup, folder, _progress("restoring"))
                _tell(Told(step="restored"))
            case [path]:
                return _in_place(path)
            case _:
                raise UsageError("backup_restore takes FILE [--into FOLDER]")
    except MemdError as reason:
        _clear_line()
        print(f"memctl: {reason}\n{reason.remedy}", file=sys.stderr)
        return reason.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


def _in_place(path: bytes) -> int:
    roots = Roots(paths.data_dir(), paths.config_dir(), paths.state_dir())
    with contextlib.closing(Backup(path)) as backup:
        return _restored(backup, roots)


def _restored(backup: Backup, roots: Roots) -> int:
    restore = Restore(backup, roots)
    try:
        there = restore.there()
        header = backup.header
        _tell(Told(step="looked", made_ms=header.made_ms, memd=header.memd, there=tuple(map(shown, there))))
        if not _is_told("stage"):
            return 77
        restore.stage(_progress("restoring"))
        _tell(Told(step="staged"))
        if not _is_told("replace"):
            return 77
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        plan = restore.replace()
        folders = dict.fromkeys(step.folder for step in plan.steps)
        with_some = tuple(one for one in folders if disk.look(one + b"/" + plan.kept) is not None)
        _tell(Told(step="restored", kept=plan.kept if with_some else b"", folders=with_some))
        return 0
    finally:
        restore.close()


def _is_told(word: str) -> bool:
    return sys.stdin.readline().strip() == word


def _tell(told: Told) -> None:
    try:
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever asked is gone; what comes says so by itself


def _progress(verb: str) -> Note:
    """How far it is, on a terminal, at most ten times a second."""
    if not sys.stderr.isatty():
        return lambda _what, _done, _total: None
    last = [0.0]

    def show(_what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] >= 0.1:
            last[0] = now
            sys.stderr.write(f"\r{verb} {100 * done // max(total, 1)} %\x1b[K")
            sys.stderr.flush()
        if done >= total:
            _clear_line()

    return show


def _clear_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
