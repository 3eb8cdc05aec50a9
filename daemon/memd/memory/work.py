"""Work on one agent's memory while its lock is held: merges into the owned folder, and what is remembered."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from memd import disk
from memd.disk import Folder
from memd.memory import home
from memd.memory.acting import Won
from memd.memory.agents import Enrolment
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import Circumstances
from memd.memory.journal import Journal
from memd.memory.key import project_key
from memd.memory.merge import Merge, Seen
from memd.memory.names import label_of
from memd.memory.plan import Folding, Plan
from memd.memory.record import AgentFiles, Record, Records, Source, Target
from memd.memory.report import left_behind
from memd.memory.tree import folding_of
from memd.memory.where import entry_path


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What there is besides the agent."""

    logins: tuple[ConfigHome, ...]
    homes: tuple[bytes, ...]  # of all enrolled agents
    targets: Mapping[bytes, int]
    temporary: tuple[bytes, ...]  # folders whose content does not last

    def circumstances(self, enrolment: Enrolment, owned_ino: int) -> Circumstances:
        return Circumstances(
            home=enrolment.home,
            owned=enrolment.owned,
            owned_ino=owned_ino,
            others=tuple(h for h in self.homes if h != enrolment.home),
            logins=tuple(login.real for login in self.logins),
            targets=self.targets,
        )

    def login(self, path: bytes) -> ConfigHome | None:
        return next((login for login in self.logins if login.path == path), None)


class Work:
    """`record` is what is remembered so far; `save` makes it durable."""

    def __init__(
        self, enrolment: Enrolment, around: Surroundings, files: AgentFiles, records: Records, now_ms: int
    ) -> None:
        self.enrolment = enrolment
        self.around = around
        self.files = files
        self.now_ms = now_ms
        self.record: Record = files.record()
        self.is_known = was_there(enrolment, around, self.record)
        self.won: dict[bytes, tuple[Won, ...]] = {}  # per entry, of work that was cut off before the exchange
        self._records = records

    def open_owned(self) -> Folder:
        """The owned folder, made where it never was; raises Away when it has gone, DiskError."""
        if not self.is_known:
            return home.open_owned(self.enrolment.home, self.enrolment.owned)[0]
        return home.open_known(self.enrolment.home, self.enrolment.owned)

    def know_target(self, owned: Folder) -> None:
        """Remember, before a link is made, that links to this folder are ours."""
        self._records.remember(targets=(Target(self.enrolment.owned, owned.facts().st_ino),))
        self.is_known = True

    def merge(
        self, owned: Folder, source: Folder, label: bytes, journal: Journal, *, is_resumed: bool
    ) -> Merge:
        """The merge of a folder that was perhaps merged before; it writes its plans into `journal`."""

        def before_acting(plan: Plan, won: tuple[Won, ...]) -> None:
            self.files.write_journal(msgspec.structs.replace(journal, won=won, steps=plan.steps))

        return Merge(
            owned,
            source,
            label=label,
            seen=self.seen(source),
            carried_once=self.record.carried_once(),
            folding=self.folding(),
            won=journal.won,
            is_resumed=is_resumed,
            before_acting=before_acting,
        )

    def seen(self, source: Folder) -> dict[bytes, Seen]:
        known = self.record.source_at(source.path, source.facts().st_ino)
        return {} if known is None else known.seen_by_rel()

    def folding(self) -> Folding:
        return folding_of_home(self.enrolment)

    def note_merged(self, merge: Merge, source: Folder, path: bytes, entry: bytes, label: bytes) -> Source:
        """Remember what was merged from a folder, which is at `path` now."""
        noted = Source(
            path=path,
            ino=source.facts().st_ino,
            entry=entry,
            label=label,
            changed_ms=self.now_ms,
            seen=tuple(merge.seen.values()),
            left=left_behind(path, merge.left),
            won=merge.pending(),
        )
        record = self.record.with_source(noted)
        self.record = record.with_carried(merge.live, self.now_ms * 1_000_000)
        return noted

    def save(self) -> None:
        self.files.save(self.record)


def was_there(enrolment: Enrolment, around: Surroundings, record: Record) -> bool:
    """Whether the agent had an owned folder before: then one that is missing is away, and not to be made.

    A program that syncs its home, or a drive, may be about to bring it back. Whether it was there is known
    from what is remembered; where that was lost, from the links to it.
    """
    if enrolment.owned in around.targets or record.carried or record.sources:
        return True
    key = project_key(enrolment.home)
    return any(
        _says(entry_path(enrolment.home, key, login.path).path, enrolment.owned) for login in around.logins
    )


def _says(path: bytes, text: bytes) -> bool:
    try:
        return os.readlink(path) == text
    except OSError:
        return False


def folding_of_home(enrolment: Enrolment) -> Folding:
    """What the file system of an agent home takes for one name."""
    with disk.open_folder(enrolment.home) as top:
        name = home.parts_of(enrolment.home, enrolment.owned)[0]  # has letters in it
        return folding_of(top, name)


def label(login: ConfigHome) -> bytes:
    return label_of(login.path)
