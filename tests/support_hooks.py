"""Hooks as agents run them, and what stands in for a daemon that is away or stuck."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from memd.harness import registry
from memd.harness.hooking import HookEvent, command_words
from support_cases import CASES

ROOT = Path(__file__).resolve().parent.parent
STUB = CASES / "29-hook-when-daemon-hangs"
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
STATES = ("none", "dead-file", "hang", "deaf", "garbage", "slam")

EVENTS: list[tuple[str, HookEvent]] = [
    (name, event)
    for name, adapter in registry.adapters().items()
    if adapter.hooks is not None
    for event in adapter.hooks.events
]
IDS = [f"{name}-{event.name}" for name, event in EVENTS]


def placed(data: Path) -> Path:
    """The hook file as it is installed, below a data folder."""
    folder = data / "memd" / "hook"
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in (("memd_hook_path.py", "hook.py"), ("memd_hook.py", "hook_start.py")):
        (folder / name).write_bytes((ROOT / "ctl" / "memctl" / source).read_bytes())
    return folder / "memd_hook.py"


def command(hook_file: Path, harness: str, event: HookEvent) -> list[str]:
    return [INTERPRETER, "-I", "-S", str(hook_file), *command_words(harness, event)]


def run(
    argv: Sequence[str], home: Path, stdin: bytes = b"", timeout_s: float = 20.0, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """The command with an environment that has a home and a runtime folder, and what is given."""
    runtime = home / "run"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(runtime),
        "PATH": os.environ["PATH"],
        **variables,
    }
    return subprocess.run(
        argv, input=stdin, capture_output=True, env=environment, timeout=timeout_s, check=False, cwd=home
    )


def notes(home: Path) -> list[Path]:
    """The notes that hooks of this home left."""
    folder = home / ".local" / "state" / "memd" / "spool"
    return sorted(folder.iterdir()) if folder.is_dir() else []


@contextlib.contextmanager
def state_of_daemon(home: Path, state: str) -> Iterator[None]:
    """The socket of this home in one of the `STATES`; the stub is ended by its pid."""
    folder = home / "run" / "memd"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "memd.sock"
    if state == "none":
        yield
        return
    if state == "dead-file":
        made = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
        subprocess.run([sys.executable, "-c", made, str(path)], check=True)
        yield
        return
    built = home / "case"
    if not (built / "stub.py").exists():
        subprocess.run([sys.executable, str(STUB / "make.py"), str(built)], check=True, capture_output=True)
    child = subprocess.Popen(
        [sys.executable, str(built / "stub.py"), str(path), state], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield
    finally:
        child.kill()
        child.communicate()
