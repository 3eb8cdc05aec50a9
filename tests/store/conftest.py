"""Every test of this folder runs on every engine; one that is not there is skipped with a reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_engines import ENGINES, Engines, Lines
from support_postgres import Server, needs_postgres
from support_postgres import server as a_server

_count = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with a_server() as running:
        yield running


@pytest.fixture(params=ENGINES)
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Engines:
    """How ledgers are made in this test."""
    if request.param == "sqlite":
        return Engines(tmp_path, None, "")
    needs_postgres()
    running: Server = request.getfixturevalue("postgres")
    return Engines(tmp_path, running, f"t{next(_count)}")


@pytest.fixture
def lines(engines: Engines) -> Iterator[Lines]:
    """An empty ledger."""
    with engines.open() as made:
        yield made
