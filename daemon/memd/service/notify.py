"""What the service manager hands us and hears from us: inherited sockets, readiness, the watchdog.

source  sd_listen_fds(3), sd_notify(3), systemd 252. Without a service manager all of this is silent.
"""

from __future__ import annotations

import os
import socket
import time

import trio


class ServiceManager:
    """The manager that started this process, or nobody."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        self._watchdog_s = _watchdog_interval(environ)
        self._pid = environ.pop("LISTEN_PID", "")
        self._fds = environ.pop("LISTEN_FDS", "")
        environ.pop("LISTEN_FDNAMES", None)

    def inherited_socket(self) -> socket.socket | None:
        """The listening Unix socket passed by socket activation, if one was passed to this process.

        raises ValueError when what was passed is no such socket
        """
        if self._pid != str(os.getpid()) or not self._fds.isdigit() or int(self._fds) < 1:
            return None
        os.set_inheritable(3, False)
        passed = socket.socket(fileno=3)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if passed.family != socket.AF_UNIX or passed.type != socket.SOCK_STREAM or not listens:
            raise ValueError("the service manager passed something that is not a listening Unix socket")
        return passed

    def tell(self, *lines: str) -> None:
        """Send a notification; a manager that cannot be reached is not our trouble."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.settimeout(0.5)
                out.connect(address)
                out.send("\n".join(lines).encode())
        except OSError:
            pass

    def tell_reloading(self) -> None:
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    async def feed_watchdog(self) -> None:
        """Prove, from the loop that answers the socket, that it still turns."""
        if not self._address or self._watchdog_s <= 0:
            return
        while True:
            self.tell("WATCHDOG=1")
            await trio.sleep(self._watchdog_s / 2)


def _watchdog_interval(environ: dict[str, str]) -> float:
    usec = environ.pop("WATCHDOG_USEC", "")
    pid = environ.pop("WATCHDOG_PID", "")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(usec) / 1e6
