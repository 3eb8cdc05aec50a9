"""Doing the steps of a plan.

Every step checks that what it touches is as the plan saw it and takes names only when they are free. What is
not so is stale: it is left alone, for the next plan. Trouble with one incoming thing leaves that behind.
Trouble with the owned folder's disk (full, failing, read-only) ends it all with a DiskError.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator

import msgspec

from memd.disk import Folder
from memd.errors import DiskError
from memd.memory import tree
from memd.memory.index import merge_index
from memd.memory.names import INDEX, MAX_NUMBER, numbered
from memd.memory.owned import CHANGED, Owned, Stale, inode
from memd.memory.plan import (
    UNREADABLE,
    AnyStep,
    Copy,
    Found,
    Keep,
    Left,
    MakeFolder,
    MergeIndex,
    MoveAside,
    Plan,
    Replace,
    Take,
    Tally,
)

MAX_INDEX_BYTES = 1 << 20

# what concerns one name only, not the disk it is on
_ONE_NAME = frozenset(
    {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EISDIR}
    | {errno.EXDEV, errno.EBUSY}  # something is mounted within the owned folder
)
_SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # says nothing about the file

REFUSED = "Check the permissions of the owned folder; the next run tries again."
MOUNTED = "Unmount what is mounted within the owned folder; the next run tries again."
TOO_LONG = "Shorten its name."
TOO_LARGE = "Shorten the index; Claude Code reads only the first 200 lines of it."


class Won(msgspec.Struct, frozen=True):
    """An owned note that took the incoming body: its index line follows, also after a crash."""

    to: bytes
    digest: bytes


class Unreadable(Exception):
    """The incoming side failed, not the owned one."""

    def __init__(self, reason: DiskError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Acting:
    """One plan being carried out. Then it knows what is stale, what stays behind, how much had an effect."""

    def __init__(
        self, owned: Folder, source: Folder, plan: Plan, won: dict[bytes, Won], tally: Tally
    ) -> None:
        """`won` and `tally` are added to."""
        self.stale: set[bytes] = set()
        self.left: list[Left] = []
        self.effects = 0
        self._owned = Owned(owned)
        self._source = source
        self._plan = plan
        self._won = won
        self._tally = tally
        self._blocked: dict[bytes, DiskError] = {}  # names that could not be made, and what lies below them

    def run(self) -> None:
        """raises DiskError"""
        with self._owned:
            for step in self._plan.steps:
                self._attempt(step)
            self._owned.flush()

    def _attempt(self, step: AnyStep) -> None:
        try:
            for blocked, reason in self._blocked.items():
                if _target(step).startswith(blocked + b"/"):
                    raise reason
            self.effects += self._do(step)
        except Stale:
            self._give_up(step)
        except Unreadable as trouble:
            if trouble.reason.errno in _SHORT_OF:
                raise trouble.reason from None
            self._leave(step, f"it cannot be read: {trouble.reason}", trouble.reason, UNREADABLE)
        except DiskError as reason:
            if reason.errno in CHANGED:
                self._give_up(step)
            elif reason.errno in _ONE_NAME:
                self._leave(step, str(reason), reason, REFUSED)
            else:
                raise

    def _give_up(self, step: AnyStep) -> None:
        self.stale.add(step.rel if isinstance(step, Take) else _target(step))

    def _leave(self, step: AnyStep, words: str, reason: DiskError, remedy: str) -> None:
        if reason.errno == errno.EFBIG:
            remedy = TOO_LARGE
        elif reason.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
            remedy = TOO_LONG
        elif reason.errno in (errno.EXDEV, errno.EBUSY):
            remedy = MOUNTED
        if isinstance(step, Take):
            self.left.append(Left(step.rel, words, remedy, is_trouble=True))
        else:
            self._blocked[_target(step)] = reason

    def _do(self, step: AnyStep) -> bool:
        """Says whether it had an effect."""
        match step:
            case MakeFolder():
                self._owned.make(step.to)
            case MoveAside():
                place, kept = self._owned.holder(step.at), self._owned.holder(step.kept)
                place.move(tree.name_of(step.at), kept, tree.name_of(step.kept))
            case Copy():
                self._write(step, step.to)
                self._tally.added += 1
            case Keep():
                self._write(step, step.kept)
                self._tally.superseded += 1
            case Replace():
                self._replace(step)
                self._won[step.to] = Won(step.to, step.digest)
                self._tally.replaced += 1
            case MergeIndex():
                return self._merge_index(step)
        return True

    def _write(self, step: Take, to: bytes) -> int:
        hasher = hashlib.sha256()
        return self._owned.write_if(
            to,
            self._content(step, hasher),
            lambda: hasher.digest() == step.digest,
            mode=_readable(step.mode),
            mtime_ns=step.mtime_ns,
        )

    def _content(self, step: Take, hasher: hashlib._Hash) -> Generator[bytes, None, None]:
        try:
            with tree.parent_of(self._source, step.source) as folder:
                for chunk in folder.chunks(tree.name_of(step.source)):
                    hasher.update(chunk)
                    yield chunk
        except DiskError as reason:
            raise Unreadable(reason) from reason

    def _replace(self, step: Replace) -> None:
        if step.is_prepared:
            if tree.digest_of(self._owned.root, step.kept) != step.digest:
                raise Stale
            ours = inode(self._owned.holder(step.kept), tree.name_of(step.kept))
        else:
            ours = self._write(step, step.kept)

        def is_expected(facts: os.stat_result | None) -> bool:
            return facts is not None and _is_as_planned(facts, step.old)

        if not is_expected(self._owned.holder(step.to).look(tree.name_of(step.to))):
            self._owned.discard(step.kept, ours)
            raise Stale
        self._owned.supersede(step.to, step.kept, ours, is_expected)

    # ------------------------------------------------------------------ index

    def index_would_change(self) -> bool:
        """Whether merging the index has an effect, or meets trouble that should be told."""
        for step in self._plan.steps:
            if isinstance(step, MergeIndex):
                try:
                    old, new = self._index_texts(step)
                except (Unreadable, DiskError, Stale):
                    return True
                return new != old
        return False

    def _index_texts(self, step: MergeIndex) -> tuple[bytes | None, bytes]:
        """The owned index as it is and as it should be."""
        try:
            with tree.parent_of(self._source, step.source) as folder:
                incoming = folder.read(tree.name_of(step.source), MAX_INDEX_BYTES)
        except DiskError as reason:
            raise Unreadable(reason) from reason
        if hashlib.sha256(incoming).digest() != step.digest:
            raise Stale
        root = self._owned.root
        old = root.read(INDEX, MAX_INDEX_BYTES) if root.look(INDEX) is not None else None
        behind = [left.rel for left in (*self._plan.left, *self.left)]
        return old, merge_index(
            old,
            incoming,
            won=frozenset(self._won),
            carried=frozenset(self._plan.present) - frozenset(behind),
            left_behind=frozenset((*behind, *self._plan.withheld)),
        )

    def _merge_index(self, step: MergeIndex) -> bool:
        if self.stale:
            raise Stale  # which notes are in place is not settled yet
        old, new = self._index_texts(step)
        if new == old:
            return False
        if old is None:
            self._owned.write(INDEX, (new,), mode=_readable(step.mode), mtime_ns=step.mtime_ns)
            return True
        facts = self._owned.holder(INDEX).look(INDEX)
        if facts is None or not step.kept:
            raise Stale
        kept, ours = self._prepare_index(step.kept, new, facts.st_mode)
        holder, kept_name = self._owned.holder(kept), tree.name_of(kept)

        def is_expected(facts: os.stat_result | None) -> bool:
            return facts is not None and holder.read(kept_name, MAX_INDEX_BYTES) == old

        self._owned.supersede(INDEX, kept, ours, is_expected)
        return True

    def _prepare_index(self, kept: bytes, text: bytes, mode: int) -> tuple[bytes, int]:
        """Write the new index under the name that the old one will have; a run cut off may have done it."""
        self._owned.make(kept.rpartition(b"/")[0])
        for number in range(1, MAX_NUMBER):
            rel = numbered(kept, number)
            folder, name = self._owned.holder(rel), tree.name_of(rel)
            facts = folder.look(name)
            if facts is None:
                return rel, self._owned.write(rel, (text,), mode=_readable(mode))
            is_file = stat.S_ISREG(facts.st_mode) and facts.st_size == len(text)
            if is_file and folder.read(name, MAX_INDEX_BYTES) == text:
                return rel, facts.st_ino
        raise Stale


def _target(step: AnyStep) -> bytes:
    """The name in the owned folder that a step gives."""
    match step:
        case MakeFolder() | Copy():
            return step.to
        case MoveAside():
            return step.at
        case Keep() | Replace():
            return step.kept
        case MergeIndex():
            return INDEX


def _is_as_planned(facts: os.stat_result, old: Found) -> bool:
    planned = (old.ino, old.size, old.mtime_ns)
    return stat.S_ISREG(facts.st_mode) and (facts.st_ino, facts.st_size, facts.st_mtime_ns) == planned


def _readable(mode: int) -> int:
    return mode & 0o777 | 0o400
