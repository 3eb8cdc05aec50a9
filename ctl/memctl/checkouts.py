"""Whether a saved checkout is still what it was, and which one was used last.

A link is good while its path is the physical path of a directory and this directory resolves to the very
scope that the link has. It is looked at twice: when it is chosen, and again right before a harness starts.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from memctl.paths import home_dir, shown
from memctl.registry import Link
from memd.errors import MemdError, TryAgain

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII)


class Objection(NamedTuple):
    """A link that cannot be used, and why."""

    link: Link
    reason: str

    def __str__(self) -> str:
        return f"{self.link.workspace}/{self.link.project} in {shown(self.link.path)}: {self.reason}"


def scope_of(path: bytes) -> tuple[str, str]:
    """Workspace and project of a directory, as a run there would have them. raises ConfigError, UsageError"""
    from memd.workstream import scope

    ignores = os.environ.get("MEMD_IGNORE_MARKER") == "1"
    found = scope.resolve(path, home_dir(), ignore_marker=ignores)
    return found.workspace, found.project


def objection(link: Link) -> str:
    """Why a link cannot be used now; empty when it can."""
    path = link.path
    if not path.startswith(b"/") or b"\0" in path:
        return "its path is not absolute"
    real = os.path.realpath(path)
    if not os.path.lexists(path):
        return "there is no such directory"
    if real != path:
        return f"it leads to {shown(real)} by now"
    if not os.path.isdir(path):
        return "it is no directory"
    try:
        found = scope_of(path)
    except MemdError as reason:
        return str(reason)
    if found != (link.workspace, link.project):
        return f"it belongs to {'/'.join(found)} by now"
    return ""


def moment(text: str) -> datetime.datetime | None:
    """An RFC 3339 time; None for anything else."""
    if _TIME.fullmatch(text) is None:
        return None
    try:
        return datetime.datetime.fromisoformat(text.upper()).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def enter(link: Link, again: str) -> None:
    """Make it the working directory, if it is still what it was a moment ago.

    again   the command to repeat
    raises  TryAgain, OSError
    """
    reason = objection(link)
    if not reason:
        os.chdir(link.path)
        reason = objection(link) or ("" if os.getcwdb() == link.path else "it was moved")
    if reason:
        raise TryAgain(f"{shown(link.path)} changed just now: {reason}", remedy=f"Run `{again}` again.")
    os.environb[b"PWD"] = link.path


def newest_first(
    rows: Iterable[Link], ledger: str, workspace: str = ""
) -> tuple[list[Link], list[Objection]]:
    """The links of a ledger in the order of their use, and those whose time is none.

    workspace  only links of this one; empty: of all
    """
    timed: list[tuple[datetime.datetime, Link]] = []
    timeless: list[Objection] = []
    for row in rows:
        if row.ledger != ledger or (workspace and row.workspace != workspace):
            continue
        at = moment(row.linked_at)
        if at is None:
            timeless.append(Objection(row, f"its time {row.linked_at[:40]!r} cannot be read"))
        else:
            timed.append((at, row))
    timed.sort(key=lambda one: (one[1].workspace, one[1].project))
    timed.sort(key=lambda one: one[0], reverse=True)  # stable: those of one moment stay in that order
    return [row for _, row in timed], timeless
