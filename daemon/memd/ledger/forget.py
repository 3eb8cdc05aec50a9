"""What forgetting means: which lines of a segment stay, and what a selection reaches that is not here yet.

Pure decisions. The store finds the events, takes them out of rows and index, and rewrites the segments; the
states it goes through are told in `memd.ledger.store.forgetting`.

An event that is forgotten goes everywhere: also from other sessions that hold a copy of it (a fork, a
conversation sent to the background), because what a person wants gone must not be found in a copy. The plan
says how many such events there are before anything happens. Positions of what stays do not change.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

import msgspec

from memd.errors import UsageError
from memd.ledger import search
from memd.ledger.segments import AnyLine, EventLine, HeadLine, Line, SessionLine, StandingLine
from memd.ledger.store.interface import Selection


class Rule(msgspec.Struct, frozen=True):
    """What must not come in later either: one session, one directory with all below it, or all before a time.

    what   session, project or before
    parts  what its hash is made of
    until  RFC 3339: what occurred later is not meant
    """

    what: str
    parts: tuple[str, ...]
    until: str


def checked(selection: Selection) -> Selection:
    """The selection in a form the store can go by.

    raises  UsageError when it selects nothing in particular, or names a time that is none
    """
    if not (selection.session or selection.project or selection.before or selection.matching):
        raise UsageError(
            "nothing says what to forget",
            remedy="Name a session, a project, a date or words: --session, --project, --before, --matching.",
        )
    if selection.before and search.instant(selection.before) is None:
        raise UsageError(
            f"{selection.before!r} is not a time", remedy="Write it as 2026-02-03 or 2026-02-03T10:00:00Z."
        )
    if selection.matching and not search.parse(selection.matching):
        raise UsageError("the query holds no word", remedy="Name at least one word that must be there.")
    project = selection.project.rstrip("/") or ("/" if selection.project else "")
    return msgspec.structs.replace(selection, project=search.clean(project))


def rules(selection: Selection, now: float) -> tuple[Rule, ...]:
    """What keeps the same from coming in later. A query reaches only what is here already."""
    if selection.matching:
        return ()
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
    until = selection.before or moment
    if selection.session and not selection.project:
        return (Rule("session", (selection.harness, selection.session), until),)
    if selection.project and not selection.session and not selection.harness:
        return (Rule("project", (selection.project,), until),)
    if selection.before and not (selection.session or selection.project or selection.harness):
        return (Rule("before", (), until),)
    return ()


def staying(
    lines: Iterable[AnyLine],
    is_gone: Callable[[str], bool],
    is_session: Callable[[str], bool],
    has_title: Callable[[str], bool],
) -> list[Line]:
    """The lines of a segment without what was forgotten.

    is_gone     whether the event of that id was forgotten
    is_session  whether there is still a session of that id
    has_title   whether the session may keep the title that its harness gave it
    """
    kept: list[Line] = []
    for line in lines:
        if isinstance(line, HeadLine):
            kept.append(line)
        elif not is_session(line.session):
            continue
        elif isinstance(line, EventLine | StandingLine):
            if not is_gone(line.id):
                kept.append(line)
        elif isinstance(line, SessionLine) and line.title and not has_title(line.session):
            kept.append(msgspec.structs.replace(line, title=""))
        else:
            kept.append(line)
    return kept
