"""A closed world for real programs: a home of its own, loopback only, a scripted model, an end by pid.

`World` is the test's side. Programs are started in it as the user `dev` in /home/dev (as root: uid 1000;
else: the tester's own uid in a user namespace) with an environment that is spelled out in full. What the
programs sent to the model is read from the log. Closing the world, or the death of the test process,
ends everything that runs inside.

Nothing here waits for a time to pass: waits are for a line, an exit or an answer, with a limit.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from real.namespace import HOME, USER
from real.recorded import Request, read_log
from real.running import Finished, RigError, Running

CHECKOUT = Path(__file__).resolve().parents[2]
_TOOLS = ("unshare", "nsenter", "setpriv", "bash")
# says its pid, as the world counts it, then becomes the program: bash, as its descriptors may have two digits
_BECOME = 'cd -- "$1" || exit 125; shift; echo $$ >&%d; exec %d>&-; exec "$@"'
_SPACES = ("--net", "--mount", "--uts", "--ipc", "--pid")
_START_S = 20.0
_END_S = 10.0


def why_not() -> str:
    """Why no closed world can be had here; empty when it can."""
    if not sys.platform.startswith("linux"):
        return "the closed world needs Linux namespaces"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (util-linux, bash)"
    probe = subprocess.run(
        [*_unshare(), "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_START_S
    )
    return "" if probe.returncode == 0 else f"no namespaces here: {probe.stderr.strip()}"


def _is_root() -> bool:
    return os.geteuid() == 0


def _unshare() -> list[str]:
    own = [] if _is_root() else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *own, *_SPACES, "--fork", "--kill-child", "--mount-proc"]


def dev_uid() -> int:
    return 1000 if _is_root() else os.getuid()


def interpreter_folders() -> list[str]:
    """Where the interpreter that runs the tests, its packages and its library lie."""
    binary = os.path.realpath(sys.executable)
    folders = {
        sys.prefix,
        sys.base_prefix,
        os.path.realpath(sys.base_prefix),
        os.path.dirname(os.path.dirname(binary)),
    }
    return sorted(folder for folder in folders if folder not in ("/", "/usr", "/usr/local"))


class World:
    """Namespaces with a home and a model in them; a context manager.

    folder       where it keeps its home, its log and its errors; made by the test
    environment  what every program in it is started with, besides `HOME` and the like
    folders      what the programs need of the real file system; the tester's interpreter and checkout
                 are always there
    search       folders for PATH, before the system's own
    """

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folders: Iterable[Path] = (),
        search: Iterable[Path] = (),
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._log = folder / "requests.jsonl"
        self._errors = folder / "namespace.err"
        self._kept = [str(CHECKOUT), *interpreter_folders(), *(str(path) for path in folders)]
        self._search = [str(path) for path in search]
        self._environment = dict(environment or {})
        self._unshared: subprocess.Popen[str] | None = None
        self._first_pid = 0

    # ------------------------------------------------------------------ begin and end

    def __enter__(self) -> World:
        self.home.mkdir(parents=True)
        self._own(self.home)
        self._log.touch()
        with self._errors.open("w") as errors:
            self._unshared = subprocess.Popen(
                [*_unshare(), sys.executable, "-B", "-m", "real.namespace"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env={"PATH": os.defpath, "PYTHONPATH": str(CHECKOUT / "tests"), "LANG": "C.UTF-8"},
                start_new_session=True,  # Ctrl-C in the terminal reaches the test alone
            )
        furniture = {"home": str(self.home), "log": str(self._log), "kept": self._kept, "uid": dev_uid()}
        self._tell(json.dumps(furniture))
        if not self._hears("ready", _START_S):
            self.close()
            raise RigError(f"the world did not come up: {self._errors.read_text().strip()}")
        self._first_pid = psutil.Process(self._unshared.pid).children()[0].pid
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the world; raises RigError if a process of it outlives that."""
        unshared, self._unshared = self._unshared, None
        if unshared is None:
            return
        if unshared.stdin is not None:
            try:
                unshared.stdin.close()
            except BrokenPipeError:
                pass  # it is gone already
        try:
            unshared.wait(_END_S)
        except subprocess.TimeoutExpired:
            unshared.kill()
            unshared.wait(_END_S)
        if unshared.stdout is not None:
            unshared.stdout.close()

    # ------------------------------------------------------------------ programs

    def run(
        self,
        *argv: str,
        cwd: str = HOME,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = 60,
        may_fail: bool = False,
    ) -> Finished:
        """Run one program to its end; raises RigError with all it said when it fails and may not.

        env  added to the world's environment; an empty value takes a variable away
        """
        running = self._spawn(argv, cwd, env, subprocess.PIPE, subprocess.PIPE)
        finished = running.finish(timeout_s, stdin=stdin)
        if finished.status != 0 and not may_fail:
            raise RigError(str(finished))
        return finished

    def start(
        self,
        *argv: str,
        cwd: str = HOME,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        output: IO[str] | int = subprocess.PIPE,
    ) -> Running:
        """Start a program and leave it running; `output` takes both its streams when it is a file."""
        return self._spawn(argv, cwd, env, stdin, output)

    def _spawn(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: int,
        output: IO[str] | int,
    ) -> Running:
        heard, said = os.pipe()
        own = [] if _is_root() else ["--user", "--preserve-credentials"]
        ids = (
            ["--reuid", str(dev_uid()), "--regid", str(dev_uid()), "--clear-groups"]
            if _is_root()
            else ["--ambient-caps=-all"]
        )
        full = [
            "nsenter", "--target", str(self._first_pid), *own, *_SPACES, "--",
            "setpriv", *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--",
            "bash", "--norc", "-c", _BECOME % (said, said), "bash", cwd, *argv,
        ]  # fmt: skip
        try:
            process = subprocess.Popen(
                full,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.PIPE if output == subprocess.PIPE else subprocess.STDOUT,
                text=True,
                errors="backslashreplace",
                env=self.environment(env),
                pass_fds=(said,),
                start_new_session=True,
            )
        finally:
            os.close(said)
        with open(heard, "rb") as pipe:  # its end comes with the pid's line, or with a failed start
            pid = pipe.readline().strip()
        return Running(argv, process, int(pid or 0))

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a program in here."""
        env = {
            "HOME": HOME,
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": "/bin/bash",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "XDG_RUNTIME_DIR": f"/run/user/{dev_uid()}",
            "PATH": ":".join([*self._search, "/usr/local/bin", "/usr/bin", "/bin"]),
            **self._environment,
            **(extra or {}),
        }
        return {name: value for name, value in env.items() if value}

    def pids(self) -> set[int]:
        """Every process that lives in here, as counted outside."""
        space = os.readlink(f"/proc/{self._first_pid}/ns/pid")
        found: set[int] = set()
        for pid in psutil.pids():
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == space:
                    found.add(pid)
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue  # gone meanwhile, or somebody else's
        return found

    # ------------------------------------------------------------------ files

    def outside(self, path: str) -> Path:
        """Where the test finds what the programs call `path`, which lies in /home/dev."""
        return self.home / os.path.relpath(path, HOME)

    def put(self, path: str, text: str) -> Path:
        """Write a file below /home/dev, parents included, as the user in there."""
        file = self.outside(path)
        made = [file, *(p for p in file.parents if not p.exists())]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for each in made:
            self._own(each)
        return file

    def put_all(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            self.put(path, text)

    def _own(self, path: Path) -> None:
        if _is_root():
            os.chown(path, dev_uid(), dev_uid(), follow_symlinks=False)

    # ------------------------------------------------------------------ the model

    def requests(self) -> list[Request]:
        """All requests so far, in order."""
        return read_log(self._log.read_bytes())

    def turns(self) -> list[Request]:
        """The requests that answered a person's prompt, in order."""
        return [request for request in self.requests() if request.is_turn]

    def wait_for_request(self, wanted: Callable[[Request], bool], timeout_s: float = 30) -> Request:
        """The first request that is `wanted`; raises RigError when none came in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = next((request for request in self.requests() if wanted(request)), None)
            if found is not None:
                return found
            if not self._hears("request", deadline - time.monotonic()):
                seen = "\n".join(str(request) for request in self.requests())
                raise RigError(f"no such request within {timeout_s:.0f} s; there were:\n{seen}")

    def release(self, word: str) -> None:
        """Let a reply go on that a HOLD step keeps back."""
        self._tell(f"release {word}")

    def _tell(self, line: str) -> None:
        if self._unshared is None or self._unshared.stdin is None:
            raise RigError("the world is closed")
        try:
            self._unshared.stdin.write(line + "\n")
            self._unshared.stdin.flush()
        except BrokenPipeError:
            raise RigError(f"the world has ended: {self._errors.read_text().strip()}") from None

    def _hears(self, word: str, timeout_s: float) -> bool:
        """Whether the first process says a line that starts with `word` within the time."""
        if self._unshared is None or self._unshared.stdout is None:
            raise RigError("the world is closed")
        fd = self._unshared.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        line = b""
        while select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            byte = os.read(fd, 1)
            if not byte:
                return False
            line += byte
            if byte == b"\n":
                if line.startswith(word.encode()):
                    return True
                line = b""
        return False
