"""Whose project folder is this? Different roots can share a key, so the name of a folder never tells.

The transcripts in `<config home>/projects/<key>/` do: their records carry the `cwd` of the work. Not every
`cwd` counts, though. Transcripts are filed under the key of the directory a session was started in, memory
under the key of its root, and a shell may wander off to another checkout in mid-session. So each directory is
one of four things:

    ours      the root, below it, or in a linked worktree of it
    theirs    it gives this very key, and its memory is kept under this key, too: a collision
    neutral   it gives this key, but its memory is kept elsewhere: a subdirectory of another checkout
    a guest   it gives another key: somebody went there, or the transcript was moved

One directory of theirs makes the folder foreign; guests do when a transcript has nothing else.

The look is bounded: some of the newest transcripts, the head and the tail of each. Links, FIFOs and
everything else that is no regular file are passed over.

source  Claude Code 2.1.197, transcripts read 2026-11
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

import msgspec

from memd.checkout import project_root
from memd.memory.key import MAX_UNITS, project_key

MAX_ENTRIES = 20_000  # names looked at in one folder
MAX_FILES = 16  # transcripts opened
HEAD_BYTES = 128 << 10
TAIL_BYTES = 32 << 10
MAX_CWDS = 64  # different directories considered per transcript


class _Record(msgspec.Struct):
    cwd: str = ""


_decoder = msgspec.json.Decoder(_Record)


def foreign_cwd(folder: bytes, root: bytes) -> bytes | None:
    """A working directory that shows `folder` to be another project's; None when nothing speaks for that.

    folder  `<config home>/projects/<key>`, the folder the memory entry is in
    root    the physical project root that wants the entry
    raises  nothing: what cannot be read says nothing
    """
    for path in _newest_transcripts(folder):
        foreign = _speaks_for(_cwds(path), root, os.path.basename(folder))
        if foreign:
            return foreign
    return None


def _speaks_for(cwds: list[bytes], root: bytes, key: bytes) -> bytes | None:
    """The directory by which a transcript shows itself to be another root's."""
    is_exact = key == project_key(root).encode("ascii")
    guests = []
    for cwd in cwds:
        if _is_ours(cwd, root):
            continue
        if not _gives(cwd, key, is_exact):
            guests.append(cwd)
        elif not os.path.isdir(cwd) or _gives(project_root(cwd), key, is_exact):
            return cwd
    return guests[0] if guests and len(guests) == len(cwds) else None


def _gives(path: bytes, key: bytes, is_exact: bool) -> bool:
    """Whether a path has this key; where an older hash ends it, whether it agrees up to that."""
    theirs = project_key(path).encode("ascii")
    if is_exact or len(theirs) <= MAX_UNITS:
        return theirs == key
    return theirs[: MAX_UNITS + 1] == key[: MAX_UNITS + 1]


def _is_ours(cwd: bytes, root: bytes) -> bool:
    """Whether work in `cwd` is work on `root`: in or below it, or in a linked worktree of it.

    The text decides first, and alone for a directory that is gone. The program would write U+FFFD for bytes
    that are not UTF-8, so the root is compared in that form, too.
    """
    for spelling in (root, root.decode("utf-8", "replace").encode("utf-8")):
        if cwd == spelling or cwd.startswith(spelling.rstrip(b"/") + b"/"):
            return True
    if not os.path.isdir(cwd):
        return False
    theirs = project_root(cwd)
    if theirs == root:
        return True
    try:  # a file system that ignores case knows one folder under several names
        return os.path.samefile(theirs, root)
    except OSError:
        return False


def _newest_transcripts(folder: bytes) -> list[bytes]:
    found: list[tuple[int, bytes]] = []
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES:
                    break
                if entry.name.endswith(b".jsonl") and entry.is_file(follow_symlinks=False):
                    try:
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
                    except OSError:
                        continue
    except (OSError, ValueError):
        return []
    found.sort(reverse=True)
    return [path for _, path in found[:MAX_FILES]]


def _cwds(path: bytes) -> list[bytes]:
    """The directories that the head and the tail of a transcript name, each once, in order."""
    seen: dict[bytes, None] = {}
    for line in _sampled_lines(path):
        if b'"cwd"' not in line:
            continue
        try:
            text = _decoder.decode(line).cwd
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if text.startswith("/") and "\0" not in text:
            seen.setdefault(text.encode("utf-8", "surrogatepass"))
        if len(seen) >= MAX_CWDS:
            break
    return list(seen)


def _sampled_lines(path: bytes) -> Iterator[bytes]:
    """Whole lines from the head and the tail of a regular file; nothing when it is anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return
        head = os.pread(fd, HEAD_BYTES, 0)
        rest = facts.st_size - len(head)
        tail = os.pread(fd, min(TAIL_BYTES, rest), facts.st_size - min(TAIL_BYTES, rest)) if rest > 0 else b""
    except OSError:
        return
    finally:
        os.close(fd)
    lines = head.split(b"\n")
    yield from lines[:-1]
    if not tail:
        yield lines[-1]
        return
    yield from tail.split(b"\n")[1:]
