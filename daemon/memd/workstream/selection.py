"""Which workstream a launch is about: the one selected last, the one that is named, or a new one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memd.errors import MemdError, NotFound, UsageError
from memd.ledger.store.workstreams import Workstream

DEFAULT_NAME = "default"
MAX_NAME_CHARACTERS = 128


class NameTaken(MemdError):
    """There is a workstream of that name already."""

    code = "taken"
    remedy = "Select it with --workstream, or choose another name."
    exit_status = 64


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch says: neither, or one of them.

    awaited  the one that this very launch waits for, while somebody else has it; what is selected meanwhile
             by others is not what it waits for
    """

    workstream: str = ""
    new: str = ""
    awaited: str = ""


class New(msgspec.Struct, frozen=True):
    """A workstream of this name is to be made."""

    name: str


def checked_name(name: str) -> str:
    """The name, trimmed. raises UsageError for one that no workstream may have"""
    trimmed = name.strip()
    is_fine = (
        0 < len(trimmed) <= MAX_NAME_CHARACTERS
        and trimmed.isprintable()
        and "/" not in trimmed
        and "\\" not in trimmed
    )
    if not is_fine:
        raise UsageError(
            f"invalid workstream name {name[:MAX_NAME_CHARACTERS]!r}",
            remedy=f"Use 1 to {MAX_NAME_CHARACTERS} characters, no slashes, nothing invisible.",
        )
    return trimmed


def checked(wanted: Wanted) -> Wanted:
    """The wish in a form that `choose` can go by, before anything is changed. raises UsageError"""
    if wanted.workstream and wanted.new:
        raise UsageError("--workstream and --new exclude each other", remedy="Give one of them.")
    return Wanted(
        workstream=checked_name(wanted.workstream) if wanted.workstream else "",
        new=checked_name(wanted.new) if wanted.new else "",
        awaited=wanted.awaited,
    )


def choose(rows: Sequence[Workstream], wanted: Wanted) -> Workstream | New:
    """The workstream of this place that is meant.

    rows    all workstreams of the place, last selected first. One that no child was ever started under
            (`selected_ms` 0) counts by its name alone
    raises  NotFound, NameTaken, UsageError
    """
    wish = checked(wanted)
    named = {row.name: row for row in rows}
    if wish.new:
        if wish.new in named:
            raise NameTaken(f"a workstream {wish.new!r} exists here already")
        return New(wish.new)
    if wish.workstream:
        if wish.workstream not in named:
            raise NotFound(
                f"no managed workstream {wish.workstream!r} in this checkout",
                remedy="`memctl workstreams` lists them; `memctl run --new NAME` makes one.",
            )
        return named[wish.workstream]
    if wish.awaited in named:
        return named[wish.awaited]
    selected = [row for row in rows if row.selected_ms]
    if selected:
        return selected[0]
    return named.get(DEFAULT_NAME) or New(DEFAULT_NAME)


def selected_at(rows: Sequence[Workstream], now_ms: int) -> int:
    """When a workstream that is selected now says that it was: after all others, wherever the clock is."""
    return max([now_ms, *(row.selected_ms + 1 for row in rows)])


def renamed(rows: Sequence[Workstream], workstream: Workstream, name: str) -> Workstream:
    """The workstream under another name; nothing else of it changes, its place in the order neither.

    rows    all of its place
    raises  NameTaken, UsageError
    """
    wish = checked_name(name)
    if any(row.name == wish and row.id != workstream.id for row in rows):
        raise NameTaken(f"a workstream {wish!r} exists here already")
    return msgspec.structs.replace(workstream, name=wish)
