"""An agent and logins before they are healed or unenrolled, and what must hold of them after a fault."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from memd import disk
from memd.protocol import Entry, Unenrolled
from support_faults import Faults, installed
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, read, snapshot, superseded

SECRET = b'{"token": "kept as it is"}'

Work = Callable[["Scene"], object]


class Scene:
    """An enrolled agent with memory of its own, and logins that appear with theirs."""

    def __init__(self, top: Path, logins: int) -> None:
        self.world = World(top)
        self.agent = self.world.agent()
        self.owned = self.world.owned(self.agent)
        with installed(Faults()):
            self.world.enroll(self.agent)
        put(self.owned + b"/both.md", b"owned, older", ns=OLD_NS)
        put(self.owned + b"/tie.md", b"owned, as old", ns=OLD_NS)
        put(self.owned + b"/clash", b"owned, a file", ns=OLD_NS)
        put(self.owned + b"/MEMORY.md", b"# M\n\n- [B](both.md) - owned\n", ns=OLD_NS)
        self.logins = [self.world.login(b".claude-%d" % n) for n in range(logins)]
        for n, login in enumerate(self.logins):
            put(login + b"/projects/other/memory/note.md", b"another project's %d" % n)
            self._fill(self.world.entry(login, self.agent), b"%d" % n, n)
        self.bodies = bodies(self.world.home, self.world.work)

    def _fill(self, memory: bytes, mark: bytes, later: int) -> None:
        put(memory + b"/both.md", b"incoming, newer " + mark, ns=OLD_NS + 1 + later)
        put(memory + b"/tie.md", b"incoming, as old " + mark, ns=OLD_NS)
        put(memory + b"/clash/inner.md", b"incoming, in a folder " + mark, ns=OLD_NS)
        put(memory + b"/sub/own.md", b"own " + mark, ns=OLD_NS + later)
        put(memory + b"/_superseded/h.md.x", b"history " + mark, ns=OLD_NS)
        put(memory + b"/MEMORY.md", b"# M\n\n- [B](both.md) - login\n- [O](sub/own.md)\n", ns=OLD_NS)

    def entries(self) -> list[bytes]:
        return [self.world.entry(login, self.agent) for login in self.logins]

    def heal(self) -> tuple[Entry, ...]:
        return self.world.heal()

    def unenroll(self) -> Unenrolled:
        return self.world.ownership().unenroll(self.agent, now_ms=self.world.tick())

    def check_nothing_lost(self) -> None:
        found = bodies(self.world.home, self.world.work)
        missing = self.bodies - found
        assert not {body for body in missing if not body.startswith(b"# M")}, missing
        assert b"" not in found
        for rel, body in notes(self.owned).items():
            is_whole = body in self.bodies or rel == b"MEMORY.md"
            assert is_whole or disk.is_temporary(os.path.basename(rel)), (rel, body)
        for n, login in enumerate(self.logins):
            assert read(login + b"/.credentials.json") == SECRET
            assert read(login + b"/projects/other/memory/note.md") == b"another project's %d" % n

    def check_settled(self) -> None:
        """One more run changes nothing, and no half-written copy is left."""
        before = snapshot(self.world.home, self.world.work)
        assert not [path for path in before if disk.is_temporary(os.path.basename(path))]
        entries = self.heal()
        assert not [entry for entry in entries if entry.changed or entry.outcome == "failed"], entries
        assert snapshot(self.world.home, self.world.work) == before

    def check_healed(self, good: Scene) -> None:
        """The links are right, and the owned folder is as if nothing had happened."""
        for path in self.entries():
            assert leads_to(path, self.owned), path
        assert notes(self.owned) == notes(good.owned)
        assert len(superseded(self.owned)) <= len(superseded(good.owned)) + 2  # logins may change places
        self.check_settled()

    def check_returned(self, good: Scene) -> None:
        assert self.world.ownership().agents() == ()
        for path, other in zip(self.entries(), good.entries(), strict=True):
            assert not os.path.islink(path)
            assert notes(path) == notes(other)
        self.check_settled()


def healed(scene: Scene) -> object:
    return scene.heal()


def unenrolled(scene: Scene) -> object:
    return scene.unenroll()
