"""Targets under atheris, in a process of their own: libFuzzer ends the process it runs in.

    python tests/fuzz/one.py TARGET[,TARGET...] CORPUS [libFuzzer's own options]

Of several targets an input begins with the name of its own and a line feed: so many share one process, which
costs seconds to begin.

With the same `-seed=` and `-runs=` and PYTHONHASHSEED=0 one search is like the other: seeds are handed over
in an order that stays, all chance comes from libFuzzer's, and nothing is read from the corpus's folder again.
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
    words, corpus, *options = sys.argv[1:]
    names = words.split(",")
    seeds = {name: TARGETS[name].corpus() for name in names}
    written = []
    for name in names:
        for number, seed in enumerate(seeds[name]):
            data = seed if len(names) == 1 else name.encode() + b"\n" + seed
            written.append(Path(corpus) / "seeds" / f"{name}-{number:03}")
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            written[-1].write_bytes(data)
    # a folder would be read in the order of its file system
    (Path(corpus) / "seeds.txt").write_text(",".join(map(str, written)))
    (Path(corpus) / "grown").mkdir(parents=True, exist_ok=True)
    options += [f"-seed_inputs=@{Path(corpus) / 'seeds.txt'}", "-reload=0"]

    def run(data: bytes) -> None:
        if len(names) == 1:
            TARGETS[names[0]].run(data)
            return
        head, _, rest = data.partition(b"\n")
        name = head.decode("ascii", "replace")
        if name in seeds:
            TARGETS[name].run(rest)

    def changed(data: bytes, limit: int, seed: int) -> bytes:
        rng = random.Random(seed)
        name, head = names[0], b""
        if len(names) > 1:
            first, _, data = data.partition(b"\n")
            name = first.decode("ascii", "replace")
            name = name if name in seeds else rng.choice(names)
            head = name.encode() + b"\n"
        limit = max(limit - len(head), 1)
        if rng.random() < 0.4:
            return head + bytes(atheris.Mutate(data, limit))
        return head + twist(data, rng, limit, rng.choice(seeds[name]) if seeds[name] else b"")

    atheris.Setup([sys.argv[0], *options, str(Path(corpus) / "grown")], run, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
