"""A whole daemon, its worker and its database on a disk that fails at random, below all memd itself does.

One in twenty calls on the files of a home, later half of them, give EIO, ENOSPC, EDQUOT, EMFILE, ENFILE,
ENOMEM or EINTR, or take a part of what is written: open, write, flush, mapping, names, accepting a client.
Meanwhile clients write memory, sessions come, links are replaced. The daemon lives through all of it and
answers; what was answered stays, and on a disk that is well again all is as if it had always been.
"""

from __future__ import annotations

import os
import re
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from faults.test_burst import sessions, write
from faults.test_clock_steps import replaced_by_folder
from memd.memory.key import project_key
from support_daemon import Home, eventually
from support_shim import Shim, why_not

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(why_not()), reason=why_not() or "calls can fail")]

ROUNDS = 200 if os.environ.get("MEMD_FULL_SWEEPS") else 20
MOST_ROUNDS = 4 * ROUNDS  # when chance left a kind of failure out
KINDS = ("open", "write", "short write", "flush", "name")
CHANCES = (50, 200, 500)  # of a thousand calls, in turn
WITHIN_S = 90


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    (made.path / ".config/memd").mkdir(parents=True)
    (made.path / ".config/memd/memory.jsonc").write_text('{ "shared_dir": true }')
    (made.path / ".agents/memory").mkdir(parents=True)
    (made.path / ".claude").mkdir()
    (made.path / ".claude/.credentials.json").write_text("{}")
    yield made
    made.memctl("down")
    made.end_all()


def stores(home: Home) -> dict[str, bytes]:
    """What is the harness's alone."""
    folder = home.path / ".claude"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith("memory") for part in path.parts)
    }


def test_a_daemon_on_a_failing_disk_lives_answers_and_loses_nothing(home: Home, tmp_path: Path) -> None:
    shim = Shim(tmp_path, home.path)
    child = home.start(**shim.variables)
    agent = (tmp_path / "work").resolve()
    (agent / ".git").mkdir(parents=True)
    assert home.memctl("enroll", str(agent)).returncode == 0
    link = home.path / ".claude/projects" / project_key(bytes(agent)) / "memory"
    eventually(link.is_symlink)
    projects = home.path / ".claude/projects"
    told: list[int] = []
    noted: list[int] = []
    expected: dict[str, bytes] = {}
    for round_ in range(MOST_ROUNDS):
        if round_ >= ROUNDS and all(shim.hits()[kind] for kind in KINDS):
            break
        with shim.failing(CHANCES[round_ % len(CHANCES)]):
            write(projects / f"-work-p{round_ % 7}", round_)
            if link.is_symlink():
                replaced_by_folder(link)
            (link / f"note{round_}.md").write_text(f"body {round_}\n")
            noted.append(round_)
            expected = stores(home)
            words = ("--summary", "s", "--key", f"k{round_}")
            done = home.memctl("memory", "write", "Kept", *words, stdin=f"line {round_} end")
            assert "Traceback" not in done.stderr, done.stderr
            if done.returncode == 0:
                told.append(round_)
            else:
                assert len(done.stderr.strip().splitlines()) > 1, "an error comes with what to do next"
            select.select([], [], [], 0.1)
        assert child.poll() is None
        assert home.answers(), "whatever it met"
        assert stores(home) == expected
    hits = shim.hits()
    support_points.tried(sum(hits.values()))
    support_points.figure("failed: " + ", ".join(f"{kind} {count}" for kind, count in hits.items()))
    assert all(hits[kind] for kind in KINDS)

    eventually(lambda: sessions(home) == len(noted), WITHIN_S)
    eventually(link.is_symlink, WITHIN_S)
    assert home.json("status")["pid"] == child.pid, "nobody had to start it again"
    check(home, agent, noted, told)
    assert home.stop(child) == 0
    home.start()
    assert sessions(home) == len(noted)
    check(home, agent, noted, told)
    assert stores(home) == expected


def check(home: Home, agent: Path, noted: list[int], told: list[int]) -> None:
    for round_ in noted:
        assert (agent / f".memd/memory/note{round_}.md").read_text() == f"body {round_}\n"
    done = home.memctl("memory", "write", "Kept", "--summary", "s", "--key", "last", stdin="line 9999 end")
    assert done.returncode == 0, done.stderr
    text = (home.path / ".agents/memory/kept.md").read_text()
    found = [int(number) for number in re.findall(r"^line (\d+) end$", text, re.MULTILINE)]
    assert len(found) == len(set(found)), "each once"
    assert set(told) <= set(found)
    assert text.count("line") == len(found), "whole or not at all"
    log = (home.path / ".local/state/memd/memd.log").read_text()
    assert '"event":"part.failed"' not in log.replace(" ", "")
