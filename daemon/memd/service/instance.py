"""One daemon per user, and the socket it answers on.

Who may serve is decided by `flock` on two files held for life: one in the state folder (two daemons never
share a state) and one beside the socket (two daemons never share an address). Only under both locks is a
dead socket removed; anything else that stands at the path is left and named. The lock files stay for ever:
removing one would let two starters hold locks on two different files of the same name.
"""

from __future__ import annotations

import errno
import os
import socket
import stat

from memctl.paths import SOCKET_LIMIT, is_private, published_path, shown
from memd import disk
from memd.errors import AlreadyRunning, CannotCreate, DiskError, MemdError, Refused, TryAgain, UsageError

BACKLOG = 1024


class Instance:
    """The right to serve, with the listening socket; `close` gives both back."""

    def __init__(self, state: bytes, address: bytes, inherited: socket.socket | None = None) -> None:
        """raises AlreadyRunning, Refused (something strange stands in the way), CannotCreate, UsageError"""
        self._locks: list[disk.Lock] = []
        self._bound: tuple[int, int] | None = None
        self._hold(state + b"/memd.lock", f"memd already runs with its state in {shown(state)}")
        try:
            if inherited is not None:
                self.address = _name_of(inherited) or address
                self.listener = inherited
            else:
                self.address = address
                self.listener = self._bind(address)
            disk.replace_file(published_path(), self.address, mode=0o600)
        except (MemdError, OSError):
            self._release()
            raise

    def _hold(self, path: bytes, otherwise: str) -> None:
        try:
            self._locks.append(disk.take_lock(path))
        except TryAgain:
            raise AlreadyRunning(otherwise) from None

    def _bind(self, path: bytes) -> socket.socket:
        if len(path) > SOCKET_LIMIT:
            raise UsageError(
                f"the socket path has {len(path)} bytes, the system allows {SOCKET_LIMIT}: {shown(path)}",
                remedy="Unset MEMD_SOCKET, or give a shorter absolute path.",
            )
        if not path.startswith(b"/"):
            raise UsageError(f"the socket path is not absolute: {shown(path)}")
        folder = os.path.dirname(path)
        _prepare(folder)
        self._hold(path + b".lock", f"the socket {shown(path)} is in use by another memd")
        _clear(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(path)
            os.chmod(path, 0o600)
            facts = os.lstat(path)
            self._bound = (facts.st_dev, facts.st_ino)
            listener.listen(BACKLOG)
        except OSError as reason:
            listener.close()
            raise CannotCreate(f"cannot listen on {shown(path)}: {reason.strerror or reason}") from reason
        return listener

    def close(self) -> None:
        """Stop listening; remove our own socket and address, and nobody else's."""
        self.listener.close()
        try:
            if self._bound is not None:
                facts = disk.look(self.address)
                if facts is not None and (facts.st_dev, facts.st_ino) == self._bound:
                    _remove(self.address)
                _remove(published_path())
        except DiskError:
            pass  # a dead socket is cleared by the next start
        self._release()

    def _release(self) -> None:
        for lock in reversed(self._locks):
            lock.release()


def _prepare(folder: bytes) -> None:
    """Make the socket's folder; it must be a real directory that only this user can enter."""
    if disk.look(folder) is None:
        disk.make_folders(folder).close()
    if not is_private(folder):
        raise Refused(
            f"{shown(folder)} is not a directory of this user alone (mode 0700)",
            remedy=f"Look at who made it; if it is yours, run `chmod 700 '{shown(folder)}'`.",
        )


def _clear(path: bytes) -> None:
    """Remove a dead socket of ours; refuse whatever else stands there."""
    facts = disk.look(path)
    if facts is None:
        return
    if not stat.S_ISSOCK(facts.st_mode):
        raise Refused(
            f"there is {_kind(facts.st_mode)} where the socket should be: {shown(path)}",
            remedy="Move it away, or choose another path with MEMD_SOCKET.",
        )
    if facts.st_uid != os.getuid():
        raise Refused(f"the socket {shown(path)} belongs to another user")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.setblocking(False)  # a slow peer is alive: whether it answers does not matter
    try:
        refused = probe.connect_ex(path) == errno.ECONNREFUSED
    finally:
        probe.close()
    if not refused:
        raise AlreadyRunning(f"the socket {shown(path)} is in use by another program")
    _remove(path)


def _remove(path: bytes) -> None:
    with disk.open_folder(os.path.dirname(path)) as folder:
        folder.remove(os.path.basename(path))


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISREG(mode):
        return "a file"
    return "something that is not a socket"


def _name_of(listener: socket.socket) -> bytes:
    name = listener.getsockname()
    return os.fsencode(name) if name else b""
