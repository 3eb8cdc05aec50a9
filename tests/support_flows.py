"""Every flow by its name (`support_flow`), and those of what the daemon remembers and carries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memd import disk
from memd.service.environments import Environments
from memd.service.hook_log import HookLog
from memd.service.spool import Spool
from support_faults import Faults, installed
from support_flow import Flow
from support_flows_backup import FLOWS as BACKUP_FLOWS
from support_flows_ledger import Forget, Import, Life
from support_flows_memctl import HookInstall, HookNote, HookUninstall, RegistryNote, RegistryRename
from support_flows_memory import Enroll, Heal, Unenroll, topic_flow
from support_logins import ID, ONE, TWO
from support_logins import Logins as TwoLogins
from support_logins import tree as files_of
from support_topic_flows import FLOWS as TOPIC_FLOWS


class Carry(Flow):
    """A session of another login that gets a copy, or the rest of one."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.logins = TwoLogins(top)
        self.logins.write(self.logins.new, ONE)
        self.whole = files_of(self.logins.old)

    def work(self) -> None:
        self.logins.carry()

    def check_kept(self) -> None:
        assert files_of(self.logins.old) == self.whole
        assert self.logins.transcript(self.logins.new).read_bytes() in (ONE, ONE + TWO)
        for name, content in files_of(self.logins.new).items():
            assert disk.is_temporary(os.path.basename(os.fsencode(name))) or (
                name.endswith(f"{ID}.jsonl") or content == self.whole[name]
            )

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert files_of(self.logins.new) == self.whole
        assert files_of(self.logins.old) == self.whole


class Seen(Flow):
    """The places that clients named."""

    is_quiet = True

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.path = bytes(top / "state/environments.json")
        self.daemon = self._start()
        with installed(Faults()):
            self.daemon.see({"CODEX_HOME": b"/one"})

    def _start(self) -> Environments:
        return Environments(b"/home/dev", self.path, lambda: None)

    def _known(self, daemon: Environments) -> list[bytes]:
        return [one.variables.get("CODEX_HOME", b"") for one in daemon.all()[1:]]

    def work(self) -> None:
        self.daemon.see({"CODEX_HOME": b"/two"})

    def check_kept(self) -> None:
        assert self._known(self._start()) in ([b"/one"], [b"/one", b"/two"])

    def restart(self) -> None:
        self.daemon = self._start()

    def recover(self) -> None:
        self.daemon.see({"CODEX_HOME": b"/two"})

    def check_done(self) -> None:
        assert self._known(self._start()) == [b"/one", b"/two"]


class Fired(Flow):
    """When hooks last fired."""

    is_quiet = True

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.path = bytes(top / "state/hooks.json")
        self.log = HookLog(self.path, lambda: 5000)
        with installed(Faults()):
            self.log.note("claude", "Stop", 1000)
            self.log.save()

    def work(self) -> None:
        self.log.note("claude", "Stop", 2000)
        self.log.save()

    def check_kept(self) -> None:
        assert HookLog(self.path, lambda: 5000).fired() in ({"claude": {"Stop": at}} for at in (1000, 2000))

    def restart(self) -> None:
        self.log = HookLog(self.path, lambda: 5000)
        self.log.note("claude", "Stop", 2000)

    def recover(self) -> None:
        self.log.save()

    def check_done(self) -> None:
        assert HookLog(self.path, lambda: 5000).fired() == {"claude": {"Stop": 2000}}

    def check_answered(self) -> None:
        """Nobody was answered."""


class Drain(Flow):
    """Notes of hooks that are taken in; the daemon acts on each, and then it may go."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.path = top / "spool"
        self.path.mkdir()
        for number, text in enumerate((b"", b'{"one": 1}', b"", b'{"two": 2}')):
            fields = (b"memd-note1", b"antigravity", b"Stop", b"/w", b"", b"1", b"%d" % (1000 + number), text)
            (self.path / f"{1000 + number}000-{number}").write_bytes(b"\0".join(fields))
        self.done: list[bytes] = []
        self.spool = Spool(bytes(self.path))

    def work(self) -> None:
        """As the daemon does it: what was acted on is forgotten by the spool only afterwards."""
        while taken := self.spool.take(lambda note: True):
            left = list(taken)
            try:
                for note in taken:
                    self.done.append(note.payload)
                    self.spool.let_go(note)
                    left.remove(note)
            finally:
                for note in left:
                    self.spool.give_back(note)

    def check_kept(self) -> None:
        held = b"\n".join(path.read_bytes() for path in self.path.iterdir())
        for text in (b'{"one": 1}', b'{"two": 2}'):
            assert text in held or text in self.done, text

    def memory(self) -> list[Any]:
        return self.done

    def restart(self) -> None:
        self.spool = Spool(bytes(self.path))

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert {b'{"one": 1}', b'{"two": 2}'} <= set(self.done)
        assert list(self.path.iterdir()) == []

    def check_answered(self) -> None:
        """A note may come back: heeding it twice is heeding it once."""


FLOWS: dict[str, type[Flow]] = {
    "enroll": Enroll,
    "heal": Heal,
    "unenroll": Unenroll,
    **{f"memory {name}": topic_flow(name) for name in TOPIC_FLOWS},
    "import batch": Import,
    "forget": Forget,
    "life of a run": Life,
    "hook install": HookInstall,
    "hook uninstall": HookUninstall,
    "hook note": HookNote,
    "registry note": RegistryNote,
    "registry rename": RegistryRename,
    "session carry": Carry,
    "places seen": Seen,
    "hooks fired": Fired,
    "spool drain": Drain,
    **BACKUP_FLOWS,
}
