"""Fixtures for tests with real programs: installed once per run, a closed world per test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from real.harnesses import GIT_CONFIG, HARNESSES
from real.managed import Desk
from real.namespace import HOME
from real.programs import Program, require
from real.rig import World, why_not


@pytest.fixture(scope="session")
def claude_program() -> Program:
    return require("claude")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world without any agent program."""
    with _world(tmp_path) as made:
        yield made


@pytest.fixture
def claude_world(tmp_path: Path, claude_program: Program) -> Iterator[World]:
    """A world with Claude Code in it, and no login yet."""
    with _world(tmp_path, claude_program) as made:
        yield made


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes worlds with these programs in them; they end with the test."""
    with ExitStack() as worlds:
        count = itertools.count()
        yield lambda *names: worlds.enter_context(
            _world(tmp_path / str(next(count)), *(require(name) for name in names))
        )


@pytest.fixture
def open_desk(make_world: Callable[..., World]) -> Iterator[Callable[..., Desk]]:
    """Opens a checkout with these agents, memd and its hooks; what memd logged is no bug at the end."""
    opened: list[Desk] = []

    def open_one(*agents: str) -> Desk:
        opened.append(Desk(make_world(*agents), agents))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for desk in opened:
        assert "Traceback" not in desk.memd.log()


@contextmanager
def _world(tmp_path: Path, *programs: Program) -> Iterator[World]:
    """A world with these programs in it, or a skipped test."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    environment: dict[str, str] = {}
    for program in programs:
        environment |= HARNESSES[program.name].environment
    with World(
        tmp_path / "world",
        environment=environment,
        folders=[program.folder for program in programs],
        search=[folder for program in programs for folder in program.search],
    ) as made:
        made.put(f"{HOME}/.gitconfig", GIT_CONFIG)
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests with real programs did not run, and why: a skip must not pass for a proof."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        if "tests/real/" in report.nodeid and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        terminalreporter.write_line(f"real programs: {count} tests not run: {reason}", yellow=True)
