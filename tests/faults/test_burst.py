"""Thousands of files at once, and a folder that is exchanged for a link while it is watched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from support_daemon import Home, eventually

pytestmark = pytest.mark.faults

FILES = 10_000 if os.environ.get("MEMD_FULL_SWEEPS") else 1500
PATIENCE_S = 300


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    yield made
    made.end_all()


def write(folder: Path, number: int) -> None:
    session = f"{number:08d}-0000-4000-8000-000000000000"
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "type": "user",
        "uuid": f"{session[:24]}000000000000",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "cwd": f"/work/p{number % 50}",
        "sessionId": session,
        "version": "2.1.197",
        "message": {"role": "user", "content": f"burst number{number}"},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text(json.dumps(record) + "\n")


def sessions(home: Home) -> int:
    return int(home.json("status")["ledger"]["sessions"])


def test_a_burst_of_files_and_folders_is_found_to_the_last_one(home: Home) -> None:
    projects = home.path / ".claude" / "projects"
    home.start()
    write(projects / "-work-p0", 0)
    eventually(lambda: sessions(home) == 1)
    for number in range(1, FILES):
        write(projects / f"-work-p{number % 50}", number)
    took = eventually(lambda: sessions(home) == FILES, PATIENCE_S)
    support_points.tried(FILES)
    support_points.figure(f"{FILES} files found and read {took:.1f} s after the last was written")


def test_a_watched_folder_that_is_exchanged_for_a_link_is_read_where_it_leads(
    home: Home, tmp_path: Path
) -> None:
    projects = home.path / ".claude" / "projects"
    write(projects / "-work-p1", 1)
    home.start()
    eventually(lambda: sessions(home) == 1)
    moved = tmp_path / "elsewhere"
    projects.rename(moved)
    projects.symlink_to(moved)
    write(moved / "-work-p2", 2)
    eventually(lambda: sessions(home) == 2, 30)
    write(moved / "-work-p2", 3)
    eventually(lambda: sessions(home) == 3, 30)
