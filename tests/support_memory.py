"""A pretend user with logins and agents, in a temporary folder, and looks at what became of it all."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from memd.disk import is_temporary
from memd.memory.key import project_key
from memd.memory.ownership import Ownership
from memd.protocol import Entry

NOW_MS = 1_790_000_000_000
OLD_NS = 1_700_000_000_000_000_000  # a time for notes, long before NOW_MS


class World:
    """`top/home` is the person's home, `top/work` holds agent homes."""

    def __init__(self, top: Path) -> None:
        self.top = os.fsencode(os.path.realpath(top))
        self.home = self.top + b"/home"
        self.work = self.top + b"/work"
        self.state = self.top + b"/state"
        self.data = self.top + b"/data"
        self.now_ms = NOW_MS
        os.makedirs(self.home, exist_ok=True)
        os.makedirs(self.work, exist_ok=True)

    def ownership(self, **kwargs: object) -> Ownership:
        return Ownership(home=self.home, data=self.data, state=self.state, **kwargs)  # type: ignore[arg-type]

    def login(self, name: bytes = b".claude", *, parent: bytes | None = None) -> bytes:
        path = (parent or self.home) + b"/" + name
        os.makedirs(path, exist_ok=True)
        put(path + b"/.credentials.json", b'{"token": "kept as it is"}')
        return path

    def agent(self, name: bytes = b"proj", *, git: bool = True) -> bytes:
        path = self.work + b"/" + name
        os.makedirs(path + (b"/.git" if git else b""), exist_ok=True)
        return path

    def owned(self, agent: bytes) -> bytes:
        return agent + b"/.memd/memory"

    def entry(self, login: bytes, agent: bytes) -> bytes:
        return login + b"/projects/" + project_key(agent).encode("ascii") + b"/memory"

    def enroll(self, agent: bytes, **kwargs: object) -> tuple[Entry, ...]:
        return self.ownership(**kwargs).enroll(agent, confirmed=True, now_ms=self.tick()).entries

    def heal(self, **kwargs: object) -> tuple[Entry, ...]:
        return self.ownership().heal(now_ms=self.tick(), **kwargs)  # type: ignore[arg-type]

    def recover(self) -> tuple[Entry, ...]:
        return self.ownership().recover(now_ms=self.tick())

    def tick(self) -> int:
        self.now_ms += 1000
        return self.now_ms


def put(path: bytes, body: bytes = b"", *, ns: int | None = None, mode: int | None = None) -> bytes:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(body)
    if mode is not None:
        os.chmod(path, mode)
    if ns is not None:
        os.utime(path, ns=(ns, ns))
    return path


def read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def link(text: bytes, path: bytes) -> bytes:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(text, path)
    return path


def snapshot(*tops: bytes) -> dict[bytes, tuple[object, ...]]:
    """Every path below `tops` with what it is: type, mode, mtime, inode, and link text or content."""
    found: dict[bytes, tuple[object, ...]] = {}
    for top in tops:
        _add(found, top)
    return found


def _add(found: dict[bytes, tuple[object, ...]], path: bytes) -> None:
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return
    what: object = None
    if stat.S_ISLNK(facts.st_mode):
        what = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode):
        what = hashlib.sha256(read(path)).hexdigest()
    found[path] = (stat.S_IFMT(facts.st_mode), facts.st_mode, facts.st_mtime_ns, facts.st_ino, what)
    if stat.S_ISDIR(facts.st_mode):
        for name in os.listdir(path):
            _add(found, path + b"/" + name)


def bodies(*tops: bytes) -> set[bytes]:
    """The content of every regular file below `tops` but unfinished copies; links are not followed."""
    found: set[bytes] = set()
    for top in tops:
        for folder, _, names in os.walk(top):
            for name in names:
                path = folder + b"/" + name
                if stat.S_ISREG(os.lstat(path).st_mode) and not is_temporary(name):
                    found.add(read(path))
    return found


def tree(top: bytes) -> dict[bytes, bytes]:
    """Relative path and content of every regular file below `top`."""
    found: dict[bytes, bytes] = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = folder + b"/" + name
            if stat.S_ISREG(os.lstat(path).st_mode):
                found[path[len(top) + 1 :]] = read(path)
    return found


def notes(owned: bytes) -> dict[bytes, bytes]:
    """The same without what was superseded."""
    return {rel: body for rel, body in tree(owned).items() if not rel.startswith(b"_superseded/")}


def superseded(owned: bytes) -> dict[bytes, bytes]:
    return {rel: body for rel, body in tree(owned).items() if rel.startswith(b"_superseded/")}


def by_login(entries: tuple[Entry, ...]) -> dict[bytes, Entry]:
    return {os.path.basename(entry.config_home): entry for entry in entries}


def leads_to(path: bytes, owned: bytes) -> bool:
    return os.path.islink(path) and os.path.samefile(path, owned)
