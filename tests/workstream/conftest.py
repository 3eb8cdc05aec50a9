"""What tests of workstreams share: they run on every engine of the ledger that there is here.

Flushing to the drive is left out: it proves nothing while all is up.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk
from support_engines import ENGINES, Engines
from support_postgres import Server, needs_postgres
from support_postgres import server as a_server
from support_runs import Runs
from support_workstreams import Lines

_count = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with a_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture(params=ENGINES)
def lines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lines]:
    engines = Engines(tmp_path, None, "")
    if request.param != "sqlite":
        needs_postgres()
        engines = Engines(tmp_path, request.getfixturevalue("postgres"), f"w{next(_count)}")
    with engines.open() as made:
        yield made


@pytest.fixture
def runs(lines: Lines) -> Runs:
    return Runs(lines)
