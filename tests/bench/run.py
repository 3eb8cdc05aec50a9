"""Every benchmark in one run, each figure beside its floor; the exit status counts missed targets.

    run.py [--quick] [--write FILE] [bench_import bench_append ...]

--quick   small corpora and few rounds, some minutes: to see that all of it runs, not for figures
--write   put the table into a page, in place of the one between its two marks; of benchmarks that are named
          only their sections are replaced, and say so
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from measure import SECTIONS, Row, at

BENCHES = (
    "bench_daemon",
    "bench_launch",
    "bench_heal",
    "bench_store",
    "bench_sanitiser",
    "bench_import",
    "bench_append",
    "bench_search",
    "bench_hooks",
    "bench_hooks_away",
    "bench_crowd",
    "bench_postgres",
)
QUICK = {
    "MEMD_BENCH_IMPORT": "5",
    "MEMD_BENCH_ROUNDS": "1",
    "MEMD_BENCH_APPEND": "5",
    "MEMD_BENCH_LOAD": "50",
    "MEMD_BENCH_LEDGER": "50000",
    "MEMD_BENCH_HOOKS": "20",
    "MEMD_BENCH_FAULTS": "5",
    "MEMD_BENCH_EVENTS": "5000",
    "MEMD_BENCH_SEARCH": "20000",
    "MEMD_BENCH_IDLE": "10",
    "MEMD_BENCH_LAUNCHES": "5",
    "MEMD_BENCH_CROWD": "3",
}
NO_TARGET = 1e6
BEGIN = "<!-- figures: written by tests/bench/run.py --write, by nobody else -->"
END = "<!-- end of figures -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"of {', '.join(BENCHES)}; default: all")
    options = parser.parse_args()
    unknown = set(options.benches) - set(BENCHES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    page = options.write.read_text() if options.write else ""
    if options.write and (BEGIN not in page or END not in page):
        parser.error(f"{options.write} has no place for figures, between {BEGIN} and {END}")
    if options.quick:
        for name, value in QUICK.items():
            os.environ.setdefault(name, value)
    began = os.getloadavg()[0]
    missed, failed = 0, []
    for name in options.benches or BENCHES:
        try:
            missed += importlib.import_module(name).main()
        except (Exception, SystemExit) as reason:  # noqa: BLE001 - the others are still worth having
            print(f"\n{name} could not be measured: {type(reason).__name__}: {reason}", file=sys.stderr)
            failed.append(name)
        if options.write:  # each time, so that a run that is stopped leaves what it has
            load = began, os.getloadavg()[0]
            page = options.write.read_text()
            table = anew(page, load) if options.benches else render(load, failed, is_quick=options.quick)
            options.write.write_text(replaced(page, table))
    print(f"\n{missed} targets missed" if missed else "\nevery target met")
    return min(missed + len(failed), 125)


def replaced(page: str, table: str) -> str:
    """The page with another table between its marks."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{BEGIN}\n\n{table}\n{END}", page, count=1, flags=re.DOTALL)


def render(load: tuple[float, float], failed: Sequence[str], *, is_quick: bool) -> str:
    """The table of what was measured so far, in Markdown."""
    lines = [
        f"Measured on {_today()}, {platform.system()} {platform.release()}, {os.cpu_count()} processors"
        f" ({_processor()}), Python {platform.python_version()}; {_load(load)}"
        f"{'; the quick form, whose figures mean little' if is_quick else ''}.\n",
        *(section(title, rows) for title, rows in SECTIONS),
        *(f"{name} could not be measured in this run.\n" for name in failed),
    ]
    return "\n".join(lines)


def anew(page: str, load: tuple[float, float]) -> str:
    """The table of the page with the sections that were measured so far in place of those of their names."""
    table = page.partition(BEGIN)[2].partition(END)[0].strip() + "\n"
    head, *parts = re.split(r"^(?=### )", table, flags=re.MULTILINE)
    kept = {part.partition("\n")[0]: part.rstrip() + "\n" for part in parts}
    note = f"Measured by itself on {_today()}; {_load(load)}."
    for title, rows in SECTIONS:
        made = section(title, rows, note)
        kept[made.partition("\n")[0]] = made
    return "\n".join([head.rstrip() + "\n", *kept.values()])


def section(title: str, rows: Sequence[Row], note: str = "") -> str:
    """One benchmark's part of the table."""
    lines = [
        f"### {title[0].upper()}{title[1:]}",
        "",
        *([note, ""] if note else []),
        "| what / beside what | | ours | spread | beside | spread | ratio | at most | |",
        "| --- | --- | ---: | --- | ---: | --- | ---: | ---: | --- |",
    ]
    for row in rows:
        word = "p50" if row.quantile == 0.5 else f"p{row.quantile * 100:.0f}"
        is_shown = row.target >= NO_TARGET or "for scale" in row.what or "(shown)" in row.what
        verdict = "" if is_shown else "met" if row.ratio <= row.target else "**missed**"
        lines.append(
            f"| {row.what} | {word} | {_number(at(row.ours, row.quantile))} {row.unit} |"
            f" {_spread(row.ours)} | {_number(at(row.floor, row.quantile))} {row.unit} |"
            f" {_spread(row.floor)} | {row.ratio:.2f} | {'' if is_shown else f'{row.target:g}'} |"
            f" {verdict} |"
        )
    return "\n".join([*lines, ""])


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")


def _load(load: tuple[float, float]) -> str:
    return f"load average {load[0]:.1f} at the start and {load[1]:.1f} at the end"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _spread(samples: Sequence[float]) -> str:
    return "" if len(samples) < 2 else f"{_number(min(samples))}–{_number(max(samples))}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


if __name__ == "__main__":
    raise SystemExit(main())
