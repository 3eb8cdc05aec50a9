"""Every benchmark in one run, each figure beside its floor; the exit status counts missed targets."""

from __future__ import annotations

import importlib
import sys

BENCHES = (
    "bench_daemon",
    "bench_heal",
    "bench_store",
    "bench_sanitiser",
    "bench_import",
    "bench_append",
    "bench_search",
    "bench_postgres",
    "bench_hooks",
)


def main() -> int:
    wanted = sys.argv[1:] or BENCHES
    missed = sum(importlib.import_module(name).main() for name in wanted)
    print(f"\n{missed} targets missed" if missed else "\nevery target met")
    return min(missed, 125)


if __name__ == "__main__":
    raise SystemExit(main())
