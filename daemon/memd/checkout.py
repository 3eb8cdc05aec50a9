"""The only reader of git: the repository round a directory, and which folder Claude Code takes for its
project.

It reads a few small files and starts no process, so that a hook can afford it, unless git's configuration
says that it is not all in one file: then git itself is asked once, if the caller lends it.

`repository` goes by git's own rules: from the physical path up to the first folder with a `.git` that is a
repository (or a file that names one), or that is itself one, and never on to another file system.

`project_root` goes by Claude Code's rule, as measured on the program: from the physical path walk up to the
first `.git`. A directory there makes its parent the root. A file there names a git folder; without a
`commondir` in it (submodule, separate git dir) the parent of the file is the root as well. With one it is a
linked worktree, and two checks stand between a `.git` file and the repository it names, because anyone can
write such a file: the admin folder must lie in `<common dir>/worktrees/`, and its own `gitdir` file must
point back at this very `.git`. When either fails (moved without repair, copied, forged) the folder is its own
root; when both hold, the root is the common directory, less its last part when that is exactly `.git`. The
first check compares texts, the second one real paths.

`GIT_DIR` and everything else in the environment counts for nothing, as there.

source  Claude Code 2.1.332, read 2026-11. 2.1.197 differs in one point: a relative back-link, as git writes
        it with `worktree.useRelativePaths`, counts as wrong there
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence

import msgspec

from memd import gitconfig
from memd.errors import UsageError

Ask = Callable[[bytes, Sequence[str]], bytes | None]
"""A question to git: directory, words; what it answers. `memd.git.Git.text` is one."""

JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_HEX = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MAX_POINTER_BYTES = 64 << 10  # `.git` files, `commondir` and `gitdir` hold one path each


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """What git knows of a directory; all paths physical. Outside git everything but `cwd` is empty.

    cwd         the directory itself
    root        the top of the checkout; empty in a bare repository
    git_dir     of this checkout alone
    common_dir  of the repository, shared by its linked worktrees
    remotes     the addresses of `origin` as they are written, in their order
    """

    cwd: bytes
    root: bytes = b""
    git_dir: bytes = b""
    common_dir: bytes = b""
    remotes: tuple[bytes, ...] = ()


def repository(path: bytes, git: Ask | None = None) -> Repository:
    """The repository round a directory, which must be absolute and should exist.

    git      asked where the configuration is not all in one file; without it what that file says counts
    raises   UsageError when `path` is not absolute or holds a NUL byte. What cannot be read counts as absent
    """
    cwd = _physical(path)
    root, git_dir = _discover(cwd)
    if not git_dir:
        return Repository(cwd=cwd)
    common_dir = _common(git_dir)
    return Repository(
        cwd=cwd,
        root=root,
        git_dir=git_dir,
        common_dir=common_dir,
        remotes=_remotes(cwd, common_dir, git),
    )


def _physical(path: bytes) -> bytes:
    if not path.startswith(b"/") or b"\0" in path:
        raise UsageError(f"{path!r} is not an absolute path", remedy="Name the directory by its full path.")
    return os.path.realpath(path)


def _discover(cwd: bytes) -> tuple[bytes, bytes]:
    """The top of the checkout (empty: there is none) and its git folder (empty: no repository)."""
    folder, device = cwd, _device(cwd)
    while True:
        dot_git = _join(folder, b".git")
        mode = _mode(dot_git)
        if stat.S_ISREG(mode):
            pointer = _line(dot_git)
            named = os.path.realpath(os.path.join(folder, pointer[len(b"gitdir: ") :]))
            is_sound = pointer.startswith(b"gitdir: ") and _is_git_dir(named)
            return (folder, named) if is_sound else (b"", b"")  # git gives up at a pointer that leads nowhere
        if stat.S_ISDIR(mode) and _is_git_dir(dot_git):
            return folder, os.path.realpath(dot_git)
        if _is_git_dir(folder):
            return b"", folder
        above = os.path.dirname(folder)
        if above == folder or _device(above) != device:
            return b"", b""
        folder = above


def _is_git_dir(path: bytes) -> bool:
    head = _join(path, b"HEAD")
    if not os.path.islink(head):
        content = _line(head)
        if not content.startswith(b"ref:") and not _HEX.fullmatch(content):
            return False
    common = _common(path)
    return all(stat.S_ISDIR(_mode(_join(common, name))) for name in (b"objects", b"refs"))


def _common(git_dir: bytes) -> bytes:
    written = _line(_join(git_dir, b"commondir"))
    return os.path.realpath(os.path.join(git_dir, written)) if written else git_dir


def _remotes(cwd: bytes, common_dir: bytes, git: Ask | None) -> tuple[bytes, ...]:
    content = _read_small(_join(common_dir, b"config"), gitconfig.MAX_BYTES)
    try:
        entries = gitconfig.parse(content or b"")
    except ValueError:
        entries, content = [], None
    if git is not None and (content is None or not gitconfig.is_whole(entries)):
        answer = git(cwd, ("config", "-z", "--get-all", "remote.origin.url"))
        if answer is not None:
            return tuple(url for url in answer.split(b"\0") if url)
    return gitconfig.remotes(entries)


def project_root(path: bytes) -> bytes:
    """The physical path of the folder whose memory a session in `path` uses.

    path     absolute; links in it are followed. A file stands for the folder that holds it. What does not
             exist (yet, or any more) is judged as if an empty folder were made there: the repository around
             its nearest existing parent, or else the path itself with the links of its parents resolved
    returns  absolute, without a trailing slash. For a worktree of a bare repository it is the git folder.
             Physical, unless a `.git` file spells its git folder through a link: then so is the root
    raises   UsageError when `path` is not absolute or holds a NUL byte. What cannot be read counts as absent
    """
    start = _physical(path)
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


def _device(path: bytes) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return -1


def _mode(path: bytes) -> int:
    """The file type behind `path`, links followed; 0 when there is none to be seen."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _line(path: bytes) -> bytes:
    """A small file's content as git takes a path from it: bytes, without line ends at the end."""
    content = _read_small(path, MAX_POINTER_BYTES)
    return b"" if content is None or b"\0" in content else content.rstrip(b"\r\n")


def _read_trimmed(path: bytes) -> bytes:
    """The trimmed content of a small regular file; empty when it is anything else."""
    content = _read_small(path, MAX_POINTER_BYTES)
    return b"" if content is None or b"\0" in content else _trimmed(content)


def _read_small(path: bytes, limit: int) -> bytes | None:
    """The content of a regular file of at most `limit` bytes; None when it is anything else.

    Not blocking, so that a FIFO of that name cannot hold us.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        content = b""
        while chunk := os.read(fd, limit + 1 - len(content)):
            content += chunk
    except OSError:
        return None
    finally:
        os.close(fd)
    return content if len(content) <= limit else None


def _trimmed(content: bytes) -> bytes:
    """Without the white space JavaScript trims; empty when it is not UTF-8, for then the program is lost."""
    try:
        return content.decode("utf-8").strip(JS_SPACE).encode("utf-8")
    except UnicodeDecodeError:
        return b""
