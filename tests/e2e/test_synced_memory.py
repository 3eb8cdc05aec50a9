"""An owned folder that a syncing program looks after, while the daemon runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.memory.key import project_key
from support_daemon import Home, eventually

AGO_NS = 1_700_000_000_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    config = made.path / ".config" / "memd"
    config.mkdir(parents=True)
    config.joinpath("config.toml").write_text('[memory]\nrescan_s = 1\n[watch]\nmode = "poll"\n')
    (made.path / ".claude").mkdir()
    (made.path / ".claude" / ".credentials.json").write_text('{"made": "up"}')
    yield made
    made.end_all()


@pytest.fixture
def agent(home: Home, tmp_path: Path) -> Path:
    path = (tmp_path / "work" / "proj").resolve()
    (path / ".git").mkdir(parents=True)
    (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    home.start()
    done = home.memctl("enroll", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_a_conflict_copy_that_comes_is_merged_and_kept(agent: Path) -> None:
    owned = agent / ".memd" / "memory"
    (owned / "note.md").write_text("ours\n")
    os.utime(owned / "note.md", ns=(AGO_NS, AGO_NS))
    copy = owned / "note.sync-conflict-20260203-101500-ABCDEFG.md"
    copy.write_text("theirs\n")
    eventually(lambda: not copy.exists(), 30)
    assert (owned / "note.md").read_text() == "theirs\n"
    kept = sorted(path.read_text() for path in (owned / "_superseded").iterdir())
    assert kept == ["ours\n", "theirs\n"]


def test_a_folder_that_is_away_is_told_and_nothing_is_made_until_it_is_back(home: Home, agent: Path) -> None:
    owned, aside = agent / ".memd", agent / "swapped-out"
    (owned / "memory" / "note.md").write_text("x\n")
    entry = home.path / ".claude" / "projects" / project_key(os.fsencode(agent)) / "memory"

    def told() -> str:
        [row] = home.json("status")["agents"]
        return str(row["logins"][0]["reason"])

    owned.rename(aside)
    eventually(lambda: told().startswith("away: "), 30)
    assert "away: " in home.memctl("status").stdout
    assert home.memctl("heal").returncode == 0
    assert not owned.exists()
    assert entry.is_symlink()
    aside.rename(owned)
    eventually(lambda: not told(), 30)
    assert (entry / "note.md").read_text() == "x\n"
