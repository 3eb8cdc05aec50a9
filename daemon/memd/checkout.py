"""The only reader of git: which folder Claude Code takes for the project of a working directory.

It reads a few small files and starts no process, so that a hook can afford it. The rule, as measured on the
program: from the physical path walk up to the first `.git`. A directory there makes its parent the root. A
file there names a git folder; without a `commondir` in it (submodule, separate git dir) the parent of the
file is the root as well. With one it is a linked worktree, and two checks stand between a `.git` file and the
repository it names, because anyone can write such a file: the admin folder must lie in
`<common dir>/worktrees/`, and its own `gitdir` file must point back at this very `.git`. When either fails
(moved without repair, copied, forged) the folder is its own root; when both hold, the root is the common
directory, less its last part when that is exactly `.git`. The first check compares texts, the second one
real paths.

`GIT_DIR` and everything else in the environment counts for nothing, as there.

source  Claude Code 2.1.332, read 2026-11. 2.1.197 differs in one point: a relative back-link, as git writes
        it with `worktree.useRelativePaths`, counts as wrong there
"""

from __future__ import annotations

import os
import stat

from memd.errors import UsageError

JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
MAX_POINTER_BYTES = 64 << 10  # `.git` files, `commondir` and `gitdir` hold one path each


def project_root(path: bytes) -> bytes:
    """The physical path of the folder whose memory a session in `path` uses.

    path     absolute; links in it are followed. A file stands for the folder that holds it. What does not
             exist (yet, or any more) is judged as if an empty folder were made there: the repository around
             its nearest existing parent, or else the path itself with the links of its parents resolved
    returns  absolute, without a trailing slash. For a worktree of a bare repository it is the git folder.
             Physical, unless a `.git` file spells its git folder through a link: then so is the root
    raises   UsageError when `path` is not absolute or holds a NUL byte. What cannot be read counts as absent
    """
    if not path.startswith(b"/") or b"\0" in path:
        raise UsageError(f"{path!r} is not an absolute path", remedy="Name the directory by its full path.")
    start = os.path.realpath(path)
    mode = _mode(start)
    if mode and not stat.S_ISDIR(mode):
        start = os.path.dirname(start)
    folder = start
    while True:
        kind = _mode(_join(folder, b".git"))
        if stat.S_ISDIR(kind):
            return folder
        if stat.S_ISREG(kind):
            return _main_checkout(folder)
        if folder == b"/":
            return start
        folder = os.path.dirname(folder)


def _main_checkout(folder: bytes) -> bytes:
    """The root for a folder whose `.git` is a file: `folder` itself unless it is a sound linked worktree."""
    pointer = _read_trimmed(_join(folder, b".git"))
    if not pointer.startswith(b"gitdir:"):
        return folder
    admin = _resolve(folder, _trimmed(pointer[len(b"gitdir:") :]))
    commondir = _read_trimmed(_join(admin, b"commondir"))
    common = _resolve(admin, commondir)
    if not commondir or os.path.dirname(admin) != _join(common, b"worktrees"):
        return folder
    back = _read_trimmed(_join(admin, b"gitdir"))
    if not back or os.path.realpath(_resolve(admin, back)) != _join(folder, b".git"):
        return folder
    return os.path.dirname(common) if os.path.basename(common) == b".git" else common


def _resolve(base: bytes, path: bytes) -> bytes:
    """`path` seen from `base` by its text alone, as Node's `path.resolve` does: no link is followed."""
    return b"/" + os.path.normpath(os.path.join(base, path)).lstrip(b"/")


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + name if folder == b"/" else folder + b"/" + name


def _mode(path: bytes) -> int:
    """The file type behind `path`, links followed; 0 when there is none to be seen."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _read_trimmed(path: bytes) -> bytes:
    """The trimmed content of a small regular file; empty when it is anything else.

    Not blocking, so that a FIFO of that name cannot hold us.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        content = os.read(fd, MAX_POINTER_BYTES + 1)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"" if len(content) > MAX_POINTER_BYTES or b"\0" in content else _trimmed(content)


def _trimmed(content: bytes) -> bytes:
    """Without the white space JavaScript trims; empty when it is not UTF-8, for then the program is lost."""
    try:
        return content.decode("utf-8").strip(JS_SPACE).encode("utf-8")
    except UnicodeDecodeError:
        return b""
