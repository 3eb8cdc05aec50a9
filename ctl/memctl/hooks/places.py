"""Which agents are on this machine, and which of their files hooks belong into."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from memctl import client, files, paths
from memctl.hooks.record import Record
from memd import protocol
from memd.errors import MemdError, UsageError
from memd.harness import registry

if TYPE_CHECKING:
    from memd.harness.hooking import Caveat, Hooks, Settings
    from memd.harness.model import Adapter

OWN_FILES = ("file", "json-own", "json-list")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One file of one agent.

    group  the folder of files that get hooks together or not at all; empty: it stands for itself
    """

    agent: str
    hooks: Hooks
    settings: Settings
    group: bytes = b""


def resolve(names: Sequence[str]) -> tuple[Adapter, ...]:
    """The adapters that these words mean; of none, all that have hooks. Raises UsageError."""
    known = [adapter for adapter in registry.adapters().values() if adapter.hooks is not None]
    if not names:
        return tuple(known)
    chosen = dict.fromkeys(registry.resolve(name).name for name in names)
    for name in chosen:
        if registry.adapters()[name].hooks is None:
            raise UsageError(
                f"memd installs no hooks into {name}",
                remedy=f"Use one of: {', '.join(adapter.name for adapter in known)}.",
            )
    return tuple(registry.adapters()[name] for name in chosen)


def logins(adapters: Iterable[Adapter], *, start: bool) -> tuple[tuple[bytes, ...], str]:
    """All logins that memd knows, where one of these has several, and what kept memd from telling.

    start  a daemon, where none runs
    """
    if not any(_has_logins(adapter) for adapter in adapters):
        return (), ""
    request = protocol.Where(path=paths.home_dir(), config_dir=client.client_config_dir())
    try:
        reply = client.ask(request, protocol.WhereReply, start=start)
    except MemdError as reason:
        return (), str(reason)
    return tuple(place.config_home for place in reply.entries), ""


def _has_logins(adapter: Adapter) -> bool:
    return len(_places(adapter, (b"/one", b"/another"), {})) > len(_places(adapter, (), {}))


def look(path: bytes) -> bytes | None:
    """The content of a file, links followed; None when there is none that can be read."""
    try:
        return files.read(os.path.realpath(path))[0]
    except MemdError:
        return None


def caveats(place: Place) -> tuple[Caveat, ...]:
    """What keeps the hooks of a place from running here; in a directory that is gone: in any other one."""
    try:
        cwd = os.getcwdb()
    except OSError:
        cwd = b"/"
    return place.hooks.caveats(place.settings, cwd, look)


def present(
    adapters: Iterable[Adapter],
    config_homes: Sequence[bytes],
    variables: Mapping[str, bytes],
    *,
    is_named: bool,
) -> tuple[Place, ...]:
    """Where hooks are to be installed: each file once, whatever links lead to it.

    is_named  also into an agent of which nothing is seen on this machine
    """
    found: dict[bytes, Place] = {}
    for adapter in adapters:
        places = _places(adapter, config_homes, variables)
        there = [place for place in places if os.path.isdir(base(place.settings))]
        if not there and (is_named or program(adapter)):
            there = places[:1]
        for place in there:
            found.setdefault(os.path.realpath(place.settings.path), place)
    return tuple(found.values())


def everywhere(
    adapters: Iterable[Adapter],
    config_homes: Sequence[bytes],
    variables: Mapping[str, bytes],
    record: Record,
) -> tuple[Place, ...]:
    """Where hooks may be: also in the usual folders when variables name others, and where the record says."""
    found: dict[tuple[str, bytes], Place] = {}
    for adapter in adapters:
        usual = _places(adapter, config_homes, {})
        noted = [one for one in record.installed if one.agent == adapter.name]
        for place in (*_places(adapter, config_homes, variables), *usual):
            found.setdefault((adapter.name, os.path.realpath(place.settings.path)), place)
        for one in noted:
            alike = _alike(usual, one.path, one.form)
            if alike is not None:
                found.setdefault((adapter.name, os.path.realpath(one.path)), alike)
    return tuple(found.values())


def _alike(usual: Sequence[Place], path: bytes, form: str) -> Place | None:
    """The same kind of file as one of the usual ones, elsewhere."""
    for place in usual:
        if place.settings.form == form:
            return msgspec.structs.replace(place, settings=msgspec.structs.replace(place.settings, path=path))
    return None


def base(settings: Settings) -> bytes:
    """The agent's own folder: it holds the settings, or the folder of files like ours."""
    folder = os.path.dirname(settings.path)
    return os.path.dirname(folder) if settings.form in OWN_FILES else folder


def shared(places: Sequence[Place]) -> tuple[tuple[str, str, bytes], ...]:
    """Pairs of agents that load plug-ins from one folder, and the folder."""
    seen: dict[bytes, Place] = {}
    found = []
    for place in places:
        if place.settings.form != "file":
            continue
        folder = os.path.realpath(os.path.dirname(place.settings.path))
        other = seen.setdefault(folder, place)
        if other.agent != place.agent:
            found.append((other.agent, place.agent, folder))
    return tuple(found)


def program(adapter: Adapter) -> str | None:
    """Where the agent's program is; None when it is not on PATH."""
    names = adapter.launch.executables if adapter.launch is not None else (adapter.name,)
    return next((path for name in names if (path := shutil.which(name))), None)


def _places(adapter: Adapter, config_homes: Sequence[bytes], variables: Mapping[str, bytes]) -> list[Place]:
    from memd.harness.model import Environment

    assert adapter.hooks is not None
    environment = Environment(home=paths.home_dir(), variables=variables, config_homes=config_homes)
    found: list[Place] = []
    for settings in adapter.hooks.settings(environment):
        group = settings.path if settings.each else b""
        for one in _each(settings) if settings.each else [settings]:
            found.append(Place(agent=adapter.name, hooks=adapter.hooks, settings=one, group=group))
    return found


def empty(
    adapters: Iterable[Adapter], variables: Mapping[str, bytes], *, is_named: bool
) -> tuple[tuple[str, bytes], ...]:
    """Agents that are here, and their folders in which each file would get hooks and there is none.

    is_named  also those of which nothing is seen on this machine
    """
    from memd.harness.model import Environment

    environment = Environment(home=paths.home_dir(), variables=variables)
    found: list[tuple[str, bytes]] = []
    for adapter in adapters:
        for settings in adapter.hooks.settings(environment) if adapter.hooks is not None else ():
            if not settings.each or _each(settings):
                continue
            if os.path.isdir(os.path.dirname(settings.path)) or is_named or program(adapter):
                found.append((adapter.name, settings.path))
    return tuple(found)


def _each(settings: Settings) -> list[Settings]:
    """The files that there are in a folder, each for itself."""
    try:
        names = sorted(os.listdir(settings.path))
    except OSError:
        return []
    pattern = os.fsencode(settings.each)
    chosen = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    return [
        msgspec.structs.replace(settings, path=settings.path + b"/" + name, each="")
        for name in chosen
        if os.path.isfile(settings.path + b"/" + name)
    ]
