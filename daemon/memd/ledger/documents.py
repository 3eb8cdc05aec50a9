"""Reading a session that a harness keeps in many small files (`Store.documents`).

An adapter says which files belong to a session, this module opens them: only below the store's root, never
through a link, each within a bound. Nothing is written.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Sequence

from memd import disk
from memd.errors import DiskError
from memd.harness.model import Gather
from memd.ledger import birth

MAX_DOCUMENT_BYTES = 32 << 20


class Documents:
    """The files below one root. `names` and `read` are what `Adapter.gather` takes.

    A folder or a file that is missing or cannot be read is empty: such stores are replaced file by file
    while they are read, and what is missing now is there in the next round.
    """

    def __init__(self, root: bytes) -> None:
        self._root = root

    def names(self, folder: bytes) -> Sequence[bytes]:
        try:
            with disk.open_folder(self._root) as root, root.below(folder.split(b"/")) as here:
                return here.names()
        except DiskError:
            return ()

    def read(self, path: bytes) -> bytes | None:
        *folder, name = path.split(b"/")
        try:
            with disk.open_folder(self._root) as root, root.below(folder) as here:
                facts = here.look(name)
                if facts is None or not stat.S_ISREG(facts.st_mode):
                    return b""
                return here.read(name, MAX_DOCUMENT_BYTES) if facts.st_size <= MAX_DOCUMENT_BYTES else None
        except DiskError:
            return b""

    def born(self, path: bytes) -> int:
        """When a file was made, in milliseconds since 1970; 0 where the system does not say."""
        return birth.born_ms(self._root + b"/" + path)

    def facts(self, path: bytes) -> bytes:
        """Size, time and inode of a file as text, for a fingerprint; empty when it is missing."""
        *folder, name = path.split(b"/")
        try:
            with disk.open_folder(self._root) as root, root.below(folder) as here:
                found = here.look(name)
        except DiskError:
            return b""
        return b"" if found is None else b"%d.%d.%d" % (found.st_size, found.st_mtime_ns, found.st_ino)


def rows(gather: Gather, root: bytes, source: bytes) -> Iterator[Sequence[object]]:
    """The rows of one session, one file in memory at a time."""
    documents = Documents(root)
    return gather(source, documents.names, documents.read)


def fingerprint(gather: Gather, root: bytes, source: bytes) -> bytes:
    """Changes whenever a file of the session is added, replaced, grown or removed; opens none of them."""
    documents = Documents(root)
    digest = hashlib.blake2b(digest_size=16)

    def names(folder: bytes) -> Sequence[bytes]:
        found = documents.names(folder)
        for name in found:
            digest.update(folder + b"/" + name + b"\0")
        return found

    def read(path: bytes) -> bytes:
        digest.update(path + b"\0" + documents.facts(path) + b"\0")
        return b""

    for _ in gather(source, names, read):
        pass
    return digest.digest()
