"""Finds the sources of sessions in harness stores. With `reading`, the only reader of what harnesses write.

Nothing here follows a link, opens anything but a folder, or writes. A walk is bounded; what it found says
where files are and how they looked, never what is in them.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from memd.harness.model import Adapter, Environment, Glance, Store
from memd.ledger.glance import Disk

MAX_FILES = 50_000  # of one store; more is said, not searched
MAX_DEPTH = 12
SETTLED_NS = 2_000_000_000
"""So old is the time of a folder that changes with the next name in it; times may be as coarse as that."""

UNSURE = -2
"""In place of a folder's time: it is none that `mtime` ever gives, so that somebody looks again."""


class Source(msgspec.Struct, frozen=True, gc=False):
    """One file that may hold a session, as it looked when it was found."""

    harness: str
    path: bytes
    rel: bytes  # below the store's root
    store: Store
    inode: int
    device: int
    size: int
    mtime_ns: int  # the newest of the file's own and that of what belongs to it (log, `Adapter.beside`)


class Walk(msgspec.Struct):
    """What one walk of a store saw: sources, and the real folders in which more may appear.

    folders  each with the time that says whether it changed since, or UNSURE
    """

    sources: list[Source]
    folders: dict[bytes, int]
    count: int = 0  # of sources, with those that nobody asked for
    is_cut: bool = False  # there are more than MAX_FILES
    blind: dict[bytes, str] = {}  # folders that are there and could not be read, and why
    links: list[bytes] = []  # not followed, though named like sources or folders with sources


def stores(
    adapters: Sequence[Adapter], environments: Sequence[Environment], glance: Glance | None = None
) -> list[tuple[Adapter, Store]]:
    """Every store of every adapter, each real root once per adapter and flavor.

    Where several say the same root, the first says how it is read; all say whose sessions lie there.
    """
    glance = glance or Disk()
    found: dict[tuple[str, bytes, str, tuple[str, ...]], tuple[Adapter, Store]] = {}
    together = _together(environments)
    for adapter in adapters:
        named = [store for one in environments for store in adapter.stores(one)]
        named += [store for one in together for store in _scattered(adapter, one, glance)]
        for store in named:
            real = msgspec.structs.replace(store, root=os.path.realpath(store.root))
            key = (adapter.name, real.root, real.flavor, real.patterns)
            found[key] = (adapter, _merged(found[key][1], real) if key in found else real)
    return list(found.values())


def _together(environments: Sequence[Environment]) -> list[Environment]:
    """The environments, with those made one that differ in their places alone: files are looked at once."""
    found: dict[tuple[bytes, tuple[tuple[str, bytes], ...]], Environment] = {}
    for one in environments:
        key = (one.home, tuple(sorted(one.variables.items())))
        known = found.get(key)
        places = tuple(dict.fromkeys((*(known.places if known else ()), *one.places)))
        found[key] = msgspec.structs.replace(known or one, places=places)
    return list(found.values())


def of(adapter: Adapter, environment: Environment) -> tuple[Store, ...]:
    """The stores of one adapter for an environment, as its adapter names them."""
    return (*adapter.stores(environment), *_scattered(adapter, environment, Disk()))


def ground(adapter: Adapter, environment: Environment, cwd: bytes) -> bytes:
    """The directory whose sessions a child that is started in `cwd` goes on in.

    That is `cwd` itself, but for a harness whose sessions lie in one place for a whole checkout.
    """
    found = _scattered(adapter, environment, Disk())
    whose = next((store.cwd or (store.shared or (b"",))[0] for store in found), b"")
    return whose or cwd


def _scattered(adapter: Adapter, environment: Environment, glance: Glance) -> tuple[Store, ...]:
    return () if adapter.scattered is None else adapter.scattered(environment, glance)


def _merged(one: Store, other: Store) -> Store:
    cwd = one.cwd or other.cwd
    rest = dict.fromkeys((*one.shared, *other.shared, *(p for p in (other.cwd,) if p)))
    return msgspec.structs.replace(one, cwd=cwd, shared=tuple(p for p in rest if p != cwd))


def stores_in(adapter: Adapter, folder: bytes) -> list[tuple[Adapter, Store]]:
    """The adapter's kinds of store, looked for in a folder that a person named.

    The folder may be a store's root itself, or the home, config home or data folder that holds it.
    """
    real = os.path.realpath(folder)
    usual = adapter.stores(Environment(home=b"/memd-home", config_homes=(b"/memd-home/.config-home",)))
    found: dict[tuple[bytes, str], Store] = {}
    for store in usual:
        tail = store.root.split(b"/")[2:]  # what comes below the home
        for start in range(len(tail) + 1):
            root = b"/".join([real, *tail[start:]])
            if os.path.isdir(root):
                found.setdefault((root, store.flavor), msgspec.structs.replace(store, root=root))
                break
    there = Environment(home=b"/memd-home", places=(real,))
    for store in _scattered(adapter, there, Disk()):
        if os.path.isdir(store.root):
            found.setdefault((store.root, store.flavor), store)
    return [(adapter, store) for store in found.values()]


REMOTE_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "fuse.rclone", "virtiofs"}
)


def remote_roots(table: str = "/proc/self/mountinfo") -> list[bytes]:
    """Mount points of file systems on which others write without the kernel telling us; none but on Linux.

    source  proc_pid_mountinfo(5), Linux 6
    """
    found = []
    try:
        with open(table, "rb") as file:
            for line in file:
                before, _, after = line.partition(b" - ")
                if after.split(b" ", 1)[0].decode("ascii", "replace") in REMOTE_TYPES:
                    found.append(_unescaped(before.split(b" ")[4]))
    except (OSError, IndexError):
        pass
    return found


def _unescaped(name: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), name)


def _any(source: Source) -> bool:
    return True


def walk(
    adapter: Adapter,
    store: Store,
    below: bytes = b"",
    limit: int = MAX_FILES,
    is_wanted: Callable[[Source], bool] = _any,
) -> Walk:
    """Every file of a store (or of one folder in it) that matches its patterns, newest first.

    is_wanted  others are seen and not kept: there may be tens of thousands, and few of them new
    """
    seen = Walk([], {})
    folder = below or store.root
    rel = folder[len(store.root) + 1 :]
    states = _starting(store)
    for part in rel.split(b"/") if rel else ():
        states = _enter(states, os.fsdecode(part))
    if states and (not below or os.path.realpath(below) == below):
        depth = rel.count(b"/") + 1 if rel else 0
        _descend(adapter, store, folder, rel, states, seen, limit, depth, is_wanted)
    seen.sources.sort(key=lambda source: -source.mtime_ns)
    return seen


def look(adapter: Adapter, store: Store, path: bytes) -> Source | None:
    """One path, if it is a source of that store now."""
    prefix = store.root + b"/"
    if not path.startswith(prefix):
        return None
    if store.database:  # a write shows in the log first
        path = path.removesuffix(b"-wal").removesuffix(b"-shm")
    rel = path[len(prefix) :]
    states = _starting(store)
    parts = rel.split(b"/")
    for part in parts[:-1]:
        states = _enter(states, os.fsdecode(part))
    if not _is_match(states, os.fsdecode(parts[-1])) or _is_outdone(adapter, store, rel):
        return None
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    if facts.st_mode & 0o170000 != 0o100000 or os.path.realpath(path) != path:
        return None
    return _source(adapter, store, path, rel, facts)


# ---------------------------------------------------------------------------- inside

States = Sequence[tuple[tuple[str, ...], int]]


def _starting(store: Store) -> list[tuple[tuple[str, ...], int]]:
    return _closure([(tuple(pattern.split("/")), 0) for pattern in store.patterns])


def _descend(
    adapter: Adapter,
    store: Store,
    folder: bytes,
    rel: bytes,
    states: States,
    seen: Walk,
    limit: int,
    depth: int,
    is_wanted: Callable[[Source], bool],
) -> None:
    before = mtime(folder)
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as reason:
        seen.blind[folder] = reason.strerror or str(reason)
        return
    seen.folders[folder] = before if abs(time.time_ns() - before) > SETTLED_NS else UNSURE
    for entry in entries:
        name = os.fsdecode(entry.name)
        below = rel + b"/" + entry.name if rel else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                inner = _enter(states, name)
                if inner and depth < MAX_DEPTH:
                    _descend(adapter, store, entry.path, below, inner, seen, limit, depth + 1, is_wanted)
                continue
            if entry.is_symlink():
                if _is_match(states, name) or any(at == len(p) - 1 for p, at in _enter(states, name)):
                    seen.links.append(entry.path)
                continue
            if not _is_match(states, name) or not entry.is_file(follow_symlinks=False):
                continue
            if _is_outdone(adapter, store, below):
                continue
            facts = entry.stat(follow_symlinks=False)
        except PermissionError as reason:  # names can be listed here, files not looked at
            seen.blind[folder] = reason.strerror or str(reason)
            continue
        except OSError:
            continue  # gone between the listing and the look
        if seen.count >= limit:
            seen.is_cut = True
            return
        seen.count += 1
        source = _source(adapter, store, entry.path, below, facts)
        if is_wanted(source):
            seen.sources.append(source)


def storable(mtime_ns: int) -> int:
    """A file's time as 64 bits hold it: some file systems keep years beyond 292277."""
    return max(-(1 << 63), min(mtime_ns, (1 << 63) - 1))


def _is_outdone(adapter: Adapter, store: Store, rel: bytes) -> bool:
    """Whether another file that is there says the same and is read in its place."""
    other = adapter.instead(rel)
    return bool(other) and os.path.isfile(store.root + b"/" + other)


def _source(adapter: Adapter, store: Store, path: bytes, rel: bytes, facts: os.stat_result) -> Source:
    size, mtime_ns = facts.st_size, storable(facts.st_mtime_ns)
    beside = adapter.beside(rel)
    if beside:
        try:
            near = os.stat(store.root + b"/" + beside, follow_symlinks=False)
            mtime_ns = max(mtime_ns, storable(near.st_mtime_ns))
        except OSError:
            pass  # not there yet
    if store.database:
        try:
            log = os.stat(path + b"-wal", follow_symlinks=False)
            size, mtime_ns = size + log.st_size, max(mtime_ns, storable(log.st_mtime_ns))
        except OSError:
            pass  # no log: all is in the database
    return Source(adapter.name, path, rel, store, facts.st_ino, facts.st_dev, size, mtime_ns)


def _closure(states: States) -> list[tuple[tuple[str, ...], int]]:
    """The states that hold here: `**` may also stand for nothing."""
    found: dict[tuple[tuple[str, ...], int], None] = {}
    for pattern, at in states:
        while True:
            found[pattern, at] = None
            if at < len(pattern) and pattern[at] == "**":
                at += 1
            else:
                break
    return list(found)


def _enter(states: States, name: str) -> list[tuple[tuple[str, ...], int]]:
    """The states below a folder of that name."""
    return _closure(list(_entered(states, name)))


def _entered(states: States, name: str) -> Iterator[tuple[tuple[str, ...], int]]:
    for pattern, at in states:
        if at >= len(pattern) - 1 and pattern[at:] != ("**",):
            continue
        if pattern[at] == "**":
            yield pattern, at
        elif _matcher(pattern[at]).fullmatch(name):
            yield pattern, at + 1


def _is_match(states: States, name: str) -> bool:
    return any(
        at == len(pattern) - 1 and (pattern[at] == "**" or _matcher(pattern[at]).fullmatch(name) is not None)
        for pattern, at in states
    )


@functools.cache
def _matcher(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def mtime(folder: bytes) -> int:
    """When names came or went in a folder, in nanoseconds; -1 where nobody can tell."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1


def nearest(root: bytes) -> list[bytes]:
    """The folder in which a store that is not there yet would begin to appear."""
    while not os.path.isdir(root):
        root = os.path.dirname(root)
    return [root]
