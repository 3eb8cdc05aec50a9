"""The few small files memctl writes itself: whole or not at all, and never over something unread.

Only for what must be written while no daemon runs. Everything else is the daemon's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from memd.errors import DiskError, Refused

MAX_BYTES = 32 << 20

_CANNOT_FLUSH = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


def read(path: bytes) -> tuple[bytes | None, str]:
    """The content of a regular file, else None; and what stands there.

    returns  `file`, `absent`, or `link` or `other`, which are never followed or read
    raises   DiskError, Refused for a file of more than MAX_BYTES
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None, "absent"
    except OSError as reason:
        if os.path.islink(path):
            return None, "link"
        raise DiskError("read", path, reason) from reason
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None, "other"
        with os.fdopen(os.dup(fd), "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as reason:
        raise DiskError("read", path, reason) from reason
    finally:
        os.close(fd)
    if len(content) > MAX_BYTES:  # a part of it must never be taken for the whole and written back
        raise Refused(f"{_shown(path)} is larger than {MAX_BYTES >> 20} MiB", remedy="Make it smaller.")
    return content, "file"


def write(
    path: bytes, text: bytes, over: bytes | None, mode: int = 0o644, like: os.stat_result | None = None
) -> None:
    """Put `text` at `path`, durably; the file there must still be `over` (None: there is none).

    A crash leaves the old file or the new one.
    like    the file belongs to whom that one does, and has its exact mode and, where that can be had, its
            extended attributes
    raises  Refused when something else stands at the path by now, DiskError
    """
    folder = os.path.dirname(path)
    make_folder(folder)
    fresh = folder + b"/." + os.path.basename(path) + b".%d.new" % os.getpid()
    try:
        _write_new(fresh, text, mode if like is None else 0o600)
        try:
            if like is not None:
                _dress(fresh, path, like)
            if read(path)[0] != over:
                raise Refused(
                    f"{_shown(path)} changed while it was being replaced",
                    remedy="Look at what it says now, then repeat the command.",
                )
            if over is None and _link(fresh, path):
                os.unlink(fresh)
            else:
                os.rename(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
        _sync_folder(folder)  # else a power cut after the answer brings the old file back
    except FileExistsError as reason:
        raise Refused(
            f"{_shown(path)} appeared while it was being written",
            remedy="Look at what it says, then repeat the command.",
        ) from reason
    except OSError as reason:
        raise DiskError("write", path, reason) from reason


def back_up(path: bytes, text: bytes, like: os.stat_result, now_s: int) -> bytes:
    """Keep `text`, which is what `path` says now, beside it; the path of the copy. Raises DiskError."""
    for extra in range(1000):  # two changes in one second get two copies
        copy = path + b".bak-%d" % now_s + (b".%d" % extra if extra else b"")
        try:
            _write_new(copy, text, 0o600, is_ours=False)
        except FileExistsError:
            continue
        except OSError as reason:
            raise DiskError("write", copy, reason) from reason
        try:
            _dress(copy, path, like)
            _sync_folder(os.path.dirname(path))
        except OSError as reason:
            os.unlink(copy)
            raise DiskError("write", copy, reason) from reason
        return copy
    raise DiskError("write", copy, FileExistsError(errno.EEXIST, "File exists"))


def remove(path: bytes, only: bytes) -> None:
    """Remove the file whose content is still `only`; raises Refused when it is not, DiskError."""
    if read(path)[0] != only:
        raise Refused(f"{_shown(path)} changed meanwhile", remedy="Look at what it says, then remove it.")
    try:
        os.unlink(path)
        _sync_folder(os.path.dirname(path))
    except OSError as reason:
        raise DiskError("remove", path, reason) from reason


def missing_folders(path: bytes) -> tuple[bytes, ...]:
    """The folders that would have to be made for a file there, innermost first."""
    missing = []
    folder = os.path.dirname(path)
    while folder and not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def remove_empty_folders(paths: Iterable[bytes]) -> None:
    """Remove these, innermost first, as far as they are folders with nothing in them."""
    for path in paths:
        try:
            os.rmdir(path)
            _sync_folder(os.path.dirname(path))
        except FileNotFoundError:
            continue
        except OSError:
            return  # somebody has put something there, or a link: it is theirs now


def make_folder(path: bytes, mode: int = 0o700) -> None:
    """Make a folder and its missing parents, durably; `mode` is for the last one. Raises DiskError."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_folder(parent)
    try:
        os.mkdir(path, mode)
        _sync_folder(parent)
    except FileExistsError:
        if not os.path.isdir(path):
            raise DiskError("make the folder", path, NotADirectoryError(20, "Not a directory")) from None
    except OSError as reason:
        raise DiskError("make the folder", path, reason) from reason


def _write_new(path: bytes, text: bytes, mode: int, *, is_ours: bool = True) -> None:
    if is_ours:
        try:
            os.unlink(path)  # left by a process of our own number that was killed here
        except FileNotFoundError:
            pass
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)  # else the rename can land before the bytes: an empty file
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(path)
        raise


def _dress(fresh: bytes, old: bytes, like: os.stat_result) -> None:
    """Give a new file the owner, the mode and the attributes of the one it stands for."""
    now = os.stat(fresh)
    if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
        os.chown(fresh, like.st_uid, like.st_gid)
    for name in _attributes(old):
        try:
            os.setxattr(fresh, name, os.getxattr(old, name))
        except OSError:
            continue  # a label only the system may set
    os.chmod(fresh, stat.S_IMODE(like.st_mode))


def _attributes(path: bytes) -> list[str]:
    try:
        return os.listxattr(path)
    except (OSError, AttributeError):  # not on this file system, or not on this system
        return []


def _link(old: bytes, new: bytes) -> bool:
    """Give `old` a second name, which unlike a rename never goes over a newcomer. False: no links here."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as reason:
        if reason.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            return False
        raise
    return True


def _sync_folder(path: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as reason:
        if reason.errno not in _CANNOT_FLUSH:  # some file systems cannot flush a directory, and need not
            raise
    finally:
        os.close(fd)


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
