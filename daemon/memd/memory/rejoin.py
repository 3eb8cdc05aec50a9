"""Bringing the conflict copies that a syncing program left in an owned folder into its notes.

A copy is merged like an incoming note, then it is moved to where superseded notes are kept, under the name of
its note: so two machines that do the same at once make the same names with the same content. Nothing of it is
deleted. A crash leaves a copy where it was, to be merged again, which then finds its work done.
Copies of the index come last, when every other copy has been dealt with: its lines follow the notes that won.
"""

from __future__ import annotations

import errno
import os
import stat

import msgspec

from memd.disk import Folder
from memd.errors import DiskError
from memd.memory import conflicts, home, tree
from memd.memory.acting import MAX_INDEX_BYTES, Acting, Won
from memd.memory.agents import Enrolment
from memd.memory.conflicts import LABEL
from memd.memory.journal import Rejoin
from memd.memory.merge import BUSY, MAX_ROUNDS, flush_all
from memd.memory.names import INDEX, MAX_NUMBER, SUPERSEDED, superseded_name
from memd.memory.owned import CHANGED, Owned, Stale
from memd.memory.plan import UNREADABLE, Found, Keep, Left, Plan, Replace, Tally, digests_wanted
from memd.memory.work import Work

REST_MS = 3000
"""A copy that changed or came so short a time ago may not be whole yet: it is left for the next look."""

MARKED = "Finish that merge in a text editor; the next look goes on."
WAITS = "Nothing to do once the others are merged: then it is, too."
BLOCKED = "Look at it, and move it away or delete it; the next look tries again."


class Rejoined(msgspec.Struct, frozen=True):
    """What became of the copies; `left` by where they lie in the owned folder."""

    tally: Tally
    moved: int = 0
    left: tuple[Left, ...] = ()


def copies_in(enrolment: Enrolment, now_ms: int) -> tuple[Found, ...]:
    """The copies at rest, each under the name of its note, `target` where it lies; raises Away, DiskError."""
    with home.open_known(enrolment.home, enrolment.owned) as owned:
        return tuple(copy for copy in _look(owned)[1] if _is_at_rest(copy, now_ms))


def rejoin(work: Work) -> Rejoined:
    """Merge and move every copy at rest, until a look finds none that can be; raises Away, DiskError."""
    with home.open_known(work.enrolment.home, work.enrolment.owned) as owned:
        return _Rejoining(work, owned).run()


class _Rejoining:
    def __init__(self, work: Work, owned: Folder) -> None:
        self._work = work
        self._owned = owned
        self._journal = Rejoin(path=work.enrolment.owned)
        claimed = work.won.pop(work.enrolment.owned, None)
        self._is_noted = claimed is not None  # in a journal
        self._unsure = claimed or ()  # whether they were won is to be found out
        self._won: dict[bytes, Won] = {}
        self._has_to_wait = False  # the index, for other copies
        self._tally = Tally()
        self._moved = 0
        self._left: dict[bytes, Left] = {}

    def run(self) -> Rejoined:
        before = self._work.record
        if self._is_noted:
            flush_all(self._owned)
        stale: set[bytes] = set()
        for _ in range(MAX_ROUNDS * MAX_ROUNDS):  # several copies of one note take a round each
            self._confirm()
            plan, copies = self._plan()
            if not copies:
                stale = set()
                break
            stale = self._round(plan, copies)
        for at in sorted(stale):
            self._left[at] = Left(at, "it changes faster than it can be read", BUSY, is_trouble=True)
        if self._work.record != before:
            self._work.save()
        is_done = not any(left.is_trouble for left in self._left.values()) and not self._has_to_wait
        has_won = bool(self._won or self._unsure)  # notes whose lines in the index may have yet to follow
        if self._is_noted and (is_done or not has_won):
            self._work.files.clear_journal(self._journal)
        return Rejoined(self._tally, self._moved, tuple(self._left.values()))

    def _confirm(self) -> None:
        """Find out which notes were won where nobody saw that: the work was cut off, or the look after it."""
        unsure = []
        for won in self._unsure:
            try:
                if tree.digest_of(self._owned, won.to) == won.digest:
                    self._won[won.to] = won
            except DiskError as reason:
                if reason.errno not in CHANGED:
                    unsure.append(won)
        self._unsure = tuple(unsure)

    def _plan(self) -> tuple[Plan, list[Found]]:
        """What is to be done next, and the copies it is about; those left already are not among them."""
        notes, found = _look(self._owned)
        by_rel = {note.rel: note for note in notes}
        at_rest = [copy for copy in found if _is_at_rest(copy, self._work.now_ms)]
        copies = [
            copy
            for copy in at_rest
            if copy.target not in self._left and not self._is_marked(copy, by_rel.get(copy.rel))
        ]
        history = by_rel.get(SUPERSEDED)
        if history is not None and history.trouble:
            words = f"{SUPERSEDED.decode()} cannot be read: {history.trouble}"
            for copy in copies:
                self._left[copy.target] = Left(copy.target, words, UNREADABLE, is_trouble=True)
            return Plan(), []
        hides = any(
            note.trouble and (note.kind == "folder" or conflicts.original_of(note.rel)) for note in notes
        )
        copies = self._in_order(copies, hides=hides, is_all=len(at_rest) == len(found))
        copies = [_digested(self._owned, copy) for copy in copies]
        notes = tree.with_digests(self._owned, notes, digests_wanted(notes, copies))
        for plan in conflicts.make(
            [*notes, *(msgspec.structs.replace(copy, rel=copy.target, target=b"") for copy in copies)],
            carried_once=self._work.record.carried_once(),
            folding=self._work.folding(),
        ):
            return plan.plan, list(plan.copies)
        return Plan(), []

    def _in_order(self, copies: list[Found], *, hides: bool, is_all: bool) -> list[Found]:
        """Those of notes first; those of the index only when no note can win any more.

        hides   something that cannot be read may be a copy, or hold some
        is_all  none is left out because it is not at rest
        """
        slot = self._work.folding().slot
        first = [copy for copy in copies if slot(copy.rel) != slot(INDEX)]
        if first:
            return first
        has_trouble = hides or any(left.is_trouble for left in self._left.values())
        if has_trouble:
            for copy in copies:
                self._left[copy.target] = Left(copy.target, "it waits for the other copies", WAITS)
        self._has_to_wait = has_trouble or not is_all
        return [] if self._has_to_wait else copies

    def _is_marked(self, copy: Found, note: Found | None) -> bool:
        """Whether git waits for somebody to finish a merge in the copy or in its note."""
        for rel in [copy.target] + ([note.rel] if note is not None and note.kind == "file" else []):
            try:
                with tree.parent_of(self._owned, rel) as folder:
                    has_marks = conflicts.has_marks(folder.read(tree.name_of(rel), MAX_INDEX_BYTES))
            except DiskError:
                continue  # too long, or it cannot be read: then the plan says so
            if has_marks:
                words = "git left a merge open in " + ("it" if rel == copy.target else "its note")
                self._left[copy.target] = Left(copy.target, words, MARKED)
                return True
        return False

    def _round(self, plan: Plan, copies: list[Found]) -> set[bytes]:
        """Do it; returns where those copies lie that changed meanwhile."""
        older = [step for step in plan.steps if isinstance(step, Keep)]  # kept by being moved
        plan = msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if not isinstance(s, Keep)))
        expected = [Won(step.to, step.digest) for step in plan.steps if isinstance(step, Replace)]
        acting = Acting(self._owned, self._owned, plan, self._won, self._tally)
        if plan.steps:
            won = (*self._won.values(), *self._unsure, *expected)
            self._journal = msgspec.structs.replace(self._journal, won=won, steps=plan.steps)
            self._work.files.write_journal(self._journal)
            self._is_noted = True
            acting.run()
            self._unsure += tuple(won for won in expected if won.to not in self._won)
        left = {left.rel: left for left in (*plan.left, *acting.left)}
        stale: set[bytes] = set()
        with Owned(self._owned) as owned:
            for copy in copies:
                if copy.rel in acting.stale:
                    stale.add(copy.target)
                elif copy.rel in left:
                    self._left[copy.target] = msgspec.structs.replace(left[copy.rel], rel=copy.target)
                else:
                    try:
                        _move(owned, copy)
                    except Stale:
                        stale.add(copy.target)
                        continue
                    except DiskError as reason:
                        if reason.errno not in CHANGED and reason.errno not in _ONE_FOLDER:
                            raise
                        self._left[copy.target] = Left(copy.target, str(reason), BLOCKED, is_trouble=True)
                        continue
                    self._moved += 1
                    self._tally.superseded += any(step.rel == copy.rel for step in older)
            owned.flush()
        in_place = [item for item in plan.live if item[0] not in acting.stale and item[0] not in left]
        self._work.record = self._work.record.with_carried(in_place, self._work.now_ms * 1_000_000)
        return stale


_ONE_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EXDEV, errno.EBUSY})


def _look(owned: Folder) -> tuple[tuple[Found, ...], tuple[Found, ...]]:
    """The notes, and the copies."""
    notes, copies = conflicts.split(tree.survey(owned, is_ours=True))
    return tuple(notes), tuple(copies)


def _is_at_rest(copy: Found, now_ms: int) -> bool:
    changed_ns = max(copy.ctime_ns, copy.mtime_ns)
    return abs(now_ms * 1_000_000 - changed_ns) >= REST_MS * 1_000_000


def _digested(owned: Folder, copy: Found) -> Found:
    there = msgspec.structs.replace(copy, rel=copy.target, target=b"")
    (read,) = tree.with_digests(owned, (there,), (there.rel,))
    return msgspec.structs.replace(read, rel=copy.rel, target=copy.target)


def _move(owned: Owned, copy: Found) -> None:
    """Move a copy to where superseded notes are; raises Stale when it is not what was merged, DiskError."""
    name = tree.name_of(copy.target)
    for number in range(1, MAX_NUMBER):
        kept = superseded_name(copy.rel, LABEL, copy.mtime_ns, number)
        owned.make(kept.rpartition(b"/")[0])
        place, to = owned.holder(copy.target), owned.holder(kept)
        if not _is_still(place.look(name), copy):
            raise Stale
        try:
            place.move(name, to, tree.name_of(kept))
        except DiskError as reason:
            if reason.errno == errno.EEXIST:
                continue
            raise
        if not _is_still(to.look(tree.name_of(kept)), copy):
            to.move(tree.name_of(kept), place, name)
            raise Stale
        return
    raise Stale


def _is_still(facts: os.stat_result | None, copy: Found) -> bool:
    if facts is None or not stat.S_ISREG(facts.st_mode):
        return False
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns) == (copy.ino, copy.size, copy.mtime_ns)
