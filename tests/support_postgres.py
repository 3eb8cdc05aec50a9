"""A PostgreSQL server of Debian's packages in a temporary folder, ended by its process number.

It runs as an unprivileged user where the tests are root, and listens on a socket in its folder; on loopback
or elsewhere only where a test asks for it. Durability is off unless a test kills it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support_daemon import eventually

PATIENCE_S = 30.0
TRIES = 5  # to start: what was killed a moment ago may still hold its memory
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@functools.cache
def programs() -> Path | None:
    """Where initdb and postgres are; the newest."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if found:
        return found[-1]
    usual = shutil.which("initdb")
    return Path(usual).parent if usual else None


def why_not() -> str:
    """Why there can be no server here; empty when there can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if programs() is None:
        return "there is no PostgreSQL server (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and _user() is None:
        return "a server does not run as root, and there is no other user"
    return ""


def needs_postgres() -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)


def _user() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


class Server:
    """listen: addresses besides the socket; port: for both"""

    def __init__(
        self, folder: Path, *, options: Sequence[str] = QUICK, listen: str = "", port: int = 5432
    ) -> None:
        self.folder = folder
        self.port = port
        self._options = list(options)
        self._listen = listen
        self._process: subprocess.Popen[bytes] | None = None
        self._netns = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, *words: str) -> list[str]:
        program = str(programs() / words[0]) if not words[0].startswith("/") else words[0]  # type: ignore[operator]
        return [program, *words[1:]]

    def _demoted(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        user = _user()
        assert user is not None
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def make(self) -> Server:
        self.folder.mkdir(mode=0o755, exist_ok=True)
        if demoted := self._demoted():
            os.chown(self.folder, demoted["user"], demoted["group"])
        subprocess.run(
            self._run("initdb", "-D", str(self.data), "-U", "memd", "-A", "trust", "--locale=C.UTF-8", "-N"),
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            **self._demoted(),
        )
        return self

    def start(self, *, netns: str = "") -> Server:
        """netns: the name of a network namespace that it listens in"""
        words = self._run("postgres", "-D", str(self.data), "-k", str(self.folder), "-p", str(self.port))
        words += ["-h", self._listen]
        for option in self._options:
            words += ["-c", option]
        more: dict[str, Any] = self._demoted()
        if netns:
            user = more.pop("user", None)
            more.pop("group", None)
            more.pop("extra_groups", None)
            as_user = ["setpriv", f"--reuid={user}", "--regid", str(_user().pw_gid), "--clear-groups"]  # type: ignore[union-attr]
            words = ["ip", "netns", "exec", netns, *(as_user if user is not None else []), *words]
        for _ in range(TRIES):
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **more
                )
            eventually(lambda: self._answers() or self._is_over(), PATIENCE_S)
            if not self._is_over():
                return self
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def _is_over(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.admin, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    @property
    def admin(self) -> str:
        return f"host={self.folder} port={self.port} user=memd dbname=postgres"

    def connection(self, database: str = "postgres") -> str:
        return f"host={self.folder} port={self.port} user=memd dbname={database}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.connection(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """As a power cut: the server and all that it started, at once."""
        import psutil

        assert self._process is not None
        main = psutil.Process(self.pid)
        main.suspend()  # else it starts another one while these are counted
        family = [main, *main.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        self._process.wait()
        psutil.wait_procs(family, timeout=PATIENCE_S)

    def stop(self) -> None:
        if self._process is not None and not self._is_over():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
                os.kill(self.pid, signal.SIGINT)
            try:
                self._process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None


@contextlib.contextmanager
def server(**more: Any) -> Iterator[Server]:
    """A server that runs, in a folder whose path is short enough for a socket."""
    needs_postgres()
    folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
    os.chmod(folder, 0o755)
    made = Server(folder / "s", **more)
    try:
        yield made.make().start()
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
