"""What tests of workstreams share. Flushing to the drive is left out: it proves nothing while all is up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk
from support_runs import Runs
from support_workstreams import Lines


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger") as made:
        yield made


@pytest.fixture
def runs(lines: Lines) -> Runs:
    return Runs(lines)
