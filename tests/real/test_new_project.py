"""A new project, as real programs take it in: what they tell their model at the start holds its files.

source  the programs of tests/real/programs.py, run 2026-12
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from real.harnesses import HARNESSES
from real.managed import EXTRA
from real.namespace import HOME
from real.product import PYTHON_PATH
from real.rig import World

pytestmark = pytest.mark.real

ROOT = f"{HOME}/new"
MAKE = f"from memctl import new_project; new_project.create('new', b'{HOME}', 'default')"
TRUSTING = {"pi": ("--approve",)}  # else it loads no skill of a project


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "pi", "omp", "kimi", "command-code", "grok"])
def test_agents_are_told_of_the_skill_and_of_what_was_done_before(
    make_world: Callable[..., World], name: str
) -> None:
    world = make_world(name)
    world.run(sys.executable, "-c", MAKE, env={"PYTHONPATH": PYTHON_PATH})
    world.put_all(HARNESSES[name].settings([ROOT]))
    words = (*EXTRA.get(name, ()), *TRUSTING.get(name, ()))
    world.run(*HARNESSES[name].turn("hello", words), cwd=ROOT)
    first = world.turns()[0].text
    assert "Several agents may work here in turn." in first  # AGENTS.md
    assert "read a handoff for whoever goes on" in first  # the skill's description
