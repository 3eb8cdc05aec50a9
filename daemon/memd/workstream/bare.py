"""A launch that names no harness: which one goes on. Pure.

First the newest session of this checkout over all harnesses that may be started so decides, among those whose
program is there. Then the workstream has its say: where somebody has worked under it, it is the harness of
the current session that was used last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from memd.errors import MemdError, NotFound, UsageError
from memd.ledger.store.workstreams import Linked


class NothingToContinue(NotFound):
    """No session of this directory, and no way to guess."""

    remedy = "Begin with an agent by its name, such as `memctl run claude`."


class NoProgram(MemdError):
    """Sessions are there, their programs are not."""

    code = "no_program"
    remedy = "Install one of them, or name another agent."
    exit_status = 69


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The newest session of one harness in this checkout. updated: seconds since the epoch."""

    harness: str
    session: str
    updated: float
    flavor: str = ""


def newest_first(
    found: Sequence[Found],
    installed: Collection[str],
    troubles: Mapping[str, str],
    unasked: Sequence[str] = (),
) -> list[Found]:
    """What could be continued, best first.

    installed  harnesses whose program was found
    troubles   harnesses whose sessions could not be looked at, and why
    unasked    harnesses that worked here and are never started unasked, the last one first
    raises     NoProgram, NothingToContinue; nothing has been changed then
    """
    ranked = sorted(found, key=lambda one: (-one.updated, one.harness, one.flavor))
    startable = [one for one in ranked if one.harness in installed]
    if startable:
        return startable
    if ranked:
        names = ", ".join(dict.fromkeys(one.harness for one in ranked))
        raise NoProgram(f"there are sessions here of {names}, and none of these programs is installed")
    if troubles:
        told = "; ".join(f"{harness}: {reason}" for harness, reason in sorted(troubles.items()))
        raise NothingToContinue(
            f"no session was found for this directory, and not every store could be read: {told}",
            remedy=_beginning(installed),
        )
    if unasked:
        raise NothingToContinue(
            f"{unasked[0]} worked here last, and is never started unasked",
            remedy=f"Name it: `memctl run {unasked[0]}`.",
        )
    raise NothingToContinue("no session was found for this directory", remedy=_beginning(installed))


def _beginning(installed: Collection[str]) -> str:
    """What to do where nobody has worked, with programs that are there."""
    commands = [f"`memctl run {name}`" for name in sorted(installed)]
    if not commands:
        return "Install an agent, Claude Code for example, and begin with `memctl run claude`."
    if len(commands) == 1:
        return f"Begin with {commands[0]}; from then on no name is needed."
    return f"Begin with {', '.join(commands[:-1])} or {commands[-1]}; from then on no name is needed."


def check(pool: Collection[str], harness: str, available: Sequence[str]) -> None:
    """Whether a prepare that names no harness of a person's choice makes sense. raises UsageError"""
    outside = [name for name in (harness, *available) if name not in pool]
    if outside:
        raise UsageError(
            f"{outside[0]} is never started unasked", remedy=f"Name it: `memctl run {outside[0]}`."
        )
    if harness not in available:
        raise UsageError(f"{harness} is not among the harnesses that can be started")


def resolve(linked: Sequence[Linked], provisional: str, available: Collection[str]) -> tuple[str, str]:
    """The harness that goes on, and its flavour (empty: any).

    linked  the workstream's sessions, last linked first; a workstream without any is decided by the newest
            session of the checkout, `provisional`
    """
    for one in linked:
        if one.is_current and one.harness in available:
            return one.harness, one.flavor
    return provisional, ""
