"""The state of a checkout at the end of a run: what git says, and that nothing of it is changed."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from memd.git import Git
from memd.workstream.checkpoint import DETACHED, NONE, Checkpoint, changed_paths, git_checkpoint, render
from support_git import VARIABLES, checkout, git


def taken(path: Path) -> Checkpoint:
    return git_checkpoint(os.fsencode(path), Git(VARIABLES))


def everything(path: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for folder, _folders, files in os.walk(path):
        for name in files:
            whole = Path(folder) / name
            facts = whole.stat()
            found[str(whole)] = (facts.st_mtime_ns, facts.st_ino, whole.read_bytes())
    return found


def test_a_clean_checkout_has_head_and_branch(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    head = git(path, "rev-parse", "HEAD").decode().strip()
    assert taken(path) == Checkpoint(head=head, branch="main")
    assert render(taken(path)) == f"HEAD {head}\nBranch main"


def test_a_dirty_checkout_has_hash_and_paths(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    (path / "a new file.txt").write_text("x")
    (path / "README").write_text("changed\n")
    status = git(path, "status", "--porcelain=v1", "-z")
    found = taken(path)
    assert found.dirty_hash == hashlib.sha256(status).hexdigest()
    assert found.changed_paths == ("README", "a new file.txt")
    assert "- a new file.txt" in render(found).splitlines()


def test_a_rename_lists_both_paths(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    git(path, "mv", "README", "READ ME")
    assert taken(path).changed_paths == ("READ ME", "README")


def test_nothing_of_the_repository_is_written(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    (path / "README").write_text("hello\n")  # same content, new times: git would refresh its index
    before = everything(path)
    assert taken(path).dirty_hash == ""
    assert everything(path) == before


def test_a_program_that_the_repository_names_is_not_started(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    program = tmp_path / "monitor"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    git(path, "config", "core.fsmonitor", str(program))
    assert taken(path).branch == "main"
    assert not (tmp_path / "ran").exists()


def test_a_detached_head_says_so(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    git(path, "checkout", "-q", "--detach")
    assert taken(path).branch == DETACHED


def test_before_the_first_commit_there_is_a_branch_only(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert taken(tmp_path) == Checkpoint(branch="main")


def test_outside_git_and_without_git_a_checkpoint_is_empty(tmp_path: Path) -> None:
    assert taken(tmp_path) == Checkpoint()
    assert render(Checkpoint()) == NONE
    path = checkout(tmp_path / "app")
    assert git_checkpoint(os.fsencode(path), Git({"PATH": os.fsencode(tmp_path)})) == Checkpoint()


def test_a_directory_that_is_gone_gives_an_empty_checkpoint(tmp_path: Path) -> None:
    assert taken(tmp_path / "gone") == Checkpoint()


def test_a_git_that_hangs_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    slow = Git({"PATH": os.fsencode(path)}, timeout_s=0.05)
    assert git_checkpoint(os.fsencode(tmp_path), slow) == Checkpoint()


@pytest.mark.parametrize(
    ("status", "paths"),
    [
        (b"", ()),
        (b" M a b\0?? c\0", ("a b", "c")),
        (b"R  new\0old\0 M x\0", ("new", "old", "x")),
        (b" C copy\0from\0", ("copy", "from")),
        (b" M cut off", ()),
        (b" M a\0 M cut", ("a",)),
        (b"?? \xff\n\0", ("\\xff\\x0a",)),
        (b"R  new\0", ("new",)),
    ],
)
def test_paths_are_read_from_the_status(status: bytes, paths: tuple[str, ...]) -> None:
    assert changed_paths(status) == paths


def test_at_most_256_paths_are_kept() -> None:
    status = b"".join(b"?? %d\0" % number for number in range(1000))
    assert len(changed_paths(status)) == 256
