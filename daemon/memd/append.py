"""Files that only grow: opened for appending, never through a link, and rotated by renaming.

The other half of `memd.disk`, which replaces whole files. Only `append_flushed` is durable by itself.
"""

from __future__ import annotations

import errno
import os

from memd import disk
from memd.errors import DiskError


def open_appending(path: bytes) -> tuple[int, int]:
    """A descriptor that reads and appends to `path`, made private when missing, and its size.

    raises DiskError
    """
    with disk.make_folders(os.path.dirname(path)) as folder:
        try:
            fd = os.open(
                os.path.basename(path),
                os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=folder.fd,
            )
        except OSError as reason:
            raise DiskError("open", path, reason) from reason
        return fd, os.fstat(fd).st_size


def rotate(path: bytes, keep: int) -> None:
    """`path` becomes `path.1`, `path.1` becomes `path.2` and so on; what would be `keep + 1` is replaced.

    raises DiskError
    """
    try:
        for number in range(keep, 1, -1):
            older = path + b".%d" % (number - 1)
            if os.path.lexists(older):
                os.replace(older, path + b".%d" % number)
        os.replace(path, path + b".1")
    except OSError as reason:
        raise DiskError("rotate", path, reason) from reason


def append_flushed(folder: disk.Folder, name: bytes, data: bytes, at: int) -> None:
    """Put `data` durably behind the first `at` bytes of a file that is just that long; 0 makes a new file.

    raises  DiskError, with ESTALE for a file of another length. What the file has beyond `at` is unknown
            then, and nothing may be appended to it any more: a failed flush is never repeated
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags | (0 if at else os.O_CREAT | os.O_EXCL), 0o600, dir_fd=folder.fd)
        try:
            if os.fstat(fd).st_size != at:
                raise OSError(errno.ESTALE, "it is not as long as it was left")
            disk.write_all(fd, data)
            disk.flush(fd)
        finally:
            os.close(fd)
    except OSError as reason:
        raise DiskError("append to", folder.at(name), reason) from reason
    if not at:
        folder.sync()
