"""What reads hostile bytes keeps its promises: on seeds, on what was found before, on new inputs.

The long form is `python tests/fuzz/run.py`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz import run
from fuzz.mutate import twist
from fuzz.targets import all_targets

FOUND = Path(__file__).parent / "found"
TARGETS = all_targets()
TWISTS = 30
# Of all targets, in two processes of some forty seconds each, and always the same: a commit that changed
# nothing fails no more than the one before it. What is new is looked for by `run.py`, which draws another
# seed each time. The limits are for machines that do much else.
SHORT = run.Search(seed=20261103, runs=6_000, one_input_s=60, timeout_s=1200)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_variations_of_them_break_nothing(name: str) -> None:
    target = TARGETS[name]
    seeds = target.corpus()
    assert seeds
    rng = random.Random(name)
    for seed in seeds:
        target.run(seed)
    for _ in range(TWISTS):
        target.run(twist(rng.choice(seeds), rng, run.MAX_INPUT_BYTES, rng.choice(seeds)))


@pytest.mark.parametrize(
    "path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    TARGETS[path.parent.name].run(path.read_bytes())


def test_every_harness_and_engine_is_fuzzed() -> None:
    from memd.harness import registry

    for name, adapter in registry.adapters().items():
        wanted = {"identify"} | ({"hear"} if adapter.hooks else set())
        wanted |= {"rows"} if adapter.parse_rows else set()
        wanted |= {"parse", "state"} if adapter.parse else set()
        assert wanted <= {word.split(".")[-1] for word in TARGETS if word.startswith(f"{name}.")}
    assert {"kiro.kiro-v2.parse", "kiro.kiro-v3.parse"} <= TARGETS.keys()


@pytest.mark.skipif(not run.is_installed(), reason="atheris is not installed (pip install -e '.[fuzz]')")
def test_a_short_search_with_atheris_finds_nothing(tmp_path: Path) -> None:
    names = list(TARGETS)
    groups = [",".join(names[first::2]) for first in (0, 1)]
    outcomes = run.fuzz_all(groups, SHORT, 2, tmp_path / "found")
    assert [(outcome.target, outcome.said) for outcome in outcomes if not outcome.is_good] == []
    assert [outcome.runs for outcome in outcomes] == [SHORT.runs, SHORT.runs]
