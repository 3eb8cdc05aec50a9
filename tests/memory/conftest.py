"""What all memory tests share. Flushing to the drive is left out: it proves nothing while the system is up.

`test_disk.py` and the fault tests see to it that it is asked for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memd import disk
from support_memory import World


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
