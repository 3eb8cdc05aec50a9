"""Healing one agent: every entry of it in every login becomes the link it should be, or says why not.

A run first looks, without lock and without writing. Only when something is to do it takes the agent's lock
and looks again. Real folders come first, then what is absent, then links: so a link that somebody made from
one login to another is right by the time it is looked at, and stays. Trouble with one entry is told in its
result and stops no other.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from memctl.paths import shown
from memd import disk
from memd.checkout import project_root
from memd.errors import MemdError, TryAgain
from memd.memory import home, rejoin, sources, takeover, unenroll
from memd.memory.agents import Enrolment
from memd.memory.belongs import foreign_cwd
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import ACTS, Decision, Facts, decide, temporary_objection
from memd.memory.dryrun import planned
from memd.memory.index import WARN_LINES, line_count
from memd.memory.journal import GiveBack, Journal, MoveOut, Recheck, Rejoin, TakeOver
from memd.memory.key import project_key
from memd.memory.look import look_at
from memd.memory.moveout import move_out, resume_move_out
from memd.memory.names import INDEX
from memd.memory.record import AgentFiles, Record, Records, Source
from memd.memory.report import at_rest, counted, failed, index_warning, left_behind
from memd.memory.where import entry_path
from memd.memory.work import Surroundings, Work, was_there
from memd.protocol import Entry, LeftBehind

MAX_TRIES = 4  # at an entry that changes while it is worked on
MAX_INDEX_BYTES = 1 << 20

MOVED = "Enroll it where it is now, and unenroll the old path."
RESTLESS = "Nothing to do: the next look tries again."
NOT_ROOT = "Unenroll it and enroll that folder instead."

# links to nothing come last: what one says may be there once another login is healed
_ORDER = {"take": 0, "link": 1, "merge-target": 2, "replace": 2}


class Look(msgspec.Struct, frozen=True):
    """One login, what stands in it, what is to be done about that."""

    login: ConfigHome
    facts: Facts
    decision: Decision


class Healing:
    """One run for one agent."""

    def __init__(
        self, enrolment: Enrolment, around: Surroundings, files: AgentFiles, records: Records, now_ms: int
    ) -> None:
        self._enrolment = enrolment
        self._around = around
        self._files = files
        self._records = records
        self._now_ms = now_ms
        self._key = project_key(enrolment.home)
        self._results: dict[bytes, Entry] = {}  # of entries that were worked on
        self._copies_left: tuple[LeftBehind, ...] = ()  # conflict copies that stay where they are
        self._place: home.OwnedPlace | None = None  # None: agent home or owned folder are not there

    def run(self) -> tuple[Entry, ...]:
        """Heal; raises only what concerns all entries alike (the state folder cannot be read)."""
        record = self._files.record()
        looks = self._looks()
        if self._has_work(record, looks):
            with self._files.lock():
                record = self._work()
            looks = self._looks()
        entries = self._report(record, looks)
        self._keep(record, entries)
        return entries

    def plan(self) -> tuple[Entry, ...]:
        """What `run` would do, in words. Writes nothing."""
        record = self._files.record()
        looks = self._looks()
        for look in looks:
            if look.decision.action in ACTS and self._place is not None:
                entry = self._blank(look.login, look.facts.path)
                try:
                    self._results[entry.path] = planned(
                        self._enrolment, self._place, record, look.login, look.facts, look.decision, entry
                    )
                except MemdError as reason:
                    self._results[entry.path] = failed(entry, reason)
        entries = self._report(record, looks)
        steps = self._steps_for_copies()
        if entries and steps:
            first = msgspec.structs.replace(entries[0], steps=(*entries[0].steps, *steps))
            entries = (first, *entries[1:])
        return entries

    # ---------------------------------------------------------------- looking

    def _objection(self) -> Decision | None:
        """What speaks against every entry of this agent; looks at the owned folder, too."""
        self._place = None
        agent_home = self._enrolment.home
        facts = disk.look(agent_home)
        if facts is None or os.path.realpath(agent_home) != agent_home or not os.path.isdir(agent_home):
            return Decision("skip", f"the agent home {shown(agent_home)} is not there", MOVED)
        root = project_root(agent_home)
        if root != agent_home:
            return Decision("skip", f"the agent home belongs to the project {shown(root)}", NOT_ROOT)
        self._place = home.inspect(agent_home, self._enrolment.owned, self._around.logins)
        if self._place.state == "obstacle":
            return Decision("skip", self._place.obstacle, "Put a real folder in its place.")
        if self._place.state == "missing" and was_there(self._enrolment, self._around, self._files.record()):
            reason = f"away: the agent's memory {shown(self._enrolment.owned)} is not there now"
            self._place = None
            return Decision("skip", reason, home.AWAY)
        return None

    def _looks(self) -> list[Look]:
        objection = self._objection()
        return [self._look(login, objection) for login in self._around.logins]

    def _look(self, login: ConfigHome, objection: Decision | None) -> Look:
        entry = entry_path(self._enrolment.home, self._key, login.path)
        if objection is not None:
            return Look(login, Facts(path=entry.path, kind="blocked"), objection)
        try:
            owned = self._place.facts if self._place is not None else None
            facts = look_at(login, entry, self._enrolment.home, owned)
        except MemdError as reason:
            facts = Facts(path=entry.path, kind="blocked", obstacle=str(reason))
            return Look(login, facts, Decision("skip", str(reason), reason.remedy))
        return Look(login, facts, self._decide(login, facts))

    def _decide(self, login: ConfigHome, facts: Facts) -> Decision:
        owned = self._place.facts if self._place is not None else None
        ino = owned.st_ino if owned is not None else 0
        decision = decide(facts, self._around.circumstances(self._enrolment, ino))
        if decision.action not in ACTS:
            return decision
        objection = temporary_objection(self._enrolment.home, login.real, self._around.temporary)
        if objection:
            return Decision("skip", objection, "Enroll agents outside of temporary folders.")
        cwd = foreign_cwd(os.path.dirname(facts.path), self._enrolment.home)
        if cwd is not None:
            reason = f"the transcripts beside it are of work in {shown(cwd)}: two projects share this folder"
            return Decision("skip", reason, "Give one of the two directories another name.")
        return decision

    def _has_work(self, record: Record, looks: list[Look]) -> bool:
        if self._place is None or self._place.state == "obstacle":
            return False
        if self._files.journals():
            return True
        return (
            self._place.state == "in-login"
            or any(look.decision.action in ACTS for look in looks)
            or any(self._has_news(source) for source in record.sources)
            or self._has_copies()
        )

    # ---------------------------------------------------------------- working

    def _work(self) -> Record:
        """Under the lock: finish what was begun, then heal."""
        work = Work(self._enrolment, self._around, self._files, self._records, self._now_ms)
        unfinished = self._finish(work)
        if self._objection() is None:
            move_out(work)
            for look in sorted(self._looks(), key=lambda look: _ORDER.get(look.decision.action, 3)):
                if look.facts.path not in self._results:
                    self._heal(work, look.login)
            self._recheck(work)
            self._rejoin(work)
            for journal in unfinished:
                entry = self._results.get(journal.path)
                if entry is None or entry.outcome != "failed":
                    self._files.clear_journal(journal)
        return work.record

    def _finish(self, work: Work) -> list[Journal]:
        """Finish what earlier runs began; returns the journals of what has to be done anew."""
        again: list[Journal] = []
        for journal in self._files.journals():
            match journal:
                case TakeOver():
                    if not self._resume(work, journal):
                        again.append(journal)
                case MoveOut():
                    resume_move_out(work, journal)
                case Recheck():
                    work.won[journal.path] = journal.won
                    again.append(journal)
                case Rejoin():
                    work.won[journal.path] = journal.won
                case GiveBack():
                    self._resume(work, journal)
        return again

    def _resume(self, work: Work, journal: TakeOver | GiveBack) -> bool:
        """Whether what was begun at an entry is at an end now, good or bad."""
        login = self._around.login(journal.config_home)
        if login is None:
            return True  # the login is away; should it come back, this is finished then
        entry = self._blank(login, journal.path)
        try:
            if isinstance(journal, GiveBack):
                unenroll.resume(work, login, journal, entry)
                return True
            result = takeover.resume(work, login, journal, entry)
        except takeover.Changed:
            return False
        except home.Away:
            return True  # it is finished when the owned folder is back
        except MemdError as reason:
            result = failed(entry, reason)
        if result is not None:
            self._results[journal.path] = result
        return result is not None

    def _heal(self, work: Work, login: ConfigHome) -> None:
        for _ in range(MAX_TRIES):
            look = self._look(login, self._objection())
            if look.decision.action not in ACTS:
                return
            entry = self._blank(login, look.facts.path)
            try:
                self._results[entry.path] = self._act(work, look, entry)
                return
            except (takeover.Changed, home.Away):
                continue
            except MemdError as reason:
                self._results[entry.path] = failed(entry, reason)
                return
        restless = TryAgain(
            "it changes while it is worked on", remedy="Nothing to do: the next look tries again."
        )
        self._results[entry.path] = failed(entry, restless)

    def _act(self, work: Work, look: Look, entry: Entry) -> Entry:
        match look.decision.action:
            case "link":
                takeover.make_link(work, look.login, look.facts)
            case "replace":
                takeover.replace_link(work, look.login, look.facts)
            case _:
                return takeover.take_over(work, look.login, look.facts, look.decision, entry)
        return msgspec.structs.replace(entry, outcome="linked", changed=True, healed_at_ms=self._now_ms)

    def _recheck(self, work: Work) -> None:
        for source in work.record.sources:
            if source.path not in work.won and not self._has_news(source):
                continue
            entry = self._results.get(source.entry) or self._last(work.record, source.entry)
            try:
                noted, tally = sources.merge_news(work, source)
            except home.Away:
                return
            except MemdError as reason:
                if entry is not None:
                    self._results[source.entry] = failed(entry, reason)
                continue
            moved = tally.added + tally.replaced + tally.superseded > 0
            if entry is not None and moved:
                entry = msgspec.structs.replace(entry, changed=True, left_behind=noted.left)
                self._results[source.entry] = counted(entry, tally)

    def _has_news(self, source: Source) -> bool:
        try:
            return sources.has_news(source, self._now_ms)
        except MemdError:
            return True  # trying to merge finds the words for it

    def _has_copies(self) -> bool:
        if self._place is None or self._place.state != "folder":
            return False
        try:
            return bool(rejoin.copies_in(self._enrolment, self._now_ms))
        except home.Away:
            return False
        except MemdError:
            return True  # trying to merge finds the words for it

    def _steps_for_copies(self) -> tuple[str, ...]:
        if self._place is None or self._place.state != "folder":
            return ()
        try:
            copies = rejoin.copies_in(self._enrolment, self._now_ms)
        except MemdError:
            return ()
        return tuple(
            f"merge the conflict copy {shown(copy.target)} into {shown(copy.rel)}, and keep it in _superseded"
            for copy in copies
        )

    def _rejoin(self, work: Work) -> None:
        """Bring conflict copies in; what is to be told of it is told with the first entry."""
        if self._objection() is not None or self._place is None or self._place.state != "folder":
            return
        login = next(iter(self._around.logins), None)
        path = entry_path(self._enrolment.home, self._key, login.path).path if login is not None else b""
        try:
            done = rejoin.rejoin(work)
        except home.Away:
            return
        except MemdError as reason:
            if login is None:
                raise
            self._results[path] = failed(self._results.get(path) or self._blank(login, path), reason)
            return
        self._copies_left = left_behind(self._enrolment.owned, done.left)
        if login is not None and done.moved:
            last = self._last(work.record, path)
            entry = self._results.get(path) or (last and msgspec.structs.replace(last, left_behind=()))
            if entry is not None and entry.outcome in ("linked", "migrated"):
                self._results[path] = counted(msgspec.structs.replace(entry, changed=True), done.tally)

    # -------------------------------------------------------------- reporting

    def _blank(self, login: ConfigHome, path: bytes) -> Entry:
        return Entry(agent=self._enrolment.home, config_home=login.path, path=path, outcome="skipped")

    def _last(self, record: Record, path: bytes) -> Entry | None:
        return next((e for e in record.entries if e.path == path), None)

    def _report(self, record: Record, looks: list[Look]) -> tuple[Entry, ...]:
        warning = self._index_warning()
        entries = [self._told(look, record, warning) for look in looks]
        if entries and self._copies_left:
            left = (*entries[0].left_behind, *self._copies_left)
            entries[0] = msgspec.structs.replace(entries[0], left_behind=left)
        return tuple(entries)

    def _told(self, look: Look, record: Record, warning: tuple[str, str]) -> Entry:
        entry = self._results.get(look.facts.path)
        last = self._last(record, look.facts.path)
        if entry is None:
            entry = self._blank(look.login, look.facts.path)
            is_linked = look.decision.action == "linked"
            entry = msgspec.structs.replace(
                entry,
                outcome="linked" if is_linked else "skipped",
                reason=look.decision.reason,
                remedy=look.decision.remedy,
            )
        if last is not None and not entry.changed:
            entry = msgspec.structs.replace(
                entry,
                healed_at_ms=last.healed_at_ms,
                set_aside=entry.set_aside or last.set_aside,
            )
        left = {b.path: b for s in record.sources if s.entry == entry.path for b in s.left}
        still = tuple(b for b in left.values() if os.path.lexists(b.path))
        entry = msgspec.structs.replace(entry, left_behind=entry.left_behind or still)
        if entry.set_aside and not entry.reason and entry.outcome in ("linked", "migrated"):
            entry = msgspec.structs.replace(entry, reason=warning[0], remedy=warning[1])
        return entry

    def _index_warning(self) -> tuple[str, str]:
        path = self._enrolment.owned + b"/" + INDEX
        try:
            text = disk.read_file(path, MAX_INDEX_BYTES)
        except MemdError:
            return "", ""
        return index_warning(self._enrolment.owned, line_count(text or b""), WARN_LINES)

    def _keep(self, record: Record, entries: tuple[Entry, ...]) -> None:
        """Remember the results, when they are news; another run that is at work remembers its own."""
        resting = tuple(at_rest(entry) for entry in entries)
        if resting == record.entries:
            return
        with contextlib.suppress(MemdError), self._files.lock(wait_s=0):  # else the next run tells it again
            self._files.save(msgspec.structs.replace(self._files.record(), entries=resting))
