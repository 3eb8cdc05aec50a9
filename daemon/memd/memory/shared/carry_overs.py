"""Carrying over as the daemon does it: the local store once, another tool's when asked, Claude's by choice.

The local store is carried over when the shared folder comes into use: its own lock is taken first, the shared
one second, and at the end the mark is set that says it is done. A failure is told by `trouble`, and the next
one who uses the store tries again.
"""

from __future__ import annotations

import contextlib
import os

from memctl.paths import shown
from memd import disk
from memd.errors import MemdError, Refused
from memd.memory.shared import carry
from memd.memory.shared.access import Access, Active
from memd.memory.shared.carrying import Plan, Standing, only
from memd.memory.shared.index import INITIAL
from memd.memory.shared.record import Record
from memd.memory.shared.store import Store, make_store, open_store
from memd.protocol_memory import CarriedOver


class CarryOvers:
    """`trouble` says why the local store is not carried over although that is due; empty when it is."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.trouble = ""

    def local(self) -> CarriedOver:
        """Carry memd's own local store over. raises Refused, Busy, DiskError, ConfigError"""
        active = self._access.for_writing()
        if not active.is_shared:
            raise Refused(
                "the shared folder is not in use, so there is nowhere to carry the local topics over to",
                remedy=f'Put "shared_dir": true into {shown(self._access.configuration.ours)}.',
            )
        return self._local(active, waits=True)

    def ensure(self, *, waits: bool) -> None:
        """The same where it is due, and nothing elsewhere."""
        active = self._access.active()
        if active.is_shared and not active.in_force.error and self._is_due():
            self._local(active, waits=waits)

    def _is_due(self) -> bool:
        """A cheap look: whether there is a local store without the mark, or with what a crash left in it."""
        local = open_store(self._access.places.local)
        if local is None:
            return False
        with local:
            names = local.names()
            if any(disk.is_temporary(name) and local.is_regular(name) for name in names):
                return True
            return not carry.is_done(local) and any(
                name.endswith(b".md") and not name.startswith(b".") for name in names
            )

    def _local(self, active: Active, *, waits: bool) -> CarriedOver:
        try:
            done = self._carry_local(active, waits)
        except MemdError as reason:
            self.trouble = f"the local topics are not carried over yet: {reason}"
            raise
        unreadable = [left for left in done.left if left.remedy == carry.UNREADABLE]
        self.trouble = "local topics cannot be read, so they are not carried over yet" if unreadable else ""
        return done

    def _carry_local(self, active: Active, waits: bool) -> CarriedOver:
        path = self._access.places.local
        source = open_store(path)
        if source is None:
            return _told(active, path, "nothing")
        with source:
            if os.path.realpath(path) == os.path.realpath(active.path):
                return _told(
                    active, path, "same-folder"
                )  # and two locks on one file would wait for each other
            with self._access.lock_of(path).held(source.folder, is_shared=False, waits=waits):
                source.sweep()
                if carry.is_done(source):
                    return _told(active, path, "done-before")
                found = carry.read_source(source)
                if not found.has_anything():
                    return _told(active, path, "nothing", carry.Result(carried=(), left=found.problems))
                result = self._carry(source, found, active, waits=waits)
                if not found.may_improve():
                    carry.mark_done(source)
        return _told(active, path, "carried", result)

    def from_folder(self, path: bytes) -> CarriedOver:
        """Carry another tool's store over; what came from there once does not come again."""
        active = self._access.for_writing()
        return self._from(path, active, is_claude=False, files=None)

    def from_claude(self, path: bytes, files: tuple[str, ...], everything: bool) -> CarriedOver:
        """Topics of a Claude Code memory folder; without files and `everything` only what could be done."""
        looks = not files and not everything
        active = self._access.active() if looks else self._access.for_writing()
        chosen = None if everything else tuple(os.fsencode(file) for file in files)
        return self._from(path, active, is_claude=True, files=chosen)

    def _from(
        self, path: bytes, active: Active, *, is_claude: bool, files: tuple[bytes, ...] | None
    ) -> CarriedOver:
        """
        files  only these; none of them: only look; None: all
        """
        source = open_store(path)
        if source is None:
            raise Refused(f"there is no folder {shown(path)}", remedy="Check the path.")
        with source:
            if os.path.realpath(path) == os.path.realpath(active.path):
                return _told(active, path, "same-folder")
            found = (carry.claude_source if is_claude else carry.read_source)(source)
            origin = os.path.realpath(path)
            if files == ():
                return _told(active, path, "looked", self._foreseen(source, found, active, origin))
            missing = [file for file in files or () if file not in found.incoming.topics]
            if missing:
                raise Refused(
                    f"{shown(path)} has no topic file {shown(missing[0])}",
                    remedy="Without names the command shows what there is.",
                )
            result = self._carry(source, found, active, waits=True, origin=origin, files=files)
        return _told(active, path, "carried" if result.carried else "nothing", result)

    def _carry(
        self,
        source: Store,
        found: carry.Source,
        active: Active,
        *,
        waits: bool,
        origin: bytes = b"",
        files: tuple[bytes, ...] | None = None,
    ) -> carry.Result:
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(make_store(active.path))
            work = stack.enter_context(self._access.locked(store, active, waits=waits))
            work.finish_pending()
            todo = carry.planned(source, found, carry.standing_of(store), work.record, origin)
            if files is not None:
                todo = only(todo, files)
            return carry.carry(source, found, work, todo, origin=origin)

    def _foreseen(self, source: Store, found: carry.Source, active: Active, origin: bytes) -> carry.Result:
        def result(standing: Standing, record: Record) -> carry.Result:
            todo: Plan = carry.planned(source, found, standing, record, origin)
            return carry.Result(carried=carry.rows(standing.index, todo), left=carry.left(found, todo))

        with self._access.reading(active) as store:
            if store is None:
                return result(Standing(index=INITIAL, names=(), digests=lambda _: ""), Record())
            return result(carry.standing_of(store), self._access.records(active.path).read())


def _told(active: Active, source: bytes, outcome: str, result: carry.Result | None = None) -> CarriedOver:
    return CarriedOver(
        store=active.path,
        is_shared=active.is_shared,
        notes=active.notes,
        source=source,
        outcome=outcome,  # type: ignore[arg-type]
        topics=result.carried if result is not None else (),
        left=result.left if result is not None else (),
    )
