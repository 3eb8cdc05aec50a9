"""What people read on a terminal of 40 or 60 columns: broken at words, every id and path whole."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from memd.service.places import locate
from support_daemon import Home
from support_git import checkout
from support_ledger import S1, entry
from support_runs import Runs
from support_workstreams import Clock, Lines

SESSION = "33333333-0000-4000-8000-000000000003"
WORKSTREAM = "spike-of-a-long-name-for-a-workstream"
TOPIC = "a-topic-of-a-very-long-name-that-goes-on"
LONG = "the migration of the accounts, said in more words than a narrow terminal has room for"
LEAD = 24  # columns that a path may have before it


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    top = tmp_path_factory.mktemp("narrow").resolve()
    made = Home(top / "home", runtime=top / "run")
    app = checkout(made.path / "app")
    search = os.fsencode(made.environment["PATH"])
    place = locate(bytes(app), {"HOME": bytes(made.path)}, home=b"/", path=search).place
    root = made.path / ".local/share/memd/ledger"
    root.mkdir(parents=True, mode=0o700)
    clock = Clock()
    with Lines(root, clock) as lines:
        runs = Runs(lines)
        run = runs.launch(session=S1, place=place, cwd=bytes(app), new=WORKSTREAM)
        lines.put(entry(LONG, session=S1))
        runs.close(run.id)
    folder = made.path / ".claude/projects/-work"
    folder.mkdir(parents=True)
    (made.path / ".claude/.credentials.json").write_text("{}")
    record = {
        "type": "user",
        "uuid": SESSION[:-1] + "4",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "cwd": "/work/rather/deep/below",
        "sessionId": SESSION,
        "message": {"role": "user", "content": LONG},
    }
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(record) + "\n")
    with made.daemon():
        assert made.memctl("enroll", str(app), "--yes").returncode == 0
        assert made.memctl("import", "--wait").returncode == 0
        assert made.memctl("handoff", "create", LONG, cwd=app).returncode == 0
        assert made.memctl("memory", "write", TOPIC, "--summary", LONG, stdin=LONG, cwd=app).returncode == 0
        yield made


def shown(home: Home, columns: int, *words: str) -> list[str]:
    """The lines of a command on a terminal of that width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "memctl", *words],
        env={**home.environment, "NO_COLOR": "1", "TERM": "xterm"},
        cwd=home.path / "app",
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    said = b""
    try:
        while part := os.read(leader, 1 << 16):
            said += part
    except OSError:  # the other side is closed
        pass
    os.close(leader)
    child.wait()
    return said.decode().replace("\r", "").split("\n")


def is_broken_well(line: str, columns: int) -> bool:
    """Whether a line fits, or has nothing in it but one long word behind a short lead."""
    before, _, word = line.rpartition(" ")
    return len(line) <= columns or (len(before) < LEAD and len(word) + LEAD > columns)


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (["status"], ""),
        (["sessions"], SESSION),
        (["search", "migration"], f"{SESSION}#1"),
        (["workstreams"], WORKSTREAM),
        (["handoff", "list"], ""),
        (["doctor"], ""),
        (["forget", "--matching", "migration", "--dry-run"], ""),
        (["ledger", "check"], ""),
        (["memory", "list"], TOPIC),
        (["memory", "search", "accounts"], TOPIC),
        (["heal", "--dry-run"], ""),
        (["service", "status"], ""),
        (["report"], ""),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_on_a_narrow_terminal_nothing_runs_over_and_ids_are_whole(
    home: Home, columns: int, words: list[str], whole: str
) -> None:
    lines = shown(home, columns, *words)
    assert [line for line in lines if not is_broken_well(line, columns)] == []
    assert any(whole in line for line in lines), lines


def test_the_end_of_a_topics_line_is_there_on_a_narrow_terminal(home: Home) -> None:
    assert shown(home, 40, "memory", "search", "accounts")[-2].endswith("room for")
