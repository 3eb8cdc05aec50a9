"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import sys

import trio


class Peer:
    """The other end of one connection. pid: of the process that connected; 0: not known"""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._socket = stream.socket if isinstance(stream, trio.SocketStream) else None
        self.pid = peer_pid(self._socket) if self._socket is not None else 0

    def is_there(self) -> bool:
        """Whether it still holds its end open, as far as the system says now."""
        if self._socket is None:
            return True
        fd = self._socket.fileno()
        if fd < 0:
            return False
        watch = select.poll()
        watch.register(fd, 0)
        return not watch.poll(0)


def peer_uid(sock: socket.socket | trio.socket.SocketType) -> int:
    """The effective user id of the connected peer, as the kernel recorded it; -1 when it cannot be told.

    source  unix(7) SO_PEERCRED on Linux; getpeereid(3) on macOS and the BSDs
    """
    if sys.platform == "linux":
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
    if libc.getpeereid(sock.fileno(), ctypes.byref(uid), ctypes.byref(gid)) != 0:
        return -1
    return uid.value


def peer_pid(sock: socket.socket | trio.socket.SocketType) -> int:
    """The process that connected; 0 when it cannot be told. Of a socket that was handed on, the first owner.

    source  unix(7) SO_PEERCRED on Linux; LOCAL_PEERPID (2) at level SOL_LOCAL (0) on macOS, <sys/un.h>
    """
    try:
        if sys.platform == "linux":
            raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return max(int(struct.unpack("3i", raw)[0]), 0)
        return max(sock.getsockopt(0, 2), 0)
    except OSError:
        return 0


def is_same_user(sock: socket.socket | trio.socket.SocketType) -> bool:
    try:
        return peer_uid(sock) == os.getuid()
    except OSError:
        return False
