"""Which native session a run is on, as hooks tell. Inside a transaction.

A hook of the run's own child says it at the start of a session and again with every prompt. Claude's forks
name the old session at the start and the new one from the first prompt on; so until that prompt the link may
move, and what was claimed for the old session moves with it. Afterwards, once something was delivered, it
stays.

`is_own` says whether the hook's process was started below the run's agent; None: it could not be traced. An
agent that the agent itself starts has the run's id too and is below it as well, but only ever comes after the
first prompt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from msgspec.structs import replace

from memd.errors import UsageError
from memd.ledger.store.workstreams import Linked, Run, Work
from memd.workstream import lease, opening

MAX_ID_BYTES = 512
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class UnknownSession(UsageError):
    """What a harness gave as the id of a session cannot be one. The id itself is not repeated."""

    remedy = "Start the agent again; if it stays so, run `memctl doctor`."


def is_plain(session: str) -> bool:
    """Whether it is a UUID, as most are: no secret looks like one, and nobody needs the sanitiser to know."""
    return _UUID.fullmatch(session) is not None


def check_id(session: str, scrub: Callable[[str], str]) -> str:
    """The id, if it can be kept as it is.

    scrub   the sanitiser
    raises  UnknownSession
    """
    size = len(session.encode("utf-8", "surrogatepass"))
    if not session or size > MAX_ID_BYTES or any(_is_hidden(sign) for sign in session):
        raise UnknownSession(
            "native session identity is UNKNOWN: it is empty, too long or holds hidden signs"
        )
    if scrub(session) != session:
        raise UnknownSession("native session identity is UNKNOWN: it looks like a secret")
    return session


def _is_hidden(sign: str) -> bool:
    """Control, format (zero width, direction of writing), half of a pair, separator of lines."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def link(
    work: Work, run_id: str, harness: str, session: str, *, is_own: bool | None, is_prompt: bool = False
) -> Run | None:
    """The run, on that session; None when the hook is not this run's, so that nothing is for it.

    session  checked; is_prompt: the hook came with a prompt, so the session is certain
    """
    run = work.run(run_id)
    if run is None or run.state != "active" or run.harness != harness or run.is_passing:
        return None
    if run.boot != work.moment.boot:
        return None
    run = lease.renewed(run, work.moment)
    if run.phase in ("prepared", "planned"):
        run = opening.begin(work, run)
    if run.session != session:
        if is_own is False and run.session:
            return None
        if run.is_told and run.session:
            if run.is_confirmed or is_own is None:
                return None
            run = _move(work, run, session)
        else:
            run = opening.attach(work, _leave(work, run), session)
    if is_prompt and is_own:
        run = replace(run, is_confirmed=True)
    work.put_run(run)
    return run


def go_on_in(work: Work, run_id: str, harness: str, session: str) -> Run | None:
    """The run's own child began a new conversation (`/clear`): it belongs to the workstream too.

    Nothing is delivered to it: its context is empty because somebody wanted that. What the old one was told
    stays. None when this is not an active run of that harness.
    """
    run = work.run(run_id)
    if run is None or run.state != "active" or run.harness != harness or run.boot != work.moment.boot:
        return None
    if run.is_passing or run.session == session:
        return None
    workstream = work.workstream(run.workstream)
    assert workstream is not None
    known = _linked(work, run, session)
    if known is None:
        row = Linked(
            harness=harness,
            session=session,
            is_current=True,
            told=workstream.last_sequence,
            linked_ms=work.moment.wall_ms,
            flavor=run.flavor,
        )
    else:
        row = replace(known, is_current=True, linked_ms=work.moment.wall_ms)
    work.put_linked(run.workstream, row)
    run = replace(lease.renewed(run, work.moment), session=session, made_link=known is None, is_told=True)
    work.put_run(run)
    return run


def _linked(work: Work, run: Run, session: str) -> Linked | None:
    for one in work.linked(run.workstream):
        if (one.harness, one.session) == (run.harness, session):
            return one
    return None


def _leave(work: Work, run: Run) -> Run:
    """The run without its session. A link that it made itself, to something nobody has seen, goes."""
    if run.session and run.made_link and not work.has_spoken(run.workstream, run.harness, run.session, 0):
        work.drop_linked(run.workstream, run.harness, run.session)
    return replace(run, session="", made_link=False)


def _move(work: Work, run: Run, session: str) -> Run:
    """Link and claim go to the session that turned out to be right; the old one was never told."""
    delivery = work.delivery(run.id)
    old = _linked(work, run, run.session)
    if old is not None:
        if run.made_link:
            work.drop_linked(run.workstream, run.harness, old.session)
        else:
            work.put_linked(run.workstream, replace(old, told=run.sync_after, is_current=False))
    if delivery is not None:
        work.put_delivery(replace(delivery, session=session))
    return opening.attach(work, replace(run, session="", made_link=False), session)
