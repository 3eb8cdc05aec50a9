"""Two complete machines on one: network namespaces with homes, daemons and checkouts, and a server.

Each machine reaches the server over a link of its own that a test may cut. Needs root, `ip netns` and a
PostgreSQL server.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support_daemon import Home
from support_desk import MEMCTL, Desk
from support_postgres import Server, why_not

SERVICE = """[memd]
host={address}
port={port}
user=memd
dbname=postgres
sslmode=disable
connect_timeout=2
tcp_user_timeout=1500
keepalives_idle=1
keepalives_interval=1
keepalives_count=2
"""


def why_not_machines() -> str:
    """Why there can be no two machines here; empty when there can."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("setpriv") is None:
        return "network namespaces need root and iproute2"
    probe = f"memd-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.decode().strip()}"
    subprocess.run(["ip", "netns", "del", probe], check=False)
    return why_not()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cable:
    """A namespace and its link to the server. number: tells it from others of this test run"""

    def __init__(self, number: int) -> None:
        self.name = f"memd-{os.getpid()}-{number}"
        self._here = f"mv{os.getpid() % 100000}{number}"
        self._there = f"mw{os.getpid() % 100000}{number}"
        third = (os.getpid() * 4 + number) % 250
        self.server_address = f"10.213.{third}.1"
        _ip("netns", "add", self.name)
        _ip("link", "add", self._here, "type", "veth", "peer", "name", self._there)
        _ip("link", "set", self._there, "netns", self.name)
        _ip("addr", "add", f"{self.server_address}/24", "dev", self._here)
        _ip("link", "set", self._here, "up")
        _ip("-n", self.name, "addr", "add", f"10.213.{third}.2/24", "dev", self._there)
        _ip("-n", self.name, "link", "set", self._there, "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def cut(self) -> None:
        _ip("link", "set", self._here, "down")

    def mend(self) -> None:
        _ip("link", "set", self._here, "up")

    def remove(self) -> None:
        for words in (("link", "del", self._here), ("netns", "del", self.name)):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip(*words)


class FarHome(Home):
    """A home whose programs run in a namespace."""

    cable: Cable

    def memctl(self, *words: str, cwd: Any = None, stdin: str = "", **variables: str) -> Any:
        return subprocess.run(
            ["ip", "netns", "exec", self.cable.name, *MEMCTL, *words],
            env={**self.environment, **variables},
            cwd=cwd or self.path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )


class Machine(Desk):
    """One of the two: `origin` is the repository that both have a checkout of."""

    def __init__(self, path: Path, cable: Cable, port: int, origin: Path) -> None:
        path.mkdir()
        self._origin = origin
        self.cable = cable
        super().__init__(path)
        home = FarHome(path / "home", runtime=path / "run")
        home.environment = self.home.environment
        home.cable = cable
        self.home = home
        config = home.path / ".config" / "memd"
        config.mkdir(parents=True)
        config.joinpath("config.toml").write_text(
            '[ledger]\nengine = "postgresql"\nconnection = "service=memd"\n'
        )
        service = SERVICE.format(address=cable.server_address, port=port)
        (home.path / ".pg_service.conf").write_text(service)

    def clear(self, path: Path) -> None:
        self._end()
        self.checkout = path / "proj"
        subprocess.run(["git", "clone", "-q", str(self._origin), str(self.checkout)], check=True)
        self.fakes.clear()

    def begin(self, *words: str, do: str, **more: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            ["ip", "netns", "exec", self.cable.name, *MEMCTL, "run", *words],
            env={**self.home.environment, "FAKE_DO": do, **more},
            cwd=self.checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._running.append(child)
        return child

    def ledger(self) -> dict[str, Any]:
        """What `memctl status` says of the ledger."""
        found = self.home.json("status")["ledger"]
        assert isinstance(found, dict)
        return found


def _origin(path: Path) -> Path:
    """A repository with one commit."""
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    (path / "a.txt").write_text("a\n")
    subprocess.run(["git", "-C", str(path), "add", "a.txt"], check=True)
    subprocess.run(["git", "-C", str(path), *identity, "commit", "-q", "-m", "first"], check=True)
    return path


@contextlib.contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine, Server]]:
    reason = why_not_machines()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="memd-two-"))
    os.chmod(folder, 0o755)
    port = 20000 + os.getpid() % 20000
    server = Server(folder / "s", listen="*", port=port)
    cables: list[Cable] = []
    machines: list[Machine] = []
    try:
        server.make()
        with (server.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.213.0.0/16 trust\n")
        server.start()
        origin = _origin(folder / "origin")
        for number, name in enumerate(("laptop", "desktop"), 1):
            cables.append(Cable(number))
            machines.append(Machine(folder / name, cables[-1], port, origin))
        yield machines[0], machines[1], server
    finally:
        for machine in machines:
            machine.close()
        for cable in cables:
            cable.remove()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
