"""Reading a folder of notes: every name in it, without ever leaving it.

Folders are opened one below the other through their handles, so a link is seen as a link and never gone
through. Whether a link leads to a file in the same tree is found out by walking its text there, by hand.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Container, Iterable

import msgspec

from memd.disk import Folder, is_temporary
from memd.errors import DiskError
from memd.memory.plan import Folding, Found

MAX_NAMES = 50_000  # in one tree; what lies beyond is reported, not read
MAX_DEPTH = 48  # each level holds a handle open
MAX_HOPS = 40  # links gone through for one link, as in the kernel


def survey(root: Folder, *, is_ours: bool = False) -> tuple[Found, ...]:
    """Every name in the tree, parents first, without digests.

    is_ours  the owned folder: of a link that leads out of it, say whether anything is there
    raises   DiskError when the top folder itself cannot be listed. Below it, trouble is noted per name
    """
    walk = _Walk(root, is_ours)
    walk.folder(root, b"", 0)
    return tuple(walk.found)


def with_digests(root: Folder, found: Iterable[Found], wanted: Container[bytes]) -> tuple[Found, ...]:
    """The same, with the digests of the `wanted` files; what cannot be read says why."""
    return tuple(_with_digest(root, f) if f.rel in wanted and not f.digest else f for f in found)


def digest_of(root: Folder, rel: bytes) -> bytes:
    """SHA-256 of a regular file in the tree; raises DiskError."""
    hasher = hashlib.sha256()
    with parent_of(root, rel) as folder:
        for chunk in folder.chunks(name_of(rel)):
            hasher.update(chunk)
    return hasher.digest()


def parent_of(root: Folder, rel: bytes) -> Folder:
    """The folder that holds `rel`, opened without following a link; raises DiskError."""
    return root.below(rel.split(b"/")[:-1])


def name_of(rel: bytes) -> bytes:
    return rel.rpartition(b"/")[2]


def folding_of(folder: Folder, name: bytes) -> Folding:
    """What the file system takes for one name, judged by a folder in it whose name has letters in it."""
    here, there = folder.look(name), folder.look(name.swapcase())
    case = (
        here is not None and there is not None and (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    )
    return Folding(case=case, form=case or sys.platform == "darwin")


def _with_digest(root: Folder, found: Found) -> Found:
    if found.trouble or not (found.kind == "file" or found.target):
        return found
    try:
        return msgspec.structs.replace(found, digest=digest_of(root, found.target or found.rel))
    except DiskError as reason:
        is_denied = reason.errno in (errno.EACCES, errno.EPERM)
        return msgspec.structs.replace(found, trouble=str(reason), is_denied=is_denied)


class _Walk:
    def __init__(self, root: Folder, is_ours: bool) -> None:
        self.found: list[Found] = []
        self._root = root
        self._is_ours = is_ours
        self._real = os.path.realpath(root.path)

    def folder(self, folder: Folder, prefix: bytes, depth: int) -> None:
        for name in folder.names():
            if is_temporary(name):
                continue
            rel = prefix + name
            if len(self.found) >= MAX_NAMES:
                self.found.append(Found(rel, "other", trouble=f"there are more than {MAX_NAMES} names"))
                return
            try:
                facts = folder.look(name)
                if facts is not None:
                    self._name(folder, rel, facts, depth)
            except DiskError as reason:
                self.found.append(Found(rel, "other", trouble=str(reason)))

    def _name(self, folder: Folder, rel: bytes, facts: os.stat_result, depth: int) -> None:
        name = name_of(rel)
        if stat.S_ISREG(facts.st_mode):
            self.found.append(_found(rel, "file", facts))
        elif stat.S_ISLNK(facts.st_mode):
            self.found.append(self._link(folder, rel, facts))
        elif not stat.S_ISDIR(facts.st_mode):
            self.found.append(_found(rel, "other", facts))
        elif depth >= MAX_DEPTH:
            self.found.append(Found(rel, "folder", trouble="it lies too deep"))
        else:
            place = len(self.found)
            self.found.append(_found(rel, "folder", facts))
            try:
                with folder.folder(name) as below:
                    self.folder(below, rel + b"/", depth + 1)
            except DiskError as reason:
                self.found[place] = Found(rel, "folder", trouble=str(reason))

    def _link(self, folder: Folder, rel: bytes, facts: os.stat_result) -> Found:
        text = folder.read_link(name_of(rel))
        outcome, target, target_facts = self._resolve(rel.split(b"/")[:-1], text)
        if target_facts is not None:
            link = _found(rel, "link", target_facts)
            return msgspec.structs.replace(link, target=target, is_live=True)
        is_live = outcome == "folder"
        if outcome == "outside":
            is_live = folder.follow(name_of(rel)) is not None if self._is_ours else True
        return msgspec.structs.replace(_found(rel, "link", facts), is_live=is_live)

    def _resolve(self, start: list[bytes], text: bytes) -> tuple[str, bytes, os.stat_result | None]:
        """Where a link in the folder `start` leads (file, folder, outside, nowhere), and to which file."""
        at = list(start)
        pending = self._parts(text, at)
        hops = 0
        while pending:
            part = pending.pop(0)
            if part in (b"", b"."):
                continue
            if part == b"..":
                if not at:
                    return "outside", b"", None
                at.pop()
                continue
            if part == b"/":
                return "outside", b"", None
            with self._root.below(at) as folder:
                facts = folder.look(part)
                if facts is None:
                    return "nowhere", b"", None
                if stat.S_ISLNK(facts.st_mode):
                    hops += 1
                    if hops > MAX_HOPS:
                        return "nowhere", b"", None
                    pending = self._parts(folder.read_link(part), at) + pending
                    continue
            if stat.S_ISDIR(facts.st_mode):
                at.append(part)
            elif pending or not stat.S_ISREG(facts.st_mode):
                return "nowhere", b"", None
            else:
                return "file", b"/".join([*at, part]), facts
        return "folder", b"", None

    def _parts(self, text: bytes, at: list[bytes]) -> list[bytes]:
        """The parts of a link's text, to be walked from `at`; a lone `/` when it leads to another tree."""
        if not text.startswith(b"/"):
            return text.split(b"/")
        for root in (self._root.path, self._real):
            if text == root or text.startswith(root + b"/"):
                at.clear()
                return text[len(root) :].split(b"/")
        return [b"/"]


def _found(rel: bytes, kind: str, facts: os.stat_result) -> Found:
    return Found(
        rel,
        kind,  # type: ignore[arg-type]
        size=facts.st_size,
        mtime_ns=facts.st_mtime_ns,
        ctime_ns=facts.st_ctime_ns,
        ino=facts.st_ino,
        mode=stat.S_IMODE(facts.st_mode) & 0o777,
    )
