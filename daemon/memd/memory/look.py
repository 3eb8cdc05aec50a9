"""Looking at entries, and opening the folder an entry is in. Reads only."""

from __future__ import annotations

import errno
import os
import stat

from memctl.paths import shown
from memd import disk
from memd.checkout import project_root
from memd.disk import Folder
from memd.errors import DiskError, Refused
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import Facts, is_within
from memd.memory.where import EntryPath

ENTRY = b"memory"


def look_at(login: ConfigHome, entry: EntryPath, home: bytes, owned: os.stat_result | None) -> Facts:
    """What stands at an entry of the agent at `home`, whose owned folder is `owned`; raises DiskError."""
    path = entry.path
    if entry.problem:
        return Facts(path=path, kind="blocked", obstacle=entry.problem)
    if owned is not None:
        behind = disk.follow(path)
        if behind is not None and (behind.st_dev, behind.st_ino) == (owned.st_dev, owned.st_ino):
            facts = disk.look(path)
            return Facts(path=path, kind="link", is_owned=True, ino=facts.st_ino if facts else 0)
    try:
        holder = open_holder(login, path)
    except Refused as reason:
        return Facts(path=path, kind="blocked", obstacle=str(reason))
    if holder is None:
        return Facts(path=path, kind="absent")
    with holder:
        return _facts(holder, path, home)


def _facts(holder: Folder, path: bytes, home: bytes) -> Facts:
    here = holder.look(ENTRY)
    is_writable = holder.is_writable()
    if here is None:
        return Facts(path=path, kind="absent", is_writable=is_writable)
    if stat.S_ISDIR(here.st_mode):
        is_mount = here.st_dev != holder.facts().st_dev
        return Facts(path=path, kind="folder", ino=here.st_ino, is_mount=is_mount, is_writable=is_writable)
    if not stat.S_ISLNK(here.st_mode):
        return Facts(path=path, kind="odd", ino=here.st_ino)
    text = holder.read_link(ENTRY)
    behind = holder.follow(ENTRY)
    target = os.path.realpath(path) if behind is not None else b""
    return Facts(
        path=path,
        kind="link",
        ino=here.st_ino,
        is_writable=is_writable,
        text=text,
        target=target,
        target_is_folder=behind is not None and stat.S_ISDIR(behind.st_mode),
        target_root=project_root(target) if target and is_within(target, home) else b"",
    )


def open_holder(login: ConfigHome, path: bytes, *, makes: bool = False) -> Folder | None:
    """`projects/<key>` of a login, opened; None when it is not there, unless `makes` has it made.

    A link on the way is gone through only when it stays in the login. Raises Refused when it does not, or
    when something that is no folder is in the way, and DiskError.
    """
    with disk.open_folder(login.real) as top:
        at = top.below(())
        for part in (b"projects", os.path.basename(os.path.dirname(path))):
            with at:
                inner = _enter(login, top, at, part)
                if inner is None:
                    if not makes:
                        return None
                    if at.ensure_folder(part):
                        at.sync()
                    inner = at.folder(part)
                at = inner
        return at


def make_holder(login: ConfigHome, path: bytes) -> Folder:
    """The same, made where missing."""
    found = open_holder(login, path, makes=True)
    assert found is not None
    return found


def _enter(login: ConfigHome, top: Folder, at: Folder, part: bytes) -> Folder | None:
    facts = at.look(part)
    if facts is None:
        return None
    if stat.S_ISDIR(facts.st_mode):
        return at.folder(part)
    if not stat.S_ISLNK(facts.st_mode):
        raise Refused(f"{shown(at.at(part))} is no folder")
    real = os.path.realpath(at.at(part))
    if not is_within(real, login.real):
        raise Refused(f"{shown(at.at(part))} is a link that leads out of the login")
    try:
        return top.below(real[len(login.real) :].strip(b"/").split(b"/"))
    except DiskError as reason:
        if reason.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        raise Refused(f"{shown(at.at(part))} is a link to something that is no folder") from reason
