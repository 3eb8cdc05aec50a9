"""What `memctl run` adds to the start of an agent: a child that does nothing, with memd and without.

The child is a shell script by an agent's name. Beside it: the same script alone, and the same after a Python
that imports what memctl must (argparse and the protocol). From the start of memctl to its end, so that it
holds the preparing, the child itself, the last look at the store and the closing of the run.

    MEMD_BENCH_LAUNCHES   rounds, 20
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench_daemon import console_script
from bench_import import wait_for_rest
from measure import PYTHON, Row, daemon, in_turn, sandbox, section, wall_ms

ROUNDS = int(os.environ.get("MEMD_BENCH_LAUNCHES", "20"))
IMPORTS = "import argparse, subprocess; from memd import protocol"


def main() -> int:
    with sandbox() as (base, environment):
        programs = base / "bin"
        programs.mkdir()
        agent = programs / "claude"
        agent.write_text("#!/bin/sh\nexit 0\n")
        agent.chmod(0o755)
        environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
        checkout = base / "home" / "app"
        checkout.mkdir()
        subprocess.run(["git", "init", "-q", str(checkout)], check=True, env=environment)
        script = console_script(base)
        with daemon(environment) as child:
            wait_for_rest(child.pid, environment)
            launched = _in(checkout, [str(script), "run", "claude"])
            ours, bare, python = in_turn(
                ROUNDS,
                lambda: wall_ms(launched, environment),
                lambda: wall_ms([str(agent)], environment),
                lambda: wall_ms([PYTHON, "-c", IMPORTS], environment),
            )
    floor = [one + other for one, other in zip(bare, python, strict=True)]
    return section(
        "memctl run of a child that does nothing",
        [
            Row("launch / python with its imports and the child", ours, floor, "ms", 2.5),
            Row("launch / the child alone (for scale)", ours, bare, "ms", 999.0),
        ],
    )


def _in(folder: Path, command: list[str]) -> list[str]:
    return ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command]


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
