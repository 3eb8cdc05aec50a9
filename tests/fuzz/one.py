"""One target under atheris, in a process of its own: libFuzzer ends the process it runs in.

python tests/fuzz/one.py TARGET CORPUS [libFuzzer's own options]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
sys.path[:0] = [str(ROOT / "daemon"), str(ROOT / "ctl"), str(TESTS)]

import atheris  # noqa: E402

with atheris.instrument_imports(include=["memd", "memctl"], enable_loader_override=False):
    from fuzz.targets import all_targets

    TARGETS = all_targets()  # adapters are imported by the first who asks for them

from fuzz.mutate import twist  # noqa: E402


def main() -> None:
    name, corpus, *options = sys.argv[1:]
    target = TARGETS[name]
    seeds = target.corpus()
    for number, seed in enumerate(seeds):
        (Path(corpus) / f"seed-{number:03}").write_bytes(seed)

    def changed(data: bytes, limit: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.4:
            return bytes(atheris.Mutate(data, limit))
        return twist(data, rng, limit, rng.choice(seeds) if seeds else b"")

    atheris.Setup([sys.argv[0], *options, corpus], target.run, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
