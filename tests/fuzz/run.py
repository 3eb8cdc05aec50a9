"""Fuzzes what reads hostile bytes, each target in a process of its own, and prints what was tried.

    python tests/fuzz/run.py [--seconds N | --runs N] [--seed N] [--jobs N] [--list] [TARGET...]

TARGET is a name of `--list`, or the beginning of some. N seconds are for each target: with the usual 60
all of them take about 40 minutes on two cores. The corpora are made of the fixtures anew at each run. What
broke a promise is kept as a file in `--keep`, and the command that tries it again is printed; put the bytes
into `tests/fuzz/found/TARGET/`, and every ordinary run of the tests tries them.

Each run draws a seed and prints it. A search is the same again with its seed and its number of runs; the
short one in the tests has both fixed, so that it says of the same code the same every time.

Exit status 1: something was found; 69: atheris is not installed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "daemon"), str(ROOT / "ctl"), str(HERE.parent)]

MAX_INPUT_BYTES = 64 << 10
MEMORY_MB = 1024
GRACE_S = 240  # to begin and to end, on a machine that does much else
MAX_SEED = 1 << 31


@dataclass(frozen=True)
class Outcome:
    """said: the end of what the process printed, where something was found."""

    target: str
    runs: int
    covered: int
    found: tuple[Path, ...]
    said: str = ""

    @property
    def is_good(self) -> bool:
        return not self.found and not self.said


def is_installed() -> bool:
    return importlib.util.find_spec("atheris") is not None


def chosen(words: list[str]) -> list[str]:
    """The targets that the words name; raises LookupError for a word that names none."""
    from fuzz.targets import all_targets

    names = list(all_targets())
    picked: list[str] = []
    for word in words:
        some = [name for name in names if name == word] or [name for name in names if name.startswith(word)]
        if not some:
            raise LookupError(f"no target is called {word!r}; --list shows them")
        picked += some
    return list(dict.fromkeys(picked)) or names


@dataclass(frozen=True)
class Search:
    """How long each target is searched: `runs` inputs, or `seconds` where that is 0.

    seed         where chance begins; one seed and one number of runs are one search
    one_input_s  an input that takes longer is a finding
    timeout_s    a process that takes longer is one too; 0: its seconds and some more
    """

    seed: int
    seconds: int = 0
    runs: int = 0
    one_input_s: int = 10
    timeout_s: int = 0


def fuzz(target: str, search: Search, keep: Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="memd-fuzz-") as corpus:
        more = target.count(",")
        label = f"{target.partition(',')[0]} and {more} more" if more else target
        prefix = keep / f"{label.replace(' ', '-')}-"
        command = [
            sys.executable,
            str(HERE / "one.py"),
            target,
            corpus,
            f"-seed={search.seed}",
            f"-runs={search.runs}" if search.runs else f"-max_total_time={search.seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={search.one_input_s}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-artifact_prefix={prefix}",
            "-print_final_stats=1",
            "-len_control=0",
        ]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=search.timeout_s or search.seconds + GRACE_S,
                check=False,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
            said, status = (done.stdout + done.stderr).decode("utf-8", "replace"), done.returncode
        except subprocess.TimeoutExpired as late:
            said, status = f"it did not end: {(late.stderr or b'')[-2000:]!r}", 1
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said)
    covered = re.findall(r"cov: (\d+)", said)
    found = tuple(sorted(keep.glob(f"{prefix.name}*")))
    return Outcome(
        target=label,
        runs=int(counts[-1]) if counts else 0,
        covered=int(covered[-1]) if covered else 0,
        found=found,
        said="" if status == 0 and not found else said[-4000:],
    )


def fuzz_all(targets: list[str], search: Search, jobs: int, keep: Path) -> list[Outcome]:
    """In the order of `targets`; prints a line for each as it ends."""
    keep.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(lambda target: fuzz(target, search, keep), targets):
            word = "ok" if outcome.is_good else "FOUND"
            print(
                f"{outcome.target:24} {outcome.runs:>10,} runs {outcome.covered:>6} edges  {word}", flush=True
            )
            outcomes.append(outcome)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--runs", type=int, default=0, help="inputs for each target, in place of seconds")
    parser.add_argument("--seed", type=int, default=0, help="of an earlier search; by chance without")
    parser.add_argument("--jobs", type=int, default=2, help="at once (2)")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "memd-fuzz-found")
    parser.add_argument("--list", action="store_true")
    words = parser.parse_args()
    try:
        targets = chosen(words.targets)
    except LookupError as reason:
        print(reason.args[0], file=sys.stderr)
        return 64
    if words.list:
        print("\n".join(targets))
        return 0
    if not is_installed():
        print(
            "atheris is not installed: pip install -e '.[fuzz]' (CPython 3.11 to 3.13 on Linux)",
            file=sys.stderr,
        )
        return 69
    search = Search(
        seed=words.seed or random.randrange(1, MAX_SEED),
        seconds=words.seconds,
        runs=words.runs,
        timeout_s=24 * 3600 if words.runs else 0,
    )
    print(f"seed {search.seed}", flush=True)
    outcomes = fuzz_all(targets, search, words.jobs, words.keep)
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    for outcome in bad:
        print(f"\n== {outcome.target}\n{outcome.said}")
        for path in outcome.found:
            print(
                f"again: {sys.executable} {HERE / 'one.py'} {outcome.target} {tempfile.gettempdir()} {path}"
            )
    runs = sum(one.runs for one in outcomes)
    print(f"\n{len(outcomes)} targets, {runs:,} runs, {len(bad)} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
