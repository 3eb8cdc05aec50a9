"""Fuzzes what reads hostile bytes, each target in a process of its own, and prints what was tried.

    python tests/fuzz/run.py [--seconds N] [--jobs N] [--list] [TARGET...]

TARGET is a name of `--list`, or the beginning of some. N seconds are for each target: with the usual 60
all of them take about 40 minutes on two cores. The corpora are made of the fixtures anew at each run. What
broke a promise is kept as a file in `--keep`, and the command that tries it again is printed; put the bytes
into `tests/fuzz/found/TARGET/`, and every ordinary run of the tests tries them.

Exit status 1: something was found; 69: atheris is not installed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
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
ONE_INPUT_S = 10  # an input that takes longer is a finding
MEMORY_MB = 1024
GRACE_S = 60  # to begin and to end


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


def fuzz(target: str, seconds: int, keep: Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="memd-fuzz-") as corpus:
        more = target.count(",")
        label = f"{target.partition(',')[0]} and {more} more" if more else target
        prefix = keep / f"{label.replace(' ', '-')}-"
        command = [
            sys.executable,
            str(HERE / "one.py"),
            target,
            corpus,
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={ONE_INPUT_S}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-artifact_prefix={prefix}",
            "-print_final_stats=1",
            "-len_control=0",
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds + GRACE_S, check=False
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


def fuzz_all(targets: list[str], seconds: int, jobs: int, keep: Path) -> list[Outcome]:
    """In the order of `targets`; prints a line for each as it ends."""
    keep.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(lambda target: fuzz(target, seconds, keep), targets):
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
    outcomes = fuzz_all(targets, words.seconds, words.jobs, words.keep)
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
