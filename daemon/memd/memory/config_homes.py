"""Which folders are logins of Claude Code. Reads names and file types, never the files; creates nothing.

A home fills up with `~/.claude-<something>` that are no logins: other tools' folders and copies somebody made
before an update. Taking one for a login would put a `projects/` folder into it, so a folder found by its name
alone must prove itself; one that the configuration names is trusted.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence

import msgspec

from memd.memory.key import MAX_UNITS

MAX_PROJECTS_READ = 10_000  # entries of one `projects/` looked at

COPY_WORDS = frozenset(
    {b"archive", b"archived", b"archives", b"backup", b"backups", b"bak", b"broken", b"copy", b"old", b"orig"}
    | {b"original", b"save", b"saved", b"snapshot", b"snapshots", b"trash"}
)
OTHER_TOOLS = frozenset(
    {b".claude-code-router", b".claude-code-templates", b".claude-flow", b".claude-mem", b".claude-monitor"}
    | {b".claude-server-commander", b".claude-squad", b".claude-swap", b".claude-trace", b".claude-worktrees"}
)

_key_shape = re.compile(rb"-[A-Za-z0-9-]*")
_word = re.compile(rb"[A-Za-z]+")


class ConfigHome(msgspec.Struct, frozen=True):
    """One login's folder: the path it is known by, and where that really is."""

    path: bytes
    real: bytes


class LeftOut(msgspec.Struct, frozen=True):
    """A `~/.claude*` folder that is not taken for a login, and why."""

    path: bytes
    reason: str


def find_config_homes(home: bytes, configured: Sequence[bytes] = ()) -> tuple[ConfigHome, ...]:
    """Every login of the person whose home is `home`, each once, sorted by path.

    configured  absolute paths a person or a client named; each counts when it is a directory now, whatever
                its name and content
    returns     of several names for one real folder, a configured one comes first, then one that is no link,
                then the first in order of bytes
    """
    named = [os.path.normpath(p) for p in configured if p.startswith(b"/") and b"\0" not in p]
    found = [(0, p) for p in named] + [(1, p) for p in _candidates(home) if not _objection(home, p)]
    chosen: dict[bytes, bytes] = {}
    for _, _, path in sorted((rank, os.path.islink(path), path) for rank, path in found):
        if _is_folder(path):
            chosen.setdefault(os.path.realpath(path), path)
    return tuple(sorted((ConfigHome(p, r) for r, p in chosen.items()), key=lambda c: c.path))


def find_left_out(home: bytes, configured: Sequence[bytes] = ()) -> tuple[LeftOut, ...]:
    """The `~/.claude*` folders that `find_config_homes` passes over, with the reason for people, sorted."""
    taken = {c.real for c in find_config_homes(home, configured)}
    return tuple(
        LeftOut(path, _objection(home, path))
        for path in _candidates(home)
        if os.path.realpath(path) not in taken
    )


def _candidates(home: bytes) -> list[bytes]:
    """Directories and links to directories called `.claude*`, sorted."""
    try:
        names = os.listdir(home)
    except (OSError, ValueError):
        return []
    paths = (os.path.join(home, name) for name in names if name.startswith(b".claude"))
    return sorted(p for p in paths if _is_folder(p))


def _objection(home: bytes, path: bytes) -> str:
    """Why the folder is not a login; empty when it is one."""
    name = os.path.basename(path)
    if name == b".claude":
        if _is_file(os.path.join(home, b".claude.json")):
            return ""
    elif name in OTHER_TOOLS:
        return "another tool's folder by its name"
    elif not COPY_WORDS.isdisjoint(_words(name)) or name.endswith(b"~"):
        return "a copy by its name"
    if any(_is_file(os.path.join(path, marker)) for marker in (b".claude.json", b".credentials.json")):
        return ""
    return _projects_objection(os.path.join(path, b"projects"))


def _words(name: bytes) -> Iterator[bytes]:
    return (word.lower() for word in _word.findall(name[len(b".claude") :]))


def _projects_objection(projects: bytes) -> str:
    """A `projects/` alone is a marker when it is empty or holds a name made from an absolute path."""
    if not _is_folder(projects):
        return "no sign of a login in it (.claude.json, .credentials.json or projects)"
    try:
        with os.scandir(projects) as entries:
            count = 0
            for entry in entries:
                if _key_shape.fullmatch(entry.name[: MAX_UNITS + 16]):
                    return ""
                count += 1
                if count >= MAX_PROJECTS_READ:
                    break
    except OSError:
        return "its projects folder cannot be read"
    return "its projects folder is another tool's" if count else ""


def _is_folder(path: bytes) -> bool:
    return stat.S_ISDIR(_mode(path))


def _is_file(path: bytes) -> bool:
    return stat.S_ISREG(_mode(path))


def _mode(path: bytes) -> int:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0
