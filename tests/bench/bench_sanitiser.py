"""Scrubbing: milliseconds a megabyte of text for both gates, beside one alternation of twelve patterns.

The floor finds a fifth of the shapes, says only whether a text has one, and replaces nothing.

    MEMD_BENCH_SANITISER   megabytes of text, 8
"""

from __future__ import annotations

import importlib
import os
import random
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from floor import PATTERNS
from measure import ROOT, Row, in_turn, section

for folder in ("daemon", "ctl", "tests"):
    sys.path.insert(0, str(ROOT / folder))

SANITISER: Any = importlib.import_module("memd.ledger.sanitiser")
GATES: Any = importlib.import_module("memd.ledger.sanitiser.gates")
SECRETS: Any = importlib.import_module("support_secrets")

MEGABYTES = float(os.environ.get("MEMD_BENCH_SANITISER", "8"))
ROUNDS = 7
MEDIAN, SIGMA, LONGEST = (
    700,
    1.4,
    64 << 10,
)  # characters of an event: most are short, most text is in long ones
WITH_SECRET = 0.03  # of the mixed corpus's events


def clean(rng: random.Random) -> list[str]:
    """Source code in pieces as long as events are."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py"))
    events: list[str] = []
    room = int(MEGABYTES * 1e6)
    while room > 0:
        text = rng.choice(files).read_text(encoding="utf-8", errors="replace")
        at = 0
        while at < len(text) and room > 0:
            length = min(LONGEST, int(rng.lognormvariate(0, SIGMA) * MEDIAN) + 20)
            events.append(text[at : at + length])
            room -= len(events[-1])
            at += length
    return events


def mixed(events: Sequence[str], rng: random.Random) -> list[str]:
    """The same with a made-up secret in some of them, written in one of many ways."""
    ways = list(SECRETS.WAYS.values())
    return [
        text + rng.choice(ways)(SECRETS.make_up(rng.choice(SANITISER.SHAPES).made_up, rng).text)
        if rng.random() < WITH_SECRET
        else text
        for text in events
    ]


def cost(events: Sequence[str], act: Callable[[Sequence[str]], object]) -> Callable[[], float]:
    """Milliseconds of CPU a megabyte."""
    size = sum(map(len, events)) / 1e6

    def measure() -> float:
        began = time.process_time()
        act(events)
        return (time.process_time() - began) * 1e3 / size

    return measure


def main() -> int:
    rng = random.Random(1)
    alternation = re.compile("|".join(f"(?:{pattern.replace('(?i)', '')})" for pattern in PATTERNS))
    plain = clean(rng)
    corpora = {"clean": plain, "mixed": mixed(plain, rng)}
    gates = {"re2": 0.25, "stdlib": 1.5} if GATES.load_re2() is not None else {"stdlib": 1.5}
    rows = []
    speeds = []
    for name, events in corpora.items():
        for gate, target in gates.items():
            sanitiser = SANITISER.Sanitiser(gate=gate)
            ours, floor = in_turn(
                ROUNDS,
                cost(events, lambda texts, scrub=sanitiser.scrub: [scrub(text) for text in texts]),
                cost(events, lambda texts: [alternation.search(text) for text in texts]),
            )
            rows.append(Row(f"{name}, {gate}", ours, floor, "ms/MB", target))
            mine, other = 1e3 / min(ours), 1e3 / min(floor)
            speeds.append(f"  {rows[-1].what:<16} {mine:6.0f} MB/s   alternation {other:4.0f} MB/s")
    size = sum(map(len, plain)) / 1e6
    print(f"\nScrubbing {size:.1f} MB in {len(plain)} events, {len(SANITISER.SHAPES)} rows")
    print("\n".join(speeds))
    return section("Scrubbing beside one alternation of twelve patterns", rows)


if __name__ == "__main__":
    raise SystemExit(main())
