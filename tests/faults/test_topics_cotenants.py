"""Several tools in one memory folder at once: real memctl processes, a real daemon, and a program in Node.

Four writers with 500 writes each: no line is lost, none is doubled, no live holder of the lock is robbed. A
holder that died is. Daemons that are killed in the middle lose and double nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home, eventually
from support_scratch import in_memory

pytestmark = pytest.mark.faults

COTENANT = Path(__file__).with_name("cotenant.mjs")
WRITES = int(os.environ.get("MEMD_COTENANT_WRITES", "500"))

# One memctl process that writes many times: the commands are those of a shell, the interpreter starts once.
MEMCTL = """
import io, sys
from memctl import cli
name, count = sys.argv[1], int(sys.argv[2])
tries = 0
for number in range(count):
    fresh = number % 10 == 9
    topic = f"{name} {number}" if fresh else "Common"
    text = f"{name} {number}" if fresh else f"line {name} {number} end"
    while True:
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        words = ["memory", "write", topic, "--summary", topic, "--key", f"{name}-{number}"]
        code = cli.run(words)
        if code == 0:
            break
        assert code in (69, 75), code
        tries += 1
print("busy", tries, file=sys.stderr)
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """In memory where the system has such a place: thousands of flushes need no disk."""
    top = Path(tempfile.mkdtemp(prefix="memd-cotenants-", dir=in_memory()))
    made = Home(top / "home", runtime=top / "run")
    config = made.path / ".config/memd"
    config.mkdir(parents=True)
    (config / "memory.jsonc").write_text('{ "shared_dir": true }')
    (made.path / ".agents/memory").mkdir(parents=True)
    yield made
    made.memctl("down")
    made.end_all()
    shutil.rmtree(top)


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


def store(home: Home) -> Path:
    return home.path / ".agents/memory"


def memctl_writer(home: Home, name: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", MEMCTL, name, str(count)],
        env=home.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def node_writer(home: Home, name: str, count: int) -> subprocess.Popen[bytes]:
    command = [node(), str(COTENANT), "write", str(store(home)), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check(home: Home, names: list[str], count: int) -> None:
    """Every line of every writer once, every topic listed once, nothing left over."""
    common = (store(home) / "common.md").read_text()
    found = re.findall(r"^line (\S+ \d+) end$", common, re.MULTILINE)
    wanted = [f"{name} {number}" for name in names for number in range(count) if number % 10 != 9]
    assert len(found) == len(set(found))
    assert set(found) == set(wanted)
    index = (store(home) / "MEMORY.md").read_text()
    listed = re.findall(r"\]\(([^)]+)\)", index)
    topics = {f"{name}-{number}.md" for name in names for number in range(9, count, 10)} | {"common.md"}
    assert len(listed) == len(set(listed))
    assert set(listed) == topics
    assert {path.name for path in store(home).iterdir()} == topics | {"MEMORY.md"}


def test_four_writers_of_two_kinds_lose_no_line(home: Home) -> None:
    node()
    home.start()
    writers = [
        memctl_writer(home, "one", WRITES),
        memctl_writer(home, "two", WRITES),
        node_writer(home, "three", WRITES),
        node_writer(home, "four", WRITES),
    ]
    said = [writer.communicate(timeout=500) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0, 0], said
    check(home, ["one", "two", "three", "four"], WRITES)


def test_daemons_that_are_killed_in_the_middle_lose_and_double_nothing(home: Home) -> None:
    count = 60
    writers = [memctl_writer(home, "one", count), memctl_writer(home, "two", count)]
    kills = 0
    while any(writer.poll() is None for writer in writers) and kills < 12:
        wanted = len(list(store(home).glob("common.md"))) and (store(home) / "common.md").stat().st_size
        eventually(lambda: _grew(home, wanted) or all(w.poll() is not None for w in writers), 120)  # noqa: B023
        pid = home.memctl("status", "--json")
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(int(re.findall(r'"pid": (\d+)', pid.stdout)[0]), signal.SIGKILL)
            kills += 1
    said = [writer.communicate(timeout=300) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    assert kills > 1
    check_after_kills(home, count)


def check_after_kills(home: Home, count: int) -> None:
    """One more command, so that what the last kill left is finished and swept."""
    assert home.memctl("memory", "pin", "Common").returncode == 0
    check(home, ["one", "two"], count)


def _grew(home: Home, size: int) -> bool:
    path = store(home) / "common.md"
    return path.exists() and path.stat().st_size > size + 700


def test_a_live_holder_is_never_robbed_and_a_dead_one_is_at_once(home: Home) -> None:
    home.start()
    assert home.memctl("memory", "write", "First", "--summary", "s", stdin="text").returncode == 0
    before = {path.name: path.read_bytes() for path in store(home).iterdir()}
    holder = subprocess.Popen(
        [node(), str(COTENANT), "hold", str(store(home))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    token = (store(home) / ".lock").read_bytes()
    for _ in range(3):  # five seconds each: the last try meets a lock of more than ten
        busy = home.memctl("memory", "write", "First", stdin="more")
        assert busy.returncode == 75, busy.stderr
        assert "memory store is busy, retry in a moment" in busy.stderr
        assert (store(home) / ".lock").read_bytes() == token
    assert {p.name: p.read_bytes() for p in store(home).iterdir() if p.name != ".lock"} == before
    assert f"process {holder.pid}" in home.memctl("doctor").stdout
    holder.kill()
    holder.communicate()
    assert home.memctl("memory", "write", "First", stdin="more").returncode == 0
    assert not (store(home) / ".lock").exists()
