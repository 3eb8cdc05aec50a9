"""The end of a run. Inside a transaction.

    leave    the child is gone; what it left is still to be imported
    close    everything is in: the run is finished

A session to which nothing was said was never really told: its packet and the handoff it accepted are offered
again, and a session of which nothing was ever seen is not the one to resume. That is judged only when
everything that was said has been imported.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memd.ledger.store.workstreams import Linked, Place, Run, RunGone, Work
from memd.workstream import handoff, lease, opening, packet
from memd.workstream.handoff import Receiver


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """The run as it ended.

    events        how many joined the workstream since it began
    was_untold    a packet was due and no hook asked for it
    losses        what could not be had, in sentences
    """

    run: Run
    name: str
    events: int
    was_untold: bool
    losses: tuple[str, ...] = ()


def leave(work: Work, run_id: str, exit_code: int | None) -> Run:
    """The child is gone; exit_code: None where it is not known. raises RunGone"""
    run = replace(lease.renewed(work.run(run_id), work.moment), phase="exited", exit_code=exit_code)
    work.put_run(run)
    return run


def find(work: Work, run_id: str, session: str) -> Run:
    """The run, on a session that was found in the harness's store, since nobody said which one it was on.

    raises  RunGone
    """
    run = lease.renewed(work.run(run_id), work.moment)
    if not run.session:
        run = opening.attach(work, run, session)
    work.put_run(run)
    return run


def set_aside(work: Work, run_id: str) -> Run:
    """The run, without the session that a stranger's hook had named. raises RunGone"""
    run = lease.renewed(work.run(run_id), work.moment)
    if run.session and run.made_link:
        work.drop_linked(run.workstream, run.harness, run.session)
    run = replace(run, session="", made_link=False)
    work.put_run(run)
    return run


def close(work: Work, run_id: str, *, is_imported: bool) -> Closed:
    """Finish the run; one that is finished already stays as it is.

    is_imported  all that the harness wrote has been read
    raises       RunGone
    """
    run = work.run(run_id)
    if run is None:
        raise RunGone(f"run {run_id} is not known any more")
    workstream = work.workstream(run.workstream)
    assert workstream is not None
    was_untold = not run.is_told and not run.is_passing and _is_due(work, run)
    if run.state != "finished":
        run = lease.renewed(run, work.moment)
        if run.session:
            run = _settle(work, run, workstream.place, is_imported=is_imported)
        run = lease.ended(run, work.moment, "finished", run.exit_code)
        work.put_run(run)
        work.put_workstream(replace(workstream, updated_ms=work.moment.wall_ms))
    return Closed(
        run=run,
        name=workstream.name,
        events=workstream.last_sequence - run.sync_through,
        was_untold=was_untold,
    )


def _is_due(work: Work, run: Run) -> bool:
    untold = work.untold(
        run.workstream,
        run.harness,
        run.session,
        after=run.sync_after,
        through=run.sync_through,
        limit=packet.MAX_EVENTS,
        max_characters=1,
    )
    return packet.is_due(untold)


def _settle(work: Work, run: Run, place: Place, *, is_imported: bool) -> Run:
    """Move the cursor of the run's session, or take back what it was never really told."""
    linked = work.linked(run.workstream)
    mine = next((one for one in linked if (one.harness, one.session) == (run.harness, run.session)), None)
    if mine is None:
        return run
    has_spoken = work.has_spoken(run.workstream, run.harness, run.session, 0)
    is_silent = is_imported and not run.is_confirmed and not _said(work, run)
    if is_silent:
        receiver = Receiver(harness=run.harness, cwd=run.cwd, session=run.session, run=run.id)
        handoff.give_back(work, place.workspace, place.project, receiver)
        if run.is_told:
            mine = replace(mine, told=min(mine.told, run.sync_after))
            work.drop_delivery(run.id)
            run = replace(run, is_told=False)
        if run.made_link and not has_spoken:
            work.drop_linked(run.workstream, run.harness, run.session)
            _fall_back(work, run, linked)
            return run
    told = work.told_further(run.workstream, run.harness, run.session, mine.told)
    work.put_linked(run.workstream, replace(mine, told=told, linked_ms=work.moment.wall_ms))
    return run


def _said(work: Work, run: Run) -> bool:
    """Whether anything was said in the run's session since the run was prepared."""
    return work.has_spoken(run.workstream, run.harness, run.session, run.sync_through)


def _fall_back(work: Work, run: Run, linked: list[Linked]) -> None:
    """Let the session that was the harness's before be the one to resume again."""
    for one in linked:  # last linked first
        if one.harness == run.harness and one.session != run.session:
            work.put_linked(run.workstream, replace(one, is_current=True))
            return
