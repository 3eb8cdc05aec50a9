"""Where the daemon listens: in every folder whose next child may matter, and in no other."""

from __future__ import annotations

import os
from pathlib import Path

from memd.memory.config_homes import find_config_homes, find_unproven
from memd.memory.watching import watch_points


def points(home: Path) -> set[str]:
    raw = os.fsencode(home)
    found = watch_points(raw, find_config_homes(raw), (), (), find_unproven(raw))
    return {os.path.relpath(os.fsdecode(point), home) for point in found}


def test_folder_that_is_no_login_yet_is_watched(tmp_path: Path) -> None:
    (tmp_path / ".claude-new").mkdir()
    assert points(tmp_path) == {".", ".claude-new"}
    (tmp_path / ".claude-new/projects").mkdir()
    (tmp_path / ".claude-new/odd").touch()
    assert points(tmp_path) == {".", ".claude-new", ".claude-new/projects"}


def test_login_is_watched_and_no_longer_unproven(tmp_path: Path) -> None:
    (tmp_path / ".claude-new").mkdir()
    (tmp_path / ".claude-new/.claude.json").touch()
    assert find_unproven(os.fsencode(tmp_path)) == ()
    assert points(tmp_path) == {".", ".claude-new"}


def test_folder_that_its_name_rules_out_is_not_watched(tmp_path: Path) -> None:
    for name in (".claude-backup", ".claude-mem", ".claude~"):
        (tmp_path / name).mkdir()
    assert points(tmp_path) == {"."}


def test_projects_that_lead_out_of_an_unproven_folder_are_not_watched(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".claude-new").mkdir()
    (tmp_path / ".claude-new/odd").touch()
    (tmp_path / ".claude-new/projects").symlink_to(tmp_path / "elsewhere")
    assert points(tmp_path) == {".", ".claude-new"}
