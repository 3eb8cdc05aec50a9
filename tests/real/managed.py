"""Agents under `memctl run` in a closed world: started, watched, killed, and what their models were told.

A run's proof is what the program sent to its model. `Desk` knows nothing of workstreams or sessions but what
memctl says and what the scripted model received.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from real.harnesses import HARNESSES
from real.namespace import HOME
from real.product import MEMCTL, PYTHON_PATH, Memd
from real.recorded import Request
from real.rig import World
from real.running import Finished, RigError, Running
from real.screen import Screen

PROJECT = f"{HOME}/proj"
MARKER = "<!-- memd:workstream-packet:v1 -->"  # how a packet begins
EXTRA: Mapping[str, tuple[str, ...]] = {"codex": ("--dangerously-bypass-hook-trust",)}
STORES = {
    "claude": ".claude/projects",
    "codex": ".codex/sessions",
    "opencode": ".local/share/opencode",
    "pi": ".pi/agent/sessions",
    "omp": ".omp/agent/sessions",
}
_PAUSE_S = 0.05
_SOON_S = 20.0


class Desk:
    """One checkout, memd up and its hooks installed for these agents."""

    def __init__(self, world: World, agents: Sequence[str]) -> None:
        self.world = world
        self.memd = Memd(world)
        self.agents = tuple(agents)

    def open(self) -> None:
        world = self.world
        world.run("git", "init", "-q", PROJECT)
        world.put(f"{PROJECT}/code.txt", "code\n")
        world.run("git", "add", ".", cwd=PROJECT)
        world.run("git", "commit", "-qm", "start", cwd=PROJECT)
        for name in self.agents:
            world.put_all(HARNESSES[name].settings([PROJECT]))
        self.memd.up()
        for name in self.agents:
            self.memd.ctl("install-hooks", "--agent", name, "--apply", cwd=PROJECT)

    # ------------------------------------------------------------------ runs

    def words(self, name: str, prompt: str, *args: str) -> list[str]:
        """What a person types after `memctl`, for one prompt and no screen."""
        return ["run", *HARNESSES[name].turn(prompt, (*EXTRA.get(name, ()), *args))]

    def run(self, name: str, prompt: str, *args: str, env: Mapping[str, str] | None = None) -> list[Request]:
        """One managed run to its end; the turns it asked its model for."""
        before = len(self.world.turns())
        self.memd.ctl(*self.words(name, prompt, *args), cwd=PROJECT, env=env)
        made = self.world.turns()[before:]
        if not made:
            raise RigError(f"{name} asked its model for nothing")
        return made

    def direct(self, name: str, prompt: str, *args: str) -> list[Request]:
        """The program as it is started without memctl; the turns it asked its model for."""
        before = len(self.world.turns())
        self.world.run(*HARNESSES[name].turn(prompt, (*EXTRA.get(name, ()), *args)), cwd=PROJECT)
        return self.world.turns()[before:]

    def start(self, name: str, prompt: str, *args: str) -> Running:
        """A managed run that is left running."""
        words = self.words(name, prompt, *args)
        return self.world.start(*MEMCTL, *words, cwd=PROJECT, env={"PYTHONPATH": PYTHON_PATH})

    def screen(self, name: str, *words: str) -> Screen:
        """A managed run on a terminal."""
        command = HARNESSES[name].screen
        full = [*MEMCTL, "run", *command, *EXTRA.get(name, ()), *words]
        return Screen(self.world, *full, cwd=PROJECT, env={"PYTHONPATH": PYTHON_PATH})

    def wait_for_turn(self, mark: str, step: int = 0) -> Request:
        """The turn whose prompt has the mark, after so many answers to it."""
        return self.world.wait_for_request(
            lambda request: request.is_turn and mark in prompt_of(request) and step_of(request) == step,
            timeout_s=60,
        )

    def is_stored(self, name: str, text: bytes) -> bool:
        """Whether the program has written that down: some do so a moment after they act."""
        files = (self.world.home / STORES[name]).rglob("*")
        return any(text in file.read_bytes() for file in files if file.is_file())

    # ------------------------------------------------------------------ what memd says

    def json(self, *words: str) -> Any:
        return json.loads(self.memd.ctl(*words, "--json", cwd=PROJECT).out)

    def sessions(self, name: str) -> list[str]:
        """The native sessions of this checkout that memd knows."""
        return [one["id"] for one in _rows(self.json("sessions", "--harness", name, "--cwd", PROJECT))]

    def found(self, words: str) -> list[dict[str, Any]]:
        """What the workstream of this checkout holds about these words."""
        workstream = self.workstream()
        return _rows(self.json("workstream-search", words, "--workstream-id", workstream))

    def workstream(self) -> str:
        """The id of the one workstream of this checkout."""
        (only,) = _rows(self.json("workstreams"))
        return str(only["workstream_id"])


def _rows(document: Any) -> list[dict[str, Any]]:
    """The list in a document, whatever it is called there."""
    if isinstance(document, list):
        return document
    (rows,) = [value for value in document.values() if isinstance(value, list)]
    return rows


def prompt_of(request: Request) -> str:
    """What a person typed, as far as the scripted model looked at it."""
    return str(request.reply.get("prompt")) if isinstance(request.reply, dict) else ""


def step_of(request: Request) -> int:
    """How many answers to the prompt came before; -1 where there is no prompt."""
    return int(request.reply.get("step", -1)) if isinstance(request.reply, dict) else -1


def eventually(is_so: Callable[[], bool], what: str, within_s: float = _SOON_S) -> float:
    """Seconds until it is so; raises RigError when it never is. A real program's pace cannot be faked."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > within_s:
            raise RigError(f"waited {within_s:.0f} s for {what}")
        time.sleep(_PAUSE_S)
    return time.monotonic() - began


def packets_in(request: Request) -> int:
    """How many packets stand in front of the model."""
    return request.text.count(MARKER)


def family(running: Running) -> list[psutil.Process]:
    """The launcher, then what it started."""
    launcher = psutil.Process(running.pid)
    return [launcher, *launcher.children(recursive=True)]


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """kill -9, the launcher first: it must not live to see the agent die."""
    for process in processes:
        process.kill()


def finish(running: Running, status: int = 0) -> Finished:
    """The run's end; raises RigError with all it said when it ended otherwise."""
    done = running.finish(90)
    if done.status != status:
        raise RigError(str(done))
    return done
