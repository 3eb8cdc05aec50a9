"""Handoffs: a single-use note from one session to whoever goes on. Decisions are pure, changes inside a
transaction.

A scope (workspace and project) has at most one open handoff: a new one takes the place of the one before,
which can still be read. It is addressed to whoever comes next, to a workstream, or to a harness. It is over
when it was accepted, cancelled or replaced, or when its time is up.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memd.errors import NotFound, Refused, UsageError
from memd.frame import NOTICE, framed, harmless
from memd.ledger.store.workstreams import Handoff, HandoffState, Work
from memd.workstream.room import Room

MARKER = "<!-- memd:handoff:v1 -->"
FRAME = "handoff"
LIFETIME_S = 7 * 86400
IN_USE_S = 600
MAX_SUMMARY_CHARACTERS = 16_000
MAX_ITEMS = 50
MAX_ITEM_CHARACTERS = 2_000
MAX_GIVEN_BACK = 50  # rows looked at
LEAST = 300


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody hands on; already scrubbed. Empty fields were not said."""

    workspace: str
    project: str
    cwd: bytes
    summary: str
    questions: Sequence[str] = ()
    steps: Sequence[str] = ()
    files: Sequence[str] = ()
    workstream: str = ""
    harness: str = ""
    from_harness: str = ""
    from_session: str = ""
    from_run: str = ""
    is_automatic: bool = False
    lifetime_s: int = LIFETIME_S


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """Who could be given a handoff. Empty: not known, or not managed."""

    harness: str
    cwd: bytes
    session: str = ""
    workstream: str = ""
    run: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the session that wrote a handoff.

    is_running        its run is active
    last_activity_ms  wall clock; 0: not known
    """

    is_running: bool = False
    last_activity_ms: int = 0


def checked(note: Note) -> Note:
    """The note within bounds. raises UsageError when it says nothing or too much"""
    if not note.summary.strip():
        raise UsageError(
            "the handoff has no summary", remedy="Say in a few sentences what was done and what is next."
        )
    if len(note.summary) > MAX_SUMMARY_CHARACTERS:
        raise UsageError(
            f"the summary is longer than {MAX_SUMMARY_CHARACTERS} characters", remedy="Shorten it."
        )
    for what, items in (("questions", note.questions), ("next steps", note.steps), ("files", note.files)):
        if len(items) > MAX_ITEMS or any(len(item) > MAX_ITEM_CHARACTERS for item in items):
            raise UsageError(
                f"too many or too long {what}",
                remedy=f"Give at most {MAX_ITEMS}, each of at most {MAX_ITEM_CHARACTERS} characters.",
            )
    if note.workstream and note.harness:
        raise UsageError("a handoff goes to a workstream or to a harness", remedy="Name one of them.")
    return note


def create(work: Work, note: Note, handoff_id: str) -> tuple[Handoff, Handoff | None]:
    """The new handoff, and the open one that it replaced. raises UsageError"""
    checked(note)
    moment = work.moment
    before = _open(work, note.workspace, note.project)
    if before is not None:
        before = replace(before, state="replaced", ended_ms=moment.wall_ms)
        work.put_handoff(before)
    made = Handoff(
        id=handoff_id,
        workspace=note.workspace,
        project=note.project,
        cwd=note.cwd,
        created_ms=moment.wall_ms,
        expires_ms=moment.wall_ms + note.lifetime_s * 1000,
        summary=note.summary.strip(),
        questions=tuple(note.questions),
        steps=tuple(note.steps),
        files=tuple(note.files),
        workstream=note.workstream,
        harness=note.harness,
        from_harness=note.from_harness,
        from_session=note.from_session,
        from_run=note.from_run,
        is_automatic=note.is_automatic,
    )
    work.put_handoff(made)
    return made, before


def _open(work: Work, workspace: str, project: str) -> Handoff | None:
    """The open handoff of a scope, after one whose time is up has been put away."""
    for row in work.handoffs(workspace, project, 1):
        if row.state == "open":
            if row.expires_ms > work.moment.wall_ms:
                return row
            work.put_handoff(replace(row, state="expired", ended_ms=row.expires_ms))
    return None


def seen(row: Handoff, now_ms: int) -> Handoff:
    """The handoff as it is now: one whose time is up is open no more, also before anybody puts it away."""
    if row.state == "open" and row.expires_ms <= now_ms:
        return replace(row, state="expired", ended_ms=row.expires_ms)
    return row


def take(work: Work, handoff_id: str, receiver: Receiver) -> Handoff | None:
    """Accept it for somebody; None when it is open no more."""
    row = work.handoff(handoff_id)
    if row is None or row.state != "open":
        return None
    if row.expires_ms <= work.moment.wall_ms:
        work.put_handoff(replace(row, state="expired", ended_ms=row.expires_ms))
        return None
    taken = replace(
        row,
        state="accepted",
        ended_ms=work.moment.wall_ms,
        taken_harness=receiver.harness,
        taken_session=receiver.session,
        taken_run=receiver.run,
    )
    work.put_handoff(taken)
    return taken


def accept(work: Work, handoff_id: str, receiver: Receiver) -> Handoff:
    """Accept it because somebody says so. raises NotFound, Refused"""
    row = found(work.handoff(handoff_id), handoff_id)
    taken = take(work, handoff_id, receiver)
    if taken is None:
        raise _over(row)
    return taken


def cancel(work: Work, handoff_id: str) -> Handoff:
    """Take it back; one that was taken back before stays so. raises NotFound, Refused"""
    row = found(work.handoff(handoff_id), handoff_id)
    if row.state == "cancelled":
        return row
    if row.state != "open":
        raise _over(row)
    row = replace(row, state="cancelled", ended_ms=work.moment.wall_ms)
    work.put_handoff(row)
    return row


def give_back(work: Work, workspace: str, project: str, receiver: Receiver) -> None:
    """Open again what was accepted by somebody who was never asked anything. A newer one keeps its place.

    receiver  a run, or the session of one that was started without memd
    """
    for row in work.handoffs(workspace, project, MAX_GIVEN_BACK):
        if row.state != "accepted" or not _was_taken_by(row, receiver):
            continue
        state: HandoffState = "open"
        if row.expires_ms <= work.moment.wall_ms:
            state = "expired"
        elif _open(work, workspace, project) is not None:
            state = "replaced"
        ended_ms = 0 if state == "open" else work.moment.wall_ms
        back = replace(row, state=state, ended_ms=ended_ms, taken_harness="", taken_session="", taken_run="")
        work.put_handoff(back)


def _was_taken_by(row: Handoff, receiver: Receiver) -> bool:
    if receiver.run:
        return row.taken_run == receiver.run
    return not row.taken_run and (row.taken_harness, row.taken_session) == (
        receiver.harness,
        receiver.session,
    )


def found(row: Handoff | None, handoff_id: str) -> Handoff:
    """The row. raises NotFound"""
    if row is None:
        raise NotFound(f"no handoff {handoff_id!r}", remedy="`memctl handoff list` shows what there is.")
    return row


def _over(row: Handoff) -> Refused:
    return Refused(f"handoff {row.id} is not open: {_STATES[row.state]}", remedy="Create a new one.")


_STATES = {
    "open": "its time is up",
    "accepted": "it was accepted",
    "cancelled": "it was cancelled",
    "expired": "its time is up",
    "replaced": "a newer one took its place",
}


# ------------------------------------------------------------------------------------- deciding


def offered(rows: Sequence[Handoff], receiver: Receiver, source: Source, now_ms: int) -> Handoff | None:
    """The handoff that a starting session is given, if there is one for it.

    rows    the scope's
    source  what is known of the session that wrote the open one
    """
    for row in rows:
        if (
            row.state == "open"
            and row.expires_ms > now_ms
            and is_for(row, receiver)
            and not _in_use(row, source, now_ms)
        ):
            return row
    return None


def is_for(row: Handoff, receiver: Receiver) -> bool:
    """Whether it is addressed to the receiver, and not written by it."""
    if row.from_session and (row.from_harness, row.from_session) == (receiver.harness, receiver.session):
        return False
    if row.from_run and row.from_run == receiver.run:
        return False
    if row.workstream and row.workstream != receiver.workstream:
        return False
    if row.harness and row.harness != receiver.harness:
        return False
    return not row.is_automatic or _is_below(receiver.cwd, row.cwd)


def _in_use(row: Handoff, source: Source, now_ms: int) -> bool:
    """Whether the session that wrote it still goes on: then it is not over to anybody yet."""
    if source.is_running:
        return True
    return row.is_automatic and now_ms - source.last_activity_ms < IN_USE_S * 1000


def _is_below(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


# ------------------------------------------------------------------------------------ rendering


def render(row: Handoff, room: Room, *, is_preview: bool = False) -> str:
    """The handoff as a model reads it, within the room; empty when there is no room for one.

    is_preview  it is only looked at, so nothing is said of its being consumed
    """
    body = harmless(_body(row)).strip()
    text = _assembled(row, body, is_preview=is_preview, is_cut=False)
    if room.size(text) <= room.left:
        return text
    available = room.left - room.size(_assembled(row, "", is_preview=is_preview, is_cut=True))
    if available < LEAST:
        return ""
    return _assembled(row, room.cut(body, available), is_preview=is_preview, is_cut=True)


def _assembled(row: Handoff, body: str, *, is_preview: bool, is_cut: bool) -> str:
    made = datetime.datetime.fromtimestamp(row.created_ms / 1000, datetime.UTC)
    writer = harmless(row.from_harness or "somebody")
    more = f"It is longer than can be shown here: `memctl handoff show {row.id}`.\n" if is_cut else ""
    footer = "" if is_preview else "This handoff is consumed: no other session will be given it.\n"
    head = f"{MARKER}\n> Handoff from {writer}, {made:%Y-%m-%d %H:%M} UTC. {NOTICE}\n"
    return f"{head}{framed(FRAME, body)}{more}{footer}"


def _body(row: Handoff) -> str:
    parts = []
    for title, items in (("Open questions", row.questions), ("Next steps", row.steps), ("Files", row.files)):
        if items:
            parts.append(f"{title}:\n" + "".join(f"- {' '.join(item.split())}\n" for item in items))
    parts.append(f"Summary:\n{row.summary}\n")
    return "\n".join(parts)
