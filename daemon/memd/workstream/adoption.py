"""The chooser of a first launch: whether it is shown, what it offers, what an answer means. Pure.

A workstream in which nobody has said anything yet may take over a session that was held without it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memd.harness.arguments import is_usable as is_usable
from memd.ledger.search import instant
from memd.ledger.store.interface import SessionRow

MAX_CANDIDATES = 8
SHOWN_ID_CHARACTERS = 64


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether the chooser is shown.

    is_established  of the workstream; `has_link`: a session of this harness is linked to it
    is_passing      a utility launch; `is_session` false as well
    has_selector    the native arguments name a session; is_batch: they ask for a run without a person
    is_terminal     standard input and standard error are terminals
    """

    is_established: bool
    has_link: bool = False
    is_new: bool = False
    is_fresh: bool = False
    is_passing: bool = False
    has_selector: bool = False
    is_batch: bool = False
    is_terminal: bool = True


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str
    last_activity: str
    events: int


def may_adopt(launch: Launch) -> bool:
    """Whether an existing session may be offered. Every condition must hold."""
    return not (
        launch.is_established
        or launch.has_link
        or launch.is_new
        or launch.is_fresh
        or launch.is_passing
        or launch.has_selector
        or launch.is_batch
        or not launch.is_terminal
    )


def candidates(rows: Sequence[SessionRow], cwd: str, linked: Collection[str]) -> list[Candidate]:
    """The sessions to offer, newest first, at most `MAX_CANDIDATES`.

    rows    sessions of the one harness
    cwd     the checkout; only sessions that began in exactly this directory are offered
    linked  sessions that some workstream has already
    """
    found = [
        row
        for row in rows
        if row.cwd == cwd and not row.is_side and row.events and row.id not in linked and is_usable(row.id)
    ]
    found.sort(key=lambda row: instant(row.last_activity) or 0.0, reverse=True)
    return [
        Candidate(session=row.id, title=row.title, last_activity=row.last_activity, events=row.events)
        for row in found[:MAX_CANDIDATES]
    ]


class Choice(msgspec.Struct, frozen=True):
    """What was answered: a candidate from 1 on, 0 for a new session, None: ask again."""

    number: int | None


def answer(text: str | None, count: int) -> Choice:
    """What a person means; None is the end of the input."""
    if text is None:
        return Choice(0)
    word = text.strip().casefold()
    if not word:
        return Choice(1)
    if word in ("0", "n", "new"):
        return Choice(0)
    if word.isascii() and word.isdigit() and 1 <= int(word[:4]) <= count and len(word) <= 4:
        return Choice(int(word))
    return Choice(None)


def ask_again(count: int) -> str:
    return f"Enter 0 through {count}."


def shown_id(session: str) -> str:
    return session if len(session) <= SHOWN_ID_CHARACTERS else session[:SHOWN_ID_CHARACTERS] + "…"


def age(last_activity: str, now: float) -> str:
    """How long ago, in words; empty when that is not known."""
    moment = instant(last_activity)
    if moment is None:
        return ""
    seconds = max(int(now - moment), 0)
    if seconds < 60:
        return "just now"
    for size, word in ((30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    raise AssertionError("a minute is the least")
