"""The plug-ins of `hooks/` in their real programs, with a stub where memd would listen.

source  OpenCode 1.18.33, Pi 1.6.0, OMP 18.2.3, run 2026-11
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hooks.stub import Message, Stub, text
from hooks.support_plugins import HOOKS
from real.harnesses import HARNESSES
from real.managed import MARKER, PROJECT
from real.namespace import HOME
from real.rig import World, dev_uid

pytestmark = pytest.mark.real

PLACES = {
    "opencode": (".config/opencode/plugin/memd.ts", "opencode.ts"),
    "pi": (".pi/agent/extensions/memd-pi.ts", "pi.ts"),
    "omp": (".omp/agent/extensions/memd-omp.ts", "omp.ts"),
}
SOCKET = f"{HOME}/socket/s"

WorldOf = Callable[[str], World]


@contextmanager
def stub_in(world: World, answer: Callable[[Message], bytes | None]) -> Iterator[Stub]:
    """A stub at `SOCKET`; the folder is named through a descriptor, as a socket's path must be short."""
    world.run("mkdir", "-m", "700", os.path.dirname(SOCKET))
    folder = os.open(world.outside(os.path.dirname(SOCKET)), os.O_PATH)
    try:
        with Stub(Path(f"/proc/self/fd/{folder}/s"), answer) as stub:
            os.chown(world.outside(SOCKET), dev_uid(), dev_uid())
            yield stub
    finally:
        os.close(folder)


@pytest.fixture
def world_of(make_world: Callable[..., World]) -> WorldOf:
    """A world with one program and its plug-in."""

    def make(name: str) -> World:
        world = make_world(name)
        place, source = PLACES[name]
        world.put_all(HARNESSES[name].settings([PROJECT]))
        world.put(f"{HOME}/{place}", (HOOKS / source).read_text())
        world.put(f"{PROJECT}/code.txt", "code\n")
        return world

    return make


def turn(world: World, name: str, prompt: str) -> None:
    argv = HARNESSES[name].turn(prompt, ())
    world.run(*argv, cwd=PROJECT, env={"MEMD_SOCKET": SOCKET, "MEMD_RUN_ID": "run"})


def packets(message: Message) -> bytes:
    told = f"{MARKER}\npacket for {message.stdin['session_id']}" if message.event == "context" else ""
    return text(told)


_OMP_TASK = 'CALL task {"context": "c", "tasks": [{"task": "hello SENTINEL-inner"}], "i": "i"}'


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("opencode", "USE_AGENT hello SENTINEL-inner"),
        ("omp", f'{_OMP_TASK} ;; CALL hub {{"op": "wait", "i": "i"}}'),  # its sub-agents run beside
    ],
)
def test_sub_agent_is_told_nothing(world_of: WorldOf, name: str, steps: str) -> None:
    world = world_of(name)
    with stub_in(world, packets) as stub:
        turn(world, name, f"{steps} ;; SAY done SENTINEL-outer")
    outer = [request for request in world.turns() if "packet for" in request.text]
    inner = [request for request in world.turns() if "packet for" not in request.text]
    assert "done SENTINEL-outer" in str(outer[-1].reply)
    assert "hello SENTINEL-inner" in inner[0].text
    assert stub.events().count("context") == 1


@pytest.mark.parametrize("name", ["opencode", "pi", "omp"])
def test_hung_memd_costs_a_turn_no_more_than_its_limit(world_of: WorldOf, name: str) -> None:
    world = world_of(name)
    with stub_in(world, lambda message: None) as stub:
        turn(world, name, "hello SENTINEL-alone")
    assert "ACK SENTINEL-alone" in str(world.turns()[-1].reply)
    assert "context" in stub.events()
