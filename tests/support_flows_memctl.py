"""What memctl writes itself, as flows for faults: hooks, their notes, the registry of checkouts."""

from __future__ import annotations

import contextlib
import os
import posix
from collections.abc import Iterator
from pathlib import Path

from memctl import hook, registry
from memctl.hooks import files as hook_files
from memd.service.spool import Spool
from support_faults import READS, WRITES, Faults, installed_in_memctl
from support_flow import Flow
from support_hook_scene import BEFORE
from support_hook_scene import Scene as Settings
from support_ledger_faults import LedgerFaults


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
