"""Which folders are logins of Claude Code. Reads names and file types, never the files; creates nothing.

A home fills up with `~/.claude<something>` folders that are no logins: other tools' folders, and copies that
somebody made before an update. Taking one for a login would put a `projects/` folder into it, so a folder
that is found by its name alone must prove itself:

1. Its name is that of no copy (`.claude-backup`, `.claude.old`) and of no tool known to keep a folder there
   (`.claude-mem`): these two are decided by name, since a copy of a login has all that a login has.
2. It holds `.claude.json` or `.credentials.json`, which the program writes into every config home but the
   default one; for `~/.claude` itself `~/.claude.json` beside it counts as well.
3. Or it holds a `projects/` with a folder named after an absolute path (`-home-sam-shop`). An empty
   `projects/` counts only where nothing lies beside it that a login does not have.

A tool that keeps exactly such names in a `projects/` of its own cannot be told apart, and a login with an
unlucky name is passed over. For both there is the configuration: what it names is trusted as it is.

source  Claude Code 2.1.197 and 2.1.332, config homes read 2026-11
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

import msgspec

MAX_NAMES_READ = 10_000  # names of one folder looked at

COPY_WORDS = frozenset(
    b"archive archived archives backup backups bak bck bkp broken copy disabled old orig original save saved "
    b"snapshot snapshots trash".split()
)
OTHER_TOOLS = frozenset(
    b".claude-code-router .claude-flow .claude-mem .claude-monitor .claude-server-commander .claude-squad "
    b".claude-trace".split()
)
OF_A_LOGIN = frozenset(
    b".DS_Store .git .gitignore .last-cleanup CLAUDE.md agents backups cache chrome commands debug downloads "
    b"file-history history.jsonl hooks ide image-cache keybindings.json local mcp-needs-auth-cache.json "
    b"output-styles paste-cache plans plugins policy-limits.json projects remote-settings.json rules "
    b"session-env sessions settings.json settings.local.json shell-snapshots skills stats-cache.json statsig "
    b"statusline.sh tasks teams telemetry todos usage-data workflows".split()
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

    configured  absolute paths that a person or a client named; each counts when it is a directory now,
                whatever its name and content
    returns     of several names for one folder, a configured one comes first, then one that is no link, then
                the first in the order of bytes
    raises      nothing: what cannot be read is no login
    """
    named = [os.path.normpath(p) for p in configured if p.startswith(b"/") and b"\0" not in p]
    found = [(0, p) for p in named] + [(1, p) for p in _candidates(home) if not _objection(home, p)]
    chosen: dict[tuple[int, int], ConfigHome] = {}
    for _, _, path in sorted((rank, os.path.islink(path), path) for rank, path in found):
        facts = _stat(path)
        if facts is not None and stat.S_ISDIR(facts.st_mode):
            chosen.setdefault((facts.st_dev, facts.st_ino), ConfigHome(path, os.path.realpath(path)))
    return tuple(sorted(chosen.values(), key=lambda login: login.path))


def find_left_out(home: bytes, configured: Sequence[bytes] = ()) -> tuple[LeftOut, ...]:
    """The `~/.claude*` folders that `find_config_homes` passes over, with the reason for people, sorted."""
    taken = {login.real for login in find_config_homes(home, configured)}
    found = [path for path in _candidates(home) if os.path.realpath(path) not in taken]
    return tuple(LeftOut(path, reason) for path in found if (reason := _objection(home, path)))


def find_unproven(home: bytes) -> tuple[bytes, ...]:
    """The `~/.claude*` folders that may be a login the next moment, sorted: nothing but a sign is missing.

    The program makes its config home first and writes `.claude.json` into it 5 ms to a second later.
    source  Claude Code 2.1.197, traced 2026-11
    """
    unspoken = (path for path in _candidates(home) if not _objection_by_name(os.path.basename(path)))
    return tuple(path for path in unspoken if _objection(home, path))


def _candidates(home: bytes) -> list[bytes]:
    """Directories and links to directories called `.claude*`, sorted."""
    try:
        names = os.listdir(home)
    except (OSError, ValueError):
        return []
    paths = (os.path.join(home, name) for name in names if name.startswith(b".claude"))
    return sorted(path for path in paths if _is_folder(path))


def _objection(home: bytes, path: bytes) -> str:
    """Why the folder is not a login; empty when it is one."""
    name = os.path.basename(path)
    if by_name := _objection_by_name(name):
        return by_name
    if name == b".claude" and _is_file(os.path.join(home, b".claude.json")):
        return ""
    if any(_is_file(os.path.join(path, marker)) for marker in (b".claude.json", b".credentials.json")):
        return ""
    if not _is_folder(os.path.join(path, b"projects")):
        return "no sign of a login in it (.claude.json, .credentials.json or projects)"
    return _projects_objection(path)


def _objection_by_name(name: bytes) -> str:
    if name in OTHER_TOOLS:
        return "another tool's folder, by its name"
    if not COPY_WORDS.isdisjoint(word.lower() for word in _word.findall(name)) or name.endswith(b"~"):
        return "a copy, by its name"
    return ""


def _projects_objection(path: bytes) -> str:
    """The same for a folder that has no other sign of a login than its `projects/`."""
    projects = _names(os.path.join(path, b"projects"))
    if projects is None:
        return "its projects folder cannot be read"
    if any(_key_shape.fullmatch(name) for name in projects):
        return ""
    if projects:
        return "its projects folder is another tool's"
    strange = sorted(set(_names(path) or ()) - OF_A_LOGIN)
    return f"its projects folder is empty, and {os.fsdecode(strange[0])!a} is of no login" if strange else ""


def _names(path: bytes) -> list[bytes] | None:
    """The names in a folder, not more than a bound; None when it cannot be read."""
    names = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= MAX_NAMES_READ:
                    break
    except OSError:
        return None
    return names


def _is_folder(path: bytes) -> bool:
    facts = _stat(path)
    return facts is not None and stat.S_ISDIR(facts.st_mode)


def _is_file(path: bytes) -> bool:
    facts = _stat(path)
    return facts is not None and stat.S_ISREG(facts.st_mode)


def _stat(path: bytes) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
