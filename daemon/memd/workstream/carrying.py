"""Carrying a session of Claude Code into another login: the one time memd writes into a harness's store, and
only because somebody said so.

What is there is never overwritten: a file that is missing is put there whole or not at all, one that is the
beginning of the original is exchanged for all of it in one step. The original stays. Whatever stops this in
the middle, the next call goes on; and after every round everything is compared anew, so that what is called
carried is complete. Roots (a login, its `projects`) may be links, below them none is followed.

Everything here blocks: it belongs in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from memctl.paths import shown
from memd import disk, processes
from memd.disk import Folder
from memd.errors import DiskError, NotFound, Refused, TryAgain
from memd.processes import Presence
from memd.workstream import carry as rules
from memd.workstream.adoption import is_usable
from memd.workstream.carry import Holder, Plan, Relation

ROUNDS = 3
LOCK_S = 10.0
MAX_FILES = 10_000
MAX_DEPTH = 8
MAX_LIVE = 1000  # programs of one login that are looked at
MAX_LIVE_BYTES = 64 << 10

See = Callable[[int, str], Presence]


def see(pid: int, start: str) -> Presence:
    """Whether the program that wrote down this number and start lives."""
    if sys.platform == "linux":
        return processes.presence(pid, start)
    return "alive" if processes.is_alive(pid) else "gone"  # how it writes the start there is not known


def carry(
    session: str, logins: Iterable[bytes], target: bytes, *, source: bytes = b"", see: See = see
) -> Plan:
    """Bring a session into a login; what was done, and what was there already.

    logins  config homes that may have it
    target  the config home that it shall go on in
    source  the only one to take it from, when several have it
    raises  NotFound, Refused, TryAgain, DiskError
    """
    if not is_usable(session):
        raise NotFound(f"{session!r} is no id of a session", remedy="`memctl sessions` lists them.")
    real = os.path.realpath(target)
    if not os.path.isdir(real):
        raise NotFound(
            f"{shown(target)} is no login: there is no such folder",
            remedy="Start `claude` with it once (CLAUDE_CONFIG_DIR), then repeat the command.",
        )
    roots = _roots([source] if source else logins, real)
    others = [login for login in roots if login != real]
    rounds: list[Plan] = []
    with disk.take_folder_lock(real, wait_s=LOCK_S) or contextlib.nullcontext():
        for _ in range(ROUNDS):
            held = [_holder(login, roots[login], session) for login in others]
            here = _holder(real, roots[real], session)
            todo = rules.plan(session, held, here, lambda one, other, path: _relate(roots, one, other, path))
            rounds.append(todo)
            if todo.is_done:
                for path in todo.unchanged if todo.source else ():
                    _tidy(roots[todo.source], roots[real], path)
                return _together(rounds)
            for login in (todo.source, real):
                _check_closed(session, login, see)
            for path in (*todo.copy, *todo.extend):
                _bring(roots[todo.source], roots[real], path, is_new=path in todo.copy)
    raise TryAgain(
        f"session {session} keeps changing while it is copied",
        remedy="Quit the program that is on it, then repeat the command.",
    )


def _together(rounds: Sequence[Plan]) -> Plan:
    """What all rounds did, the last of which had nothing left to do."""
    copied = tuple(dict.fromkeys(path for one in rounds for path in one.copy))
    extended = tuple(
        path for path in dict.fromkeys(p for one in rounds for p in one.extend) if path not in copied
    )
    unchanged = tuple(path for path in rounds[-1].unchanged if path not in (*copied, *extended))
    return replace(rounds[-1], copy=copied, extend=extended, unchanged=unchanged)


# ------------------------------------------------------------------------------------- looking


def _roots(logins: Iterable[bytes], target: bytes) -> dict[bytes, bytes]:
    """Where the logins keep their projects, links resolved; the target first, no folder twice."""
    found = {target: os.path.realpath(target + b"/projects")}
    for login in logins:
        real = os.path.realpath(login)
        root = os.path.realpath(real + b"/projects")
        if root not in found.values() and os.path.isdir(root):
            found[real] = root
    return found


def _holder(login: bytes, root: bytes, session: str) -> Holder:
    """What a login has of the session. raises DiskError"""
    name = os.fsencode(session)
    files: list[bytes] = []
    left_out: list[bytes] = []
    if not os.path.isdir(root):
        return Holder(login=login)
    with disk.open_folder(root) as projects:
        for key in projects.names():
            facts = projects.look(key)
            if facts is None or not stat.S_ISDIR(facts.st_mode):
                continue
            try:
                folder = projects.folder(key)
            except DiskError as reason:
                if reason.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES):
                    continue  # it went, or became a link, between the two looks, or is nobody's business
                raise
            with folder:
                for entry in (name + rules.SUFFIX, name):
                    _collect(folder, entry, key + b"/" + entry, files, left_out, 0)
    return Holder(login=login, files=tuple(files), left_out=tuple(left_out))


def _collect(
    folder: Folder, name: bytes, path: bytes, files: list[bytes], left_out: list[bytes], depth: int
) -> None:
    facts = folder.look(name)
    if facts is None or disk.is_temporary(name):
        return
    if stat.S_ISREG(facts.st_mode):
        files.append(path)
    elif stat.S_ISDIR(facts.st_mode) and depth < MAX_DEPTH:
        with folder.folder(name) as below:
            for inner in below.names():
                _collect(below, inner, path + b"/" + inner, files, left_out, depth + 1)
    else:
        left_out.append(path)
    if len(files) > MAX_FILES:
        raise Refused(
            f"{shown(folder.path)} holds more than {MAX_FILES} files of one session",
            remedy="Copy the session by hand.",
        )


def _relate(roots: dict[bytes, bytes], original: bytes, copy: bytes, path: bytes) -> Relation:
    """raises Refused, DiskError"""
    if _is_one(roots[original] + b"/" + path, roots[copy] + b"/" + path):
        return "same"
    one, other = _opened(roots[original], path), _opened(roots[copy], path)
    with one or contextlib.nullcontext(), other or contextlib.nullcontext():
        name = os.path.basename(path)
        has_one = one is not None and _is_file(one, name)
        if other is None or other.look(name) is None:
            return "absent"
        if not has_one or one is None:
            return "ahead"
        if not _is_file(other, name):
            raise _in_the_way(other.at(name))
        return _compare(one.chunks(name), other.chunks(name))


def _opened(root: bytes, path: bytes) -> Folder | None:
    """The folder of a file below a root; None when it is not there. raises Refused for a link on the way"""
    parts = path.split(b"/")[:-1]
    try:
        with disk.open_folder(root) as folder:
            return folder.below(parts)
    except DiskError as reason:
        if reason.errno == errno.ENOENT:
            return None
        if reason.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _in_the_way(root + b"/" + b"/".join(parts)) from None
        raise


def _is_one(original: bytes, copy: bytes) -> bool:
    """Whether both paths lead to one file: somebody has linked them."""
    try:
        return os.path.samefile(original, copy)
    except OSError:
        return False


def _is_file(folder: Folder, name: bytes) -> bool:
    facts = folder.look(name)
    return facts is not None and stat.S_ISREG(facts.st_mode)


def _in_the_way(path: bytes) -> Refused:
    return Refused(
        f"{shown(path)} is a link, or not what Claude Code puts there; memd follows no links here",
        remedy="Look at it, put it right by hand, then repeat the command.",
    )


def _compare(original: Iterator[bytes], copy: Iterator[bytes]) -> Relation:
    """How the copy stands to the original, piece by piece."""
    left, right = b"", b""
    while True:
        left = left or next(original, b"")
        right = right or next(copy, b"")
        if not left or not right:
            if left == right:
                return "same"
            return "behind" if left else "ahead"
        length = min(len(left), len(right))
        if left[:length] != right[:length]:
            return "apart"
        left, right = left[length:], right[length:]


def _check_closed(session: str, login: bytes, see: See) -> None:
    """raises Refused while a program of that login is on the session"""
    try:
        names = sorted(os.listdir(login + b"/sessions"))[:MAX_LIVE]
    except OSError:
        return
    for name in names:
        try:
            text = disk.read_file(login + b"/sessions/" + name, MAX_LIVE_BYTES)
            live = msgspec.json.decode(text or b"", type=_Live)
        except (DiskError, msgspec.DecodeError):
            continue
        if live.session == session and live.pid and see(live.pid, live.start) != "gone":
            raise Refused(
                f"session {session} is open in {shown(login)}, in process {live.pid}",
                remedy="Quit it there, then repeat the command.",
            )


class _Live(msgspec.Struct, frozen=True):
    """`sessions/<pid>.json`: what a running program is on. source: Claude Code 2.1.197, read 2026-11"""

    pid: int = 0
    session: str = msgspec.field(default="", name="sessionId")
    start: str = msgspec.field(default="", name="procStart")


# ------------------------------------------------------------------------------------- writing


def _bring(source: bytes, target: bytes, path: bytes, *, is_new: bool) -> None:
    """One file of the original into the target. What changed there meanwhile stays: the next round sees it.

    raises DiskError
    """
    name = os.path.basename(path)
    original = _opened(source, path)
    if original is None:
        return
    with original, _made(target, path.split(b"/")[:-1]) as folder:
        _clear(folder, original, name)
        fresh = folder.write_temporary(original.chunks(name))
        try:
            if is_new:
                folder.move(fresh, folder, name)
            else:
                folder.swap(name, folder, fresh)
        except DiskError as reason:
            folder.remove(fresh)
            if is_new and reason.errno == errno.EEXIST:
                return
            raise
        if not is_new:
            _let_go(folder, fresh, name)
        folder.sync()


def _let_go(folder: Folder, old: bytes, name: bytes) -> None:
    """Take away what was exchanged, unless it was written to until then: that is put back."""
    try:
        is_beginning = _compare(folder.chunks(name), folder.chunks(old)) in ("behind", "same")
    except DiskError:
        is_beginning = False
    if not is_beginning:
        folder.swap(name, folder, old)
    folder.remove(old)


def _clear(folder: Folder, original: Folder, name: bytes) -> None:
    """Take away what a kill left of this very file: only what is a beginning of the original."""
    for left in folder.names():
        if not disk.is_temporary(left) or not _is_file(folder, left):
            continue
        if _compare(original.chunks(name), folder.chunks(left)) in ("behind", "same"):
            folder.remove(left)


def _tidy(source: bytes, target: bytes, path: bytes) -> None:
    """The same beside a file that is whole: a kill right after its exchange leaves the beginning there."""
    if _is_one(source + b"/" + path, target + b"/" + path):
        return
    with contextlib.suppress(DiskError, Refused):  # the copy is whole, whatever lies beside it
        folder = _opened(target, path)
        with folder or contextlib.nullcontext():
            if folder is None or not any(map(disk.is_temporary, folder.names())):
                return
            original = _opened(source, path)
            with original or contextlib.nullcontext():
                if original is not None:
                    _clear(folder, original, os.path.basename(path))


def _made(root: bytes, parts: Sequence[bytes]) -> Folder:
    """A folder below a root, made where it is missing, for this user alone. raises DiskError"""
    current = disk.make_folders(root)
    for part in parts:
        with current:
            if current.ensure_folder(part):
                current.sync()
            current = current.folder(part)
    return current
