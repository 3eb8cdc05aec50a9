"""Directories in every relation to a git repository that matters, made by git itself, each with a name.

The names are those of `memory/claude_roots.json`, which holds what Claude Code answered in the same layouts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "Dev",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "dev@example.invalid",
    "GIT_CONFIG_KEY_2": "init.defaultBranch",
    "GIT_CONFIG_VALUE_2": "main",
    "GIT_CONFIG_KEY_3": "protocol.file.allow",
    "GIT_CONFIG_VALUE_3": "always",
}


class Roots:
    """A folder `top` (physical, ASCII) full of layouts; `cwds` says which directory each name means."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.cwds: dict[str, bytes] = {}

    def git(self, folder: str | bytes, *words: str | bytes) -> None:
        subprocess.run(
            ["git", "-C", os.path.join(os.fsencode(self.top), os.fsencode(folder)), *words],
            check=True,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )

    def repo(self, name: str | bytes) -> None:
        self.folder(name)
        self.git(name, "init", "-q")
        self.git(name, "commit", "-q", "--allow-empty", "-m", "x")

    def worktree(self, repository: str | bytes, name: str | bytes) -> None:
        target = os.path.join(os.fsencode(self.top), os.fsencode(name))
        self.git(repository, "worktree", "add", "-q", target)

    def folder(self, name: str | bytes) -> None:
        os.makedirs(os.path.join(os.fsencode(self.top), os.fsencode(name)), exist_ok=True)

    def write(self, name: str, text: str | bytes) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, name: str, target: str | Path) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def ask(self, name: str, cwd: str | bytes) -> None:
        self.folder(cwd)
        self.cwds[name] = os.path.join(os.fsencode(self.top), os.fsencode(cwd))


def build(top: Path) -> Roots:
    """Every layout below `top`; takes a second or two."""
    roots = Roots(top)
    roots.repo("main")
    for part in (_plain, _worktrees, _unsound_worktrees, _submodules, _bare, _odd_dotgit, _pointers, _names):
        part(roots)
    return roots


def _plain(r: Roots) -> None:
    r.ask("plain", "plain")
    r.ask("sub", "main/sub/deep")
    r.ask("in-git-dir", "main/.git/hooks")
    r.repo("main/nested")
    r.ask("nested", "main/nested")


def _worktrees(r: Roots) -> None:
    r.worktree("main", "wt")
    r.worktree("main", "main/wts/in")
    r.link("wtlink", "wt")
    r.ask("wt", "wt")
    r.ask("wt-sub", "wt/sub")
    r.ask("wt-in", "main/wts/in")
    r.ask("wt-link", "wtlink")
    r.worktree("main", "wtrel")
    r.write("wtrel/.git", "gitdir: ../main/.git/worktrees/wtrel\n")
    r.ask("wt-relative-file", "wtrel")
    r.worktree("main", "wtrel2")
    r.write("wtrel2/.git", "gitdir: ../main/.git/worktrees/wtrel2\n")
    r.write("main/.git/worktrees/wtrel2/gitdir", "../../../../wtrel2/.git\n")
    r.ask("wt-relative-both", "wtrel2")
    r.ask("wt-relative-back-deep", "wtrel2/a/b/c")
    r.worktree("main", "wtabs")
    r.write("main/.git/worktrees/wtabs/commondir", f"{r.top}/main/.git\n")
    r.ask("wt-absolute-commondir", "wtabs")
    r.folder("real")
    r.link("sym", "real")
    r.worktree("main", "sym/wt3")
    r.ask("wt-through-symlink", "sym/wt3")
    r.worktree("main", "wt4")
    r.link("mainlink", "main")
    r.write("wt4/.git", f"gitdir: {r.top}/mainlink/.git/worktrees/wt4\n")
    r.ask("wt-gitdir-spelled-through-link", "wt4")
    r.worktree("main", "real/wt5")
    r.write("main/.git/worktrees/wt5/gitdir", f"{r.top}/sym/wt5/.git\n")
    r.ask("wt-backlink-spelled-through-link", "real/wt5")
    r.repo("real/m2")
    r.worktree("sym/m2", "sym/wt6")
    r.ask("wt-both-through-symlink", "sym/wt6")


def _forge(r: Roots, worktree: str, admin: str, *, common: str, back: str) -> None:
    """A `.git` file and an admin folder written by hand."""
    r.write(f"{admin}/commondir", common + "\n")
    r.write(f"{admin}/gitdir", f"{r.top}/{back}/.git\n")
    r.write(f"{admin}/HEAD", "ref: refs/heads/main\n")
    r.write(f"{worktree}/.git", f"gitdir: {r.top}/{admin}\n")


def _unsound_worktrees(r: Roots) -> None:
    r.worktree("main", "wt7")
    (r.top / "wt7").rename(r.top / "wt7moved")
    r.ask("wt-moved", "wt7moved")
    r.write("copied/.git", (r.top / "wt/.git").read_bytes())
    r.ask("git-file-copied", "copied")
    _forge(r, "forged1", "evil/adm", common=f"{r.top}/main/.git", back="forged1")
    r.ask("forged-admin-outside", "forged1")
    _forge(r, "forged2", "main/.git/worktrees/f2", common="../..", back="elsewhere")
    r.ask("forged-wrong-backlink", "forged2")
    _forge(r, "forged3", "main/.git/worktrees/f3", common="../..", back="forged3")
    r.ask("forged-all-right", "forged3")
    _forge(r, "forged4", "evil2/worktrees/a", common="../..", back="forged4")
    r.ask("common-is-no-repo", "forged4")
    _forge(r, "forged5", "main/.git/worktrees/deep/f5", common="../../..", back="forged5")
    r.ask("admin-too-deep", "forged5")
    r.worktree("main", "wt8")
    r.folder("linkedadmin")
    (r.top / "main/.git/worktrees/wt8").rename(r.top / "linkedadmin/wt8")
    r.link("main/.git/worktrees/wt8", r.top / "linkedadmin/wt8")
    r.ask("admin-is-a-link", "wt8")


def _submodules(r: Roots) -> None:
    r.repo("subsrc")
    r.repo("super")
    r.git("super", "submodule", "add", "-q", f"{r.top}/subsrc", "libs/sm")
    r.ask("submodule", "super/libs/sm")
    r.ask("submodule-sub", "super/libs/sm/x")
    r.worktree("super/libs/sm", "smwt")
    r.ask("submodule-worktree", "smwt")


def _bare(r: Roots) -> None:
    r.git(".", "clone", "-q", "--bare", "main", "x.git")
    r.ask("bare", "x.git")
    r.ask("bare-sub", "x.git/refs")
    r.worktree("x.git", "bwt")
    r.ask("bare-worktree", "bwt")
    r.folder("cont")
    r.git(".", "clone", "-q", "--bare", "main", "cont/.bare")
    r.write("cont/.git", "gitdir: ./.bare\n")
    r.worktree("cont", "cont/feature")
    r.ask("container", "cont")
    r.ask("container-worktree", "cont/feature")
    r.ask("container-bare", "cont/.bare")
    r.git(".", "init", "-q", f"--separate-git-dir={r.top}/sepgit", "sep")
    r.ask("separate", "sep/s")
    r.ask("separate-gitdir", "sepgit")


def _odd_dotgit(r: Roots) -> None:
    r.link("dotlink/.git", "../main/.git")
    r.ask("dotgit-link-to-dir", "dotlink/s")
    r.link("filelink/.git", "../wt/.git")
    r.ask("dotgit-link-to-file", "filelink")
    r.folder("emptygit/.git")
    r.ask("dotgit-empty", "emptygit/s")
    r.write("cd/.git/commondir", "../../main/.git\n")
    r.ask("dotgit-with-commondir", "cd/s")
    r.write("main/nog/.git", "hello\n")
    r.ask("dotgit-no-gitdir", "main/nog/s")
    r.write("main/nowhere/.git", "gitdir: /nonexistent/x\n")
    r.ask("dotgit-nowhere", "main/nowhere/s")
    r.link("main/dang/.git", "nowhere")
    r.ask("dotgit-dangling", "main/dang/s")
    r.folder("main/fifo")
    os.mkfifo(r.top / "main/fifo/.git")
    r.ask("dotgit-fifo", "main/fifo/s")
    r.write("main/emptyf/.git", "")
    r.ask("dotgit-empty-file", "main/emptyf/s")


def _pointers(r: Roots) -> None:
    forms = {
        "crlf": b"gitdir: %s\r\n",
        "nospace": b"gitdir:%s\n",
        "blanks": b"\n\n  gitdir:   %s  \n\n",
        "upper": b"GITDIR: %s\n",
        "bom": b"\xef\xbb\xbfgitdir: %s\n",
        "second": b"gitdir: %s\nmore: yes\n",
        "slash": b"gitdir: %s/\n",
        "nbsp": b"gitdir: %s\xc2\xa0\n",
    }
    for name, form in forms.items():
        r.worktree("main", f"p-{name}")
        r.write(f"p-{name}/.git", form % os.fsencode(r.top / f"main/.git/worktrees/p-{name}"))
        r.ask(f"ptr-{name}", f"p-{name}")


def _names(r: Roots) -> None:
    r.repo("nfdrepo-cafe\u0301")
    r.ask("nfdrepo", "nfdrepo-cafe\u0301/s")
    r.repo("nfdmain-cafe\u0301")
    r.worktree("nfdmain-cafe\u0301", "nfdwt")
    r.ask("nfdwt", "nfdwt")
    if sys.platform != "darwin":  # its file systems take names in UTF-8 only
        r.repo(b"badrepo-\xff")
        r.worktree(b"badrepo-\xff", "wtofbad")
        r.ask("wt-of-bad", "wtofbad")
