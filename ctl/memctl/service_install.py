"""Installing and removing the service: the plan, and the careful steps.

A file that a person edited is kept and used as it is; one that is not ours at all stops the install before
anything is written. Only files exactly as we wrote them are rewritten or removed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal, NamedTuple

from memctl import files, service_files
from memctl.paths import SOCKET_LIMIT, computed_socket, home_dir, shown, state_dir
from memctl.programs import Ask, ask, last_line
from memctl.service_files import Installation
from memctl.services import ServiceFile, ServiceManager, look
from memd.errors import CannotCreate, MemdError, Refused

Action = Literal["create", "update", "same", "keep", "remove", "none"]

CARRIED = (b"XDG_CONFIG_HOME", b"XDG_DATA_HOME", b"XDG_STATE_HOME")
_DEFAULTS = {
    b"XDG_CONFIG_HOME": b"/.config",
    b"XDG_DATA_HOME": b"/.local/share",
    b"XDG_STATE_HOME": b"/.local/state",
}


class Step(NamedTuple):
    """What happens to one file."""

    file: ServiceFile
    action: Action
    text: bytes = b""  # what we would write


class Report(NamedTuple):
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    trouble: MemdError | None = None  # the files are as `steps` says, but this went wrong afterwards


def install(
    manager: ServiceManager, installation: Installation, *, start: bool = True, dry_run: bool = False
) -> Report:
    """Write the files and, with `start`, run memd under the manager.

    raises  Refused (a file is somebody else's), CannotCreate (the path cannot be written down), DiskError
    """
    try:
        wanted = manager.render(templates(manager), installation)
    except ValueError as reason:
        raise CannotCreate(
            f"no service file can name this installation: {reason}",
            remedy="Install memd into a folder with a plain name.",
        ) from reason
    steps = plan_install([look(manager, name) for name in manager.files], wanted)
    notes = [_kept(step.file, manager) for step in steps if step.action == "keep"]
    if dry_run:
        return Report(steps, tuple(notes))
    for step in steps:
        if step.action in ("create", "update"):
            files.write(step.file.path, step.text, step.file.text)
    if start and manager.is_reachable():
        notes += _stop_stray(manager)
    try:
        notes += manager.activate(start, rewritten_settings(steps))
    except MemdError as trouble:
        return Report(steps, tuple(notes), trouble)
    return Report(steps, tuple(notes))


def uninstall(manager: ServiceManager, *, dry_run: bool = False) -> Report:
    """Stop memd's service and remove the files nobody edited; raises DiskError, Unavailable."""
    steps = plan_uninstall([look(manager, name) for name in manager.files])
    notes = [_kept(step.file, manager) for step in steps if step.action == "keep"]
    ours = [step.file.name for step in steps if step.file.state in ("ours", "changed")]
    if dry_run or not ours:
        return Report(steps, tuple(notes))
    notes += manager.deactivate(ours)
    for step in steps:
        if step.action == "remove":
            files.remove(step.file.path, step.file.text or b"")
    manager.forget()
    left = manager.drop_ins()
    if left:
        notes.append("Your own settings stay: " + ", ".join(shown(path) for path in left))
    return Report(steps, tuple(notes))


# ------------------------------------------------------------------------------- decisions


def plan_install(found: list[ServiceFile], wanted: Mapping[str, bytes]) -> tuple[Step, ...]:
    """What to do with each file; raises Refused when one of them is somebody else's."""
    steps = []
    for file in found:
        text = wanted[file.name]
        if file.state == "foreign":
            raise Refused(
                f"{shown(file.path)} does not come from memd, so it is left as it is",
                remedy="Move it away and run `memctl service install` again; settings of your own belong "
                f"into {shown(file.path)}.d/local.conf.",
            )
        if file.state == "changed":
            steps.append(Step(file, "keep", text))
        elif file.state == "absent":
            steps.append(Step(file, "create", text))
        else:
            steps.append(Step(file, "same" if file.text == text else "update", text))
    return tuple(steps)


def plan_uninstall(found: list[ServiceFile]) -> tuple[Step, ...]:
    actions: dict[str, Action] = {"ours": "remove", "absent": "none", "changed": "keep", "foreign": "keep"}
    return tuple(Step(file, actions[file.state]) for file in found)


def rewritten_settings(steps: tuple[Step, ...]) -> frozenset[str]:
    """The files whose settings change under a running service; another version in the mark counts for the
    service, which then runs older code."""
    changed = set()
    for step in steps:
        if step.action != "update":
            continue
        old_version, old = service_files.unmark(step.file.text or b"")
        new_version, new = service_files.unmark(step.text)
        if old != new or (step.file.name != service_files.SOCKET and old_version != new_version):
            changed.add(step.file.name)
    return frozenset(changed)


def carried_environment(environ: Mapping[bytes, bytes], home: bytes, login_home: bytes) -> dict[bytes, bytes]:
    """What the daemon must be told to find the same folders as this shell does.

    A service manager knows nothing of what a shell's profile sets.
    """
    carried = {b"HOME": home} if home != login_home else {}
    if sys.platform == "darwin":
        return carried  # there the folders follow from the home alone
    for name in CARRIED:
        value = environ.get(name, b"").rstrip(b"/")
        if value.startswith(b"/") and value != home + _DEFAULTS[name]:
            carried[name] = value
    return carried


# ----------------------------------------------------------------------------------- edges


def this_installation(ask: Ask = ask) -> Installation:
    """The memd that belongs to this memctl, tried out in an empty environment; raises Refused."""
    import pwd

    from memd import __version__

    home = home_dir()
    login_home = os.fsencode(pwd.getpwuid(os.getuid()).pw_dir).rstrip(b"/") or b"/"
    environment = carried_environment(os.environb, home, login_home)
    interpreter = os.path.abspath(sys.executable) if sys.executable else ""
    return Installation(
        interpreter=os.fsencode(interpreter),
        version=__version__,
        flags=_flags(interpreter, home, ask),
        environment=environment,
        socket=_socket(),
        log=state_dir() + b"/launchd.log",
    )


def _flags(interpreter: str, home: bytes, ask: Ask) -> tuple[bytes, ...]:
    """The interpreter's options under which memd is found without PYTHONPATH; raises Refused.

    `-I` where that works; a memd in the user's own site-packages needs `-E -P`, which leave that folder in.
    """
    answer = None
    for flags in (("-I",), ("-E", "-P")):
        answer = ask(
            [interpreter, *flags, "-c", "import memd.__main__, memctl.__main__"],
            {"HOME": os.fsdecode(home), "PATH": ""},
            60.0,
        )
        if answer.status == 0:
            return tuple(os.fsencode(flag) for flag in flags)
    raise Refused(
        f"{interpreter or 'this Python'} cannot start memd by itself, as a service has to: "
        + (last_line(answer) if answer else ""),
        remedy="Install memd into a virtual environment (`pip install`) and run the memctl from there.",
    )


def _socket() -> bytes:
    """The runtime folder's socket, unless its path would be too long for a socket address."""
    runtime = os.environb.get(b"XDG_RUNTIME_DIR", b"")
    if len(runtime.rstrip(b"/") + b"/memd/memd.sock") > SOCKET_LIMIT:
        return computed_socket()
    return service_files.RUNTIME_SOCKET


def templates(manager: ServiceManager) -> dict[str, str]:
    """The shipped templates; they lie beside the package in a checkout and inside it in a wheel."""
    base = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_data", manager.name)
    texts = {}
    for name in manager.files:
        path = os.fsencode(os.path.join(base, name))
        found, _ = files.read(path)
        if found is None:
            raise CannotCreate(
                f"this installation of memd lacks {shown(path)}",
                remedy="Install memd again: it is incomplete.",
            )
        texts[name] = found.decode("utf-8")
    return texts


def _kept(file: ServiceFile, manager: ServiceManager) -> str:
    place = shown(file.path)
    if file.state == "foreign":
        return f"{place} does not come from memd and stays."
    if manager.name == "systemd":
        return (
            f"{place} was edited and is kept as it is. To get ours again, move it away and run "
            f"`memctl service install`; settings of your own last in {place}.d/local.conf."
        )
    return (
        f"{place} was edited and is kept. To get ours again, move it away and run `memctl service install`."
    )


def _stop_stray(manager: ServiceManager) -> list[str]:
    """End a memd that was started without the service, since the two would fight for one socket."""
    import json
    import time

    from memctl.hook import exchange

    try:
        pid = int(json.loads(exchange(b"j", b'{"op":"ping","v":1}', 2.0)[1]).get("pid", 0))
        if pid in (0, manager.running().pid):  # asked afterwards: the ping itself may wake a service
            return []
        exchange(b"j", b'{"op":"stop","v":1}', 5.0)
    except (OSError, ValueError, TypeError, AttributeError):
        return []  # none runs
    until = time.monotonic() + 10
    while time.monotonic() < until and _exists(pid):
        time.sleep(0.05)
    return [f"The memd that ran without the service (pid {pid}) was stopped; the service takes over."]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
