"""Fixtures for tests with real programs: installed once per run, a closed world per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from real.harnesses import GIT_CONFIG, HARNESSES
from real.namespace import HOME
from real.programs import Program, require
from real.rig import World, why_not


@pytest.fixture(scope="session")
def claude_program() -> Program:
    return require("claude")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world without any agent program."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with World(tmp_path / "world") as made:
        made.put(f"{HOME}/.gitconfig", GIT_CONFIG)
        yield made


@pytest.fixture
def claude_world(tmp_path: Path, claude_program: Program) -> Iterator[World]:
    """A world with Claude Code in it, and no login yet."""
    with World(
        tmp_path / "world",
        environment=HARNESSES["claude"].environment,
        folders=[claude_program.folder],
        search=claude_program.search,
    ) as made:
        made.put(f"{HOME}/.gitconfig", GIT_CONFIG)
        yield made
