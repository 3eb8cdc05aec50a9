"""Changes of memory, of logins and of the shared folder, as flows for faults."""

from __future__ import annotations

import os
from pathlib import Path

from memd import disk
from memd.errors import MemdError
from memd.protocol import Entry
from support_faults import Faults, installed
from support_flow import Flow
from support_heal_scene import Scene as Logins
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, snapshot
from support_topic_flows import FLOWS as TOPIC_FLOWS
from support_topic_flows import check_done, check_nothing_lost, check_settled, check_whole, retry, scene


class Heal(Flow):
    """Memory that is merged and linked in a login."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.scene = Logins(top, 1)

    def work(self) -> None:
        _raise_failed(self.scene.heal())

    def check_kept(self) -> None:
        self.scene.check_nothing_lost()

    def recover(self) -> None:
        self.scene.world.recover()

    def check_done(self) -> None:
        assert all(leads_to(path, self.scene.owned) for path in self.scene.entries())
        self.scene.check_nothing_lost()
        self.scene.check_settled()


class Enroll(Flow):
    """An agent home that is enrolled while a login has memory of it."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.world = World(top)
        self.agent, self.login = self.world.agent(), self.world.login()
        self.entry = self.world.entry(self.login, self.agent)
        put(self.entry + b"/note.md", b"the note", ns=OLD_NS)
        put(self.entry + b"/MEMORY.md", b"- [N](note.md) - said\n", ns=OLD_NS)
        self.bodies = bodies(self.world.home, self.world.work)

    def work(self) -> None:
        _raise_failed(self.world.enroll(self.agent))

    def check_kept(self) -> None:
        assert self.bodies <= bodies(self.world.home, self.world.work)

    def recover(self) -> None:
        self.world.recover()
        self.check_kept()
        self.world.enroll(self.agent)

    def check_done(self) -> None:
        self.check_kept()
        owned = self.world.owned(self.agent)
        assert leads_to(self.entry, owned)
        assert notes(owned) == {b"note.md": b"the note", b"MEMORY.md": b"- [N](note.md) - said\n"}
        before = snapshot(self.world.home, self.world.work)
        assert not [path for path in before if disk.is_temporary(os.path.basename(path))]
        self.world.heal()
        assert snapshot(self.world.home, self.world.work) == before


def _raise_failed(entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        if entry.outcome == "failed":
            raise MemdError(entry.reason, remedy=entry.remedy)


class Unenroll(Heal):
    """Memory that is given back to each login."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        with installed(Faults()):
            self.scene.heal()
        self.scene.bodies = bodies(self.scene.world.home, self.scene.world.work)
        self._owned = notes(self.scene.owned)

    def work(self) -> None:
        _raise_failed(self.scene.unenroll().entries)

    def recover(self) -> None:
        self.scene.world.recover()
        self.scene.check_nothing_lost()
        if self.scene.world.ownership().agents():
            self.scene.unenroll()

    def check_done(self) -> None:
        assert self.scene.world.ownership().agents() == ()
        for path in self.scene.entries():
            assert not os.path.islink(path)
            assert notes(path) == self._owned
        self.scene.check_settled()


class Topic(Flow):
    """One change of a shared memory folder."""

    flow = ""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self._do, prepare = TOPIC_FLOWS[self.flow]
        self.home = prepare(scene(top))

    def work(self) -> None:
        self._do(self.home.topics())

    def check_kept(self) -> None:
        check_nothing_lost(self.home, self.flow)
        check_whole(self.home)

    def restart(self) -> None:
        """A minute later: until then a lock that a power cut left without a name is another tool's."""
        lock = self.home.shared + b"/.lock"
        if os.path.exists(lock) and os.path.getsize(lock) == 0:
            at_ns = (self.home.clock.wall - 61_000) * 1_000_000
            os.utime(lock, ns=(at_ns, at_ns))

    def recover(self) -> None:
        self.home.clock.pass_ms(12_000)
        retry(self._do, self.home, self.flow)
        self.after_answer()

    def after_answer(self) -> None:
        retry(lambda topics: topics.pin("Two", True), self.home, self.flow)  # it is free

    def check_done(self) -> None:
        self.check_answered()
        check_settled(self.home)

    def check_answered(self) -> None:
        """The lock's end need not last: one without a name is nobody's after a minute."""
        self.check_kept()
        check_done(self.home, self.flow)


def topic_flow(name: str) -> type[Flow]:
    return type("Topic", (Topic,), {"flow": name, "__doc__": f"A shared memory folder: {name}."})
