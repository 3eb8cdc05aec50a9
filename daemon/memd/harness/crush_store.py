"""Where Crush keeps its database: found as Crush itself finds it.

    --data-dir, -D              the folder that is named
    options.data_directory      of the merged configuration: the last file that has it wins, empty is none
    the closest `.crush`        from the launch directory up to the top of its checkout. The home directory
                                ends the search, and so does a folder that is somebody else's or unreadable
    <launch directory>/.crush   made by Crush

The configuration is read in this order: the system's, the global one, the one among the global data, then
those of the project from the top of the checkout down, `crush.json` before `.crush.json`. Files of the
project that belong to another user than the launch directory do not count. `crushrc` is a script and has no
say.

Crush lists the directories in which it was started, with their data folders, in `projects.json` among its
global data: that is where sessions are found which memd did not start.

    source  descriptions of Crush up to 0.96, its published schema and list of projects, read 2026-11
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from memd.harness.model import Environment, Glance, Store
from memd.harness.records import FAULTS

NAMED, MOVED = "crush --data-dir", "crush --cwd"
"""Stand for these arguments among the variables of an environment."""

MAX_PROJECTS = 1000
MAX_LEVELS = 64  # of directories between the top of a checkout and a launch directory

_SYSTEM = b"/etc/crush/crush.json"


class _Options(msgspec.Struct, gc=False):
    data_directory: Any = None


class _Configuration(msgspec.Struct, gc=False):
    options: _Options | None = None


class _Project(msgspec.Struct, gc=False):
    path: Any = None
    data_dir: Any = None


class _Projects(msgspec.Struct, gc=False):
    projects: list[_Project] = []


_configuration = msgspec.json.Decoder(_Configuration).decode
_projects = msgspec.json.Decoder(_Projects).decode


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """folder: of the database, links resolved. project: whose sessions lie there. is_shared: others' too."""

    folder: bytes
    project: bytes
    is_shared: bool


def stores(environment: Environment, glance: Glance) -> tuple[Store, ...]:
    """A store for each folder in which some known directory keeps its sessions."""
    moved = environment.variables.get(MOVED)
    places = [moved] if moved and environment.places else environment.places
    found = [look_up(place, environment, glance) for place in places]
    if not environment.is_child:
        for place, folder in _listed(environment, glance):
            found.append(_whose(place, folder, glance))
    whole: dict[bytes, bytes] = {}
    shared: dict[bytes, dict[bytes, None]] = {}
    for one in found:
        whole.setdefault(one.folder, b"")
        others = shared.setdefault(one.folder, {})
        if one.is_shared or whole[one.folder] not in (b"", one.project):
            others[one.project] = None
        else:
            whole[one.folder] = one.project
    return tuple(
        Store(
            root=folder,
            patterns=("crush.db",),
            database=True,
            cwd=cwd,
            shared=tuple(place for place in shared[folder] if place != cwd),
        )
        for folder, cwd in whole.items()
    )


def look_up(place: bytes, environment: Environment, glance: Glance) -> Found:
    """Where a Crush that is started in `place` keeps its sessions."""
    place = glance.real(place)
    named = environment.variables.get(NAMED, b"").strip()
    if not named:
        named = _configured(place, environment, glance)
    if named:
        return _whose(place, _cleaned(place, named), glance)
    home = glance.real(environment.home)
    owner = glance.owner(place)
    for level in _upwards(place, glance.checkout(place)):
        folder = level + b"/.crush"
        if level == home:
            break
        theirs = glance.owner(folder)
        if theirs is None:
            continue
        if theirs != owner:
            break
        if glance.is_folder(folder):
            return Found(
                folder=glance.real(folder), project=level, is_shared=_is_outside(folder, level, glance)
            )
    folder = place.rstrip(b"/") + b"/.crush"
    return Found(folder=glance.real(folder), project=place, is_shared=_is_outside(folder, place, glance))


def _whose(place: bytes, folder: bytes, glance: Glance) -> Found:
    """A data folder that was named: the project's own if it lies in it, else one among others'."""
    place = glance.real(place)
    project = glance.checkout(place) or place
    real = glance.real(folder)
    if real.rpartition(b"/")[2] == b".crush" and _is_below(real, project):
        project = real.rpartition(b"/")[0] or b"/"
    return Found(folder=real, project=project, is_shared=not _is_below(real, project))


def _is_outside(folder: bytes, project: bytes, glance: Glance) -> bool:
    return not _is_below(glance.real(folder), project)


def _is_below(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder.rstrip(b"/") + b"/")


def _upwards(place: bytes, top: bytes) -> Iterator[bytes]:
    """The directory and those above it up to the top of its checkout; outside one only itself."""
    yield place
    while top and place != top and _is_below(place, top):
        place = place.rpartition(b"/")[0] or b"/"
        yield place


def _configured(place: bytes, environment: Environment, glance: Glance) -> bytes:
    """`options.data_directory` of the merged configuration; empty when nobody says it."""
    config, data = folders(environment)
    value = b""
    for content in (
        glance.read(_SYSTEM),
        glance.read(config + b"/crush.json"),
        glance.read(data + b"/crush.json"),
    ):
        value = _said(content, value)
    owner = glance.owner(place)
    for level in reversed(list(_upwards(place, glance.checkout(place)))[:MAX_LEVELS]):
        for name in (b"/crush.json", b"/.crush.json"):
            path = level.rstrip(b"/") + name
            if glance.owner(path) == owner:
                value = _said(glance.read(path), value)
    return value


def folders(environment: Environment) -> tuple[bytes, bytes]:
    """The folders of the global configuration and of the global data. A blank variable counts as unset."""

    def chosen(own: str, common: str, usual: bytes) -> bytes:
        mine = environment.variables.get(own, b"").strip().rstrip(b"/")
        if mine:
            return mine
        base = environment.variables.get(common, b"").strip().rstrip(b"/")
        return (base or environment.home + usual) + b"/crush"

    return (
        chosen("CRUSH_GLOBAL_CONFIG", "XDG_CONFIG_HOME", b"/.config"),
        chosen("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME", b"/.local/share"),
    )


def _said(content: bytes | None, before: bytes) -> bytes:
    if not content:
        return before
    try:
        found = _configuration(content)
    except FAULTS:
        return before
    value = None if found.options is None else found.options.data_directory
    if not isinstance(value, str) or "\0" in value:
        return before
    return value.encode("utf-8", "surrogatepass").strip()


def _cleaned(place: bytes, named: bytes) -> bytes:
    """The path seen from `place` by its text alone: no link is followed."""
    parts: list[bytes] = []
    for part in (named if named.startswith(b"/") else place + b"/" + named).split(b"/"):
        if part == b"..":
            del parts[-1:]
        elif part not in (b"", b"."):
            parts.append(part)
    return b"/" + b"/".join(parts)


def _listed(environment: Environment, glance: Glance) -> Iterator[tuple[bytes, bytes]]:
    """Directories in which Crush was started, newest first, and their data folders."""
    content = glance.follow(folders(environment)[1] + b"/projects.json")
    if not content:
        return
    try:
        found = _projects(content).projects
    except FAULTS:
        return
    for one in found[:MAX_PROJECTS]:
        if isinstance(one.path, str) and isinstance(one.data_dir, str):
            place, folder = (path.encode("utf-8", "surrogatepass") for path in (one.path, one.data_dir))
            if place.startswith(b"/") and folder and b"\0" not in place + folder:
                yield place, _cleaned(place, folder)
