"""Several memd processes on the same memory at once, with the same or with separate state folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.memory.ownership import Ownership
from support_memory import OLD_NS, World, bodies, leads_to, put, snapshot

PROGRAM = Path(__file__).parent.parent / "support_heal.py"
SOURCES = os.pathsep.join(str(Path(__file__).parents[2] / part) for part in ("daemon", "ctl"))
PROCESSES = 4
NOTES = 30


def run_at_once(*commands: list[bytes]) -> list[str]:
    """Start one process per command, let all begin together, and return what each said."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            errors="surrogateescape",
        )
        for command in commands
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    said = []
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
        said.append(out)
    return said


def fill(memory: bytes, mark: bytes) -> None:
    for n in range(NOTES):
        put(memory + b"/note-%02d.md" % n, b"%d by %b" % (n, mark), ns=OLD_NS + n)
    put(memory + b"/own-%b.md" % mark, b"only in " + mark, ns=OLD_NS)


@pytest.mark.parametrize("apart", [False, True], ids=["one state folder", "a state folder each"])
@pytest.mark.parametrize("names", ["same login", "different logins", "equal basenames"])
def test_no_body_is_lost_and_every_login_is_linked(world: World, names: str, apart: bool) -> None:
    agent = world.agent()
    world.enroll(agent)
    if names == "same login":
        logins = [world.login()]
    elif names == "different logins":
        logins = [world.login(b".claude-%d" % n) for n in range(3)]
    else:
        logins = [world.login(b".claude", parent=world.top + b"/user-%d" % n) for n in range(3)]
    for n, login in enumerate(logins):
        fill(world.entry(login, agent), b"%d" % n)
    before = bodies(world.home, world.work, *logins)
    commands = []
    for n in range(PROCESSES):
        data, state = world.data, world.state
        if apart:
            data, state = world.top + b"/data-%d" % n, world.top + b"/state-%d" % n
            Ownership(home=b"/nonexistent", data=data, state=state).enroll(agent, confirmed=True, now_ms=1)
        commands.append([world.home, data, state, b"3", *logins])

    said = run_at_once(*commands)

    owned = world.owned(agent)
    for login in logins:
        assert leads_to(world.entry(login, agent), owned)
    assert before <= bodies(world.home, world.work, *logins)
    assert {b"%d by %d" % (n, k) for n in range(NOTES) for k in range(len(logins))} <= bodies(owned)
    assert sum(line.startswith("migrated") for text in said for line in text.splitlines()) == len(logins)
    settled = snapshot(world.home, world.work)
    run_at_once(commands[0])
    assert snapshot(world.home, world.work) == settled


def test_two_agents_that_want_one_entry_do_not_mix(world: World) -> None:
    login = world.login()
    agents = [world.agent(b"a-b"), world.agent(b"a/b")]
    for agent in agents:
        world.enroll(agent)
    os.unlink(world.entry(login, agents[0]))
    fill(world.entry(login, agents[0]), b"x")
    run_at_once(*[[world.home, world.data, world.state, b"3"] for _ in range(PROCESSES)])
    filled = [agent for agent in agents if os.listdir(world.owned(agent))]
    assert len(filled) == 1 and leads_to(world.entry(login, agents[0]), world.owned(filled[0]))
