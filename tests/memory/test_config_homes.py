"""Which folders of a home are logins."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.memory.config_homes import ConfigHome, find_config_homes, find_left_out


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "home"
    path.mkdir()
    return path


def names(home: Path, *configured: Path) -> list[str]:
    found = find_config_homes(os.fsencode(home), [os.fsencode(path) for path in configured])
    return [os.path.relpath(os.fsdecode(login.path), home) for login in found]


def credentials(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".credentials.json").write_text("{}")


def settings(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".claude.json").write_text("{}")


def used(folder: Path) -> None:
    (folder / "projects/-home-sam-shop").mkdir(parents=True)


def fresh(folder: Path) -> None:
    (folder / "projects").mkdir(parents=True)


@pytest.mark.parametrize(
    "name", [".claude", ".claude-work", ".claude2", ".claude_x", ".claude.work", ".claude-1"]
)
@pytest.mark.parametrize("login", [credentials, settings, used, fresh])
def test_login_is_found(name: str, login: Callable[[Path], None], home: Path) -> None:
    login(home / name)
    path = os.fsencode(home / name)
    assert find_config_homes(os.fsencode(home)) == (ConfigHome(path, path),)
    assert find_left_out(os.fsencode(home)) == ()


def test_default_login_is_known_by_the_file_beside_it(home: Path) -> None:
    (home / ".claude").mkdir()
    assert names(home) == []
    (home / ".claude.json").write_text("{}")
    assert names(home) == [".claude"]


def test_file_beside_the_default_login_says_nothing_about_others(home: Path) -> None:
    (home / ".claude.json").write_text("{}")
    (home / ".claude-empty").mkdir()
    assert names(home) == []


NO_LOGINS = """.claude-mem .claude-backup .claude.bak .claude-backup-2026-01-02 .claude_old .claude-work.orig
.claude-Backup2 .claude~ .claude-code-router .claude-copy"""


@pytest.mark.parametrize("name", NO_LOGINS.split())
@pytest.mark.parametrize("login", [credentials, settings, used])
def test_other_tools_and_copies_are_left_alone(name: str, login: Callable[[Path], None], home: Path) -> None:
    login(home / name)
    assert names(home) == []
    (left,) = find_left_out(os.fsencode(home))
    assert left.path == os.fsencode(home / name)
    assert "by its name" in left.reason


@pytest.mark.parametrize("name", [".claude-oldenburg", ".claude-goldman", ".claude-saver", ".claude-tmpl"])
def test_name_that_only_contains_such_a_word_is_a_login(name: str, home: Path) -> None:
    credentials(home / name)
    assert names(home) == [name]


def test_unknown_tool_with_a_projects_folder_is_told_apart(home: Path) -> None:
    (home / ".claude-tool/projects/shop").mkdir(parents=True)
    (home / ".claude-other/projects").mkdir(parents=True)
    (home / ".claude-other/tool.db").touch()
    (home / ".claude-files").mkdir()
    (home / ".claude-files/projects").write_text("no folder")
    (home / ".claude-logs/logs").mkdir(parents=True)
    assert names(home) == []
    reasons = {os.path.basename(left.path): left.reason for left in find_left_out(os.fsencode(home))}
    assert "another tool's" in reasons[b".claude-tool"]
    assert "tool.db" in reasons[b".claude-other"]
    assert "no sign of a login" in reasons[b".claude-files"]
    assert "no sign of a login" in reasons[b".claude-logs"]


def test_fresh_login_with_its_usual_files_is_found(home: Path) -> None:
    fresh(home / ".claude-new")
    for name in ("settings.json", "CLAUDE.md", "history.jsonl"):
        (home / ".claude-new" / name).touch()
    (home / ".claude-new/plugins").mkdir()
    assert names(home) == [".claude-new"]


def test_project_that_is_a_plain_file_is_a_sign_all_the_same(home: Path) -> None:
    (home / ".claude-two/projects").mkdir(parents=True)
    (home / ".claude-two/projects/-home-sam-shop").write_text("a stray file")
    assert names(home) == [".claude-two"]


def test_files_are_no_logins(home: Path) -> None:
    for name in (".claude.json", ".claude.json.backup", ".claude-lock"):
        (home / name).write_text("{}")
    os.mkfifo(home / ".claude-fifo")
    assert names(home) == []
    assert find_left_out(os.fsencode(home)) == ()


def test_marker_that_is_a_folder_is_no_marker(home: Path) -> None:
    (home / ".claude-x/.credentials.json").mkdir(parents=True)
    assert names(home) == []


def test_other_names_are_not_looked_at(home: Path) -> None:
    for name in ("claude", ".config/claude", ".clauderc.d", ".codex"):
        credentials(home / name)
    assert names(home) == [".clauderc.d"], "it has the name's start and a marker"


def test_link_to_a_login_counts_once(home: Path) -> None:
    credentials(home / ".claude-work")
    (home / ".claude-alias").symlink_to(".claude-work")
    assert names(home) == [".claude-work"], "the folder's own name, not the link's"


def test_default_login_that_is_a_link_is_found(home: Path) -> None:
    credentials(home / "dotfiles/claude")
    (home / ".claude").symlink_to("dotfiles/claude")
    (home / ".claude-again").symlink_to("dotfiles/claude")
    assert find_config_homes(os.fsencode(home)) == (
        ConfigHome(os.fsencode(home / ".claude"), os.fsencode(home / "dotfiles/claude")),
    )


def test_links_to_nothing_and_to_files_are_no_logins(home: Path) -> None:
    (home / ".claude-gone").symlink_to("nowhere")
    (home / ".claude-loop").symlink_to(".claude-loop")
    (home / "file").touch()
    (home / ".claude-file").symlink_to("file")
    assert names(home) == []


def test_configured_folder_is_trusted(home: Path, tmp_path: Path) -> None:
    elsewhere = Path(os.path.realpath(tmp_path)) / "elsewhere"
    elsewhere.mkdir()
    used(home / ".claude-backup")
    assert names(home, elsewhere, home / ".claude-backup") == ["../elsewhere", ".claude-backup"]
    assert find_left_out(os.fsencode(home), [os.fsencode(home / ".claude-backup")]) == ()


def test_configured_folder_is_never_created(home: Path) -> None:
    (home / "file").touch()
    assert names(home, home / ".claude-spare", home / "file", home / "gone/deep") == []
    assert sorted(path.name for path in home.iterdir()) == ["file"]


def test_configured_spelling_wins_over_the_found_one(home: Path) -> None:
    credentials(home / ".claude")
    (home / "mine").symlink_to(".claude")
    assert names(home, home / "mine") == ["mine"]
    assert names(home, home / ".claude", home / "mine") == [".claude"]
    assert names(home, Path(f"{home}/x/../.claude/")) == [".claude"]


@pytest.mark.parametrize("path", [b"", b"relative", b"/nul\0", b"~/.claude"])
def test_configured_nonsense_is_passed_over(path: bytes, home: Path) -> None:
    assert find_config_homes(os.fsencode(home), [path]) == ()


def test_missing_home_has_no_logins(home: Path) -> None:
    assert find_config_homes(os.fsencode(home / "gone")) == ()
    assert find_config_homes(b"/nul\0") == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_folder_is_no_login(home: Path) -> None:
    used(home / ".claude-locked")
    (home / ".claude-locked").chmod(0)
    try:
        assert names(home) == []
    finally:
        (home / ".claude-locked").chmod(0o700)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take names in UTF-8 only")
def test_name_that_is_not_utf8_is_a_name(home: Path) -> None:
    credentials(Path(os.fsdecode(os.fsencode(home) + b"/.claude-\xff")))
    (login,) = find_config_homes(os.fsencode(home))
    assert login.path.endswith(b"/.claude-\xff")


def test_looking_changes_nothing(home: Path) -> None:
    for n, login in enumerate((credentials, settings, used, fresh)):
        login(home / f".claude-{n}")
    os.mkdir(home / ".claude-mem")

    def everything() -> list[tuple[str, int, int]]:
        return sorted(
            (str(p), p.lstat().st_mtime_ns, stat.S_IFMT(p.lstat().st_mode)) for p in home.rglob("*")
        )

    before = everything()
    assert len(find_config_homes(os.fsencode(home))) == 4
    find_left_out(os.fsencode(home))
    assert everything() == before
