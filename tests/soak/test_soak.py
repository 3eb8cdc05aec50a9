"""The short form of the soak: two minutes a day, or what MEMD_SOAK_MINUTES says. The long one is `run.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from soak import run
from soak.measure import Judgement, Sample, judged, slope

MINUTES = float(os.environ.get("MEMD_SOAK_MINUTES", "2"))
EVENTS = int(8_000 * MINUTES)  # less than the long form's: other tests want the machine too


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_day_leaks_nothing_and_loses_nothing(tmp_path: Path) -> None:
    found = run.play(tmp_path / "soak", MINUTES, EVENTS)
    assert [one for one in found if not one.is_good] == []


def sample(n: int, **more: int) -> Sample:
    facts = {
        "pss_kb": 90 << 10,
        "daemon_kb": 50 << 10,
        "descriptors": 40,
        "threads": 9,
        "database_bytes": n * 40_000,
        "segments_bytes": n * 10_000,
        "log_bytes": 4 << 20,
        "other_bytes": 5000,
    }
    return Sample(at_s=n * 10.0, life=0, events=n * 100 + 1, **{**facts, **more})


def bad(found: list[Judgement]) -> list[str]:
    return [one.what for one in found if not one.is_good]


def test_what_grows_is_seen() -> None:
    flat = [sample(n) for n in range(60)]
    assert bad(judged(flat, 0.2)) == []
    assert bad(judged([sample(n, pss_kb=(90 << 10) + n * 400) for n in range(60)], 0.2)) == [
        "memory",
        "of its worker",
    ]
    assert bad(judged([sample(n, daemon_kb=(50 << 10) + n * 400) for n in range(60)], 0.2)) == [
        "of the daemon"
    ]
    assert bad(judged([sample(n, descriptors=40 + n // 2) for n in range(60)], 0.2)) == ["descriptors"]
    assert bad(judged([sample(n, threads=9 + n // 2) for n in range(60)], 0.2)) == ["threads"]
    assert bad(judged([sample(n, database_bytes=n * n * 900) for n in range(60)], 0.2)) == ["database"]
    assert bad(judged([sample(n, segments_bytes=n * n * 900) for n in range(60)], 0.2)) == ["segments"]
    assert bad(judged([sample(n, log_bytes=n << 22) for n in range(60)], 0.2)) == ["database's log"]
    assert bad(judged([sample(n, other_bytes=n * 90_000) for n in range(60)], 0.2)) == [
        "log, state and spool"
    ]
    assert slope(
        [sample(n, pss_kb=n * 1024) for n in range(60)], lambda one: one.pss_kb / 1024
    ) == pytest.approx(360)
