"""memd handed its socket as a service manager does it: `systemd-socket-activate` plays that part."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support_systemd import Python

ACTIVATE = "systemd-socket-activate"

pytestmark = pytest.mark.skipif(shutil.which(ACTIVATE) is None, reason=f"there is no {ACTIVATE} here")


class Activated:
    """A listening socket with memd behind it, which starts at the first client."""

    def __init__(
        self, process: subprocess.Popen[bytes], told: socket.socket, environ: dict[str, str]
    ) -> None:
        self.process = process
        self.told = told
        self.environ = environ

    def hear(self) -> dict[str, str]:
        """One notification of the daemon."""
        lines = self.told.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def hear_until(self, key: str) -> dict[str, str]:
        while key not in (found := self.hear()):
            pass
        return found


@pytest.fixture
def python(tmp_path: Path) -> Python:
    return Python(str(tmp_path / "venv"))


@pytest.fixture
def activated(tmp_path: Path, python: Python) -> Iterator[Activated]:
    with activate(tmp_path, python) as running:
        yield running


@contextmanager
def activate(tmp_path: Path, python: Python, *more: str) -> Iterator[Activated]:
    home, folder = tmp_path / "home", tmp_path / "run"
    home.mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    path = folder / "memd.sock"
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(folder / "notify"))
    told.settimeout(30)
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "XDG_RUNTIME_DIR": str(tmp_path / "unused"),
        "NOTIFY_SOCKET": str(folder / "notify"),
    }
    passed = [f"--setenv={name}" for name in ("XDG_RUNTIME_DIR", "NOTIFY_SOCKET")]
    command = [ACTIVATE, f"--listen={path}", *passed, *more, python.interpreter, "-I", "-m", "memd"]
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert process.stderr is not None
        assert b"Listening on" in process.stderr.readline()
        yield Activated(process, told, {**environ, "MEMD_SOCKET": str(path)})
    finally:
        process.kill()
        process.communicate()
        told.close()


def ping(activated: Activated, python: Python) -> dict[str, object]:
    done = subprocess.run(python.ping(), env=activated.environ, capture_output=True, check=True, timeout=60)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_the_client_that_starts_the_daemon_gets_its_answer(activated: Activated, python: Python) -> None:
    answer = ping(activated, python)
    assert (answer["re"], answer["pid"]) == ("pong", activated.process.pid)


def test_the_manager_hears_when_memd_is_ready_and_when_it_stops(activated: Activated, python: Python) -> None:
    ping(activated, python)
    ready = activated.hear_until("READY")
    assert ready["READY"] == "1"
    assert ready["STATUS"]
    activated.process.send_signal(signal.SIGTERM)
    assert activated.hear_until("STOPPING")["STOPPING"] == "1"
    assert activated.process.wait(timeout=30) == 0


def test_a_socket_that_was_handed_over_is_published_and_never_removed(
    activated: Activated, python: Python
) -> None:
    ping(activated, python)
    path = Path(activated.environ["MEMD_SOCKET"])
    published = Path(activated.environ["HOME"], ".local/state/memd/address")
    assert published.read_bytes() == os.fsencode(path)
    activated.process.terminate()
    assert activated.process.wait(timeout=30) == 0
    assert path.is_socket()


def test_the_watchdog_is_fed_while_the_loop_turns(tmp_path: Path, python: Python) -> None:
    with activate(tmp_path, python, "--setenv=WATCHDOG_USEC=100000") as running:
        ping(running, python)
        assert [running.hear_until("WATCHDOG")["WATCHDOG"] for _ in range(3)] == ["1", "1", "1"]
