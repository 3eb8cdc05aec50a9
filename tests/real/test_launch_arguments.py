"""The arguments that memd composes, given to the real programs: ids are taken, sessions are resumed.

The programs are started as they are, without memd: what is tried here are the words alone.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest

from memd.harness.launching import Intent
from memd.workstream import launch
from real.harnesses import HARNESSES
from real.namespace import HOME
from real.rig import World, why_not
from support_launch import adapter, launch_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "there are namespaces"),
]
HERE = f"{HOME}/proj"
STORES = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "pi": ".pi/agent/sessions/*/*.jsonl",
    "omp": ".omp/agent/sessions/*/*.jsonl",
}
EXTRA = {
    "claude": ("--permission-mode", "bypassPermissions"),
    "codex": ("--skip-git-repo-check",),
    "pi": ("--provider", "scripted", "--model", "scripted-model"),
    "omp": ("--model", "scripted/scripted-model"),
}


class Agent:
    """One program in a world, started with what memd composes."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        world.put_all(HARNESSES[name].settings([HERE]))
        world.put(f"{HERE}/code.txt", "code\n")
        said = world.run(name, "--help", cwd=HERE, timeout_s=120)
        self.help = said.out + said.err
        own = launch_of(name)
        self.supports = frozenset(word for word in own.probes if word in self.help)

    def start(self, *native: str, session: str = "", is_yolo: bool = False) -> str:
        """Start it; the id it should be on."""
        own = launch_of(self.name)
        intent = Intent(
            session=session, new_id=str(uuid.uuid4()), is_yolo=is_yolo, supports=self.supports, cwd=HERE
        )
        argv = launch.compose(adapter(self.name), own.read(native), native, intent)
        self.world.run(self.name, *argv.arguments, cwd=HERE, timeout_s=120)
        return argv.session

    def sizes(self) -> dict[str, int]:
        """The sessions in its store: id to size."""
        found = {file.stem[-36:]: file for file in self.world.home.glob(STORES[self.name])}
        return {session: file.stat().st_size for session, file in found.items()}


@pytest.fixture
def agent(make_world: Callable[..., World]) -> Callable[[str], Agent]:
    return lambda name: Agent(make_world(name), name)


def test_claude_takes_our_id_resumes_it_and_forks_it(agent: Callable[[str], Agent]) -> None:
    claude = agent("claude")
    extra = EXTRA["claude"]
    first = claude.start(*extra, "-p", "one")
    assert set(claude.sizes()) == {first}
    before = claude.sizes()[first]
    assert claude.start("-p", *extra, "--", "two", session=first) == first
    assert claude.sizes()[first] > before
    fork = claude.start(*extra, "--fork-session", "-p", "three", session=first)
    assert set(claude.sizes()) == {first, fork} != {first}
    assert claude.start(f"--resume={first}", "-p", "four", *extra) == first
    assert set(claude.sizes()) == {first, fork}


def test_codex_resumes_with_options_that_its_resume_does_not_know(agent: Callable[[str], Agent]) -> None:
    codex = agent("codex")
    extra = EXTRA["codex"]
    assert codex.start("exec", *extra, "one") == ""
    ((first, size),) = codex.sizes().items()
    for native in (
        ("exec", *extra, "-s", "read-only", "two"),
        ("exec", "three", "-C", HERE, "--json", *extra),
        ("-m", "gpt-5", "e", "--color", "never", *extra, "--", "four"),
    ):
        assert codex.start(*native, session=first, is_yolo=native[0] == "-m") == first
        assert set(codex.sizes()) == {first}
        assert codex.sizes()[first] > size
        size = codex.sizes()[first]


def test_opencode_resumes_behind_run(agent: Callable[[str], Agent]) -> None:
    opencode = agent("opencode")

    def sessions() -> list[str]:
        return re.findall(r"ses_\w+", opencode.world.run("opencode", "session", "list", cwd=HERE).out)

    assert opencode.start("run", "one") == ""
    (first,) = sessions()
    assert opencode.start("--print-logs", "run", "--dir", ".", "two", session=first, is_yolo=True) == first
    assert sessions() == [first]


@pytest.mark.parametrize("name", ["pi", "omp"])
def test_pi_and_omp_resume_what_they_began(agent: Callable[[str], Agent], name: str) -> None:
    one = agent(name)
    assert one.supports == set(launch_of(name).probes)
    named = one.start(*EXTRA[name], "-p", "one")
    ((first, size),) = one.sizes().items()
    assert named in ("", first)
    assert bool(named) is (name == "pi")
    assert one.start("-p", *EXTRA[name], "--", "two", session=first, is_yolo=True) == first
    assert set(one.sizes()) == {first}
    assert one.sizes()[first] > size


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "omp"])
def test_commands_of_today_are_known(agent: Callable[[str], Agent], name: str) -> None:
    """A new version's new command would be taken for a prompt."""
    text = agent(name).help
    section = re.search(r"(?ims)^commands:?$(.*?)(?=^\S|\Z)", text)
    assert section is not None
    lines = re.findall(r"(?m)^  (?:opencode )?([a-z][a-z|-]+)(?: .*|)$", section[1])
    commands = {word for line in lines for word in line.split("|")} - {name, "run", "exec", "resume", "fork"}
    assert len(commands) > 10
    unknown = {word for word in commands if not launch_of(name).read((word, "x")).is_passing}
    assert unknown == set()
