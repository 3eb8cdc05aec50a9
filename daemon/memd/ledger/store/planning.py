"""What a batch comes to: which events are new, where they stand, what changes sides, what was lost.

The same for every engine. Looks only, through `Known`; what it works out is written by the engine, in the
transaction in which nothing can have changed since. Positions are dense per session, the first version of an
event stays, and an id that is known as another kind is refused alone.
"""

from __future__ import annotations

import datetime
import functools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from memd.harness.losses import CLASSES
from memd.harness.model import Loss, Session, Turn
from memd.ledger import search
from memd.ledger.segments import EventLine, GoneLine, Line, LossLine, SessionLine, StandingLine, TurnLine
from memd.ledger.store import scope
from memd.ledger.store.forget_record import Record
from memd.ledger.store.interface import Appended, Batch
from memd.ledger.store.scope import Stored

FRESH_S: Final = 24 * 3600
"""What occurred longer ago than this when it comes is history: it takes numbers of the older lane."""

EARLIEST: Final = "1990"
"""No agent ran before."""

TITLE_CHARACTERS: Final = 120
CONFLICT: Final = "conflict"
CONFLICT_SENTENCE: Final = "Records whose id was known as a record of another kind were left out."

_json = msgspec.json.Encoder()


class Facts(msgspec.Struct):
    """A row of `sessions`, as the writer remembers it."""

    n: int
    native: str
    checkout: int | None = None
    cwd: str = ""
    title: str = ""
    title_from: str = ""
    started: str = ""
    last_activity: str = ""
    version: str = ""
    is_side: bool = False
    parent: str = ""
    forked_from: str = ""
    forked_at: int = 0
    last_position: int = 0
    events: int = 0
    side_events: int = 0


EventRow = tuple[int, Stored, str, str, str, str, str, str]
"""Number, id, kind, role, time, metadata, scope, text: the columns of `events`."""


class Plan(msgspec.Struct):
    """What one batch comes to, before anything is written."""

    lines: list[Line] = []
    touched: dict[str, Facts] = {}
    held: dict[str, Session] = {}  # what was said of sessions that a person had forgotten
    begun: set[str] = set()  # sessions that were not known
    placed: list[tuple[int, int]] = []  # checkout, session: those that were, and whose directory was not
    told: set[str] = set()  # sessions with a line of facts or losses
    checkouts: list[tuple[int, str]] = []
    events: list[EventRow] = []
    standings: list[tuple[int, int, int, int, int]] = []  # session, position, is_side, event, at
    gone: list[tuple[int, int, int]] = []  # session, position, event
    turned: list[tuple[int, int, int]] = []  # is_side, session, position
    widened: dict[int, set[int]] = {}  # events that now stand in sessions of these checkouts too
    moved: list[tuple[int, int]] = []  # session, checkout: learnt after its first events
    losses: list[tuple[int, str, bytes, str, int]] = []
    appended: Appended = Appended()


class Known(Protocol):
    """What the store knows already, and the numbers it gives out next.

    history, live, session  the last number given to an event of either lane, and to a session
    """

    history: int
    live: int
    session: int

    def facts(self, harness: str, native: str) -> Facts | None: ...

    def checkout_of(self, path: str, new: list[tuple[int, str]]) -> int:
        """The number of a directory; one that is not known yet gets the next, and is added to `new`."""

    def scope(self, harness: str, checkout: int | None, kind: str, role: str) -> str:
        """The tokens that a filtered search goes by."""

    def known(self, keys: Sequence[Stored]) -> dict[Stored, tuple[int, str]]:
        """Number and kind of those events that are there."""

    def standing(self, events: Sequence[int]) -> set[tuple[int, int]]:
        """Where these stand: session and event."""

    def at(self, session: int, at: int) -> Sequence[tuple[int, int, int]]:
        """What stands at that place of a session's source: is_side, position, event."""

    def between(self, session: int, first: int, last: int) -> Iterable[tuple[int, int]]:
        """What stands between two places of its source: position, is_side."""

    def lost(self, harness: str, source: bytes) -> Iterable[tuple[str, str, str]]:
        """The losses counted for a source: session, class, sentence."""

    def counted(self, session: int, what: str, source: bytes) -> int:
        """The count of one of them."""


def packed(metadata: Mapping[str, str | bool | int]) -> str:
    """Metadata as its column holds it."""
    return _json.encode(metadata).decode() if metadata else ""


class Planner:
    """Works out what a batch comes to. Changes only the counters of what it is given."""

    def __init__(self, memory: Known, forgotten: Record) -> None:
        self._memory = memory
        self._forgotten = forgotten

    def plan(self, batch: Batch) -> Plan:
        plan = Plan()
        self._learn(plan, batch.harness, batch.sessions)
        refused = self._place(plan, batch)
        for turn in batch.turns:
            self._turn(plan, batch.harness, turn)
        losses = [*batch.losses, *refused]
        if losses or batch.is_restart:
            self._count(plan, batch, losses)
        for native in plan.told:
            facts = plan.touched[native]
            plan.lines.append(
                SessionLine(
                    session=native,
                    cwd=facts.cwd,
                    title=facts.title if facts.title_from == "native" else "",
                    started=facts.started,
                    version=facts.version,
                    is_side=facts.is_side,
                    parent=facts.parent,
                    forked_from=facts.forked_from,
                    forked_at=facts.forked_at,
                )
            )
        return plan

    # ------------------------------------------------------------------------- sessions

    def _facts(self, plan: Plan, harness: str, native: str) -> Facts:
        facts = plan.touched.get(native)
        if facts is None:
            known = self._memory.facts(harness, native)
            if known is None:
                self._memory.session += 1
                facts = Facts(self._memory.session, native)
                plan.begun.add(native)
                plan.told.add(native)
            else:
                facts = msgspec.structs.replace(known)
            plan.touched[native] = facts
        return facts

    def _learn(self, plan: Plan, harness: str, sessions: Iterable[Session]) -> None:
        """The first `cwd` and `started` stand, the last title does; the rest once it is known."""
        for said in sessions:
            is_held = self._forgotten.is_session(harness, said.id, said.cwd)
            if is_held and said.id not in plan.touched and self._memory.facts(harness, said.id) is None:
                plan.held[said.id] = said  # there is no such session, unless something newer comes
                continue
            facts = self._facts(plan, harness, said.id)
            before = msgspec.structs.astuple(facts)
            if said.cwd and not facts.cwd:
                facts.cwd = said.cwd
                checkout = facts.checkout = self._memory.checkout_of(said.cwd, plan.checkouts)
                if said.id not in plan.begun:
                    plan.placed.append((checkout, facts.n))
                if facts.last_position:
                    plan.moved.append((facts.n, checkout))
            if said.id in plan.held:
                facts.title_from = "forgotten"
            if said.title and facts.title_from != "forgotten":
                facts.title, facts.title_from = said.title, "native"
            facts.started = facts.started or said.started
            facts.version = said.version or facts.version
            facts.is_side = facts.is_side or said.is_side
            facts.parent = facts.parent or said.parent
            if said.forked_from and not facts.forked_from:
                facts.forked_from, facts.forked_at = said.forked_from, said.forked_at
            if msgspec.structs.astuple(facts) != before:
                plan.told.add(said.id)

    # --------------------------------------------------------------------------- events

    def _place(self, plan: Plan, batch: Batch) -> list[Loss]:
        entries = batch.entries
        if not entries:
            return []
        keys = scope.keys([entry.id for entry in entries])
        known = self._memory.known(keys)
        standing = self._memory.standing([n for n, _kind in known.values()]) if known else set()
        memory, harness, lines = self._memory, batch.harness, plan.lines
        now = int(time.time())
        fresh_from, latest = _hour((now - FRESH_S) // 60), _hour(int(now + search.SKEW_S) // 60)
        is_live = True
        stored = stood = duplicates = forgotten = 0
        highest: dict[str, int] = {}
        refused: list[Loss] = []
        watch = self._forgotten.is_anything
        for entry, one in zip(entries, keys, strict=True):
            native = entry.session
            facts = plan.touched.get(native)
            if watch and self._forgotten.is_event(harness, entry, self._cwd(plan, harness, native)):
                forgotten += 1
                continue
            if facts is None:
                facts = self._facts(plan, harness, native)
                if native in plan.held:
                    self._learn(plan, harness, (plan.held[native],))
            found = known.get(one)
            if found is None:
                if entry.occurred_at:
                    is_live = entry.occurred_at >= fresh_from
                if is_live:
                    n = memory.live = memory.live + 1
                else:
                    n = memory.history = memory.history + 1
                known[one] = (n, entry.kind)
                tokens = memory.scope(harness, facts.checkout, entry.kind, entry.role)
                metadata = packed(entry.metadata) if entry.metadata else ""
                plan.events.append(
                    (n, one, entry.kind, entry.role, entry.occurred_at, metadata, tokens, entry.content)
                )
                stored += 1
            else:
                n, kind = found
                if kind != entry.kind:
                    refused.append(Loss(session=native, what=CONFLICT, sentence=CONFLICT_SENTENCE))
                    continue
                if (facts.n, n) in standing:
                    duplicates += 1
                    continue
                if facts.checkout is not None:
                    plan.widened.setdefault(n, set()).add(facts.checkout)
                stood += 1
            if entry.replaces >= 0:
                self._replace(plan, facts, entry.replaces)
            position = facts.last_position = facts.last_position + 1
            highest[native] = position
            if entry.is_side:
                facts.side_events += 1
            else:
                facts.events += 1
                if entry.occurred_at > facts.last_activity:
                    _note_time(facts, entry.occurred_at, latest)
                if not facts.title and entry.role == "user" and entry.kind == "message":
                    facts.title, facts.title_from = title_of(entry.content), "text"
            standing.add((facts.n, n))
            plan.standings.append((facts.n, position, int(entry.is_side), n, entry.at))
            if found is None:
                lines.append(
                    EventLine(
                        session=native,
                        position=position,
                        id=entry.id,
                        kind=entry.kind,
                        role=entry.role,
                        at=entry.at,
                        occurred_at=entry.occurred_at,
                        record=entry.record,
                        is_side=entry.is_side,
                        metadata=entry.metadata,
                        content=entry.content,
                    )
                )
            else:
                lines.append(
                    StandingLine(
                        session=native, position=position, id=entry.id, at=entry.at, is_side=entry.is_side
                    )
                )
        plan.appended = Appended(
            stored=stored,
            standing=stood,
            duplicates=duplicates,
            forgotten=forgotten,
            refused=len(refused),
            sessions=highest,
        )
        return refused

    def _cwd(self, plan: Plan, harness: str, native: str) -> str:
        if native in plan.held:
            return plan.held[native].cwd
        facts = plan.touched.get(native) or self._memory.facts(harness, native)
        return facts.cwd if facts else ""

    def _replace(self, plan: Plan, facts: Facts, at: int) -> None:
        """Take what stands at that place of the source out of the session."""
        here = [
            (side, position, event)
            for session, position, side, event, place in plan.standings
            if session == facts.n and place == at
        ]
        here += self._memory.at(facts.n, at)
        for side, position, event in here:
            plan.gone.append((facts.n, position, event))
            plan.lines.append(GoneLine(session=facts.native, position=position))
            if side:
                facts.side_events -= 1
            else:
                facts.events -= 1

    def _turn(self, plan: Plan, harness: str, turn: Turn) -> None:
        """Let a stretch of a session change sides; positions stay."""
        known = plan.touched.get(turn.session) or self._memory.facts(harness, turn.session)
        if known is None:
            return
        facts = self._facts(plan, harness, turn.session)
        side = int(turn.is_side)
        gone = {position for session, position, _event in plan.gone if session == facts.n}
        turned = []
        for index, (session, position, was, event, at) in enumerate(plan.standings):
            if session == facts.n and was != side and turn.first <= at <= turn.last:
                plan.standings[index] = (session, position, side, event, at)
                if position not in gone:
                    turned.append(position)
        latest = {position: was for was, session, position in plan.turned if session == facts.n}
        for position, was in self._memory.between(facts.n, turn.first, turn.last):
            if position not in gone and latest.get(position, was) != side:
                plan.turned.append((side, facts.n, position))
                turned.append(position)
        if turned:
            moved = len(turned) if side else -len(turned)
            facts.side_events += moved
            facts.events -= moved
            plan.lines.append(TurnLine(session=turn.session, is_side=turn.is_side, ranges=ranges(turned)))

    # --------------------------------------------------------------------------- losses

    def _count(self, plan: Plan, batch: Batch, losses: Sequence[Loss]) -> None:
        """New totals per session and class of this source."""
        totals: dict[tuple[str, str], tuple[str, int]] = {}
        if batch.is_restart:
            for native, what, sentence in self._memory.lost(batch.harness, batch.source):
                totals[native, what] = (sentence, 0)
        for loss in losses:
            if loss.session in plan.held and loss.session not in plan.touched:
                continue
            known = totals.get((loss.session, loss.what))
            if known is None:
                facts = self._facts(plan, batch.harness, loss.session)
                known = ("", self._memory.counted(facts.n, loss.what, batch.source))
            sentence = CLASSES.get(loss.what, loss.sentence)
            totals[loss.session, loss.what] = (sentence, known[1] + loss.count)
        for (native, what), (sentence, count) in totals.items():
            facts = self._facts(plan, batch.harness, native)
            plan.told.add(native)
            plan.losses.append((facts.n, what, batch.source, sentence, count))
            plan.lines.append(
                LossLine(session=native, what=what, sentence=sentence, source=batch.source, count=count)
            )


def ranges(positions: Iterable[int]) -> list[tuple[int, int]]:
    """The stretches of numbers that follow each other, as first and last."""
    found: list[tuple[int, int]] = []
    for position in sorted(positions):
        if found and position == found[-1][1] + 1:
            found[-1] = (found[-1][0], position)
        else:
            found.append((position, position))
    return found


def title_of(text: str) -> str:
    """How the first words begin, on one line."""
    words = " ".join(text[: TITLE_CHARACTERS * 4].split())
    return words if len(words) <= TITLE_CHARACTERS else words[: TITLE_CHARACTERS - 1].rstrip() + "…"


def _note_time(facts: Facts, occurred_at: str, latest: str) -> None:
    """Nothing was done after it came here, nor before there were agents: such times order no sessions."""
    if not facts.started:
        facts.started = occurred_at
    if occurred_at > latest:
        occurred_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if occurred_at >= EARLIEST and (not facts.last_activity or _is_later(occurred_at, facts.last_activity)):
        facts.last_activity = occurred_at


def _is_later(one: str, other: str) -> bool:
    if one.endswith("Z") and other.endswith("Z"):
        return one > other
    a, b = search.instant(one), search.instant(other)
    return a is not None and (b is None or a > b)


@functools.lru_cache(maxsize=8)
def _hour(minute: int) -> str:
    """The hour in which a minute since the epoch lies, as times of events begin."""
    return datetime.datetime.fromtimestamp(minute * 60, datetime.UTC).strftime("%Y-%m-%dT%H")
