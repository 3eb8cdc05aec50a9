"""One store on disk: its index, topics and tombstones, read and written whole. Decides nothing.

Everything is opened below the store's own handle, never through a link, and only when it is a regular file.
A file that is replaced keeps its mode.
"""

from __future__ import annotations

import errno
import hashlib
import stat

from memctl.paths import shown
from memd import disk
from memd.disk import Folder
from memd.errors import DiskError, Refused
from memd.memory.shared.index import INITIAL
from memd.memory.shared.slugs import INDEX
from memd.memory.shared.tombstones import REMOVED, parse

MAX_INDEX_BYTES = 4 << 20
MAX_TOPIC_BYTES = 8 << 20
MAX_REMOVED_BYTES = 4 << 20


class Store:
    """An open store. Close it, or use it in a `with` block."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()

    # ------------------------------------------------------------------ looking

    def index(self) -> bytes:
        """The index; its initial text where there is none. Raises DiskError, Refused for a link."""
        return self._read(INDEX, MAX_INDEX_BYTES) or INITIAL

    def has_index(self) -> bool:
        return self.folder.look(INDEX) is not None

    def names(self) -> list[bytes]:
        return self.folder.names()

    def regular(self) -> list[bytes]:
        """The names of regular files."""
        return [name for name in self.names() if self.is_regular(name)]

    def is_regular(self, name: bytes) -> bool:
        facts = self.folder.look(name)
        return facts is not None and stat.S_ISREG(facts.st_mode)

    def topic(self, file: bytes) -> bytes | None:
        """A topic's content; None when there is no such file. Raises DiskError, Refused for anything else."""
        return self._read(file, MAX_TOPIC_BYTES)

    def digest(self, file: bytes) -> str:
        """Of a regular file that can be read; empty for anything else."""
        try:
            content = self._read(file, MAX_TOPIC_BYTES)
        except (DiskError, Refused):
            return ""
        return "" if content is None else digest_of(content)

    def tombstones(self) -> bytes:
        return self._read(REMOVED, MAX_REMOVED_BYTES) or b""

    def removed(self) -> frozenset[bytes]:
        return parse(self.tombstones())

    def _read(self, name: bytes, limit: int) -> bytes | None:
        try:
            return self.folder.read(name, limit)
        except DiskError as reason:
            if reason.errno == errno.ENOENT:
                return None
            if reason.errno in (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.EMLINK):
                raise Refused(
                    f"{shown(self.folder.at(name))} is no regular file",
                    remedy="memd follows no links in a memory folder: put the file itself there.",
                ) from None
            raise

    # ------------------------------------------------------------------ writing, under the lock

    def write(self, name: bytes, content: bytes) -> None:
        """Give a name this content, durably; what is no regular file is never replaced."""
        facts = self.folder.look(name)
        if facts is not None and not stat.S_ISREG(facts.st_mode):
            raise Refused(
                f"{shown(self.folder.at(name))} is no regular file",
                remedy="memd replaces no links or folders: move it away.",
            )
        mode = 0o600 if facts is None else facts.st_mode & 0o777
        self.folder.replace(name, content, mode=mode)

    def create(self, name: bytes, content: bytes) -> bool:
        """A new file; False when the name is taken by anything."""
        return self.folder.create(name, content)

    def take_back(self, name: bytes, content: bytes) -> None:
        """Remove a file that was made just now, if it still is what was written."""
        if self._read(name, MAX_TOPIC_BYTES) == content:
            self.folder.remove(name)
            self.folder.sync()

    def sweep(self) -> None:
        """Take away what a crash left half-written."""
        for name in self.names():
            if disk.is_temporary(name) and self.is_regular(name):
                self.folder.remove(name)


def open_store(path: bytes) -> Store | None:
    """An existing store; None when there is none. Raises DiskError, Refused."""
    try:
        return Store(disk.open_folder(path))
    except DiskError as reason:
        if reason.errno == errno.ENOENT:
            return None
        if reason.errno == errno.ENOTDIR:
            raise Refused(
                f"{shown(path)} is no folder", remedy="Move it away; memd makes the folder."
            ) from None
        raise


def make_store(path: bytes) -> Store:
    """A store, made where missing."""
    return Store(disk.make_folders(path))


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
