"""Putting a restored state in the place of another one, such that a kill leaves the old or the new.

The new parts lie ready beside their places, in a folder of memd's, whole and flushed. Then a plan is written:

    <state>/restore.json    the parts, and the folder in which what was there is kept

From that instant on the new state holds, whatever happens: memd's start, and the next restore, go through the
plan to its end before anything else is read. Every step is two renames and may be done again: what was there
goes into `before-restore-TIME` in the same folder, what is new takes its place. Nothing is deleted.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import ConfigError, Refused
from memd.service.backup_places import Roots

VERSION: Final = 1
PLAN: Final = b"restore.json"
STAGED: Final = b".memd-restore"
MAX_PLAN_BYTES: Final = 1 << 20
LOCK_WAIT_S: Final = 10.0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One name in one folder. is_new: something takes its place; else it only goes"""

    folder: bytes
    name: bytes
    is_new: bool


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """kept: name of the folder, beside each place, for what was there"""

    version: int = VERSION
    kept: bytes
    steps: tuple[Step, ...]


class _Version(msgspec.Struct):
    version: int


def begin(roots: Roots, plan: Plan) -> None:
    """From here on the new state is the one that holds. Raises DiskError; then the old one does."""
    disk.replace_file(roots.state + b"/" + PLAN, msgspec.json.encode(plan))


def finish(roots: Roots) -> Plan | None:
    """Go to the end of what was begun, if anything was; expects that nobody else serves this state.

    raises  DiskError, ConfigError or Refused for a plan that is not understood
    """
    path = roots.state + b"/" + PLAN
    data = disk.read_file(path, MAX_PLAN_BYTES)
    if data is None:
        return None
    plan = _parsed(data, path)
    for step in plan.steps:
        _do(step, plan.kept)
    for folder in dict.fromkeys(step.folder for step in plan.steps):
        clear_staged(folder)
    with disk.open_folder(roots.state) as folder_:
        folder_.remove(PLAN)
        folder_.sync()
    return plan


def finish_begun(roots: Roots) -> None:
    """`finish` for a start of memd: nothing is made or locked where nothing was begun.

    raises  TryAgain while the restore itself is still at it, and what `finish` raises
    """
    if disk.look(roots.state + b"/" + PLAN) is not None:
        with disk.take_lock(roots.state + b"/memd.lock", wait_s=LOCK_WAIT_S):
            finish(roots)


def _parsed(data: bytes, path: bytes) -> Plan:
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            raise Refused(
                f"{shown(path)} has version {version}; this memd knows version {VERSION}",
                remedy="Run `memctl restore` of the memd that began it.",
            )
        return msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        raise ConfigError(
            f"{shown(path)} is not the plan of a restore: {reason}",
            remedy="Look at it, then move it away; what was there before is beside it, in before-restore-*.",
        ) from None


def _do(step: Step, kept: bytes) -> None:
    with disk.open_folder(step.folder) as folder:
        staged = _staged(folder) if step.is_new else None
        try:
            if step.is_new and (staged is None or staged.look(step.name) is None):
                return  # it took its place before
            if folder.look(step.name) is not None:
                folder.ensure_folder(kept)
                folder.sync()
                with folder.folder(kept) as aside:
                    folder.move(step.name, aside, step.name)
                    aside.sync()
                folder.sync()
            if staged is not None:
                staged.move(step.name, folder, step.name)
                folder.sync()
                staged.sync()
        finally:
            if staged is not None:
                staged.close()


def _staged(folder: disk.Folder) -> disk.Folder | None:
    return folder.folder(STAGED) if folder.look(STAGED) is not None else None


def clear_staged(path: bytes) -> None:
    """Take away what lies ready in a folder: a restore that never began, or the empty shell of one."""
    if disk.follow(path) is None:
        return
    with disk.open_folder(path) as folder:
        remove_tree(folder, STAGED)


def remove_tree(folder: disk.Folder, name: bytes) -> None:
    """Take away what memd itself put there. Nothing happens when it is gone. Raises DiskError."""
    facts = folder.look(name)
    if facts is None:
        return
    if not stat.S_ISDIR(facts.st_mode):
        folder.remove(name)
        return
    with folder.folder(name) as below:
        for one in below.names():
            remove_tree(below, one)
    folder.remove_folder(name)


def kept_name(roots: Roots, folders: Iterable[bytes], stamp: str) -> bytes:
    """A name for what was there that is free in all of these folders."""
    places = list(folders)
    for number in range(1000):
        name = f"before-restore-{stamp}{f'-{number}' if number else ''}".encode()
        if all(disk.look(place + b"/" + name) is None for place in places):
            return name
    raise Refused(
        f"too many folders called before-restore-{stamp} in {shown(roots.data)}",
        remedy="Remove some of them.",
    )
