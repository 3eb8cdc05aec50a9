"""The hard cases under `tests/cases`: build one and see what its generator printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent / "cases"


def build(case: str, dest: Path, *words: str) -> dict[str, str]:
    """Run a case's generator on `dest`; returns the JSON object it printed."""
    run = subprocess.run(
        [sys.executable, "-B", str(CASES / case / "make.py"), str(dest), *words],
        check=True,
        capture_output=True,
    )
    printed = json.loads(run.stdout)
    assert isinstance(printed, dict)
    return printed
