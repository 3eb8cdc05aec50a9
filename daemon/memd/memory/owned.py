"""Writing into an owned folder while agents use it: free names, exchanges, and what has to be flushed after.

A note is superseded by an exchange of two names: the new one is written under the name that the old one will
have, complete, and then they are exchanged. So the note is there at every instant, and what an agent wrote to
it in the last moment is kept with the old one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable

from memd.disk import Folder
from memd.errors import DiskError
from memd.memory.tree import name_of

MAX_HANDLES = 16

# what an operation says when a name was made, removed or turned into something else since we looked
CHANGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.ESTALE})


class Stale(Exception):
    """Something is not as the plan saw it: plan anew."""


class Owned:
    """An owned folder's sub-folders, opened when needed; knows which of them have new names to be flushed."""

    def __init__(self, root: Folder) -> None:
        self.root = root
        self._open: dict[bytes, Folder] = {}
        self._touched: dict[bytes, None] = {}

    def __enter__(self) -> Owned:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()

    def holder(self, rel: bytes) -> Folder:
        """The folder in which `rel` is about to be made or changed."""
        path = rel.rpartition(b"/")[0]
        self._touched[path] = None
        folder = self._open.pop(path, None)
        if folder is None:
            folder = self.root.below(path.split(b"/") if path else ())
        self._open[path] = folder
        if len(self._open) > MAX_HANDLES:
            self._open.pop(next(iter(self._open))).close()
        return folder

    def make(self, rel: bytes) -> None:
        """A folder and those above it."""
        parts = rel.split(b"/")
        for depth in range(1, len(parts) + 1):
            self.holder(b"/".join(parts[:depth])).ensure_folder(parts[depth - 1])

    def write(self, rel: bytes, chunks: Iterable[bytes], *, mode: int, mtime_ns: int | None = None) -> int:
        """A new file under a name that is free; returns its inode. EEXIST when the name is taken."""
        return self.write_if(rel, chunks, lambda: True, mode=mode, mtime_ns=mtime_ns)

    def write_if(
        self,
        rel: bytes,
        chunks: Iterable[bytes],
        is_right: Callable[[], bool],
        *,
        mode: int,
        mtime_ns: int | None = None,
    ) -> int:
        """The same, but once written the file gets its name only when `is_right` says so; else Stale."""
        folder = self.holder(rel)
        temporary = folder.write_temporary(chunks, mode=mode, mtime_ns=mtime_ns)
        try:
            if not is_right():
                raise Stale
            ours = inode(folder, temporary)
            folder.move(temporary, folder, name_of(rel))
        except (DiskError, Stale):
            with contextlib.suppress(DiskError):
                folder.remove(temporary)
            raise
        return ours

    def supersede(
        self, rel: bytes, kept: bytes, ours: int, is_expected: Callable[[os.stat_result | None], bool]
    ) -> None:
        """Exchange `rel` with the new file that waits at `kept`, whose inode is `ours`.

        is_expected  judges the old file, after the exchange at `kept`. When it is not the expected one, the
                     exchange is undone, the new file taken back, and Stale raised
        """
        folder, name = self.holder(rel), name_of(rel)
        kept_in, kept_name = self.holder(kept), name_of(kept)
        try:
            folder.swap(name, kept_in, kept_name)
        except DiskError:
            self.discard(kept, ours)
            raise
        if is_expected(kept_in.look(kept_name)):
            return
        if inode(folder, name) == ours:
            kept_in.swap(kept_name, folder, name)
            self.discard(kept, ours)
        raise Stale

    def discard(self, rel: bytes, ours: int) -> None:
        """Take back a copy that was not needed, if it is still the one we made."""
        if inode(self.holder(rel), name_of(rel)) == ours:
            self.holder(rel).remove(name_of(rel))

    def flush(self) -> None:
        """Make every new name durable."""
        for path in self._touched:
            try:
                with self.root.below(path.split(b"/") if path else ()) as folder:
                    folder.sync()
            except DiskError as reason:
                if reason.errno not in CHANGED:  # a folder that is gone needs no flush
                    raise


def inode(folder: Folder, name: bytes) -> int:
    """The inode a name has; 0 when there is none."""
    facts = folder.look(name)
    return facts.st_ino if facts is not None else 0
