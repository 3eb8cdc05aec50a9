"""Sessions that move, with the real program: into another login, and on after a checkout was renamed.

source  Claude Code 2.1.197, run 2026-12
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from real.harnesses import claude_login
from real.managed import PROJECT, Desk, packets_in
from real.namespace import HOME
from real.recorded import Request

pytestmark = pytest.mark.real

Open = Callable[..., Desk]

SECOND = f"{HOME}/.claude-work"
THERE = {"CLAUDE_CONFIG_DIR": SECOND}
SHOP = f"{HOME}/shop"
DEEP = f"{PROJECT}/src/deep"


def with_second_login(open_desk: Open) -> Desk:
    desk = open_desk("claude")
    desk.world.run("mkdir", "-p", SECOND)
    desk.world.put_all(claude_login([PROJECT], SECOND))
    return desk


def claude(desk: Desk, prompt: str, *args: str, cwd: str) -> list[Request]:
    """A managed run in any directory; the turns it asked its model for."""
    before = len(desk.world.turns())
    desk.memd.ctl(*desk.words("claude", prompt, *args), cwd=cwd)
    return desk.world.turns()[before:]


def test_carried_session_is_resumed_by_the_program_in_the_other_login(open_desk: Open) -> None:
    desk = with_second_login(open_desk)
    desk.direct("claude", "SAY told SENTINEL-old")
    desk.memd.ctl("import", "--wait")
    (session,) = desk.sessions("claude")
    done = desk.memd.ctl("session", "carry", "--session", session, cwd=PROJECT, env=THERE)
    assert f"claude --resume {session}" in done.out
    before = len(desk.world.turns())
    argv = desk.words("claude", "hello", "--resume", session)[1:]
    desk.world.run(*argv, cwd=PROJECT, env=THERE)
    (resumed,) = desk.world.turns()[before:]
    assert "SENTINEL-old" in resumed.text
    back = json.loads(desk.memd.ctl("session", "carry", "--session", session, "--json", cwd=PROJECT).out)
    assert (len(back["extended"]), back["copied"]) == (1, [])  # the original is how the longer one begins


def test_managed_run_in_the_other_login_goes_on_when_told_to_carry(open_desk: Open) -> None:
    desk = with_second_login(open_desk)
    desk.run("claude", "SAY told SENTINEL-old")
    (session,) = desk.sessions("claude")
    before = len(desk.world.turns())
    words = desk.words("claude", "hello SENTINEL-new")
    desk.memd.ctl("run", "--carry", *words[1:], cwd=PROJECT, env=THERE)
    (resumed,) = desk.world.turns()[before:]
    assert "SENTINEL-old" in resumed.text
    assert packets_in(resumed) == 0
    assert desk.sessions("claude") == [session]


def test_session_of_a_renamed_checkout_is_adopted_and_resumed_in_the_new_one(open_desk: Open) -> None:
    desk = open_desk("claude")
    desk.world.put_all(claude_login([PROJECT, SHOP]))
    desk.run("claude", "SAY told SENTINEL-old")
    (session,) = desk.sessions("claude")
    desk.world.run("mv", PROJECT, SHOP)
    (orphan,) = json.loads(desk.memd.ctl("sessions", "--orphaned", "--json").out)
    assert orphan["id"] == session
    desk.memd.ctl("adopt", "--session", session, cwd=SHOP)
    (resumed,) = claude(desk, "hello SENTINEL-new", cwd=SHOP)
    assert "SENTINEL-old" in resumed.text
    assert packets_in(resumed) == 0
    rows = json.loads(desk.memd.ctl("search", "SENTINEL-new", "--json").out)
    assert {row["session"] for row in rows} == {session}


def test_workstream_goes_on_in_its_session_from_any_directory_of_the_checkout(open_desk: Open) -> None:
    desk = open_desk("claude")
    desk.world.put(f"{DEEP}/code.txt", "code\n")
    desk.world.put_all(claude_login([PROJECT, DEEP]))
    claude(desk, "SAY told SENTINEL-deep", cwd=DEEP)
    (resumed,) = claude(desk, "SAY and SENTINEL-root", cwd=PROJECT)
    assert "SENTINEL-deep" in resumed.text
    assert packets_in(resumed) == 0
    (again,) = claude(desk, "hello", cwd=DEEP)
    assert "SENTINEL-deep" in again.text
    assert "SENTINEL-root" in again.text
