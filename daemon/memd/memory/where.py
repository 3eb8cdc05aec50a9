"""Where Claude Code keeps the memory of a project, login by login, and what stands there now. Reads only.

States of `<config home>/projects/<key>/memory`:

    linked        it is the owned folder, through a link of any spelling
    absent        nothing is there, and nothing stands in the way of a link
    folder        a real folder: a session started before the link was made, or the project is not enrolled.
                  Also when the owned folder is itself a link to this one: the data still lives in the login
    dangling      a link to nothing, or links in a circle: Claude Code runs without memory
    foreign-link  a link to something that is not the owned folder
    file          something that is neither folder nor link: Claude Code runs without memory
    blocked       `projects` or `projects/<key>` is no folder or leads out of the login, or several folders
                  could be meant by a long key
    unreadable    permissions or an I/O error hide what is there
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

import msgspec

from memd import protocol
from memd.memory.config_homes import ConfigHome
from memd.memory.key import MAX_UNITS, choose_key


class EntryPath(msgspec.Struct, frozen=True):
    """The memory path of one root in one login, and what speaks against using it (empty: nothing)."""

    path: bytes
    problem: str = ""


def places(
    root: bytes, key: str, owned: bytes | None, config_homes: Sequence[ConfigHome]
) -> tuple[protocol.Place, ...]:
    """The place of a root's memory in every login, in the order of `config_homes`.

    owned  the folder that the entries should lead to; None when no enrolled agent lives at `root`, and then
           no entry is `linked`
    """
    found = []
    for login in config_homes:
        for entry in entry_paths(root, key, login.path):
            state = "blocked" if entry.problem else entry_state(entry.path, owned)
            if state != "linked" and not _is_inside(entry.path, login):
                state = "blocked"
            found.append(protocol.Place(config_home=login.path, path=entry.path, state=state))
    return tuple(found)


def entry_paths(root: bytes, key: str, config_home: bytes) -> tuple[EntryPath, ...]:
    """Every path in a login that is the memory of a root; the first is the one that has its past.

    It is one path, but for a key over 200 units of which only a folder with an older hash is there: then the
    folder that a version of today makes comes second.
    """
    projects = os.path.join(config_home, b"projects")
    choice = choose_key(root, _names(projects) if len(key) > MAX_UNITS else ())
    path = os.path.join(projects, choice.name.encode("ascii"), b"memory")
    first = EntryPath(path, choice.problem)
    if choice.problem or choice.current == choice.name:
        return (first,)
    return (first, EntryPath(os.path.join(projects, choice.current.encode("ascii"), b"memory")))


def entry_path(root: bytes, key: str, config_home: bytes) -> EntryPath:
    """The first of `entry_paths`: `<config home>/projects/<key>/memory` for nearly every root."""
    return entry_paths(root, key, config_home)[0]


def entry_state(path: bytes, owned: bytes | None) -> str:
    """One of the states above for `<config home>/projects/<key>/memory`."""
    folder = os.path.dirname(path)
    for parent in (os.path.dirname(folder), folder):
        state = _parent_state(parent)
        if state:
            return state
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "unreadable"
    if not stat.S_ISLNK(mode):
        return "folder" if stat.S_ISDIR(mode) else "file"
    try:
        target = os.stat(path)
    except PermissionError:
        return "unreadable"
    except OSError:
        return "dangling"
    if owned is not None and stat.S_ISDIR(target.st_mode) and _is_same(path, owned):
        return "linked"
    return "foreign-link"


def _parent_state(parent: bytes) -> str:
    """Empty when the entry can be looked at; otherwise the state that `parent` decides for it."""
    try:
        if stat.S_ISDIR(os.stat(parent).st_mode):
            return ""
        return "blocked"
    except (FileNotFoundError, NotADirectoryError):
        return "blocked" if os.path.islink(parent) else "absent"
    except PermissionError:
        return "unreadable"
    except OSError:  # links in a circle, names too long, a disk that fails
        return "blocked" if os.path.islink(parent) else "unreadable"


def _is_same(path: bytes, owned: bytes) -> bool:
    try:
        return os.path.samefile(path, owned)
    except OSError:
        return False


def _is_inside(path: bytes, login: ConfigHome) -> bool:
    """Whether the folder that an entry is in really lies in the login."""
    return os.path.realpath(os.path.dirname(path)).startswith(login.real.rstrip(b"/") + b"/")


def _names(folder: bytes) -> list[str]:
    try:
        return [os.fsdecode(name) for name in os.listdir(folder)]
    except OSError:
        return []
