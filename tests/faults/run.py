"""Run everything of the matrix of faults, and say for each row what was tried and what came of it.

    python tests/faults/run.py [--long] [--row N ...] [--jobs N] [--list] [-- PYTEST WORDS]

It ends with 0 when every row has tests and none of them failed. A row of which nothing ran, because all was
skipped, is no failure, and is named with the reasons. What no test tries is printed as missing or open.
Ended by a signal it takes down what its tests made: processes, mounts, folders.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("daemon", "ctl", "tests")]

import pytest  # noqa: E402

import support_scratch  # noqa: E402
from faults.counting import Recorder, Tally  # noqa: E402
from faults.rows import ROWS, Row  # noqa: E402

LONGEST = ("tests/soak", "tests/faults/test_instances.py", "tests/faults/test_failing_calls.py")  # so: first
MOST_JOBS = 4  # unless more are asked for: each runs daemons of its own
COUNTED = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
LONG = {"MEMD_FULL_SWEEPS": "1"}


def belongs(nodeid: str, name: str) -> bool:
    """Whether a test is one of those that a row names."""
    if nodeid == name:
        return True
    return nodeid.startswith(name) and nodeid[len(name)] in ":[/"


def main(words: Sequence[str]) -> int:
    asked = _parsed(words)
    rows = [row for row in ROWS if not asked.row or row.number in asked.row]
    if asked.list:
        for row in rows:
            print(
                f"{row.number:3} {row.fault}: {row.how}", *(f"      {name}" for name in row.tests), sep="\n"
            )
        return 0
    if asked.long:
        os.environ.update(LONG)
    os.chdir(ROOT)
    return support_scratch.keep(lambda folder: sweep(rows, asked, folder))


def sweep(rows: Sequence[Row], asked: argparse.Namespace, folder: Path) -> int:
    """Run the tests of these rows, with all they put anywhere below `folder`; the status to end with."""
    there = [name for row in rows for name in row.tests if Path(name.split("::")[0]).exists()]
    if not asked.row:
        there = [*LONGEST, "tests/faults", *there]
    recorder = Recorder()
    words = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder / 't'}", *COUNTED]
    if asked.jobs > 1:
        words += ["-n", str(asked.jobs), "--dist", "loadfile", "--no-loadscope-reorder"]
    os.environ["PYTEST_PLUGINS"] = "faults.counting"  # in every process that runs tests
    status = pytest.main([*words, *asked.words, *dict.fromkeys(there)], plugins=[recorder])
    is_good = show(rows, recorder.tests, recorder.seconds())
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        print(f"pytest itself ended with {int(status)}")
        return int(status)
    return 0 if is_good and status == pytest.ExitCode.OK else 1


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the matrix of faults and print its table.")
    parser.add_argument("--long", action="store_true", help="every point, 300 kills, a minute of clients")
    parser.add_argument("--row", type=int, action="append", help="only this row; may be repeated")
    parser.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, MOST_JOBS), help="tests at a time"
    )
    parser.add_argument("--list", action="store_true", help="print the rows and their tests, run nothing")
    parser.add_argument("words", nargs="*", help="more words for pytest, after --")
    return parser.parse_args(words)


def show(rows: Iterable[Row], tests: dict[str, Tally], seconds: float) -> bool:
    """Print the table; whether nothing failed and nothing is missing."""
    print(
        f"\n{'row':>3} {'fault':34} {'tests':>6} {'points':>8} {'failed':>6} {'skipped':>7} {'cpu s':>6} "
        " result"
    )
    notes: list[str] = []
    is_good = True
    skipped_in_all = 0
    for row in rows:
        mine = {name: tally for name, tally in tests.items() if any(belongs(name, n) for n in row.tests)}
        missing = [name for name in row.tests if not any(belongs(test, name) for test in tests)]
        ends = Counter(tally.outcome for tally in mine.values())
        ran = ends["passed"] + ends["failed"]
        # a test that counts nothing by itself is one point
        points = sum(max(tally.points, 1) for tally in mine.values() if tally.outcome in ("passed", "failed"))
        result = "FAILED" if ends["failed"] else "MISSING" if missing else "ok" if ran else "not run"
        is_good = is_good and result in ("ok", "not run") and not ends["none"]
        skipped_in_all += ends["skipped"]
        print(
            f"{row.number:3} {row.fault[:34]:34} {ran:6} {points:8} {ends['failed']:6} {ends['skipped']:7}"
            f" {sum(tally.cpu_s for tally in mine.values()):6.0f}  {result}"
        )
        notes += [f"{row.number:3} missing: {name}" for name in missing]
        notes += [f"{row.number:3} open: {row.open}"] if row.open else []
        notes += [
            f"{row.number:3} failed: {name}" for name, tally in mine.items() if tally.outcome == "failed"
        ]
        reasons = Counter(tally.reason for tally in mine.values() if tally.outcome == "skipped")
        notes += [f"{row.number:3} skipped {count}: {reason}" for reason, count in reasons.items()]
        notes += [f"{row.number:3} measured: {text}" for tally in mine.values() for text in tally.figures]
    print(*([""] if notes else []), *notes, sep="\n")
    cpu_s = sum(tally.cpu_s for tally in tests.values())
    print(
        f"\n{len(tests)} tests in {seconds:.0f} s, {cpu_s:.0f} s of CPU, {skipped_in_all} skipped in the rows"
    )
    return is_good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
