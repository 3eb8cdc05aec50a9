"""Bringing one folder of notes into another: look, plan, act, and again until a look finds nothing to do.

Both folders may be in use meanwhile; what changed under our hands is seen by the next look.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

import msgspec

from memd.disk import Folder
from memd.errors import DiskError
from memd.memory import tree
from memd.memory.acting import Acting, Won
from memd.memory.names import INDEX
from memd.memory.plan import Folding, Found, Left, MergeIndex, Plan, Replace, Tally, digests_wanted, make_plan

MAX_ROUNDS = 6
STUBBORN_ROUNDS = 3  # a name is taken and not seen for so long: the folder does not tell it from another

BUSY = "Nothing to do: the next run looks at it again."


class Seen(msgspec.Struct, frozen=True):
    """An incoming file as it was when it had been dealt with; without a digest it was not ours to read."""

    rel: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    digest: bytes
    is_partial: bool = False  # an index merged while notes it lists could not be: again when they can

    def is_still(self, found: Found) -> bool:
        now = (found.size, found.mtime_ns, found.ctime_ns, found.ino)
        return now == (self.size, self.mtime_ns, self.ctime_ns, self.ino)


def is_settled(found: Iterable[Found], seen: Mapping[bytes, Seen]) -> bool:
    """Whether every file of a surveyed source has been dealt with and is as it was then."""
    return all(f.rel in seen and seen[f.rel].is_still(f) for f in found if f.kind == "file" or f.target)


class Merge:
    """One incoming folder on its way into one owned folder. The two must not lie in each other."""

    def __init__(
        self,
        owned: Folder | None,
        source: Folder,
        *,
        label: bytes,
        seen: Mapping[bytes, Seen] | None = None,
        carried_once: Mapping[tuple[bytes, bytes], int] | None = None,
        folding: Folding | None = None,
        won: Iterable[Won] = (),
        is_resumed: bool = False,
        is_plain_copy: bool = False,
        before_acting: Callable[[Plan, tuple[Won, ...]], None] = lambda plan, won: None,
    ) -> None:
        """
        owned          None in a dry run for an agent that has no folder yet: only `plan` may be called then
        seen           what was dealt with in this source before
        carried_once   see `make_plan`
        won            of a merge that was cut off, or of an earlier one that could not do the index
        is_resumed     an earlier merge was cut off: what it may not have flushed is flushed first
        is_plain_copy  see `make_plan`
        before_acting  is given each plan before its first step, with the notes won so far and to be won
        """
        self.seen = dict(seen or {})
        self.live: dict[tuple[bytes, bytes], None] = {}  # (path, digest) of what is in place now
        self.tally = Tally()
        self.left: tuple[Left, ...] = ()
        self._owned = owned
        self._source = source
        self._label = label
        self._carried_once = carried_once or {}
        self._folding = folding or Folding()
        self._claimed = tuple(won)
        self._is_resumed = is_resumed
        self._is_plain_copy = is_plain_copy
        self._won: dict[bytes, Won] = {}
        self._before_acting = before_acting
        self._rounds = 0

    def run(self) -> bool:
        """Merge until a look finds nothing to do; says whether that was reached. Raises DiskError."""
        if self._is_resumed and self._owned is not None:
            flush_all(self._owned)
            self._is_resumed = False
        stale: set[bytes] = set()
        for turn in range(MAX_ROUNDS):
            if turn >= STUBBORN_ROUNDS and stale:  # then the names are no two names here
                self._folding = Folding(case=True, form=True)
            acting = self._round()
            if acting is None:
                return True
            stale = acting.stale
            if not stale and not acting.effects:
                return True
        for rel in sorted(stale):
            busy = Left(rel, "it changes faster than it can be copied", BUSY, is_trouble=True)
            self.left = (*self.left, busy)
        return False

    def pending(self) -> tuple[Won, ...]:
        """Notes won whose index lines have yet to follow, because the index could not be merged."""
        return tuple(self._won.values()) if any(left.rel == INDEX for left in self.left) else ()

    def plan(self) -> tuple[Plan, bool]:
        """What a round would do, and whether the index would change. Writes nothing; raises DiskError."""
        _, plan = self._look()
        if self._owned is None:
            return plan, any(isinstance(step, MergeIndex) for step in plan.steps)
        return plan, self._acting(self._owned, plan).index_would_change()

    def _round(self) -> Acting | None:
        """One look and the steps it calls for; None when there were none."""
        assert self._owned is not None
        self._confirm(self._owned)
        found, plan = self._look()
        acting = self._acting(self._owned, plan)
        acts = any(not isinstance(step, MergeIndex) for step in plan.steps) or acting.index_would_change()
        if acts:
            expected = [Won(s.to, s.digest) for s in plan.steps if isinstance(s, Replace)]
            self._before_acting(plan, (*self._won.values(), *expected))
            acting.run()
            self._claimed = tuple(won for won in expected if won.to not in self._won)
        self._remember(found, plan, acting)
        return acting if acts else None

    def _acting(self, owned: Folder, plan: Plan) -> Acting:
        return Acting(owned, self._source, plan, self._won, self.tally)

    def _look(self) -> tuple[tuple[Found, ...], Plan]:
        found = tuple(self._known(f) for f in tree.survey(self._source))
        new = frozenset(f.rel for f in found if not f.digest and not f.trouble)
        found = tree.with_digests(self._source, found, new)
        ours: tuple[Found, ...] = ()
        if self._owned is not None:
            ours = tree.survey(self._owned, is_ours=True)
            wanted = digests_wanted(ours, (f for f in found if f.rel in new))
            ours = tree.with_digests(self._owned, ours, wanted)
        plan = make_plan(
            ours,
            found,
            label=self._label,
            merged={s.rel: s.digest for s in self.seen.values() if s.digest and not s.is_partial},
            carried_once=self._carried_once,
            folding=self._folding,
            is_plain_copy=self._is_plain_copy,
        )
        return found, plan

    def _known(self, found: Found) -> Found:
        seen = self.seen.get(found.rel)
        if seen is None or not seen.is_still(found):
            return found
        if not seen.digest:
            return msgspec.structs.replace(found, trouble="permission denied", is_denied=True)
        return msgspec.structs.replace(found, digest=seen.digest)

    def _remember(self, found: tuple[Found, ...], plan: Plan, acting: Acting) -> None:
        """Note what is dealt with; what was left behind or changed meanwhile is not."""
        self.left = (*plan.left, *acting.left)
        open_ends = {left.rel for left in self.left} | acting.stale
        has_trouble = any(left.is_trouble for left in self.left)
        for f in found:
            if f.is_denied or ((f.kind == "file" or f.target) and f.rel not in open_ends):
                is_partial = has_trouble and f.rel == INDEX
                self.seen[f.rel] = Seen(f.rel, f.size, f.mtime_ns, f.ctime_ns, f.ino, f.digest, is_partial)
        self.live.update((item, None) for item in plan.live if item[0] not in open_ends)
        if self._rounds == 0:
            self.tally.unchanged = plan.unchanged
        self._rounds += 1

    def _confirm(self, owned: Folder) -> None:
        """Find out which notes were won where nobody saw that: the work was cut off, or the look after it."""
        for won in self._claimed:
            with contextlib.suppress(DiskError):
                if tree.digest_of(owned, won.to) == won.digest:
                    self._won[won.to] = won
        self._claimed = ()


def flush_all(owned: Folder) -> None:
    """Flush what work on an owned folder that was cut off may not have got to; raises DiskError."""
    for found in tree.survey(owned):
        if found.kind == "folder" and not found.trouble:
            with owned.below(found.rel.split(b"/")) as folder:
                folder.sync()
    owned.sync()
