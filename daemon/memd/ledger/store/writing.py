"""Putting a batch in: what of it is new, where it stands, and the one transaction that makes it so.

First `plan` looks only: which events are known, which are forgotten, what position each gets. From that come
the lines for the segment, which are on the disk before `commit` begins. Nothing can change in between, since
there is one writer. All that is remembered from batch to batch (`Memory`) is what the database says anyway;
after any error it is thrown away.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import apsw
import msgspec

from memd.harness.losses import CLASSES
from memd.harness.model import Loss, Session, Turn
from memd.ledger import search
from memd.ledger.segments import EventLine, GoneLine, Line, LossLine, SessionLine, StandingLine, TurnLine
from memd.ledger.store import database, scope
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.interface import Appended, Batch
from memd.ledger.store.schema import BY_ID, LIVE

FRESH_S: Final = 24 * 3600
"""What occurred longer ago than this when it comes is history: it takes numbers of the older lane."""

MAX_REMEMBERED: Final = 4096
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


class Plan(msgspec.Struct):
    """What one batch comes to, before anything is written."""

    lines: list[Line] = []
    touched: dict[str, Facts] = {}
    held: dict[str, Session] = {}  # what was said of sessions that a person had forgotten
    told: set[str] = set()  # sessions with a line of facts or losses
    checkouts: list[tuple[int, str]] = []
    events: list[tuple[object, ...]] = []
    index: list[tuple[int, str, str]] = []
    standings: list[tuple[int, int, int, int, int]] = []  # session, position, is_side, event, at
    gone: list[tuple[int, int, int]] = []  # session, position, event
    turned: list[tuple[int, int, int]] = []  # is_side, session, position
    widened: dict[int, set[int]] = {}  # events that now stand in sessions of these checkouts too
    moved: list[int] = []  # sessions whose checkout was learnt after their first events
    losses: list[tuple[int, str, bytes, str, int]] = []
    appended: Appended = Appended()


class Memory:
    """What the writer need not ask the database again."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._sessions: dict[tuple[str, str], Facts] = {}
        self._checkouts: dict[str, int] = {}
        self._tokens: dict[tuple[str, int | None, str, str], str] = {}
        self.reset()

    def reset(self) -> None:
        self._sessions.clear()
        self._checkouts.clear()
        one = self._connection.execute(
            "select (select coalesce(max(n), 0) from events where n < ?1),"
            " (select coalesce(max(n), ?1 - 1) from events where n >= ?1),"
            " (select coalesce(max(n), 0) from sessions), (select coalesce(max(n), 0) from checkouts)",
            (LIVE,),
        ).get
        self.history, self.live, self.session, self.checkout = one

    def total(self) -> int:
        """How many events there were ever, as far as the numbers given out tell."""
        total: int = self.history + self.live - LIVE + 1
        return total

    def facts(self, harness: str, native: str) -> Facts | None:
        known = self._sessions.get((harness, native))
        if known is None:
            row = self._connection.execute(
                "select s.n, native, checkout, coalesce(path, ''), title, title_from, started, last_activity,"
                " version, is_side, parent, forked_from, forked_at, last_position, events,"
                " side_events from sessions s left join checkouts c on c.n = s.checkout"
                " where harness = ? and native = ?",
                (harness, native),
            ).fetchone()
            if row is None:
                return None
            if len(self._sessions) >= MAX_REMEMBERED:
                self._sessions.clear()
            known = Facts(*row)
            known.is_side = bool(known.is_side)
            self._sessions[harness, native] = known
        return known

    def remember(self, harness: str, facts: Facts) -> None:
        self._sessions[harness, facts.native] = facts

    def checkout_of(self, path: str, new: list[tuple[int, str]]) -> int:
        n = self._checkouts.get(path)
        if n is None:
            row = self._connection.execute("select n from checkouts where path = ?", (path,)).get
            if row is None:
                self.checkout += 1
                row = self.checkout
                new.append((row, path))
            if len(self._checkouts) >= MAX_REMEMBERED:
                self._checkouts.clear()
            n = self._checkouts[path] = row
        return n

    def scope(self, harness: str, checkout: int | None, kind: str, role: str) -> str:
        key = (harness, checkout, kind, role)
        found = self._tokens.get(key)
        if found is None:
            parts = [scope.harness(harness), scope.kind(kind), scope.role(role)]
            if checkout is not None:
                parts.append(f"c{checkout}")
            if len(self._tokens) >= MAX_REMEMBERED:
                self._tokens.clear()
            found = self._tokens[key] = " ".join(parts)
        return found


def packed(metadata: Mapping[str, str | bool | int]) -> str:
    """Metadata as its column holds it."""
    return _json.encode(metadata).decode() if metadata else ""


class Planner:
    """Works out what a batch comes to. Changes only `Memory`'s counters, which `Memory.reset` sets back."""

    def __init__(self, connection: apsw.Connection, memory: Memory, forgotten: Forgotten) -> None:
        self._connection = connection
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
                facts.checkout = self._memory.checkout_of(said.cwd, plan.checkouts)
                if facts.last_position:
                    plan.moved.append(facts.n)
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
        known: dict[bytes | str, tuple[int, str]] = {
            stored: (n, kind)
            for n, stored, kind in self._connection.executemany(
                f"select n, id, kind from events where {BY_ID}", (scope.probe(one) for one in keys)
            )
        }
        standing: set[tuple[int, int]] = set()
        if known:
            standing.update(
                self._connection.executemany(
                    "select session, event from session_events where event = ?",
                    ((n,) for n, _kind in known.values()),
                )
            )
        memory, harness, lines = self._memory, batch.harness, plan.lines
        fresh_from = _day(time.time() - FRESH_S)
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
                plan.index.append((n, tokens, entry.content))
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
                    _note_time(facts, entry.occurred_at)
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
        here += self._connection.execute(
            "select is_side, position, event from session_events where session = ? and at = ?", (facts.n, at)
        )
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
        for position, was in database.fetch(
            self._connection,
            "select position, is_side from session_events where session = ? and at between ? and ?",
            (facts.n, turn.first, turn.last),
        ):
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
            for native, what, sentence in self._connection.execute(
                "select native, what, sentence from losses join sessions on n = session"
                " where source = ? and harness = ?",
                (batch.source, batch.harness),
            ):
                totals[native, what] = (sentence, 0)
        for loss in losses:
            if loss.session in plan.held and loss.session not in plan.touched:
                continue
            known = totals.get((loss.session, loss.what))
            if known is None:
                facts = self._facts(plan, batch.harness, loss.session)
                row = self._connection.execute(
                    "select count from losses where session = ? and what = ? and source = ?",
                    (facts.n, loss.what, batch.source),
                ).get
                known = ("", row or 0)
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


def _note_time(facts: Facts, occurred_at: str) -> None:
    if not facts.last_activity or _is_later(occurred_at, facts.last_activity):
        facts.last_activity = occurred_at
    if not facts.started:
        facts.started = occurred_at


def _is_later(one: str, other: str) -> bool:
    if one.endswith("Z") and other.endswith("Z"):
        return one > other
    a, b = search.instant(one), search.instant(other)
    return a is not None and (b is None or a > b)


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H")
