"""Three clients write without a pause, and the daemon is killed at any moment, over and over.

What a client was told is kept is there once, whole; what it was not told is there whole or not at all. The
same key twice is one write. `MEMD_FULL_SWEEPS=1` kills 300 times, otherwise 20.
"""

from __future__ import annotations

import os
import random
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from support_daemon import Home

pytestmark = pytest.mark.faults

ROUNDS = 300 if os.environ.get("MEMD_FULL_SWEEPS") else 20

# A client for ever: each write until it is answered, under the same key; it prints what was answered.
CLIENT = """
import io, sys
from memctl import cli
name, out = sys.argv[1], sys.stdout
number = 0
while True:
    text = f"line {name} {number} end"
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout = io.StringIO()
    words = ["memory", "write", f"Of {name}", "--summary", "s", "--key", f"{name}-{number}"]
    if cli.run(words) == 0:
        print(number, file=out, flush=True)
        number += 1
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    (made.path / ".config/memd").mkdir(parents=True)
    (made.path / ".config/memd/memory.jsonc").write_text('{ "shared_dir": true }')
    (made.path / ".agents/memory").mkdir(parents=True)
    yield made
    made.memctl("down")
    made.end_all()


def test_daemons_killed_at_any_moment_keep_what_they_answered(home: Home, tmp_path: Path) -> None:
    chance = random.Random(11)
    names = ("one", "two", "three")
    heard = {name: (tmp_path / name).open("wb") for name in names}
    clients = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", CLIENT, name],
            env=home.environment,
            stdout=heard[name],
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    try:
        for _ in range(ROUNDS):
            child = home.spawn()
            # 1 to 500 ms after it answers, or while it starts
            if chance.random() < 0.8:
                while child.poll() is None and not home.answers():
                    pass
            select.select([], [], [], chance.uniform(0.001, 0.5))
            child.kill()
            child.wait()
            support_points.tried()
    finally:
        for client in clients:
            client.kill()
            client.wait()
        for file in heard.values():
            file.close()
    home.memctl("down")
    home.start()
    assert home.memctl("memory", "write", "Last", "--summary", "s", stdin="text").returncode == 0
    answered = 0
    for name in names:
        told = [int(number) for number in (tmp_path / name).read_bytes().split()]
        assert told == list(range(len(told)))
        answered += len(told)
        path = home.path / f".agents/memory/of-{name}.md"
        text = path.read_text() if path.exists() else ""
        found = [int(number) for number in re.findall(rf"^line {name} (\d+) end$", text, re.MULTILINE)]
        assert found[: len(told)] == told
        assert found[len(told) :] in ([], [len(told)]), "the one that was under way, whole or not at all"
        assert text.count("line") == len(found)
    assert answered
    support_points.figure(f"{answered} answered writes kept over {ROUNDS} kills")
    left = [one.name for one in (home.path / ".agents/memory").iterdir()]
    assert sorted(left) == sorted(
        ["MEMORY.md", "last.md", *(f"of-{n}.md" for n in names if f"of-{n}.md" in left)]
    )
