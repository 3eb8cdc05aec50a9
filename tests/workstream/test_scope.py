"""The scope of a directory: flags, markers and defaults, each half by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.errors import ConfigError, UsageError
from memd.workstream.scope import Marker, Scope, decide, nearest, resolve
from support_git import checkout, git


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "home"
    path.mkdir()
    return path


def scope(cwd: Path, home: Path, **flags: object) -> Scope:
    return resolve(os.fsencode(cwd), os.fsencode(home), **flags)  # type: ignore[arg-type]


def names(found: Scope) -> tuple[str, str]:
    return found.workspace, found.project


def mark(folder: Path, text: str, name: str = ".memd.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


MARKERS = {
    "none": None,
    "workspace": Marker(path=b"/w/.memd.toml", workspace="acme"),
    "project": Marker(path=b"/w/.memd.toml", project="app"),
    "both": Marker(path=b"/w/.memd.toml", workspace="acme", project="app"),
    "root": Marker(path=b"/w/.memd.toml", workspace="acme", strategy="repo-root"),
    "basename": Marker(path=b"/w/.memd.toml", strategy="basename"),
}


@pytest.mark.parametrize(
    ("workspace", "project", "marker", "expected", "decided"),
    [
        ("", "", "none", ("default", "main"), ()),
        ("w", "", "none", ("w", "main"), ()),
        ("", "p", "none", ("default", "p"), ()),
        ("w", "p", "none", ("w", "p"), ()),
        ("", "", "workspace", ("acme", "sub"), ("workspace", "project")),
        ("", "", "project", ("default", "app"), ("project",)),
        ("", "", "both", ("acme", "app"), ("workspace", "project")),
        ("", "", "root", ("acme", "main"), ("workspace", "project")),
        ("", "", "basename", ("default", "sub"), ("project",)),
        ("w", "", "both", ("w", "app"), ("project",)),
        ("", "p", "both", ("acme", "p"), ("workspace",)),
        ("w", "p", "both", ("w", "p"), ()),
        ("default", "", "both", ("default", "app"), ("project",)),
        (" ", "\t", "both", ("acme", "app"), ("workspace", "project")),
    ],
)
def test_each_half_goes_by_flag_then_marker_then_default(
    workspace: str, project: str, marker: str, expected: tuple[str, str], decided: tuple[str, ...]
) -> None:
    found = decide(
        workspace=workspace, project=project, marker=MARKERS[marker], cwd=b"/w/main/sub", root=b"/w/main"
    )
    assert (names(found), found.decided) == (expected, decided)
    assert bool(found.notice()) is bool(decided)


def test_the_notice_names_scope_halves_and_file() -> None:
    found = decide(workspace="", project="p", marker=MARKERS["both"], cwd=b"/w", root=b"/w")
    assert found.notice() == "scope acme/p: workspace from /w/.memd.toml"


def test_the_project_is_named_after_the_main_checkout(home: Path) -> None:
    main = checkout(home / "app")
    (main / "sub").mkdir()
    git(main, "worktree", "add", "-q", str(home / "linked"), "-b", "side")
    found = {names(scope(path, home)) for path in (main, main / "sub", home / "linked")}
    assert found == {("default", "app")}


def test_outside_git_the_project_is_named_after_the_directory(home: Path) -> None:
    (home / "notes").mkdir()
    assert names(scope(home / "notes", home)) == ("default", "notes")


def test_a_marker_without_project_names_the_directory_one_is_in(home: Path) -> None:
    main = checkout(home / "app")
    (main / "sub").mkdir()
    mark(main, 'workspace = "acme"')
    assert names(scope(main / "sub", home)) == ("acme", "sub")
    mark(main, 'workspace = "acme"\nproject_strategy = "repo_root"')
    assert names(scope(main / "sub", home)) == ("acme", "app")
    mark(main, 'project_strategy = "whatever"')
    assert names(scope(main / "sub", home)) == ("default", "app")


def test_the_nearest_marker_about_scope_decides(home: Path) -> None:
    mark(home / "a", 'workspace = "outer"\nproject = "p"')
    inner = mark(home / "a" / "b", 'workspace = "inner"\nproject = "q"')
    deep = home / "a" / "b" / "c"
    deep.mkdir()
    found = scope(deep, home)
    assert (names(found), found.marker) == (("inner", "q"), os.fsencode(inner))


@pytest.mark.parametrize("text", ["[capture]\nignore_paths = ['x']", "[import]\nenabled = false", ""])
def test_a_marker_that_is_not_about_scope_is_looked_through(home: Path, text: str) -> None:
    mark(home / "a", 'workspace = "outer"\nproject = "p"')
    mark(home / "a" / "b", text)
    assert names(scope(home / "a" / "b", home)) == ("outer", "p")


def test_the_marker_of_a_peer_is_understood_and_ours_comes_first(home: Path) -> None:
    mark(home / "a", 'workspace = "theirs"', ".ai-memory.toml")
    assert names(scope(home / "a", home)) == ("theirs", "a")
    mark(home / "a", 'workspace = "ours"')
    assert names(scope(home / "a", home)) == ("ours", "a")


def test_below_the_home_the_search_ends_at_the_home(home: Path) -> None:
    mark(home.parent, 'workspace = "above"')
    main = checkout(home / "app")
    assert names(scope(main, home)) == ("default", "app")
    mark(home, 'workspace = "home"\nproject = "p"')
    assert names(scope(main, home)) == ("home", "p")


def test_elsewhere_the_search_ends_at_the_top_of_the_checkout(home: Path) -> None:
    mark(home.parent, 'workspace = "above"')
    main = checkout(home.parent / "app")
    (main / "sub").mkdir()
    assert names(scope(main / "sub", home)) == ("default", "app")
    mark(main, 'workspace = "top"\nproject = "p"')
    assert names(scope(main / "sub", home)) == ("top", "p")


def test_outside_home_and_checkouts_only_the_directory_itself_is_looked_at(home: Path) -> None:
    folder = home.parent / "other" / "below"
    folder.mkdir(parents=True)
    mark(folder.parent, 'workspace = "above"')
    assert names(scope(folder, home)) == ("default", "below")
    mark(folder, 'workspace = "here"')
    assert names(scope(folder, home)) == ("here", "below")


def test_a_link_is_followed_before_anything_is_looked_for(home: Path) -> None:
    mark(home / "a", 'workspace = "acme"\nproject = "p"')
    (home.parent / "link").symlink_to(home / "a")
    assert names(scope(home.parent / "link", home)) == ("acme", "p")


def test_with_both_flags_a_broken_marker_is_in_nobodys_way(home: Path) -> None:
    mark(home / "a", "not toml at all [")
    assert names(scope(home / "a", home, workspace="w", project="p")) == ("w", "p")
    assert names(scope(home / "a", home, ignore_marker=True)) == ("default", "a")


@pytest.mark.parametrize(
    "text", ["not toml [", "workspace = 3", "project = ['a']", "x = '" + "y" * 70_000 + "'"]
)
def test_a_broken_marker_is_named(home: Path, text: str) -> None:
    path = mark(home / "a", text)
    with pytest.raises(ConfigError, match=str(path)):
        scope(home / "a", home)


@pytest.mark.parametrize("name", ["_global", "a\nb", "x" * 257, "a\u200bb"])
def test_names_that_cannot_be_are_refused(home: Path, name: str) -> None:
    with pytest.raises(UsageError):
        scope(home, home, workspace=name)


def test_a_folder_whose_name_is_no_text_gets_one() -> None:
    found = decide(workspace="", project="", marker=None, cwd=b"/w/\xff\n", root=b"/w/\xff\n")
    assert found.project == "\\xff\\x0a"
    long = b"/w/" + b"\xff" * 255
    assert len(decide(workspace="", project="", marker=None, cwd=long, root=long).project) < 100
    assert decide(workspace="", project="", marker=None, cwd=b"/", root=b"/").project == "root"


def test_a_directory_in_place_of_a_marker_is_none(home: Path) -> None:
    (home / ".memd.toml").mkdir()
    assert nearest(os.fsencode(home), os.fsencode(home)) is None
