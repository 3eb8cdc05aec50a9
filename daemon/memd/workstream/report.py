"""What memd itself says at the end of a run: the state of the checkout, and what could not be had. Pure.

Both are events of the run's session, or of one that bears the run's name when none is known. Their ids are
made of the run's, so that saying it twice changes nothing.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Collection, Sequence

from memd.harness.model import Session
from memd.ledger.search import clean, instant
from memd.ledger.store.interface import Batch, Entry, SessionRow
from memd.ledger.store.workstreams import UNRESOLVED, Run
from memd.workstream.checkpoint import Checkpoint, render

FAR = 1 << 62  # a place in the source behind everything the harness will ever write

ABANDONED = "The launcher and the agent ended without a word; what they had written was imported."
IMPORT_UNFINISHED = "The transcript could not be read to its end; the rest follows with the next import."
SESSION_UNKNOWN = (
    "No session of this harness was found for the run, or more than one that it may have been on:"
    " a session that is named by the harness's own selector is linked."
)
NOT_STARTED = "The native process could not be started."


def texts(checkpoint: Checkpoint, losses: Sequence[str]) -> list[str]:
    """The checkpoint and, if there are any, the losses: to be scrubbed, then handed to `batch`."""
    said = [render(checkpoint)]
    if losses:
        said.append("\n".join(f"- {loss}" for loss in dict.fromkeys(losses)))
    return said


def batch(run: Run, said: Sequence[str], loss_count: int, now_ms: int) -> Batch:
    """The events of a run's end."""
    session = run.session or UNRESOLVED + run.id
    moment = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
    occurred_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    exit_code = {} if run.exit_code is None else {"exit_code": run.exit_code}
    entries = [
        Entry(
            id=f"managed-run:{run.id}:checkpoint",
            session=session,
            kind="checkpoint",
            role="",
            content=said[0],
            at=FAR,
            occurred_at=occurred_at,
            metadata=exit_code,
        )
    ]
    if len(said) > 1:
        entries.append(
            Entry(
                id=f"managed-run:{run.id}:losses",
                session=session,
                kind="annotation",
                role="",
                content=said[1],
                at=FAR,
                occurred_at=occurred_at,
                metadata={"loss_count": loss_count},
            )
        )
    place = Session(id=session, cwd=clean(os.fsdecode(run.cwd)), is_side=True)  # nothing to be resumed
    sessions = () if run.session else (place,)
    return Batch(harness=run.harness, entries=entries, sessions=sessions, run=run.id)


def discovered(rows: Sequence[SessionRow], cwd: str, since_s: float) -> list[str]:
    """Sessions of a checkout with activity since then: where a run may have been.

    Those that were begun since then come first, newest activity first: a session that somebody else has held
    here for long may well be the one that was written to last.
    """
    found = [
        ((instant(row.started) or 0.0) >= since_s, instant(row.last_activity) or 0.0, row.id)
        for row in rows
        if row.cwd == cwd and not row.is_side and row.events
    ]
    return [session for _, moment, session in sorted(found, reverse=True) if moment >= since_s]


def only(
    rows: Sequence[SessionRow], found: Sequence[str], since_s: float, linked: Collection[str] = ()
) -> list[str]:
    """The one of these sessions that was begun since then; of none the one that went on; of several none.

    linked  sessions that the workstream had before: none of them was begun now
    """
    began = {row.id for row in rows if (instant(row.started) or 0.0) >= since_s} - set(linked)
    fresh = [session for session in found if session in began]
    chosen = fresh or list(found)
    return chosen if len(chosen) == 1 else []


def instant_ms(moment: str) -> int:
    """Milliseconds since the epoch; 0: not known."""
    found = instant(moment)
    return 0 if found is None else int(found * 1000)
