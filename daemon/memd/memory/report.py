"""What is told about entries: results for `protocol`, plans in words. Pure."""

from __future__ import annotations

import errno
from collections.abc import Iterable

import msgspec

from memctl.paths import shown
from memd.errors import DiskError, MemdError
from memd.memory.names import INDEX
from memd.memory.plan import (
    AnyStep,
    Copy,
    Keep,
    Left,
    MakeFolder,
    MergeIndex,
    MoveAside,
    Plan,
    Replace,
    Tally,
)
from memd.protocol import Entry, LeftBehind

_REMEDIES = {
    errno.EBUSY: "Unmount what is mounted there; then it is merged and linked.",
    errno.EROFS: "Make the file system writable; the next look tries again.",
    errno.ENOSPC: "Free some space; the next look tries again.",
    errno.EDQUOT: "Free some space; the next look tries again.",
    errno.EACCES: "Make it accessible for you; the next look tries again.",
    errno.EPERM: "Make it accessible for you; the next look tries again.",
}


def left_behind(folder: bytes, left: Iterable[Left]) -> tuple[LeftBehind, ...]:
    return tuple(LeftBehind(path=folder + b"/" + x.rel, reason=x.reason, remedy=x.remedy) for x in left)


def counted(entry: Entry, tally: Tally) -> Entry:
    return msgspec.structs.replace(
        entry,
        added=entry.added + tally.added,
        replaced=entry.replaced + tally.replaced,
        superseded=entry.superseded + tally.superseded,
        unchanged=entry.unchanged + tally.unchanged,
    )


def failed(entry: Entry, reason: MemdError) -> Entry:
    """The result for an entry on which work broke off."""
    remedy = _REMEDIES.get(reason.errno or 0) if isinstance(reason, DiskError) else None
    return msgspec.structs.replace(
        entry, outcome="failed", reason=str(reason), remedy=remedy or reason.remedy
    )


def at_rest(entry: Entry) -> Entry:
    """The same result told by a later look, which changed nothing."""
    outcome = "linked" if entry.outcome == "migrated" else entry.outcome
    return msgspec.structs.replace(
        entry, outcome=outcome, changed=False, added=0, replaced=0, superseded=0, unchanged=0, steps=()
    )


def index_warning(owned: bytes, lines: int, limit: int) -> tuple[str, str]:
    """Reason and remedy for an index that is about to become too long; empty when it is not."""
    if lines <= limit:
        return "", ""
    return (
        f"{shown(owned + b'/' + INDEX)} has {lines} lines; Claude Code reads the first 200, up to 25 kB",
        "Shorten the index, or move part of it into a note that it links to.",
    )


def in_words(plan: Plan, changes_index: bool) -> list[str]:
    words = [_step_in_words(step) for step in plan.steps if changes_index or not isinstance(step, MergeIndex)]
    return words + [f"leave {shown(left.rel)} behind: {left.reason}" for left in plan.left]


def _step_in_words(step: AnyStep) -> str:
    match step:
        case MakeFolder():
            return f"make the folder {shown(step.to)}"
        case MoveAside():
            return f"move the link to nothing {shown(step.at)} to {shown(step.kept)}"
        case Copy():
            return f"copy {shown(step.rel)}" + (f" as {shown(step.to)}" if step.to != step.rel else "")
        case Replace():
            return f"replace {shown(step.to)}, which is older; keep that as {shown(step.kept)}"
        case Keep():
            return f"keep {shown(step.rel)}, which is older, as {shown(step.kept)}"
        case MergeIndex():
            return "merge the index MEMORY.md"
