"""A run up to the moment its child exists: prepared, planned, started, or called off. Inside a transaction.

    prepare   reserves the workstream; nothing of it changes yet, and one that is made for the run goes with
              it when the child never starts
    plan      says which session the child will be on, if that is known
    start     the child is there: from now on the workstream is the selected one, and the session is linked
    cancel    before that; may be said again

Every function is given a `Work` and asks nothing else. All of them renew the lease.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memd.errors import Refused
from memd.ledger.store.workstreams import Linked, Looking, Place, Process, Run, Work, Workstream
from memd.workstream import bare, lease, selection
from memd.workstream.lease import See
from memd.workstream.selection import New, Wanted


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher asks for.

    harness       the one that is named; of a launch that names none the newest of this checkout
    is_automatic  no harness was named: the workstream may say otherwise, among those in `available`
    pool          harnesses that may be started unasked
    """

    place: Place
    cwd: bytes
    harness: str
    launcher: Process
    wanted: Wanted = Wanted()
    flavor: str = ""
    is_automatic: bool = False
    available: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose launcher has the workstream.

    current    the session that the harness resumes, if one is linked
    may_adopt  nobody has worked under the workstream yet, so a session may be taken over
    is_new     the workstream was made for this run
    superseded a run whose lease had run out, or whose holder is gone: it is over now
    withdrawn  runs, by id, that this very launcher had prepared before: they are over, too
    """

    run: Run
    workstream: Workstream
    current: Linked | None
    may_adopt: bool
    is_new: bool
    superseded: Run | None = None
    withdrawn: tuple[str, ...] = ()


def look_ahead(work: Work, ask: Ask, see: See) -> tuple[str, ...]:
    """Refuse what `prepare` would refuse, before anything is done for it; gives what it withdrew.

    raises  lease.Busy, and what `selection.choose` and `bare.check` raise
    """
    if ask.is_automatic:
        bare.check(ask.pool, ask.harness, ask.available)
    withdrawn = _withdraw(work, ask.launcher)
    chosen = selection.choose(work.workstreams(ask.place), ask.wanted)
    holder = work.active(chosen.id) if isinstance(chosen, Workstream) else None
    if holder is not None and lease.standing(holder, work.moment, lease.evidence(holder, see)) == "held":
        raise lease.conflict(holder, chosen.name, work.moment)
    return withdrawn


def current_links(looking: Looking, ask: Ask) -> list[Linked]:
    """The sessions that the workstream of a launch would resume, last linked first.

    raises  what `selection.choose` raises
    """
    chosen = selection.choose(looking.workstreams(ask.place), ask.wanted)
    if isinstance(chosen, New):
        return []
    return [one for one in looking.linked(chosen.id) if one.is_current]


def _withdraw(work: Work, launcher: Process) -> tuple[str, ...]:
    """Call off what this very launcher had prepared: it lost the answer, and begins again."""
    own = [run for run in work.active_runs() if run.launcher == launcher]
    withdrawn = tuple(run.id for run in own if run.phase in ("prepared", "planned"))
    for run in withdrawn:
        cancel(work, run)
    return withdrawn


def prepare(work: Work, ask: Ask, workstream_id: str, run_id: str, see: See) -> Prepared:
    """Reserve a workstream.

    workstream_id, run_id  fresh ids, used when they are needed
    raises                 lease.Busy, and what `selection.choose` and `bare.check` raise
    """
    if ask.is_automatic:
        bare.check(ask.pool, ask.harness, ask.available)
    withdrawn = _withdraw(work, ask.launcher)
    moment = work.moment
    chosen = selection.choose(work.workstreams(ask.place), ask.wanted)
    is_new = isinstance(chosen, New)
    if isinstance(chosen, New):
        chosen = Workstream(
            id=workstream_id, place=ask.place, name=chosen.name, cwd=ask.cwd, created_ms=moment.wall_ms
        )
        work.put_workstream(chosen)
    superseded = _make_way(work, chosen, see)
    linked = work.linked(chosen.id)
    harness, flavor = ask.harness, ask.flavor
    if ask.is_automatic and not ask.wanted.new:
        harness, flavor = bare.resolve(linked, ask.harness, ask.available)
    current = next((one for one in linked if one.is_current and one.harness == harness), None)
    run = Run(
        id=run_id,
        workstream=chosen.id,
        harness=harness,
        flavor=flavor or (current.flavor if current is not None else ""),
        cwd=ask.cwd,
        launcher=ask.launcher,
        boot=moment.boot,
        expires_ms=0,
        began_ms=moment.wall_ms,
        sync_after=current.told if current is not None else 0,
        sync_through=chosen.last_sequence,
    )
    run = lease.opened(run, moment)
    work.put_run(run)
    return Prepared(
        run=run,
        workstream=chosen,
        current=current,
        may_adopt=not work.is_established(chosen.id),
        is_new=is_new,
        superseded=superseded,
        withdrawn=withdrawn,
    )


def _make_way(work: Work, workstream: Workstream, see: See) -> Run | None:
    holder = work.active(workstream.id)
    if holder is None:
        return None
    moment = work.moment
    seen = lease.evidence(holder, see)
    if lease.standing(holder, moment, seen) == "held":
        raise lease.conflict(holder, workstream.name, moment)
    over = lease.ended(holder, moment, "expired", holder.exit_code)
    work.put_run(over)
    return over


def plan(work: Work, run_id: str, *, expected: str = "", flavor: str = "", is_passing: bool = False) -> Run:
    """Note what the child is going to be: the session it is put on (empty: nobody knows yet), or a utility.

    May be said again until the child has started. raises RunGone
    """
    run = lease.renewed(work.run(run_id), work.moment)
    if run.phase in ("running", "exited"):
        raise Refused(
            f"run {run_id} has started its child already", remedy="Start another one with `memctl run`."
        )
    told = next(
        (
            one.told
            for one in work.linked(run.workstream)
            if (one.harness, one.session) == (run.harness, expected)
        ),
        0,
    )
    run = replace(
        run,
        phase="planned",
        expected="" if is_passing else expected,
        flavor=flavor or run.flavor,
        is_passing=is_passing,
        sync_after=told,
    )
    work.put_run(run)
    return run


def start(work: Work, run_id: str, agent: Process | None) -> Run:
    """The child is there. Said twice, the second time counts for the process alone. raises RunGone"""
    run = lease.renewed(work.run(run_id), work.moment)
    if run.phase in ("prepared", "planned"):
        run = begin(work, run)
    if agent is not None:
        run = replace(run, agent=agent)
    work.put_run(run)
    return run


def begin(work: Work, run: Run) -> Run:
    """What the first sign of a child changes: the selection, and the link of the session it was put on.

    The run that it gives is to be stored by the caller.
    """
    moment = work.moment
    workstream = work.workstream(run.workstream)
    assert workstream is not None
    others = work.workstreams(workstream.place)
    work.put_workstream(
        replace(
            workstream,
            selected_ms=selection.selected_at(others, moment.wall_ms),
            updated_ms=moment.wall_ms,
            cwd=run.cwd,
        )
    )
    run = replace(run, phase="running")
    return attach(work, run, run.expected) if run.expected and not run.session else run


def attach(work: Work, run: Run, session: str) -> Run:
    """Make a session the current one of the run's harness, and the run's own.

    It keeps what it had been told; a new one has been told nothing, or what the run's packet told if that was
    delivered already. The run that it gives is to be stored by the caller.
    """
    known = next(
        (one for one in work.linked(run.workstream) if (one.harness, one.session) == (run.harness, session)),
        None,
    )
    told = run.sync_through if run.is_told else 0
    row = Linked(
        harness=run.harness,
        session=session,
        is_current=True,
        told=told if known is None else max(told, known.told),
        linked_ms=work.moment.wall_ms,
        flavor=run.flavor,
    )
    work.put_linked(run.workstream, row)
    return replace(
        run,
        session=session,
        made_link=known is None,
        sync_after=run.sync_after if run.is_told else row.told,
    )


def beat(work: Work, run_id: str) -> Run:
    """The lease from now on. raises RunGone"""
    run = lease.renewed(work.run(run_id), work.moment)
    work.put_run(run)
    return run


def take_up(work: Work, run_id: str, launcher: Process) -> Run:
    """The run again for a launcher that lost its connection, with a lease from now on.

    raises  RunGone; Refused for anybody but the launcher itself
    """
    run = lease.renewed(work.run(run_id), work.moment)
    if run.launcher != launcher:
        raise Refused(f"run {run_id} belongs to another process", remedy="Start a new one with `memctl run`.")
    work.put_run(run)
    return run


def cancel(work: Work, run_id: str) -> None:
    """Give the workstream up; what was made for this run alone goes. A run that is over stays as it is."""
    run = work.run(run_id)
    if run is None or run.state != "active":
        return
    work.put_run(lease.ended(run, work.moment, "cancelled"))
    drop_unused(work, run)


def drop_unused(work: Work, run: Run) -> None:
    """Take away a workstream that no child was ever started under."""
    workstream = work.workstream(run.workstream)
    if workstream is None or workstream.selected_ms or workstream.last_sequence:
        return
    if not work.linked(workstream.id) and work.active(workstream.id) is None:
        work.drop_workstream(workstream.id)
