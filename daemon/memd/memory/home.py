"""An agent home's own folder for memory: where it is, made when it is missing, brought home from a login.

Nothing on the way from the agent home to the owned folder may be a link: whoever could change that link could
have memd write elsewhere. The one exception is the owned folder itself being a link into a login, where its
data would die with the login; that is put right.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Literal

import msgspec

from memctl.paths import shown
from memd import disk
from memd.disk import Folder
from memd.errors import DiskError, Refused, TryAgain
from memd.memory.agents import OWN_FOLDER
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import is_within

IGNORE_ALL = b"# memd keeps an agent's memory here; it is not part of the project\n*\n"


_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
AWAY = "Bring it back; or `memctl enroll` the agent again, and it begins with what was set aside."


class Away(TryAgain):
    """The owned folder was there before and is not there now."""


class OwnedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What stands where the owned folder belongs."""

    state: Literal["folder", "missing", "in-login", "obstacle"]
    obstacle: str = ""
    facts: os.stat_result | None = None  # of folder
    target: bytes = b""  # of in-login: the folder that has the data; empty when it is gone


def inspect(home: bytes, owned: bytes, logins: Sequence[ConfigHome]) -> OwnedPlace:
    """Looks only; raises DiskError."""
    parts = parts_of(home, owned)
    with disk.open_folder(home) as top:
        at = top.below(())
        for part in parts[:-1]:
            with at:
                facts = at.look(part)
                if facts is None:
                    return OwnedPlace(state="missing")
                if not stat.S_ISDIR(facts.st_mode):
                    return OwnedPlace(state="obstacle", obstacle=f"{shown(at.at(part))} is no real folder")
                at = at.folder(part)
        with at:
            return _judge(at, parts[-1], logins)


def _judge(holder: Folder, name: bytes, logins: Sequence[ConfigHome]) -> OwnedPlace:
    facts = holder.look(name)
    if facts is None:
        return OwnedPlace(state="missing")
    if stat.S_ISDIR(facts.st_mode):
        return OwnedPlace(state="folder", facts=facts)
    path = holder.at(name)
    if not stat.S_ISLNK(facts.st_mode):
        return OwnedPlace(state="obstacle", obstacle=f"{shown(path)} is no folder")
    says = os.path.normpath(os.path.join(holder.path, holder.read_link(name)))
    target = os.path.realpath(path)
    for login in logins:
        if any(is_within(p, login.real) or is_within(p, login.path) for p in (says, target)):
            behind = holder.follow(name)
            if behind is not None and not stat.S_ISDIR(behind.st_mode):
                break
            return OwnedPlace(state="in-login", target=target if behind is not None else b"")
    return OwnedPlace(state="obstacle", obstacle=f"{shown(path)} is a link, not a folder")


def parts_of(home: bytes, owned: bytes) -> list[bytes]:
    if not is_within(owned, home) or owned == home:
        raise Refused(f"{shown(owned)} does not lie in the agent home {shown(home)}")
    return owned[len(home) :].strip(b"/").split(b"/")


def open_parent(home: bytes, owned: bytes) -> Folder:
    """The folder that holds the owned folder, made where missing; raises DiskError."""
    parts = parts_of(home, owned)
    with disk.open_folder(home) as top:
        at = top.below(())
    for part in parts[:-1]:
        with at:
            if at.ensure_folder(part):
                at.sync()
            inner = at.folder(part)
        if part == OWN_FOLDER[0] and inner.look(b".gitignore") is None:
            inner.create(b".gitignore", IGNORE_ALL, mode=0o644)
        at = inner
    return at


def open_owned(home: bytes, owned: bytes) -> tuple[Folder, bool]:
    """The owned folder, made where missing, and whether it was; raises DiskError."""
    with open_parent(home, owned) as holder:
        name = os.path.basename(owned)
        is_new = holder.ensure_folder(name)
        if is_new:
            holder.sync()
        return holder.folder(name), is_new


def open_known(home: bytes, owned: bytes) -> Folder:
    """The owned folder as it is, nothing made; raises Away when it is not there, DiskError."""
    try:
        with disk.open_folder(home) as top:
            return top.below(parts_of(home, owned))
    except DiskError as reason:
        if reason.errno not in _GONE:
            raise
        raise Away(f"{shown(owned)} is not there now", remedy=AWAY) from reason
