"""Workstreams of another checkout of the repository, with the ledger of one machine: seen, not bound."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_a_line_of_work_in_another_worktree_is_told_of_and_stays_there(desk: Desk, tmp_path: Path) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    git = ["git", "-C", str(desk.checkout)]
    subprocess.run([*git, *identity, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    other = tmp_path / "beside"
    subprocess.run([*git, "worktree", "add", "-q", "-b", "beside", str(other)], check=True)
    desk.ok("--new", "login page", "claude", do="say:here")
    found = desk.json("workstreams", "--all", cwd=other)
    assert found["here"] == []
    [row] = found["elsewhere"]
    assert (row["name"], row["machine"], row["was_dirty"]) == ("login page", "", False)
    assert row["directory"].endswith("/proj")
    assert len(row["commit"]) == 40
    text = desk.home.memctl("workstreams", "--all", cwd=other).stdout
    assert "in other checkouts of this repository" in text
    assert "login page  last used in " in text
    refused = desk.run("--workstream", "login page", "claude", cwd=other)
    assert refused.returncode == 65
    assert "there is one in" in refused.stderr
    bound = desk.home.memctl("workstreams", "bind", "login page", cwd=other)
    assert bound.returncode == 77
    assert "one machine" in bound.stderr
    unknown = desk.home.memctl("workstreams", "bind", "no such", cwd=other)
    assert unknown.returncode == 65
    assert desk.home.memctl("workstreams", "bind", cwd=other).returncode == 64
