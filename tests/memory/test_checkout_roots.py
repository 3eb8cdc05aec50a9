"""The project root of a directory, against what Claude Code itself answered in the same layouts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import support_roots
from memd.checkout import MAX_POINTER_BYTES, project_root
from memd.errors import UsageError
from memd.memory.key import project_key

ANSWERS = json.loads((Path(__file__).parent / "claude_roots.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> support_roots.Roots:
    return support_roots.build(Path(os.path.realpath(tmp_path_factory.mktemp("roots"))))


def as_recorded(root: bytes, top: Path) -> bytes:
    """The root where it was when the program was asked."""
    return os.fsencode(ANSWERS["top"]) + root.removeprefix(os.fsencode(top))


@pytest.mark.parametrize("name", sorted(ANSWERS["keys"]))
def test_root_is_the_one_claude_code_uses(name: str, roots: support_roots.Roots) -> None:
    if name not in roots.cwds and sys.platform == "darwin":
        pytest.skip("its file systems take names in UTF-8 only")
    root = project_root(roots.cwds[name])
    assert project_key(as_recorded(root, roots.top)) == ANSWERS["keys"][name]


def test_every_layout_has_a_recorded_answer(roots: support_roots.Roots) -> None:
    assert set(ANSWERS["keys"]) - set(roots.cwds) == ({"wt-of-bad"} if sys.platform == "darwin" else set())
    assert set(roots.cwds) <= set(ANSWERS["keys"])


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("plain", b"plain"),
        ("sub", b"main"),
        ("nested", b"main/nested"),
        ("wt-sub", b"main"),
        ("wt-link", b"main"),
        ("wt-moved", b"wt7moved"),
        ("git-file-copied", b"copied"),
        ("forged-admin-outside", b"forged1"),
        ("forged-wrong-backlink", b"forged2"),
        ("submodule-sub", b"super/libs/sm"),
        ("submodule-worktree", b"super/.git/modules/libs/sm"),
        ("bare", b"x.git"),
        ("bare-worktree", b"x.git"),
        ("container", b"cont"),
        ("container-worktree", b"cont/.bare"),
        ("separate", b"sep"),
        ("dotgit-link-to-dir", b"dotlink"),
        ("dotgit-nowhere", b"main/nowhere"),
    ],
)
def test_root_is_this_very_folder(name: str, root: bytes, roots: support_roots.Roots) -> None:
    """The key alone could not tell `a-b` from `a/b`."""
    assert project_root(roots.cwds[name]) == os.fsencode(roots.top) + b"/" + root


def test_git_dir_in_the_environment_counts_for_nothing(
    roots: support_roots.Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(roots.top / "main/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(roots.top / "main"))
    monkeypatch.setenv("PWD", str(roots.top / "main"))
    assert project_root(roots.cwds["plain"]) == roots.cwds["plain"]


def test_moved_worktree_is_itself_again_after_repair(tmp_path: Path) -> None:
    roots = support_roots.Roots(Path(os.path.realpath(tmp_path)))
    roots.repo("main")
    roots.worktree("main", "old")
    (roots.top / "old").rename(roots.top / "new")
    moved = os.fsencode(roots.top / "new")
    assert project_root(moved) == moved
    roots.git("main", "worktree", "repair", str(roots.top / "new"))
    assert project_root(moved) == os.fsencode(roots.top / "main")


def test_missing_path_belongs_to_the_repository_around_it(roots: support_roots.Roots) -> None:
    top = os.fsencode(roots.top)
    assert project_root(top + b"/main/not/yet/there") == top + b"/main"
    assert project_root(top + b"/wt/gone") == top + b"/main"
    assert project_root(top + b"/sym/wt3/gone") == top + b"/main"


def test_missing_path_outside_git_is_its_own_root(roots: support_roots.Roots) -> None:
    top = os.fsencode(roots.top)
    assert project_root(top + b"/gone/deep") == top + b"/gone/deep"
    assert project_root(top + b"/sym/gone/") == top + b"/real/gone"


def test_file_stands_for_its_folder(roots: support_roots.Roots) -> None:
    roots.write("plain/note.md", "x")
    roots.write("main/sub/note.md", "x")
    top = os.fsencode(roots.top)
    assert project_root(top + b"/plain/note.md") == top + b"/plain"
    assert project_root(top + b"/main/sub/note.md") == top + b"/main"
    assert project_root(top + b"/wt/.git") == top + b"/main"


@pytest.mark.parametrize("path", [b"", b"here", b"./x", b"/a\0b"])
def test_path_that_is_not_absolute_is_refused(path: bytes) -> None:
    with pytest.raises(UsageError):
        project_root(path)


def test_root_of_the_file_system_is_a_root() -> None:
    assert project_root(b"/proc") in (b"/proc", b"/")
    assert project_root(b"//proc/..") == b"/"


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert project_root(os.fsencode(tmp_path / "a")).startswith(b"/")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_dotgit_file_makes_its_folder_the_root(roots: support_roots.Roots) -> None:
    roots.write("main/unreadable/.git", "gitdir: x\n")
    path = roots.top / "main/unreadable/.git"
    path.chmod(0)
    assert project_root(os.fsencode(path.parent)) == os.fsencode(path.parent)


@pytest.mark.parametrize(
    "content", [b"gitdir: \0\n", b"gitdir: " + b"x" * MAX_POINTER_BYTES, b"gitdir:", b"gitdir: ."]
)
def test_senseless_pointer_makes_its_folder_the_root(content: bytes, tmp_path: Path) -> None:
    folder = os.path.realpath(os.fsencode(tmp_path))
    (tmp_path / ".git").write_bytes(content)
    assert project_root(folder) == folder


@pytest.mark.parametrize("name", ["commondir", "gitdir"])
def test_fifo_among_gits_files_holds_nobody(name: str, tmp_path: Path) -> None:
    roots = support_roots.Roots(Path(os.path.realpath(tmp_path)))
    roots.repo("main")
    roots.worktree("main", "wt")
    pointer = roots.top / "main/.git/worktrees/wt" / name
    pointer.unlink()
    os.mkfifo(pointer)
    assert project_root(os.fsencode(roots.top / "wt")) == os.fsencode(roots.top / "wt")


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take names in UTF-8 only")
def test_home_that_is_not_utf8_is_read_as_bytes(tmp_path: Path) -> None:
    base = os.path.realpath(os.fsencode(tmp_path)) + b"/b\xff"
    os.makedirs(base + b"/repo/.git")
    os.makedirs(base + b"/repo/sub")
    assert project_root(base + b"/repo/sub") == base + b"/repo"
