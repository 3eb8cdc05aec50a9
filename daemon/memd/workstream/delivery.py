"""What a starting session is told: a handoff and the packet, claimed together once both are ready.

    gather   reads what there is to tell, from any reader
    compose  renders it within the harness's room. Pure; nothing has been consumed so far
    claim    in one transaction: the handoff is accepted and the packet told, or, when the packet cannot be
             claimed any more, neither; only what was claimed may be shown

A run is told once: a second start in it, after `/clear`, resume or compact, gets no packet. A session that
was started without memd gets handoffs only. Harnesses without a start hook that can say something use the
same steps: gathering and composing may be repeated, and the claim comes once the child is there.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memd.ledger.store.workstreams import Delivery, Handoff, Looking, Run, Untold, Work
from memd.workstream import handoff as handoffs
from memd.workstream import lease, packet
from memd.workstream.handoff import Receiver, Source
from memd.workstream.packet import Packet, Subject
from memd.workstream.room import Room


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A session that starts.

    run      the run it belongs to, as `linking.link` gave it; None: started without memd
    session  empty where a harness does not say yet
    """

    harness: str
    cwd: bytes
    workspace: str
    project: str
    session: str = ""
    run: Run | None = None


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to tell. untold: None when no packet is asked for."""

    start: Start
    rows: tuple[Handoff, ...] = ()
    source: Source = Source()
    subject: Subject | None = None
    untold: Untold | None = None


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What will be told if it can be claimed. Empty texts: nothing of that kind.

    wants_packet  the run is to be marked as told, also when nothing was due
    left          the room that remains, for what comes after
    """

    start: Start
    handoff: Handoff | None
    handoff_text: str
    packet: Packet | None
    wants_packet: bool
    left: Room


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown, in this order. Empty: not claimed, or nothing there."""

    handoff: str = ""
    packet: str = ""

    def text(self) -> str:
        return "\n".join(part for part in (self.handoff, self.packet) if part)


def may_have_packet(start: Start) -> bool:
    """Whether this start may still be told: an active run, on a known session, not told before."""
    run = start.run
    return run is not None and run.state == "active" and not run.is_told and not run.is_passing


def gather(looking: Looking, start: Start, source_activity_ms: int = 0) -> Material:
    """What there is to tell.

    source_activity_ms  when the session that wrote the open handoff was last active, wall clock; 0: not known
    """
    rows = tuple(looking.handoffs(start.workspace, start.project, 1))
    writer = looking.run(rows[0].from_run) if rows and rows[0].from_run else None
    source = Source(
        is_running=writer is not None and writer.state == "active", last_activity_ms=source_activity_ms
    )
    run = start.run
    if run is None or not may_have_packet(start):
        return Material(start=start, rows=rows, source=source)
    workstream = looking.workstream(run.workstream)
    if workstream is None:
        return Material(start=start, rows=rows, source=source)
    subject = Subject(
        workstream=workstream.id, name=workstream.name, after=run.sync_after, through=run.sync_through
    )
    untold = looking.untold(
        workstream.id,
        start.harness,
        start.session,
        after=run.sync_after,
        through=run.sync_through,
        limit=packet.MAX_EVENTS,
        max_characters=packet.MAX_EVENT + 1,
    )
    return Material(start=start, rows=rows, source=source, subject=subject, untold=untold)


def compose(material: Material, room: Room, now_ms: int) -> Offer:
    """What will be told within the room: the handoff first, the packet in what it leaves.

    A packet that is due but has no room stays due.
    """
    start = material.start
    run = start.run
    receiver = Receiver(
        harness=start.harness,
        cwd=start.cwd,
        session=start.session,
        workstream=run.workstream if run is not None else "",
        run=run.id if run is not None else "",
    )
    note = handoffs.offered(material.rows, receiver, material.source, now_ms)
    note_text = handoffs.render(note, room) if note is not None else ""
    if not note_text:
        note = None
    left = room.without(note_text + "\n") if note_text else room
    made, wants_packet = None, False
    if material.untold is not None and material.subject is not None:
        wants_packet = True
        if packet.is_due(material.untold):
            made = packet.render(material.untold, material.subject, left)
            wants_packet = made is not None
    if made is not None:
        left = left.without(made.text + "\n")
    return Offer(
        start=start,
        handoff=note,
        handoff_text=note_text,
        packet=made,
        wants_packet=wants_packet,
        left=left,
    )


def claim(work: Work, offer: Offer) -> Claimed:
    """Consume what is offered. Everything fallible lies behind; only what comes back may be shown."""
    run = offer.start.run
    if offer.wants_packet:
        assert run is not None
        now = work.run(run.id)
        if now is None or not _is_same(now, run, work) or now.is_told:
            return Claimed()
        _tell(work, now, offer)
    receiver = Receiver(
        harness=offer.start.harness,
        cwd=offer.start.cwd,
        session=offer.start.session,
        run=run.id if run is not None else "",
    )
    is_taken = offer.handoff is not None and handoffs.take(work, offer.handoff.id, receiver) is not None
    return Claimed(
        handoff=offer.handoff_text if is_taken else "",
        packet=offer.packet.text if offer.packet is not None else "",
    )


def _is_same(now: Run, then: Run, work: Work) -> bool:
    """Whether the run is still what the packet was made for."""
    return (
        now.state == "active"
        and now.boot == work.moment.boot
        and (now.session, now.sync_after, now.sync_through)
        == (then.session, then.sync_after, then.sync_through)
    )


def _tell(work: Work, run: Run, offer: Offer) -> None:
    moment = work.moment
    session = run.session
    for one in work.linked(run.workstream):
        if (one.harness, one.session) == (run.harness, session):
            work.put_linked(run.workstream, replace(one, told=max(one.told, run.sync_through)))
    made = offer.packet
    if made is not None:
        work.put_delivery(
            Delivery(
                run=run.id,
                harness=run.harness,
                session=session,
                after=run.sync_after,
                through=run.sync_through,
                shown=made.shown,
                omitted=made.omitted,
                first=made.first,
                at_ms=moment.wall_ms,
            )
        )
    work.put_run(replace(lease.renewed(run, moment), is_told=True))
