"""The first process of a closed world: furnishes it, then serves the scripted model until told to end.

`unshare` has already made the namespaces (network, mounts, pids, host name, IPC). What is left to do:
bring loopback up; hide the folders where a real user's things lie (`HIDDEN`) under empty ones; bring
back, read-only and at their own paths, the few folders the programs run from; put the test's home at
/home/dev with a user of that name. Reached through file descriptors that were opened first, those
folders need no second path.

It speaks lines: its first input line is a JSON `Furniture`, then `release WORD`; it says `ready`, then
`request N` for each request in the log. Input at its end means the test is over, or died: it leaves,
and as it is the namespace's first process the kernel kills everything that runs in there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterable

from real.model import Journal, Model

HOME = "/home/dev"
USER = "dev"
HIDDEN = ("/home", "/root", "/tmp", "/run", "/mnt", "/media", "/var/tmp")

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 32, 4096, 16384
# flags of a mount that a namespace of one's own may not take away (statvfs bit -> mount flag)
_LOCKED = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x1 | 0x40


def furnish(home: str, kept: Iterable[str], uid: int) -> None:
    """Turn the fresh namespaces into a world that holds `home`, `kept`, the system's programs and no more.

    raises  OSError with the path it concerns
    """
    loopback_up()
    socket.sethostname("devbox")
    # `/tmp/venv` may be needed below the new, empty /tmp: open all before any is hidden
    sources = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY)) for path in outermost(kept)]
    home_fd = os.open(home, os.O_PATH | os.O_DIRECTORY)
    for path in HIDDEN:
        if os.path.isdir(path) and not os.path.islink(path):
            _mount("tmpfs", path, "tmpfs", 0, "mode=1777" if path.endswith("/tmp") else "mode=0755")
    for path, fd in sources:
        if any(is_below(path, hidden) for hidden in HIDDEN):
            os.makedirs(path, mode=0o755)
            _bind(fd, path)
        else:
            _bind(fd, path)  # in place, only to make it read-only
        _mount("none", path, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _locked(path), "")
        os.close(fd)
    os.mkdir(HOME)
    _bind(home_fd, HOME)
    os.close(home_fd)
    runtime = f"/run/user/{uid}"
    os.makedirs(runtime)
    os.chmod(runtime, 0o700)
    _accounts(uid)
    if os.geteuid() == 0:
        os.chown(runtime, uid, uid)


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths without repetition and without those that lie inside another of them."""
    unique = sorted(set(paths), key=len)
    return [path for i, path in enumerate(unique) if not any(is_below(path, above) for above in unique[:i])]


def is_below(path: str, above: str) -> bool:
    return path.startswith(above.rstrip("/") + "/")


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING))


def _accounts(uid: int) -> None:
    """The user `dev` and the host `devbox`, laid over the system's own tables."""
    tables = {
        "passwd": f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{uid}:{uid}:Dev:{HOME}:/bin/bash\n",
        "group": f"root:x:0:\n{USER}:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost devbox\n",
    }
    os.mkdir("/run/accounts")
    for name, text in tables.items():
        made = f"/run/accounts/{name}"
        with open(made, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(made, 0o644)
        _mount(made, f"/etc/{name}", "", _MS_BIND, "")


def _bind(fd: int, target: str) -> None:
    _mount(f"/proc/self/fd/{fd}", target, "", _MS_BIND | _MS_REC, "")


def _locked(path: str) -> int:
    held = os.statvfs(path).f_flag
    return sum(flag for bit, flag in _LOCKED.items() if held & bit)


def _mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    if done != 0:
        number = ctypes.get_errno() or errno.EIO
        raise OSError(number, os.strerror(number), f"{source} on {target}")


def main() -> int:
    furniture = json.loads(sys.stdin.readline())
    with open(furniture["log"], "ab") as log:
        furnish(furniture["home"], furniture["kept"], furniture["uid"])
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans come to us: none stays a zombie
        journal = Journal(log, announce=lambda seq: print(f"request {seq}", flush=True))
        model = Model(journal)
        threading.Thread(target=model.serve_forever, name="model", daemon=True).start()
        print("ready", flush=True)
        for line in sys.stdin:
            verb, _, word = line.strip().partition(" ")
            if verb == "release":
                journal.release(word)
    os._exit(0)  # held replies are not waited for


if __name__ == "__main__":
    sys.exit(main())
