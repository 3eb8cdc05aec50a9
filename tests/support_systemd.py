"""A real `systemd --user` in namespaces of its own, for a temporary HOME. Needs root.

The process tree, the mounts and the control groups are private, so nothing on the machine notices. Whatever
a test does there is done by `UserManager.run`, which enters the namespaces. `Python` is an installation of
memd in a virtual environment, as a person would have it.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SYSTEMD = "/lib/systemd/systemd"
RUNTIME = "/run/user/0"
START_S = 30.0

# Arguments: the name of a control group, the folder for HOME is in the environment. Until the line `ready`
# only permissions can fail.
_SETUP = r"""
set -e
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$1"
echo $$ > "/sys/fs/cgroup/$1/cgroup.procs"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
cd /
echo ready
/lib/systemd/systemd --user &
while :; do wait || :; done
"""
_SWEEP = r"""
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
find "/sys/fs/cgroup/$1" -depth -type d -exec rmdir {} \;
"""
_UNSHARE = ["unshare", "--kill-child", "--pid", "--fork", "--mount-proc", "--mount", "--cgroup"]

_count = itertools.count()


class UserManager:
    """The running manager; `home` is the HOME of everybody in there."""

    def __init__(self, home: str, init_pid: int) -> None:
        self.home = home
        self._init_pid = init_pid
        self.environ = {
            "HOME": home,
            "USER": "root",
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": RUNTIME,
        }

    def command(self, argv: Sequence[str | bytes]) -> list[str | bytes]:
        return ["nsenter", f"--target={self._init_pid}", "--pid", "--mount", "--cgroup", "--", *argv]

    def run(
        self, *argv: str | bytes, env: Mapping[str, str] = {}, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside; its output as text. With `check`, a failure is the test's failure."""
        done = subprocess.run(
            self.command(argv),
            env={**self.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=90,
            check=False,
        )
        if check and done.returncode != 0:
            pytest.fail(f"{argv} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done

    def systemctl(self, *words: str, check: bool = True) -> str:
        return self.run("systemctl", "--user", "--no-pager", *words, check=check).stdout

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        text = self.systemctl("show", unit, "--property=" + ",".join(properties))
        return dict(line.split("=", 1) for line in text.splitlines())

    def outer_pid(self, pid: int) -> int:
        """The number that a process in there has out here."""
        for entry in os.listdir("/proc"):
            if entry.isdigit() and _pids(int(entry))[1:] == [pid] and _shares(int(entry), self._init_pid):
                return int(entry)
        pytest.fail(f"no process {pid} in the namespace")

    @contextmanager
    def death_of(self, pid: int) -> Iterator[None]:
        """Leave the block once the process that had `pid` before it is gone."""
        watched = os.pidfd_open(self.outer_pid(pid))
        try:
            yield
            gone, _, _ = select.select([watched], [], [], START_S)
            assert gone, f"process {pid} lives on"
        finally:
            os.close(watched)


class Python:
    """memd installed into a virtual environment at `folder`, as an editable install of `tree`."""

    def __init__(self, folder: str, tree: Path = ROOT) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
        self.interpreter = folder + "/bin/python"
        self.install(tree)

    def install(self, tree: Path) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        pth = Path(self.folder, "lib", f"python{version}", "site-packages", "memd.pth")
        lines = [
            f"{tree}/daemon",
            f"{tree}/ctl",
            sysconfig.get_path("purelib"),
            sysconfig.get_path("platlib"),
        ]
        pth.write_text("\n".join(dict.fromkeys(lines)) + "\n")

    def memctl(self, *words: str) -> list[str]:
        return [self.interpreter, "-I", "-m", "memctl", *words]

    def ping(self) -> list[str]:
        """A program that prints the daemon's answer to a ping as JSON, waiting for one that only starts."""
        code = (
            "import sys; from memctl import hook; "
            'sys.stdout.buffer.write(hook.exchange(b"j", b\'{"op":"ping","v":1}\', 30.0)[1])'
        )
        return [self.interpreter, "-I", "-c", code]


def other_version(folder: Path, version: str) -> Path:
    """A copy of the packages that calls itself `version`."""
    for part in ("daemon/memd", "ctl/memctl", "systemd", "launchd"):
        shutil.copytree(
            ROOT / part, folder / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    (folder / "daemon/memd/__init__.py").write_text(f'__version__ = "{version}"\n')
    return folder


def ping(manager: UserManager, python: Python) -> dict[str, object]:
    """What the daemon in there answers; a socket that starts it is waited for."""
    answer: dict[str, object] = json.loads(manager.run(*python.ping()).stdout)
    assert answer["re"] == "pong", answer
    return answer


@contextmanager
def user_manager(home: str, scratch: Path) -> Iterator[UserManager]:
    """Start the manager and wait until it is ready; skips with a reason where that is not permitted."""
    _require()
    group = f"memd-test-{os.getpid()}-{next(_count)}"
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(f"\0{group}")
    told.settimeout(START_S)
    environ = {
        "HOME": home,
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": RUNTIME,
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
        "NOTIFY_SOCKET": f"@{group}",
        "SYSTEMD_LOG_TARGET": "console",
    }
    with open(scratch / "systemd.log", "wb") as log:
        outside = subprocess.Popen(
            [*_UNSHARE, "sh", "-c", _SETUP, "sh", group], env=environ, stdout=subprocess.PIPE, stderr=log
        )
        assert outside.stdout is not None
        try:
            if outside.stdout.readline() != b"ready\n":
                outside.wait()
                why = (scratch / "systemd.log").read_text(errors="replace").strip().splitlines()
                pytest.skip(f"namespaces with a control group are not permitted here: {why[-1:]}")
            init_pid = int(Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()[0])
            while b"READY=1" not in told.recv(4096):
                pass
            yield UserManager(home, init_pid)
        finally:
            told.close()
            outside.stdout.close()
            _end(outside)
            subprocess.run(["unshare", "--mount", "sh", "-c", _SWEEP, "sh", group], check=False)


def _require() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a `systemd --user` in a namespace needs root on Linux")
    for program in (SYSTEMD, "unshare", "nsenter", "systemctl"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here")


def _end(outside: subprocess.Popen[bytes]) -> None:
    """Kill the first process of the namespace, and with it all others, and wait until they are gone."""
    try:
        children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
    except OSError:
        children = []
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    if not children:
        outside.kill()
    outside.wait()


def _pids(pid: int) -> list[int]:
    """A process's numbers, from the outermost namespace inwards."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return [int(word) for word in line.split()[1:]]
    except OSError:
        pass  # it ended meanwhile
    return []


def _shares(pid: int, other: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{other}/ns/pid")
    except OSError:
        return False
