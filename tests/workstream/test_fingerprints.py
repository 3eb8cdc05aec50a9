"""What a checkout is known by, against what the real git says of the same places."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from memd import checkout as reader
from memd.checkout import Repository, repository
from memd.git import Git
from memd.workstream.scope import Fingerprints, checkout_of, fingerprints
from support_git import VARIABLES, answer, checkout, git

GIT = Git(VARIABLES)


def place(path: Path) -> bytes:
    return os.fsencode(path)


def by_git(cwd: Path) -> Fingerprints:
    """The fingerprints as four questions to git make them."""
    real = os.fsencode(os.path.realpath(cwd))
    root = answer(cwd, "rev-parse", "--show-toplevel")
    common = answer(cwd, "rev-parse", "--path-format=absolute", "--git-common-dir")
    git_dir = answer(cwd, "rev-parse", "--path-format=absolute", "--git-dir")
    remotes = answer(cwd, "remote", "get-url", "--all", "origin")
    if remotes:
        seed = b"git-remotes\n" + remotes
    elif common:
        seed = b"git-common\n" + common
    else:
        seed = (b"git-root\n" + root) if root else (b"directory\n" + real)
    whole = hashlib.sha256(seed).hexdigest()
    part = b"cwd\n" + real
    if root:
        part = b"root\n" + root
    if git_dir:
        part = b"git-dir\n" + git_dir
    worktree = hashlib.sha256(whole.encode() + b"\n" + part).hexdigest()
    return Fingerprints(repository=whole, worktree=worktree)


def build(top: Path) -> dict[str, Path]:
    """Checkouts of many shapes, by name."""
    main = checkout(top / "main", origin="git@example.com:dev/app.git")
    (main / "sub" / "deep").mkdir(parents=True)
    git(main, "worktree", "add", "-q", str(top / "linked"), "-b", "side")
    bare = top / "bare.git"
    git(top, "init", "-q", "--bare", str(bare))
    local = checkout(top / "local")
    git(local, "worktree", "add", "-q", str(top / "local-linked"), "-b", "side")
    two = checkout(top / "two", origin="https://example.com/a.git")
    git(two, "remote", "set-url", "--add", "origin", "https://example.com/b.git")
    separate = top / "separate"
    separate.mkdir()
    git(separate, "init", "-q", f"--separate-git-dir={top / 'elsewhere.git'}")
    odd = checkout(top / "odd", origin='https://example.com/a b#c;"d"\\e.git')
    inside = checkout(main / "inside")
    plain = top / "plain" / "below"
    plain.mkdir(parents=True)
    broken = top / "broken"
    broken.mkdir()
    (broken / ".git").write_text("gitdir: /nowhere/at/all\n")
    empty = main / "empty-dot-git"
    (empty / ".git").mkdir(parents=True)
    (top / "link").symlink_to(main / "sub")
    reftable = checkout(top / "no-head-yet")
    shutil.rmtree(reftable / ".git" / "refs" / "heads")
    return {
        "main": main,
        "sub": main / "sub" / "deep",
        "linked": top / "linked",
        "bare": bare,
        "local": local,
        "local-linked": top / "local-linked",
        "two": two,
        "separate": separate,
        "odd": odd,
        "inside": inside,
        "plain": plain,
        "broken": broken,
        "empty": empty,
        "link": top / "link",
        "dot-git": main / ".git",
        "refs": reftable,
    }


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("shapes"))


@pytest.mark.parametrize(
    "name",
    [
        "main", "sub", "linked", "bare", "local", "local-linked", "two", "separate", "odd", "inside", "plain",
        "broken", "empty", "link", "dot-git", "refs",
    ],
)  # fmt: skip
def test_fingerprints_are_those_that_git_gives(name: str, shapes: dict[str, Path]) -> None:
    assert checkout_of(place(shapes[name])) == by_git(shapes[name])


def test_a_plain_directory_has_two_stable_fingerprints(shapes: dict[str, Path]) -> None:
    first, again = (checkout_of(place(shapes["plain"])) for _ in range(2))
    assert first == again
    assert {len(first.repository), len(first.worktree)} == {64}


def test_a_subdirectory_is_the_same_checkout(shapes: dict[str, Path]) -> None:
    assert checkout_of(place(shapes["sub"])) == checkout_of(place(shapes["main"]))


def test_a_linked_worktree_is_the_same_repository_and_another_checkout(shapes: dict[str, Path]) -> None:
    for one, other in (("main", "linked"), ("local", "local-linked")):
        a, b = checkout_of(place(shapes[one])), checkout_of(place(shapes[other]))
        assert a.repository == b.repository
        assert a.worktree != b.worktree


def test_two_clones_of_one_remote_are_never_one_checkout(tmp_path: Path) -> None:
    one = checkout_of(place(checkout(tmp_path / "one", origin="git@example.com:dev/app.git")))
    two = checkout_of(place(checkout(tmp_path / "two", origin="git@example.com:dev/app.git")))
    assert one.repository == two.repository
    assert one.worktree != two.worktree


def test_a_changed_origin_is_another_repository_and_checkout(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    seen = {checkout_of(place(path))}
    git(path, "remote", "add", "origin", "https://example.com/app.git")
    seen.add(checkout_of(place(path)))
    git(path, "remote", "set-url", "origin", "git@example.com:app.git")
    seen.add(checkout_of(place(path)))
    assert len({found.repository for found in seen}) == len({found.worktree for found in seen}) == 3
    git(path, "remote", "remove", "origin")
    assert checkout_of(place(path)) in seen


def test_no_program_is_started_where_one_file_says_all(
    shapes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert checkout_of(place(shapes["main"]), GIT.text).repository


def test_an_included_origin_is_asked_of_git(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    (tmp_path / "more").write_text('[remote "origin"]\n\turl = https://example.com/included.git\n')
    with (path / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {tmp_path / 'more'}\n")
    assert repository(place(path), GIT.text).remotes == (b"https://example.com/included.git",)
    assert checkout_of(place(path), GIT.text) == by_git(path)
    assert repository(place(path)).remotes == ()


def test_a_worktree_with_a_configuration_of_its_own_is_asked_of_git(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    git(path, "config", "extensions.worktreeConfig", "true")
    git(path, "config", "--worktree", "remote.origin.url", "https://example.com/own.git")
    assert repository(place(path), GIT.text).remotes == (b"https://example.com/own.git",)


def test_a_configuration_that_is_none_does_not_stop_anything(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app")
    (path / ".git" / "config").write_bytes(b"[core\n\0\xff")
    found = repository(place(path), GIT.text)
    assert (found.remotes, found.git_dir) == ((), place(path / ".git"))


def test_a_repository_kept_by_reftable_is_found(tmp_path: Path) -> None:
    path = checkout(tmp_path / "app", origin="https://example.com/app.git")
    (path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    shutil.rmtree(path / ".git" / "refs")
    (path / ".git" / "refs").mkdir()
    (path / ".git" / "refs" / "heads").write_text("this repository uses the reftable format\n")
    assert repository(place(path)).remotes == (b"https://example.com/app.git",)


def test_a_name_that_is_no_text_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = place(tmp_path) + b"/\xff\xfe"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    linked = place(tmp_path) + b"/linked"
    main = checkout(tmp_path / "app")
    git(main, "worktree", "add", "-q", os.fsdecode(folder + b"/wt"), "-b", "side")
    git(main, "worktree", "move", os.fsdecode(folder + b"/wt"), os.fsdecode(linked))
    shutil.move(os.fsdecode(place(main)), os.fsdecode(folder + b"/app"))
    git(Path(os.fsdecode(folder + b"/app")), "worktree", "repair", os.fsdecode(linked))
    assert repository(linked).common_dir == folder + b"/app/.git"
    assert checkout_of(linked) == by_git(Path(os.fsdecode(linked)))


def test_discovery_stays_on_its_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkout(tmp_path / "app")
    (path / "mounted" / "deep").mkdir(parents=True)
    mounted = place(path / "mounted")
    device = reader._device
    monkeypatch.setattr(reader, "_device", lambda name: -7 if name.startswith(mounted) else device(name))
    assert repository(mounted + b"/deep").git_dir == b""


def test_seeds_are_those_of_the_format() -> None:
    outside = fingerprints(Repository(cwd=b"/w"))
    whole = hashlib.sha256(b"directory\n/w").hexdigest()
    assert outside == Fingerprints(
        repository=whole, worktree=hashlib.sha256(whole.encode() + b"\ncwd\n/w").hexdigest()
    )
    rooted = fingerprints(Repository(cwd=b"/w/a", root=b"/w"))
    assert rooted.repository == hashlib.sha256(b"git-root\n/w").hexdigest()
