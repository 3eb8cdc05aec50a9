"""Whether a service manager runs memd, and asking it to: what `up`, `down`, `status` and `doctor` need.

Everything heavier is imported when it is called. `service_state(ask_manager=False)` only reads files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memctl.paths import shown
from memd.errors import Unavailable

if TYPE_CHECKING:
    from memctl.service_files import FileState, Installation


Level = Literal["ok", "note", "warning", "problem"]


class ServiceFile(NamedTuple):
    """One file of the service and what became of it."""

    name: str
    path: bytes
    state: FileState
    version: str = ""  # of the memd that wrote it
    text: bytes | None = None  # None: absent, or no regular file


class Running(NamedTuple):
    """What the service manager says."""

    is_reachable: bool
    is_enabled: bool = False  # starts with the login
    is_active: bool = False
    is_listening: bool = False  # systemd's socket waits for a client
    pid: int = 0
    restarts: int = 0
    status_text: str = ""
    trouble: str = ""


class ServiceState(NamedTuple):
    """The whole of it. `running` is None when the manager was not asked or this system has none."""

    manager: str  # systemd, launchd, or empty: this system has neither
    files: tuple[ServiceFile, ...] = ()
    drop_ins: tuple[bytes, ...] = ()
    running: Running | None = None
    lingers: bool | None = None  # False: memd stops at logout

    @property
    def is_supported(self) -> bool:
        return bool(self.manager)

    @property
    def is_installed(self) -> bool:
        """All files are there and come from us, edited or not."""
        return bool(self.files) and all(file.state in ("ours", "changed") for file in self.files)

    @property
    def is_changed_by_hand(self) -> bool:
        return any(file.state == "changed" for file in self.files)

    @property
    def is_usable(self) -> bool:
        """Installed, and the manager answers: the service is what starts and stops memd here."""
        return self.is_installed and self.running is not None and self.running.is_reachable

    @property
    def is_active(self) -> bool:
        """The manager runs memd, or listens to start it when somebody calls."""
        return self.running is not None and (self.running.is_active or self.running.is_listening)


class ServiceManager(Protocol):
    """systemd or launchd, as far as memctl needs them. Methods that act raise Unavailable or CannotCreate."""

    name: str
    files: tuple[str, ...]

    def folder(self) -> bytes: ...
    def drop_ins(self) -> tuple[bytes, ...]: ...
    def render(self, templates: Mapping[str, str], installation: Installation) -> dict[str, bytes]: ...
    def is_reachable(self) -> bool: ...
    def running(self) -> Running: ...
    def lingers(self) -> bool | None: ...
    def activate(self, start: bool, rewritten: frozenset[str]) -> list[str]: ...
    def deactivate(self, names: Sequence[str]) -> list[str]: ...
    def forget(self) -> None: ...
    def start(self) -> None: ...
    def restart(self) -> None: ...
    def stop(self) -> None: ...


def service_manager() -> ServiceManager | None:
    """The kind of service manager this system has; whether it runs is another question."""
    if sys.platform == "darwin":
        from memctl.launchd import Launchd

        return Launchd()
    if sys.platform == "linux":
        from memctl.systemd import Systemd

        return Systemd()
    return None


def service_state(manager: ServiceManager | None = None, *, ask_manager: bool = True) -> ServiceState:
    """What is installed and, with `ask_manager` (10 ms), what runs; raises DiskError."""
    manager = manager or service_manager()
    if manager is None:
        return ServiceState("")
    found = tuple(look(manager, name) for name in manager.files)
    running = manager.running() if ask_manager else None
    return ServiceState(manager.name, found, manager.drop_ins(), running, manager.lingers())


def look(manager: ServiceManager, name: str) -> ServiceFile:
    """One file of the service as it is now; raises DiskError."""
    from memctl.files import read
    from memctl.service_files import judge, unmark

    path = manager.folder() + b"/" + os.fsencode(name)
    text, kind = read(path)
    if kind in ("link", "other"):
        return ServiceFile(name, path, "foreign")
    return ServiceFile(name, path, judge(text), unmark(text or b"")[0], text)


def judge(state: ServiceState) -> tuple[Level, str, str]:
    """What `memctl doctor` says of it: level, message, remedy."""
    if not state.manager:
        return "note", "no service manager that memd knows; `memctl up` needs none", ""
    foreign = [shown(file.path) for file in state.files if file.state == "foreign"]
    if foreign:
        return (
            "warning",
            f"{foreign[0]} does not come from memd",
            "Move it away and run `memctl service install`, or leave it and start memd with `memctl up`.",
        )
    if all(file.state == "absent" for file in state.files):
        return "note", "not installed", "To start memd with every login, run `memctl service install`."
    if not state.is_installed:
        return "problem", "only a part of its files is there", "Run `memctl service install` again."
    running = state.running
    if running is None or not running.is_reachable:
        why = f" ({running.trouble})" if running is not None and running.trouble else ""
        return (
            "warning",
            f"installed, but {state.manager} does not answer in this shell{why}",
            "Log in as this user directly (not through su or sudo) to control it.",
        )
    if running.trouble:
        return "problem", running.trouble, "See `memctl logs`, then run `memctl up`."
    if not running.is_enabled:
        return (
            "warning",
            "installed, but it does not start with the login",
            "Run `memctl service install` again.",
        )
    edited = [shown(file.path) for file in state.files if file.state == "changed"]
    words = [
        "running" if running.is_active else "waiting for a client" if running.is_listening else "stopped"
    ]
    words += [f"{path} was edited by hand" for path in edited]
    words += [f"settings of your own in {shown(path)}" for path in state.drop_ins]
    if state.lingers is False:
        words.append("stops at logout, lingering is off")
    message = f"run by {state.manager}: " + "; ".join(words)
    if not running.is_active and not running.is_listening:
        return "warning", message, "Start it with `memctl up`."
    return ("note" if edited else "ok"), message, ""


def start_service() -> None:
    """Start the installed service and wait until it is ready; raises Unavailable."""
    _required().start()


def restart_service() -> None:
    """Start the installed service with a new process; raises Unavailable."""
    _required().restart()


def stop_service() -> None:
    """Stop the installed service, and what would start it again, until the next start or login."""
    _required().stop()


def _required() -> ServiceManager:
    manager = service_manager()
    if manager is None:
        raise Unavailable(
            f"memd knows no service manager on {sys.platform}",
            remedy="Run it with `memctl up`, which needs none.",
        )
    return manager
