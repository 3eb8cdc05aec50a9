"""A temporary home with a real memd in it: started by its own program, asked through memctl, ended by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from memctl import hook

ROOT = Path(__file__).resolve().parent.parent
SOURCES = f"{ROOT / 'daemon'}{os.pathsep}{ROOT / 'ctl'}"
PATIENCE_S = 20.0


class Home:
    """One temporary home and the environment of everything that runs in it."""

    def __init__(self, path: Path, *, runtime: Path | None = None, **variables: str) -> None:
        self.path = path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environment = {
            "HOME": str(path),
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            "PYTHONPATH": SOURCES,
            **variables,
        }
        if runtime is not None:
            runtime.mkdir(mode=0o700, exist_ok=True)
            self.environment["XDG_RUNTIME_DIR"] = str(runtime)
        self._started: list[subprocess.Popen[bytes]] = []

    # ------------------------------------------------------------------ the daemon

    def spawn(self, **variables: str) -> subprocess.Popen[bytes]:
        """A memd in the foreground; the caller waits for it as it likes."""
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd"],
            env={**self.environment, **variables},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._started.append(child)
        return child

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        """A memd that answers."""
        child = self.spawn(**variables)
        eventually(lambda: self.answers() or child.poll() is not None)
        assert child.poll() is None, child.communicate()[1].decode()
        return child

    def answers(self) -> bool:
        return self.memctl("status", "--json").returncode == 0

    def stop(self, child: subprocess.Popen[bytes]) -> int:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=PATIENCE_S)
        return child.returncode

    @contextlib.contextmanager
    def daemon(self, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        child = self.start(**variables)
        try:
            yield child
        finally:
            self.end_all()

    def end_all(self) -> None:
        for child in self._started:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stderr is not None:
                child.stderr.close()
        self._started.clear()

    # ------------------------------------------------------------------- its command

    def memctl(
        self,
        *words: str,
        cwd: Path | str | None = None,
        stdin: str = "",
        timeout_s: float = 60,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "memctl", *words],
            env={**self.environment, **variables},
            cwd=cwd or self.path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def json(self, *words: str, **more: Any) -> Any:
        """The JSON document a command prints; it must succeed."""
        done = self.memctl(*words, "--json", **more)
        assert done.returncode in (0, 1), done.stderr
        return msgspec.json.decode(done.stdout)

    def socket(self) -> bytes:
        """Where this home's clients find the daemon."""
        done = subprocess.run(
            [sys.executable, "-c", "from memctl import hook; print(hook.find_socket().hex())"],
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return bytes.fromhex(done.stdout.decode())


def eventually(condition: Any, within_s: float = PATIENCE_S) -> float:
    """Seconds until `condition()` holds; fails when it never does."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "it did not become true in time"
        os.sched_yield()
        with contextlib.suppress(InterruptedError):
            _pause()
    return time.monotonic() - began


def _pause() -> None:
    """Let other processes run: waiting for a real one needs real time, if little of it."""
    import select

    select.select([], [], [], 0.01)


def request(path: bytes, kind: bytes, body: bytes, timeout_s: float = 5.0) -> tuple[bytes, bytes]:
    """One raw exchange with the socket at `path`."""
    sock = hook.dial(path, timeout_s)
    try:
        sock.sendall(hook.frame(kind, body))
        return hook.read_reply(sock)
    finally:
        sock.close()
