"""Which directories to watch: real ones only, and never one that a link out of a login leads to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from memd.memory.config_homes import ConfigHome
from memd.memory.decide import is_within
from memd.memory.key import project_key
from memd.memory.where import entry_path


def watch_points(
    home: bytes,
    logins: Iterable[ConfigHome],
    agents: Sequence[bytes],
    named: Iterable[bytes],
    unproven: Iterable[bytes] = (),
) -> tuple[bytes, ...]:
    """Existing directories whose direct children matter, sorted.

    home      the person's home: new logins appear there
    logins    each with its `projects/` and, per agent, its `projects/<key>/`
    agents    the enrolled homes
    named     config homes that somebody named: for one that is missing, the nearest folder above it
    unproven  folders in which the sign of a login may still appear, in them or in their `projects/`
    """
    points: dict[bytes, None] = {}
    _add(points, home)
    for path in unproven:
        real = os.path.realpath(path)
        _add(points, real)
        _add_within(points, ConfigHome(path, real), real + b"/projects")
    for path in named:
        if not os.path.isdir(path):
            _add(points, _nearest(path))
    keys = [(agent, project_key(agent)) for agent in agents]
    for login in logins:
        _add(points, login.real)
        _add(points, login.path if not os.path.islink(login.path) else os.path.dirname(login.path))
        _add_within(points, login, login.real + b"/projects")
        for agent, key in keys:
            _add_within(points, login, os.path.dirname(entry_path(agent, key, login.real).path))
    return tuple(sorted(points))


def _add(points: dict[bytes, None], path: bytes) -> None:
    real = os.path.realpath(path)
    if os.path.isdir(real):
        points[real] = None


def _add_within(points: dict[bytes, None], login: ConfigHome, path: bytes) -> None:
    if is_within(os.path.realpath(path), login.real):
        _add(points, path)


def _nearest(path: bytes) -> bytes:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path
