"""Runs on a ledger in a temporary folder: the steps of one, told shortly."""

from __future__ import annotations

from typing import Any

from memd.ledger.store.workstreams import Linked, Process, Run
from memd.workstream import closing, delivery, linking, opening
from memd.workstream.delivery import Claimed, Offer, Start
from memd.workstream.lease import See, unseen
from memd.workstream.opening import Ask, Prepared
from memd.workstream.room import Room
from memd.workstream.selection import Wanted
from support_workstreams import CWD, LAUNCHER, PLACE, Lines

ROOM = Room(10_000, "characters")


class Runs:
    """Numbers workstreams w1, w2, ... and runs run-1, run-2, ..."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.count = 0
        self.workstreams = 0

    def prepare(self, harness: str = "claude", *, see: See = unseen, **more: Any) -> Prepared:
        wanted = Wanted(workstream=more.pop("workstream", ""), new=more.pop("new", ""))
        fields: dict[str, Any] = {"place": PLACE, "cwd": CWD, "harness": harness, "launcher": LAUNCHER}
        ask = Ask(**{**fields, "wanted": wanted, **more})
        self.count += 1
        name = f"w{self.workstreams + 1}"
        made = self.lines.work(lambda work: opening.prepare(work, ask, name, f"run-{self.count}", see))
        self.workstreams += made.is_new
        return made

    def plan(self, run: str, **more: Any) -> Run:
        return self.lines.work(lambda work: opening.plan(work, run, **more))

    def start(self, run: str, agent: Process | None = None) -> Run:
        return self.lines.work(lambda work: opening.start(work, run, agent))

    def launch(self, harness: str = "claude", session: str = "", **more: Any) -> Run:
        """Prepared, planned on that session, started."""
        made = self.prepare(harness, **more)
        self.plan(made.run.id, expected=session)
        return self.start(made.run.id)

    def link(self, run: str, session: str, *, is_own: bool | None = True, **more: Any) -> Run | None:
        harness = more.pop("harness", "claude")
        return self.lines.work(lambda work: linking.link(work, run, harness, session, is_own=is_own, **more))

    def offer(self, run: Run | None, *, room: Room = ROOM, **more: Any) -> Offer:
        """What would be told to a session that starts now."""
        fields: dict[str, Any] = {
            "harness": "claude" if run is None else run.harness,
            "cwd": CWD,
            "workspace": PLACE.workspace,
            "project": PLACE.project,
            "session": "" if run is None else run.session,
            "run": run,
        }
        activity = more.pop("source_activity_ms", 0)
        start = Start(**{**fields, **more})
        material = delivery.gather(self.lines.reader.workstreams, start, activity)
        return delivery.compose(material, room, self.lines.clock.wall_ms)

    def claim(self, offer: Offer) -> Claimed:
        return self.lines.work(lambda work: delivery.claim(work, offer))

    def told(self, run: Run | None, **more: Any) -> Claimed:
        """What a session that starts now is told."""
        return self.claim(self.offer(run, **more))

    def close(self, run: str, *, is_imported: bool = True) -> closing.Closed:
        return self.lines.work(lambda work: closing.close(work, run, is_imported=is_imported))

    def run(self, run: str) -> Run:
        found = self.lines.reader.workstreams.run(run)
        assert found is not None
        return found

    def linked(self, session: str, harness: str = "claude", workstream: str = "w1") -> Linked | None:
        for one in self.lines.reader.workstreams.linked(workstream):
            if (one.harness, one.session) == (harness, session):
                return one
        return None

    def current(self, harness: str = "claude", workstream: str = "w1") -> str:
        """The session that the harness would resume."""
        for one in self.lines.reader.workstreams.linked(workstream):
            if one.harness == harness and one.is_current:
                return one.session
        return ""

    def names(self) -> list[str]:
        return [row.name for row in self.lines.reader.workstreams.workstreams(PLACE)]
