"""A real process, really killed by the system at a file operation: the promises of the simulated faults.

`MEMD_FULL_SWEEPS=1` kills at every one of them; without it at every ninth.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support_faults import Faults, installed
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, snapshot

PROGRAM = Path(__file__).parent.parent / "support_heal.py"
SOURCES = os.pathsep.join(str(Path(__file__).parents[2] / part) for part in ("daemon", "ctl"))
STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 9
CALLS = (
    "renameat2,rename,renameat,mkdir,mkdirat,symlink,symlinkat,fsync,unlink,unlinkat,fchmod,utimensat,write"
)

_call = re.compile(r"^(?:\d+ +)?([a-z0-9_]+)\(")


def why_not() -> str:
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this process may not trace others"


pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(why_not()), reason=why_not() or "strace works")]


def scene(top: Path) -> tuple[World, bytes, bytes]:
    world = World(top)
    agent, login = world.agent(), world.login()
    with installed(Faults()):
        world.enroll(agent)
    os.unlink(world.entry(login, agent))
    memory, owned = world.entry(login, agent), world.owned(agent)
    put(memory + b"/both.md", b"incoming", ns=OLD_NS + 1)
    put(memory + b"/sub/new.md", b"new", ns=OLD_NS)
    put(memory + b"/MEMORY.md", b"- [B](both.md) - login\n- [N](sub/new.md)\n", ns=OLD_NS)
    put(owned + b"/both.md", b"owned", ns=OLD_NS)
    put(owned + b"/MEMORY.md", b"- [B](both.md) - owned\n", ns=OLD_NS)
    return world, agent, login


def command(world: World) -> list[str]:
    words = [world.home, world.data, world.state, b"1"]
    return [sys.executable, "-B", str(PROGRAM), *map(os.fsdecode, words)]


def run(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False, timeout=60
    )


def test_a_process_killed_at_a_file_operation_loses_nothing(tmp_path: Path) -> None:
    world, agent, login = scene(tmp_path / "good")
    log = tmp_path / "trace"
    traced = run(["strace", "-f", "-qq", "-e", f"trace={CALLS},write", "-o", str(log), *command(world)])
    assert traced.returncode == 0, traced.stderr
    good = notes(world.owned(agent))
    assert good[b"both.md"] == b"incoming" and leads_to(world.entry(login, agent), world.owned(agent))
    matches = [_call.match(line) for line in log.read_text().splitlines()]
    names = [match[1] for match in matches if match]
    assert len(names) > 40
    ordinals: Counter[str] = Counter()
    points = []
    for name in names:
        ordinals[name] += 1
        points.append((name, ordinals[name]))
    for name, at in points[::STRIDE]:
        world, agent, login = scene(tmp_path / f"{name}-{at}")
        before = bodies(world.home, world.work)
        inject = f"inject={name}:signal=KILL:when={at}"
        words = ["-f", "-qq", "-e", f"trace={name}", "-e", inject, "-o", os.devnull]
        killed = run(["strace", *words, *command(world)])
        assert killed.returncode in (-9, 137), (name, at, killed)
        assert before <= bodies(world.home, world.work), (name, at)
        with installed(Faults()):
            world.recover()
            assert before <= bodies(world.home, world.work), (name, at)
            assert leads_to(world.entry(login, agent), world.owned(agent))
            assert notes(world.owned(agent)) == good
            settled = snapshot(world.home, world.work)
            world.heal()
            assert snapshot(world.home, world.work) == settled
