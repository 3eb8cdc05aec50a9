"""How much a test tried: every fault that was injected counts by itself, other tests say it.

`tests/faults/run.py` adds the counts up by row of its table and prints the figures. Elsewhere nobody asks.
"""

from __future__ import annotations

import os

_tried = 0
_figures: list[str] = []


def tried(count: int = 1) -> None:
    """So many more points, rounds or examples were tried by the test that runs now."""
    global _tried
    _tried += count


def share(total: int, turn: int, of: int) -> range:
    """The points that one of several kinds of fault takes when it shall not take long: all of them together
    take each point once. Where all is to be tried, each takes every point."""
    return range(total) if os.environ.get("MEMD_FULL_SWEEPS") else range(turn % of, total, of)


def figure(text: str) -> None:
    """Something measured that whoever reads the table should see, such as `ping p99 3.1 ms`."""
    _figures.append(text)


def taken() -> tuple[int, list[str]]:
    """What was tried and measured since the last time this was asked."""
    global _tried
    count, figures = _tried, list(_figures)
    _tried = 0
    _figures.clear()
    return count, figures
