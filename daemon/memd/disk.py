"""The only writer of files. Everything here is atomic, exclusive or both, and survives a power cut once done.

A file is written under a temporary name in the folder it is meant for, flushed, and then renamed; the folder
is flushed after that. All three are needed, in that order: without the first flush the rename can land before
the bytes and leave an empty file, without the second a power cut after the answer brings the old name back.
A flush that failed is never repeated on the same file, because the system may have dropped the bytes: the
caller gets an error, and the next attempt writes anew.

Work inside a tree goes through `Folder`, an open directory. Names are resolved below its handle and never
through a link, so a folder that somebody swaps for a link while we work leads nowhere. A name that must be
free is taken by an operation that fails when it is not (`O_EXCL`, `RENAME_NOREPLACE`, `link`); a look
beforehand proves nothing.

Every system call is an attribute look-up on this module's `os`, and the two renames the `os` module lacks go
through `_renameat2`: that is where faults are injected.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Generator, Iterable, Iterator

from memd.errors import DiskError, TryAgain
from memd.rename_call import rename_function

CHUNK_BYTES = 1 << 18
LOCK_POLL_S = 0.01

_DARWIN = sys.platform == "darwin"
_NOREPLACE = 4 if _DARWIN else 1  # RENAME_EXCL there
_EXCHANGE = 2  # RENAME_SWAP there
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK}
_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_temporary = re.compile(rb"\.memd-[0-9a-f]{16}\.tmp")


def temporary_name() -> bytes:
    return b".memd-%b.tmp" % secrets.token_hex(8).encode("ascii")


def is_temporary(name: bytes) -> bool:
    """Whether a name is one that only this module gives: what has it is an unfinished copy."""
    return _temporary.fullmatch(name) is not None


class Folder:
    """An open directory. Names given to its methods are single parts, never paths; no link is ever followed.

    Every method raises DiskError, which names verb and path, unless it says otherwise.
    """

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: bytes) -> None:
        self.fd = fd
        self.path = path

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            _close(fd)

    def at(self, name: bytes) -> bytes:
        """The path of a name in here, for messages and records."""
        return (b"" if self.path == b"/" else self.path) + b"/" + name

    # ------------------------------------------------------------------ looking

    def facts(self) -> os.stat_result:
        with _saying("look at", self.path):
            return os.fstat(self.fd)

    def look(self, name: bytes) -> os.stat_result | None:
        """What the name itself is; None when nothing has it."""
        with _saying("look at", self.at(name)):
            try:
                return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            except FileNotFoundError:
                return None

    def follow(self, name: bytes) -> os.stat_result | None:
        """What stands behind the name, links followed; None for a dangling link or links in a circle."""
        with _saying("look at", self.at(name)):
            try:
                return os.stat(name, dir_fd=self.fd)
            except OSError as reason:
                if reason.errno in _NOTHING_THERE:
                    return None
                raise

    def names(self) -> list[bytes]:
        with _saying("list", self.path):
            return sorted(os.fsencode(name) for name in os.listdir(self.fd))

    def read_link(self, name: bytes) -> bytes:
        with _saying("read the link", self.at(name)):
            return os.readlink(name, dir_fd=self.fd)

    def is_writable(self) -> bool:
        """Whether names can be made here, as far as permissions and the mount tell."""
        with _saying("look at", self.path):
            return os.access(".", os.W_OK | os.X_OK, dir_fd=self.fd)

    def folder(self, name: bytes) -> Folder:
        """A sub-folder, opened; a link to a folder is an error (ENOTDIR or ELOOP)."""
        with _saying("open", self.at(name)):
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        return Folder(fd, self.at(name))

    def below(self, parts: Iterable[bytes]) -> Folder:
        """The folder that `parts` lead to, opened step by step; of no parts a second handle on this one."""
        with _saying("open", self.path):
            current = Folder(os.dup(self.fd), self.path)
        for part in parts:
            with current:
                current = current.folder(part)
        return current

    def chunks(self, name: bytes) -> Generator[bytes, None, None]:
        """The content of a regular file, piece by piece; anything else is EINVAL, never waited for."""
        with _saying("read", self.at(name)):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            fd = os.open(name, flags, dir_fd=self.fd)
        try:
            with _saying("read", self.at(name)):
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EINVAL, "not a regular file")
            while True:
                with _saying("read", self.at(name)):
                    chunk = os.read(fd, CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk
        finally:
            _close(fd)

    def read(self, name: bytes, limit: int) -> bytes:
        """The whole content of a regular file of at most `limit` bytes; a larger one is an error (EFBIG)."""
        held = bytearray()
        with contextlib.closing(self.chunks(name)) as chunks:
            for chunk in chunks:
                held += chunk
                if len(held) > limit:
                    raise DiskError("read", self.at(name), OSError(errno.EFBIG, f"larger than {limit} bytes"))
        return bytes(held)

    # ------------------------------------------------------------------ writing

    def ensure_folder(self, name: bytes, mode: int = 0o700) -> bool:
        """A sub-folder of that name; says whether it was made now. A link there is not looked through."""
        with _saying("make the folder", self.at(name)):
            try:
                os.mkdir(name, mode, dir_fd=self.fd)
            except FileExistsError:
                found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
                return False
        return True

    def make_link(self, text: bytes, name: bytes) -> None:
        """A new symbolic link; EEXIST when the name is taken."""
        with _saying("make the link", self.at(name)):
            os.symlink(text, name, dir_fd=self.fd)

    def write_temporary(
        self,
        chunks: Iterable[bytes],
        *,
        mode: int = 0o600,
        mtime_ns: int | None = None,
        is_flushed: bool = True,
    ) -> bytes:
        """The temporary name of a new file with that content, flushed unless it need not outlive the power;
        after an error there is none."""
        name = temporary_name()
        with _saying("write", self.at(name)):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(name, flags, 0o600, dir_fd=self.fd)
        try:
            try:
                for chunk in chunks:
                    with _saying("write", self.at(name)):
                        write_all(fd, chunk)
                with _saying("write", self.at(name)):
                    if mode != 0o600:
                        os.fchmod(fd, mode)
                    if mtime_ns is not None:
                        os.utime(fd, ns=(mtime_ns, mtime_ns))
                    if is_flushed:
                        flush(fd)
            finally:
                with _saying("write", self.at(name)):
                    os.close(fd)
        except Exception:
            with contextlib.suppress(DiskError):
                self.remove(name)
            raise
        return name

    def create(self, name: bytes, data: bytes, *, mode: int = 0o600) -> bool:
        """A new file with that content; says False, and changes nothing, when the name is taken."""
        temporary = self.write_temporary((data,), mode=mode)
        try:
            self.move(temporary, self, name)
        except DiskError as reason:
            self.remove(temporary)
            if reason.errno == errno.EEXIST:
                return False
            raise
        self.sync()
        return True

    def replace(self, name: bytes, data: bytes, *, mode: int = 0o600) -> None:
        """Give the name this content: whoever looks, even after a power cut, sees the old or the new."""
        temporary = self.write_temporary((data,), mode=mode)
        try:
            with _saying("replace", self.at(name)):
                os.replace(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except DiskError:
            with contextlib.suppress(DiskError):
                self.remove(temporary)
            raise
        self.sync()

    def move(self, name: bytes, to: Folder, new: bytes) -> None:
        """Rename without replacing: EEXIST when `new` is taken, also by a dangling link."""
        with _saying("move", self.at(name)):
            if not _renamed(self.fd, name, to.fd, new, _NOREPLACE):
                _move_in_steps(self.fd, name, to.fd, new)

    def swap(self, name: bytes, other: Folder, other_name: bytes) -> None:
        """Exchange what two names stand for, in one step where the file system can.

        What `other_name` stands for must be memd's own: where there is no such step it is three renames, and
        cut off between them that is left under a temporary name beside `name`.
        """
        with _saying("exchange", self.at(name)):
            if _renamed(self.fd, name, other.fd, other_name, _EXCHANGE):
                return
            between = temporary_name()
            _move_in_steps(other.fd, other_name, self.fd, between)
            _move_in_steps(self.fd, name, other.fd, other_name)
            _move_in_steps(self.fd, between, self.fd, name)

    def remove(self, name: bytes) -> None:
        """Take away a file or link that memd itself made; nothing happens when it is gone already."""
        with _saying("remove", self.at(name)), contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def remove_folder(self, name: bytes) -> None:
        """Take away an empty folder that memd itself made; nothing happens when it is gone already."""
        with _saying("remove", self.at(name)), contextlib.suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=self.fd)

    def sync(self) -> None:
        """Make the names in this folder durable."""
        with _saying("flush", self.path):
            _flush_folder(self.fd)


# ------------------------------------------------------------------------- whole paths


def open_folder(path: bytes) -> Folder:
    """A directory by its path, links followed: for roots that were resolved or that the user named."""
    with _saying("open", path):
        return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)


def make_folders(path: bytes, mode: int = 0o700) -> Folder:
    """A directory by its path, opened, with the missing parents made; each name made is durable."""
    missing: list[bytes] = []
    at = path
    while True:
        try:
            current = open_folder(at)
            break
        except DiskError as reason:
            if reason.errno != errno.ENOENT or at == b"/":
                raise
            missing.append(os.path.basename(at))
            at = os.path.dirname(at) or b"/"
    for name in reversed(missing):
        with current:
            if current.ensure_folder(name, mode):
                current.sync()
            current = current.folder(name)
    return current


def look(path: bytes) -> os.stat_result | None:
    """What a path itself is; None when there is nothing, or a parent is no folder."""
    return _stat(path, follow=False)


def follow(path: bytes) -> os.stat_result | None:
    """What a path leads to; None when that is nothing."""
    return _stat(path, follow=True)


def _stat(path: bytes, *, follow: bool) -> os.stat_result | None:
    with _saying("look at", path):
        try:
            return os.stat(path, follow_symlinks=follow)
        except OSError as reason:
            if reason.errno in _NOTHING_THERE:
                return None
            raise


def read_file(path: bytes, limit: int) -> bytes | None:
    """The content of a regular file of at most `limit` bytes; None when there is no such name."""
    try:
        with open_folder(os.path.dirname(path)) as folder:
            return folder.read(os.path.basename(path), limit)
    except DiskError as reason:
        if reason.errno == errno.ENOENT:
            return None
        raise


def replace_file(path: bytes, data: bytes, *, mode: int = 0o600) -> None:
    """Give a path this content, atomically and durably; missing parents are made, private."""
    with make_folders(os.path.dirname(path)) as folder:
        folder.replace(os.path.basename(path), data, mode=mode)


# ------------------------------------------------------------------------------- locks


class Lock:
    """An exclusive flock, held until `release`, the end of the `with` block, or the end of the process."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            _close(fd)


def take_lock(path: bytes, *, wait_s: float = 0.0) -> Lock:
    """The lock of that file, which is made when missing and never removed; raises TryAgain after `wait_s`."""
    with make_folders(os.path.dirname(path)) as folder, _saying("lock", path):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(os.path.basename(path), flags, 0o600, dir_fd=folder.fd)
    return _locked(fd, path, wait_s)


def take_folder_lock(path: bytes, *, wait_s: float = 0.0) -> Lock | None:
    """The lock of a directory itself, so that nothing has to be made in it; raises TryAgain after `wait_s`.

    None where the file system cannot lock a directory (NFS wants a writable file).
    """
    folder = open_folder(path)
    fd, folder.fd = folder.fd, -1
    try:
        return _locked(fd, path, wait_s)
    except DiskError as reason:
        if reason.errno in _UNSUPPORTED | {errno.EBADF, errno.ENOLCK, errno.EACCES}:
            return None
        raise


def _locked(fd: int, path: bytes, wait_s: float) -> Lock:
    lock = Lock(fd)
    deadline = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    shown = path.decode("utf-8", "backslashreplace")
                    raise TryAgain(f"another memd process works on {shown}") from None
            time.sleep(LOCK_POLL_S)
    except OSError as reason:
        lock.release()
        raise DiskError("lock", path, reason) from reason
    except TryAgain:
        lock.release()
        raise


# ---------------------------------------------------------------------- system calls


@contextlib.contextmanager
def _saying(verb: str, path: bytes) -> Iterator[None]:
    """The one place where an OSError becomes a DiskError."""
    try:
        yield
    except OSError as reason:
        raise DiskError(verb, path, reason) from reason


def _close(fd: int) -> None:
    """Close what was only read: nothing can be lost with it, so nobody needs to know how that went."""
    with contextlib.suppress(OSError):
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def flush(fd: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync there leaves the bytes in the drive's cache
    else:
        os.fsync(fd)


def _flush_folder(fd: int) -> None:
    try:
        flush(fd)
    except OSError as reason:
        if reason.errno not in _UNSUPPORTED:  # some file systems cannot flush a directory, and need not
            raise


def _renamed(old_fd: int, old: bytes, new_fd: int, new: bytes, flag: int) -> bool:
    """False when the system or this file system has no such rename."""
    try:
        _renameat2(old_fd, old, new_fd, new, flag)
    except OSError as reason:
        if reason.errno in _UNSUPPORTED:
            return False
        raise
    return True


def _renameat2(old_fd: int, old: bytes, new_fd: int, new: bytes, flags: int) -> None:
    """renameat2 on Linux, renameatx_np on macOS, which has the same flags under other numbers."""
    call, get_errno = rename_function()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(old_fd, old, new_fd, new, flags) != 0:
        number = get_errno()
        raise OSError(number, os.strerror(number))


def _move_in_steps(old_fd: int, old: bytes, new_fd: int, new: bytes) -> None:
    """A rename that does not replace, where there is no single call for it: a hard link is exclusive as well.

    Folders have no hard links: there a look must do, and rename itself refuses a folder that is not empty.
    """
    facts = os.stat(old, dir_fd=old_fd, follow_symlinks=False)
    if not stat.S_ISDIR(facts.st_mode):
        try:
            os.link(old, new, src_dir_fd=old_fd, dst_dir_fd=new_fd, follow_symlinks=False)
        except OSError as reason:
            if reason.errno not in _NO_LINKS:
                raise
        else:
            os.unlink(old, dir_fd=old_fd)
            return
    try:
        os.stat(new, dir_fd=new_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=old_fd, dst_dir_fd=new_fd)
        return
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
