"""The hard cases under `tests/cases`: build one, see what its generator printed and what must come of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"


def make(case: str, dest: Path, *words: str) -> bytes:
    """Run a case's generator on `dest`; returns what it printed."""
    command = [sys.executable, "-B", str(CASES / case / "make.py"), str(dest), *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def build(case: str, dest: Path, *words: str) -> dict[str, str]:
    """Run a case's generator on `dest`; returns the JSON object it printed."""
    printed = json.loads(make(case, dest, *words))
    assert isinstance(printed, dict)
    return printed


def expectation(case: str) -> dict[str, Any]:
    """The parts of a case's outcome that a test can compare directly."""
    expected = json.loads((CASES / case / "expect.json").read_bytes())
    assert isinstance(expected, dict)
    return expected
