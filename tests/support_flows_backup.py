"""Backing up, and restoring in place, as flows for faults. The copy of the database meets them too."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from memd import disk
from memd.service import backup_read, backup_replace
from memd.service.backup_places import Roots, below
from support_backups import Facts, back_up, facts, fill, folders, restore, small, strays
from support_faults import installed
from support_flow import Flow
from support_ledger_faults import LedgerFaults, faulty_everywhere
from support_scratch import in_memory

INSTALLED = "data/hook/installed.json"
"""A restore leaves it as it is: it says what is installed on this machine."""

Files = tuple[tuple[str, bytes], ...]


class _State(Flow):
    """A memd's three folders, filled."""

    word = "first"

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.roots = below(bytes(top / "memd"))
        _put(_filled(self.word)[0], top / "memd")
        self.facts = _filled(self.word)[1]

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with installed(faults), faulty_everywhere(faults):
            yield


class Backup(_State):
    """A backup is there whole or not at all, and what a killed one left the next one takes away."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.kept = top / "kept"
        self.kept.mkdir()
        self.path = self.kept / "b.tar.zst"

    def work(self) -> None:
        back_up(self.roots, self.path)

    def check_kept(self) -> None:
        held = _taken(self.top / "memd")
        assert set(_filled(self.word)[0]) <= set(held)
        if self.path.exists():
            with disk.open_folder(bytes(self.kept)) as folder:
                backup_read.verify(folder, b"b.tar.zst", lambda _: None)

    def recover(self) -> None:
        if self.path.exists():  # whoever asked got an error after it had its name, and asks for another
            names = (self.kept / f"b{number}.tar.zst" for number in itertools.count())
            back_up(self.roots, next(name for name in names if not name.exists()))
            return
        self.work()

    def check_done(self) -> None:
        self.check_kept()
        assert strays(self.roots) == []
        for path in self.kept.iterdir():
            # of one in which nothing stands yet nobody can tell whose beginning it is
            assert not disk.is_temporary(os.fsencode(path.name)) or path.stat().st_size < 4
        again = below(bytes(self.top / "again"))
        for place in again:
            disk.make_folders(place).close()
        restore(again, self.path)
        found = facts(again)
        assert found.pop(INSTALLED) == self.facts[INSTALLED]
        assert found == {name: fact for name, fact in self.facts.items() if name != INSTALLED}


class Restore(_State):
    """The old state holds to one instant, and from it on the new one. What was there is kept beside."""

    word = "second"

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.backup = top / "b.tar.zst"
        self.backup.write_bytes(_backup_of("first"))
        self.new = {**_filled("first")[1], INSTALLED: self.facts[INSTALLED]}
        self.texts = [data for name, data in _filled(self.word)[0] if "/memory" in name]

    def work(self) -> None:
        restore(self.roots, self.backup)

    def check_kept(self) -> None:
        """As the next start of memd finds it."""
        backup_replace.finish_begun(self.roots)
        assert facts(self.roots) in (self.facts, self.new)
        self._check_old_texts()

    def _check_old_texts(self) -> None:
        held = {path.read_bytes() for path in (self.top / "memd").rglob("*") if path.is_file()}
        assert set(self.texts) <= held

    def recover(self) -> None:
        backup_replace.finish_begun(self.roots)
        topic = Path(os.fsdecode(self.roots.path(b"data/memory/topic.md")))
        if topic.read_bytes() != self.new["data/memory/topic.md"] or strays(self.roots):
            self.work()

    def check_done(self) -> None:
        self.check_answered()
        assert strays(self.roots) == []

    def check_answered(self) -> None:
        """What lay ready and was not needed may come back; the next restore takes it away."""
        backup_replace.finish_begun(self.roots)
        assert facts(self.roots) == self.new
        self._check_old_texts()


@functools.cache
def _filled(word: str) -> tuple[Files, Facts]:
    """The files of such a state and what a memd says of it; made once."""
    with _elsewhere() as roots:
        fill(roots, word)
        small(roots, word)
        return _taken(_top(roots)), facts(roots)


@functools.cache
def _backup_of(word: str) -> bytes:
    with _elsewhere() as roots:
        _put(_filled(word)[0], _top(roots))
        path = _top(roots) / "made.tar.zst"
        back_up(roots, path)
        return path.read_bytes()


def _top(roots: Roots) -> Path:
    return Path(os.fsdecode(roots.data)).parents[1]


@contextlib.contextmanager
def _elsewhere() -> Iterator[Roots]:
    with tempfile.TemporaryDirectory(dir=in_memory(), prefix="memd-states-") as top:
        yield folders(Path(top))


def _taken(top: Path) -> Files:
    paths = sorted(path for path in top.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(top)), path.read_bytes()) for path in paths)


def _put(files: Files, top: Path) -> None:
    for place in below(bytes(top)):
        disk.make_folders(place).close()
    for name, data in files:
        path = top / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)


FLOWS: dict[str, type[Flow]] = {"backup": Backup, "restore": Restore}
