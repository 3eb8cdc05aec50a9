"""Where work belongs: the fingerprints of a checkout, and the workspace and project of a directory.

There is one resolver, `resolve`, and every command and hook uses it: two ways to find the scope of a
directory would split its memory in two. Each half (workspace, project) goes by itself:

    1. what the command line says, if it says something
    2. the nearest `.memd.toml` (or `.ai-memory.toml`, a peer's) that says anything about scope
    3. `default`, and the name of the main checkout's folder

A marker that names no project makes it the name of the directory one is in, or, with
`project_strategy = "repo-root"`, that of the main checkout. It is looked for upwards: below the home up to
the home itself, elsewhere up to the top of the checkout, outside both only in the directory itself.
"""

from __future__ import annotations

import hashlib
import os
import tomllib

import msgspec

from memd.checkout import Ask, Repository, project_root, repository
from memd.errors import ConfigError, UsageError

MARKERS = (b".memd.toml", b".ai-memory.toml")
MAX_MARKER_BYTES = 64 * 1024
MAX_NAME_BYTES = 256
DEFAULT_WORKSPACE = "default"
RESERVED = ("_global",)


class Fingerprints(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkout is known by: SHA-256 in hexadecimal. Linked worktrees and clones share `repository`."""

    repository: str
    worktree: str


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What a marker file says about scope; empty: nothing."""

    path: bytes
    workspace: str = ""
    project: str = ""
    strategy: str = ""

    def is_about_scope(self) -> bool:
        return bool(self.workspace or self.project or self.strategy)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """marker: the file that decided the halves named in `decided`; empty when none did."""

    workspace: str
    project: str
    marker: bytes = b""
    decided: tuple[str, ...] = ()

    def notice(self) -> str:
        """The line that says which file decided what; empty when none did."""
        if not self.decided:
            return ""
        return (
            f"scope {self.workspace}/{self.project}: {' and '.join(self.decided)} from"
            f" {self.marker.decode('utf-8', 'backslashreplace')}"
        )


def fingerprints(found: Repository) -> Fingerprints:
    """Stable for every directory of one checkout; another `origin` makes another repository."""
    if urls := b"\n".join(found.remotes).strip():
        seed = b"git-remotes\n" + urls
    elif found.common_dir:
        seed = b"git-common\n" + found.common_dir
    elif found.root:
        seed = b"git-root\n" + found.root
    else:
        seed = b"directory\n" + found.cwd
    whole = hashlib.sha256(seed).hexdigest()
    if found.git_dir:
        seed = b"git-dir\n" + found.git_dir
    elif found.root:
        seed = b"root\n" + found.root
    else:
        seed = b"cwd\n" + found.cwd
    part = hashlib.sha256(whole.encode("ascii") + b"\n" + seed).hexdigest()
    return Fingerprints(repository=whole, worktree=part)


def checkout_of(cwd: bytes, git: Ask | None = None) -> Fingerprints:
    """The fingerprints of the checkout round a directory. raises UsageError for a relative path"""
    return fingerprints(repository(cwd, git))


def resolve(
    cwd: bytes, home: bytes, *, workspace: str = "", project: str = "", ignore_marker: bool = False
) -> Scope:
    """The scope of a directory.

    home           the client's
    workspace      what the command line says; `project` too
    ignore_marker  as if there were none (`MEMD_IGNORE_MARKER=1`, for commands, never for hooks)
    raises         ConfigError for a marker that cannot be read as one, UsageError for names that cannot be
    """
    place = os.path.realpath(cwd)
    marker = None
    if not ignore_marker and not (workspace.strip() and project.strip()):
        marker = nearest(place, os.path.realpath(home))
    root = b"" if project.strip() else project_root(place)
    return decide(workspace=workspace, project=project, marker=marker, cwd=place, root=root)


def decide(*, workspace: str, project: str, marker: Marker | None, cwd: bytes, root: bytes) -> Scope:
    """The scope that these say together.

    root  the main checkout's folder, or `cwd` outside git
    """
    decided: list[str] = []
    chosen_workspace, chosen_project = workspace.strip(), project.strip()
    if not chosen_workspace and marker is not None and marker.workspace:
        chosen_workspace = marker.workspace
        decided.append("workspace")
    if not chosen_project and marker is not None:
        chosen_project = marker.project or _name_of(root if marker.strategy == "repo-root" else cwd)
        decided.append("project")
    return Scope(
        workspace=checked(chosen_workspace or DEFAULT_WORKSPACE, "workspace"),
        project=checked(chosen_project or _name_of(root), "project"),
        marker=marker.path if marker is not None and decided else b"",
        decided=tuple(decided),
    )


def checked(name: str, what: str) -> str:
    """The name of a workspace or project, if it can be one. raises UsageError"""
    if name in RESERVED:
        raise UsageError(f"{what} {name!r} is reserved", remedy="Choose another name.")
    if len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES or not name.isprintable():
        raise UsageError(
            f"{name[:64]!r} cannot be the name of a {what}",
            remedy=f"Use at most {MAX_NAME_BYTES} bytes, without control characters.",
        )
    return name


def nearest(cwd: bytes, home: bytes) -> Marker | None:
    """The nearest marker that is about scope; both paths physical. raises ConfigError"""
    is_home = cwd == home or cwd.startswith(home.rstrip(b"/") + b"/")
    folder = cwd
    while True:
        for name in MARKERS:
            marker = _read(folder.rstrip(b"/") + b"/" + name)
            if marker is not None and marker.is_about_scope():
                return marker
        if is_home:
            if folder == home:
                return None
        elif os.path.lexists(folder.rstrip(b"/") + b"/.git"):
            return None
        above = os.path.dirname(folder)
        if above == folder or not (is_home or _is_in_checkout(above)):
            return None
        folder = above


def _is_in_checkout(folder: bytes) -> bool:
    while True:
        if os.path.lexists(folder.rstrip(b"/") + b"/.git"):
            return True
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _read(path: bytes) -> Marker | None:
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_MARKER_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as reason:
        raise _unreadable(path, reason.strerror or str(reason)) from None
    return parse(path, text)


def parse(path: bytes, text: bytes) -> Marker:
    """What the text of a marker says about scope. raises ConfigError"""
    if len(text) > MAX_MARKER_BYTES:
        raise _unreadable(path, f"it is longer than {MAX_MARKER_BYTES} bytes")
    try:
        tables = tomllib.loads(text.decode("utf-8"))
    except ValueError as reason:
        raise _unreadable(path, str(reason)) from None
    said = {}
    for key in ("workspace", "project", "project_strategy"):
        value = tables.get(key, "")
        if not isinstance(value, str):
            raise _unreadable(path, f"{key} is not a string")
        said[key] = value.strip()
    strategy = said["project_strategy"].replace("_", "-")
    return Marker(
        path=path,
        workspace=said["workspace"],
        project=said["project"],
        strategy=strategy if strategy in ("repo-root", "basename") else "",
    )


def _unreadable(path: bytes, reason: str) -> ConfigError:
    shown = path.decode("utf-8", "backslashreplace")
    return ConfigError(f"{shown}: {reason}", remedy="Correct the file, or give --workspace and --project.")


def _name_of(folder: bytes) -> str:
    """The folder's own name as text; what no text can hold is spelled out."""
    name = os.path.basename(folder.rstrip(b"/")) or b"root"
    text = name.decode("utf-8", "backslashreplace")
    text = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
    if len(text.encode("utf-8")) > MAX_NAME_BYTES:
        return f"{text[:40]}-{hashlib.sha256(name).hexdigest()[:16]}"
    return text
