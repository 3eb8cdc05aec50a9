"""What adapters may ask of the disk to find stores whose place only files and folders say."""

from __future__ import annotations

import errno
import os
import stat

from memd import checkout
from memd.errors import UsageError

MAX_READ_BYTES = 1 << 20


class Disk:
    """The disk as it is, for one look round. `followed` are the files whose changes are to be waited for."""

    def __init__(self) -> None:
        self.followed: set[bytes] = set()
        self._real: dict[bytes, bytes] = {}
        self._checkouts: dict[bytes, bytes] = {}

    def follow(self, path: bytes) -> bytes | None:
        self.followed.add(path)
        return self.read(path)

    def read(self, path: bytes) -> bytes | None:
        """The content of a regular file of at most `MAX_READ_BYTES`; None for anything else."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError):
            return None
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_READ_BYTES:
                return None
            with open(fd, "rb", closefd=False) as file:
                content = file.read(MAX_READ_BYTES + 1)
        except OSError:
            return None
        finally:
            os.close(fd)
        return content if len(content) <= MAX_READ_BYTES else None

    def owner(self, path: bytes) -> int | None:
        """The uid of its owner; None: it is not there; -1: it cannot be examined."""
        try:
            return os.stat(path).st_uid
        except OSError as reason:
            return None if reason.errno in (errno.ENOENT, errno.ENOTDIR) else -1
        except ValueError:
            return None

    def is_folder(self, path: bytes) -> bool:
        return os.path.isdir(path)

    def real(self, path: bytes) -> bytes:
        """The path without links, as far as it exists."""
        if path not in self._real:
            try:
                self._real[path] = os.path.realpath(path)
            except ValueError:
                return path
        return self._real[path]

    def checkout(self, path: bytes) -> bytes:
        """The top of the checkout that a folder is in; empty outside one."""
        if path not in self._checkouts:
            try:
                self._checkouts[path] = checkout.repository(path).root
            except UsageError:
                return b""
        return self._checkouts[path]
