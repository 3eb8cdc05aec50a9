"""Every piece of work that changes something on the disk, in one form, so that each fault meets all of them.

A flow makes its scene in a folder when it is made. `work` is what a fault meets, inside `under`. Afterwards
`check_kept` says whether anything is gone or half there, `recover` does what the next start and a second try
do, and `check_done` compares with what an undisturbed run leaves.
"""

from __future__ import annotations

import contextlib
import os
import posix
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memctl import hook, hook_files, registry
from memd import disk
from memd.errors import MemdError
from memd.ledger.store.sqlite import SqliteWriter
from memd.protocol import Entry
from memd.service.environments import Environments
from memd.service.hook_log import HookLog
from memd.service.spool import Spool
from memd.workstream.delivery import Claimed
from support_faults import READS, WRITES, Faults, installed, installed_in_memctl
from support_heal_scene import Scene as Logins
from support_hook_scene import BEFORE
from support_hook_scene import Scene as Settings
from support_ledger import Ledger, holding
from support_ledger_faults import LedgerFaults, faulty
from support_ledger_flows import SOURCE, before, begin, coming, forget, life, outcome, state, state_of_texts
from support_logins import ID, ONE, TWO
from support_logins import Logins as TwoLogins
from support_logins import tree as files_of
from support_memory import bodies, leads_to, notes
from support_topic_flows import FLOWS as TOPIC_FLOWS
from support_topic_flows import check_done, check_nothing_lost, check_settled, check_whole, retry, scene


class Flow:
    """The common form. `is_quiet`: what cannot be written costs no answer, only what is remembered."""

    is_quiet = False

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with installed(faults):
            yield

    def work(self) -> None:
        raise NotImplementedError

    def check_kept(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        """After a kill another process goes on."""

    def memory(self) -> list[Any]:
        """What the world outside of the disk has got from it until now."""
        return []

    def recover(self) -> None:
        raise NotImplementedError

    def check_done(self) -> None:
        raise NotImplementedError

    def check_answered(self) -> None:
        """What was answered is there after a power cut without anybody's doing it again."""
        self.check_done()

    def after_answer(self) -> None:
        """What comes next, when nobody has to try again."""
        self.recover()


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


class _Memctl(Flow):
    """What memctl writes itself, in a home of its own."""

    @contextlib.contextmanager
    def user(self) -> Iterator[None]:
        real, compiled = posix.environ, hook_files._compile
        posix.environ = {b"HOME": bytes(self.top)}  # type: ignore[attr-defined,assignment]
        hook_files._compile = lambda _: None  # type: ignore[assignment]
        try:
            yield
        finally:
            posix.environ = real  # type: ignore[attr-defined]
            hook_files._compile = compiled

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with installed_in_memctl(faults):
            yield


class HookInstall(_Memctl):
    """Hooks that are put into settings which lead into somebody's dotfiles."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.scene = Settings(top)
        self.before = BEFORE

    def work(self) -> None:
        with self.user():
            self.scene.install()

    def check_kept(self) -> None:
        text = self.scene.real.read_bytes()
        assert text == self.before or self._is_after(text)
        assert self.scene.link.is_symlink()

    def _is_after(self, text: bytes) -> bool:
        return text.startswith(b"{\n") and b"memd_hook.py" in text and b'"theirs": "kept", // why' in text

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert self._is_after(self.scene.real.read_bytes())
        assert self.scene.left() == {"settings.json"}
        with self.user():
            assert hook_files.are_current()
            self.scene.uninstall()
            assert self.scene.real.read_bytes() == BEFORE
            self.scene.install()


class HookUninstall(HookInstall):
    """Hooks that are taken out again."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        with self.user(), installed_in_memctl(Faults()):
            self.scene.install()
        self.before = self.scene.real.read_bytes()

    def work(self) -> None:
        with self.user():
            self.scene.uninstall()

    def _is_after(self, text: bytes) -> bool:
        return text == BEFORE

    def check_done(self) -> None:
        assert self.scene.real.read_bytes() == BEFORE
        assert self.scene.left() == {"settings.json"}


class HookNote(_Memctl):
    """What a hook leaves when no daemon answers."""

    is_quiet = True
    TEXT = b'{"kept": "only here"}'

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        real = hook.posix
        hook.posix = _Posix(faults)  # type: ignore[assignment]
        try:
            yield
        finally:
            hook.posix = real

    def _texts(self) -> list[bytes]:
        with self.user():
            notes = Spool(hook.notes_dir()).take(lambda note: True)
        return [note.payload for note in notes]

    def work(self) -> None:
        with self.user(), contextlib.suppress(OSError):  # the hook has its answer to give, whatever this does
            hook.leave_note((b"antigravity", b"Stop", b"/w", b"", b"1"), self.TEXT)

    def check_kept(self) -> None:
        assert set(self._texts()) <= {self.TEXT}

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert set(self._texts()) == {self.TEXT}

    def check_answered(self) -> None:
        """Nobody was answered."""


class _Posix:
    """The hook path's `posix`, with the calls of `faults` in place of its own."""

    def __init__(self, faults: LedgerFaults) -> None:
        self._faults = faults

    def __getattr__(self, name: str) -> object:
        return getattr(self._faults if name in WRITES | READS else posix, name)


class RegistryNote(_Memctl):
    """A checkout that is remembered as the one worked in last."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.one, self.two = top / "one", top / "two"
        self.one.mkdir()
        self.two.mkdir()
        with self.user(), installed_in_memctl(Faults()):
            registry.note("default", "one", bytes(self.one))

    def _links(self) -> dict[str, bytes]:
        with self.user():
            return {link.project: link.path for link in registry.links()}

    def work(self) -> None:
        with self.user():
            registry.note("default", "two", bytes(self.two))

    def check_kept(self) -> None:
        assert self._links() in ({"one": bytes(self.one)}, self._after())

    def _after(self) -> dict[str, bytes]:
        return {"one": bytes(self.one), "two": bytes(self.two)}

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert self._links() == self._after()
        left = {name for name in os.listdir(self._folder()) if name.endswith(b".new")}
        assert not left, left

    def _folder(self) -> bytes:
        with self.user():
            return os.path.dirname(registry.registry_path())


class RegistryRename(RegistryNote):
    """A project that got another name."""

    def work(self) -> None:
        with self.user():
            registry.change(lambda rows: [row._replace(project="new") for row in rows])

    def _after(self) -> dict[str, bytes]:
        return {"new": bytes(self.one)}


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


class _Ledger(Flow):
    """What happens in a ledger, its opening included."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.root = top / "ledger"
        self.good = top.with_name(top.name + "-good")
        with Ledger(self.root) as ledger:
            self.begin(ledger.writer)
        shutil.copytree(self.root, self.good)
        writer = SqliteWriter(bytes(self.good))
        self.do(writer)
        writer.close()
        self.expected = self.state(self.good)
        shutil.rmtree(self.good)
        self._open = lambda: SqliteWriter(bytes(self.root))

    def begin(self, writer: SqliteWriter) -> None:
        writer.append(before())

    def do(self, writer: SqliteWriter) -> None:
        raise NotImplementedError

    def state(self, root: Path) -> object:
        return state(root)

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with faulty(self.root, faults) as open_:
            self._open = open_
            yield

    def work(self) -> None:
        writer = self._open()
        try:
            self.do(writer)
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    def check_kept(self) -> None:
        with Ledger(self.root) as ledger:
            assert ledger.problems() == []

    def recover(self) -> None:
        self.work()

    def check_done(self) -> None:
        assert self.state(self.root) == self.expected


class Import(_Ledger):
    """A batch that comes in."""

    def do(self, writer: SqliteWriter) -> None:
        if writer.cursor(SOURCE) != b"2":
            writer.append(coming())


class Forget(_Ledger):
    """Something that is forgotten for good."""

    def begin(self, writer: SqliteWriter) -> None:
        writer.append(before())
        writer.append(coming())
        writer.seal_all()

    def do(self, writer: SqliteWriter) -> None:
        while writer.tidy():
            pass
        forget(writer)

    def state(self, root: Path) -> object:
        return state_of_texts(root)

    def check_kept(self) -> None:
        with Ledger(self.root) as ledger:
            while ledger.writer.tidy():
                pass
        super().check_kept()

    def check_done(self) -> None:
        super().check_done()
        assert holding(self.root, [b"zebrafish"]) == []


class Life(_Ledger):
    """A run from its lease to its end, and what it is told."""

    def __init__(self, top: Path) -> None:
        self.told: list[Claimed] = []
        super().__init__(top)
        self.told.clear()

    def memory(self) -> list[Any]:
        return self.told

    def begin(self, writer: SqliteWriter) -> None:
        begin(writer)

    def do(self, writer: SqliteWriter) -> None:
        life(writer, self.told)

    def state(self, root: Path) -> object:
        return outcome(root)

    def check_done(self) -> None:
        super().check_done()
        assert len(self.told) <= 1


def _topic(name: str) -> type[Flow]:
    return type("Topic", (Topic,), {"flow": name, "__doc__": f"A shared memory folder: {name}."})


FLOWS: dict[str, type[Flow]] = {
    "heal": Heal,
    "unenroll": Unenroll,
    **{f"memory {name}": _topic(name) for name in TOPIC_FLOWS},
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
}


def clear(flow: Flow) -> None:
    shutil.rmtree(flow.top)
