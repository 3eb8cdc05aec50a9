"""Agent-owned memory as the rest of memd sees it: enrol, heal, unenrol, recover, and what there is to watch.

Every call reads the registry and the logins anew and may run in several processes at once; what is written is
under a lock per agent. Nothing here is async: callers run it in a thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import msgspec

from memctl.paths import shown
from memd import disk, protocol
from memd.checkout import project_root
from memd.errors import MemdError, NeedsConfirmation, NotFound, Refused
from memd.memory import sources, unenroll
from memd.memory.agents import Agents, Enrolment, owned_folder
from memd.memory.config_homes import ConfigHome, find_config_homes, find_unproven
from memd.memory.decide import is_within
from memd.memory.heal import Healing
from memd.memory.home import inspect, open_owned, open_parent
from memd.memory.key import project_key
from memd.memory.leftovers import clean_folder, clean_links, clean_tree
from memd.memory.look import open_holder
from memd.memory.names import SUPERSEDED, is_aside
from memd.memory.record import Records
from memd.memory.report import at_rest, failed
from memd.memory.watching import watch_points
from memd.memory.where import entry_path, places
from memd.memory.work import Surroundings, Work
from memd.protocol import Entry


class Ownership:
    """Which agents own their memory, and the care for it.

    home        the person's home folder; logins are looked for there
    data        the registry is kept there
    state       what is remembered between runs is kept there; it can be lost
    configured  further config homes, from the configuration
    temp_roots  folders whose content does not last; None: the usual ones
    """

    def __init__(
        self,
        *,
        home: bytes,
        data: bytes,
        state: bytes,
        configured: tuple[bytes, ...] = (),
        temp_roots: tuple[bytes, ...] | None = None,
    ) -> None:
        self._home = home
        self._configured = configured
        self._agents = Agents(data)
        self._records = Records(state)
        self._temporary = _usual_temporary(home) if temp_roots is None else temp_roots

    # ---------------------------------------------------------------- looking

    @property
    def registry(self) -> bytes:
        """The file that says which agents own their memory."""
        return self._agents.path

    def agents(self) -> tuple[protocol.Agent, ...]:
        """raises ConfigError, Refused, DiskError when the registry is not understood or cannot be read"""
        return tuple(enrolment.agent() for enrolment in self._agents.all())

    def config_homes(self, seen: Iterable[bytes] = ()) -> tuple[ConfigHome, ...]:
        """Every login there is now.

        seen  config homes that clients use; they are remembered, and count whenever they are there
        """
        paths = tuple(os.path.normpath(p) for p in seen if p.startswith(b"/") and b"\0" not in p)
        known = self._records.remember(config_homes=paths) if paths else self._records.known()
        return find_config_homes(self._home, (*self._configured, *known.config_homes))

    def entries(self) -> tuple[Entry, ...]:
        """The last known result of every entry of every agent."""
        found: list[Entry] = []
        for enrolment in self._agents.all():
            found += self._records.of(enrolment.home).record().entries
        return tuple(found)

    def kept(self) -> tuple[sources.Kept, ...]:
        """What healing has put by, for people to delete: folders set aside, and superseded notes."""
        found = []
        for enrolment in self._agents.all():
            record = self._records.of(enrolment.home).record()
            paths = [enrolment.owned + b"/" + SUPERSEDED]
            paths += [entry.set_aside for entry in record.entries if entry.set_aside]
            paths += [source.path for source in record.sources if is_aside(source.path)]
            for path in dict.fromkeys(paths):
                with contextlib.suppress(MemdError):
                    found.append(sources.kept_in(path))
        return tuple(kept for kept in found if kept is not None)

    def where(self, path: bytes) -> protocol.WhereReply:
        """Where the memory of work in `path` is kept, login by login; raises UsageError."""
        root = project_root(path)
        key = project_key(root)
        owned = next((e.owned for e in self._agents.all() if e.home == root), b"")
        return protocol.WhereReply(
            root=root, key=key, owned=owned, entries=places(root, key, owned or None, self.config_homes())
        )

    def watch_points(self) -> tuple[bytes, ...]:
        """Real directories in whose direct children a new login, project or memory folder shows."""
        named = (*self._configured, *self._records.known().config_homes)
        homes = tuple(enrolment.home for enrolment in self._agents.all())
        return watch_points(self._home, self.config_homes(), homes, named, find_unproven(self._home))

    # ---------------------------------------------------------------- healing

    def heal(self, *, cwd: bytes = b"", dry_run: bool = False, now_ms: int) -> tuple[Entry, ...]:
        """Every entry of every agent, or of the one whose project `cwd` is in, becomes the link it should be.

        dry_run  only say, in `steps`, what would be done
        raises   what keeps the registry from being read; all other trouble is told in the entries
        """
        enrolments = [e for e in self._agents.all() if not e.is_leaving]
        if cwd:
            root = project_root(cwd)
            enrolments = [e for e in enrolments if e.home == root]
        around = self._around()
        return tuple(
            entry for e in enrolments for entry in self._heal(e, around, dry_run=dry_run, now_ms=now_ms)
        )

    def _heal(
        self, enrolment: Enrolment, around: Surroundings, *, dry_run: bool = False, now_ms: int
    ) -> tuple[Entry, ...]:
        files = self._records.of(enrolment.home)
        try:
            healing = Healing(enrolment, around, files, self._records, now_ms)
            return healing.plan() if dry_run else healing.run()
        except MemdError as reason:
            return tuple(failed(entry, reason) for entry in _blanks(enrolment, around))

    def _around(self) -> Surroundings:
        return Surroundings(
            logins=self.config_homes(),
            homes=tuple(e.home for e in self._agents.all()),
            targets={t.path: t.ino for t in self._records.known().targets},
            temporary=self._temporary,
        )

    # --------------------------------------------------------------- enrolling

    def enroll(self, path: bytes, *, confirmed: bool, now_ms: int) -> protocol.Enrolled:
        """Make the directory an agent home and heal it; nothing changes when it is one already.

        raises NotFound, NeedsConfirmation when the memory of `path` is that of a bigger project, UsageError,
        Refused, DiskError
        """
        facts = disk.follow(path)
        if facts is None or not os.path.isdir(path):
            raise NotFound(f"{shown(path)} is not a directory", remedy="Name the directory of the agent.")
        root = project_root(path)
        if root != os.path.realpath(path) and not confirmed:
            raise NeedsConfirmation(
                f"{shown(path)} lies in the project {shown(root)}, whose memory it shares; "
                f"only that can be enrolled",
                root,
            )
        self._refuse_odd_home(root)
        owned = owned_folder(root)
        place = inspect(root, owned, self.config_homes())
        if place.state == "obstacle":
            raise Refused(place.obstacle, remedy="Put a real folder in its place, or move it away.")
        enrolment, is_new = self._agents.add(root, owned, now_ms=now_ms)
        if place.state == "missing":
            self._begin(enrolment, now_ms)
        entries = self._heal(enrolment, self._around(), now_ms=now_ms)
        return protocol.Enrolled(agent=enrolment.agent(), entries=entries, is_new=is_new)

    def _begin(self, enrolment: Enrolment, now_ms: int) -> None:
        """Make the owned folder. If there was one, it is given up: what was set aside is merged again."""
        files = self._records.of(enrolment.home)
        record = files.record()
        if record != record.begun_anew(now_ms):
            with files.lock():
                files.save(files.record().begun_anew(now_ms))
        open_owned(enrolment.home, enrolment.owned)[0].close()

    def _refuse_odd_home(self, root: bytes) -> None:
        if root == b"/":
            raise Refused("the root directory cannot be an agent home", remedy="Name a directory below it.")
        for login in self.config_homes():
            if is_within(root, login.real):
                raise Refused(
                    f"{shown(root)} lies in the login {shown(login.path)}, and its memory would die with it",
                    remedy="Enroll a directory outside of the login.",
                )

    def unenroll(self, path: bytes, *, now_ms: int) -> protocol.Unenrolled:
        """Give every login of the agent a folder with a copy of the memory, and forget the agent.

        raises NotFound when no agent lives at `path` or around it, and what keeps the registry from being
        changed. While an entry fails the agent stays enrolled, unhealed, and the call can be made again
        """
        enrolment = self._find(path)
        self._agents.mark_leaving(enrolment.home)
        entries = self._give_back(enrolment, now_ms=now_ms)
        return protocol.Unenrolled(agent=enrolment.agent(), entries=entries)

    def _find(self, path: bytes) -> Enrolment:
        agents = self._agents.all()
        for home in (os.path.normpath(path), os.path.realpath(path), project_root(path)):
            for enrolment in agents:
                if enrolment.home == home:
                    return enrolment
        raise NotFound(
            f"no agent is enrolled at {shown(path)}", remedy="See `memctl status` for those that are."
        )

    def _give_back(self, enrolment: Enrolment, *, now_ms: int) -> tuple[Entry, ...]:
        around = self._around()
        files = self._records.of(enrolment.home)
        blanks = _blanks(enrolment, around)
        try:
            lock = files.lock() if disk.look(enrolment.home) is not None else contextlib.nullcontext()
            with lock:
                work = Work(enrolment, around, files, self._records, now_ms)
                entries = unenroll.leave(work, blanks)
                work.record = msgspec.structs.replace(
                    work.record, entries=tuple(at_rest(e) for e in entries if e.outcome == "failed")
                )
                work.save()
        except MemdError as reason:
            return tuple(failed(entry, reason) for entry in blanks)
        if not any(entry.outcome == "failed" for entry in entries):
            self._agents.remove(enrolment.home)
        return entries

    # -------------------------------------------------------------- recovering

    def recover(self, *, now_ms: int) -> tuple[Entry, ...]:
        """Complete what a crash left, try again what could not be read, and heal. Called at start.

        raises what keeps the registry from being read
        """
        for clean in (self._agents.clean, self._records.clean):
            with contextlib.suppress(MemdError):
                clean()
        entries: list[Entry] = []
        for enrolment in self._agents.all():
            if enrolment.is_leaving:
                entries += self._give_back(enrolment, now_ms=now_ms)
                continue
            with contextlib.suppress(MemdError):
                self._freshen(enrolment, self._around(), now_ms)
            entries += self._heal(enrolment, self._around(), now_ms=now_ms)
        return tuple(entries)

    def _freshen(self, enrolment: Enrolment, around: Surroundings, now_ms: int) -> None:
        """Take away half-written copies, and let what could not be read be tried again."""
        files = self._records.of(enrolment.home)
        record = files.record()
        again = tuple(sources.with_another_try(source, now_ms) for source in record.sources)
        with files.lock():
            files.clean()
            state = inspect(enrolment.home, enrolment.owned, ()).state
            parent_path = os.path.dirname(enrolment.owned)
            if state == "folder" or (state == "missing" and disk.look(parent_path) is not None):
                with open_parent(enrolment.home, enrolment.owned) as parent:
                    clean_folder(parent)
                    if state == "folder":
                        with parent.folder(os.path.basename(enrolment.owned)) as owned:
                            clean_tree(owned)
            for blank in _blanks(enrolment, around):
                login = around.login(blank.config_home)
                holder = open_holder(login, blank.path) if login is not None else None
                if holder is not None:
                    with holder:
                        clean_links(holder, (enrolment.owned, *around.targets))
            if again != record.sources:
                files.save(msgspec.structs.replace(record, sources=again))


def _blanks(enrolment: Enrolment, around: Surroundings) -> tuple[Entry, ...]:
    key = project_key(enrolment.home)
    return tuple(
        Entry(
            agent=enrolment.home,
            config_home=login.path,
            path=entry_path(enrolment.home, key, login.path).path,
            outcome="skipped",
        )
        for login in around.logins
    )


def _usual_temporary(home: bytes) -> tuple[bytes, ...]:
    """The folders for temporary files; one that the home lies in says nothing, whatever TMPDIR is set to."""
    usual = (b"/tmp", b"/var/tmp", b"/dev/shm", b"/run/user/%d" % os.getuid())
    named = os.environb.get(b"TMPDIR", b"")
    found = dict.fromkeys(os.path.realpath(p) for p in (named, *usual) if p.startswith(b"/"))
    real_home = os.path.realpath(home)
    return tuple(root for root in found if not is_within(real_home, root))
