"""From a login's appearance to its link, beside the bare watcher's callback at the same step."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from measure import PYTHON, Row, daemon, in_turn, sandbox, section

STEP_MS = 50
ROUNDS = 30
BARE = """
import sys, time, trio
from watchfiles import awatch
async def main():
    async for changes in awatch(sys.argv[1], step=int(sys.argv[2]), recursive=False, watch_filter=None):
        now = time.perf_counter()
        for _, path in changes:
            print(path, now, flush=True)
trio.run(main)
"""


class Bench:
    def __init__(self, base: Path, environment: dict[str, str]) -> None:
        self.base = base
        self.home = base / "home"
        self.number = 0
        for number in range(200):
            (self.home / f"junk{number}").mkdir()
        (base / "watched").mkdir()
        self.agent = self.home / "work" / "agent"
        (self.agent / ".git").mkdir(parents=True)
        self.key = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(self.agent))
        self.bare = subprocess.Popen(
            [PYTHON, "-c", BARE, str(base / "watched"), str(STEP_MS)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _staged(self, notes: int) -> Path:
        """A login that only has to be renamed into place, so that its appearance is one event."""
        self.number += 1
        made = self.base / f"staged{self.number}"
        made.mkdir()
        (made / ".credentials.json").write_text("{}")
        if notes:
            memory = made / "projects" / self.key / "memory"
            memory.mkdir(parents=True)
            for number in range(notes):
                body = f"line {self.number} {number}\n" * 110
                (memory / f"t{self.number}-{number}.md").write_text(body)
        return made

    def heal_ms(self, notes: int = 0) -> float:
        made = self._staged(notes)
        time.sleep(0.5 + 0.013 * (self.number % 7))  # let the last look end; meet every phase of the step
        login = self.home / f".claude-{self.number}"
        link = login / "projects" / self.key / "memory"
        began = time.perf_counter()
        os.rename(made, login)
        while not link.is_symlink():
            time.sleep(0.0005)
            if time.perf_counter() - began > 10:
                raise SystemExit("the login was not healed")
        return (time.perf_counter() - began) * 1e3

    def callback_ms(self) -> float:
        made = self._staged(0)
        time.sleep(0.3 + 0.013 * (self.number % 7))
        began = time.perf_counter()
        os.rename(made, self.base / "watched" / f"w{self.number}")
        assert self.bare.stdout is not None
        while True:
            path, _, now = self.bare.stdout.readline().strip().rpartition(" ")
            if path.endswith(f"/w{self.number}"):
                return (float(now) - began) * 1e3

    def copy_floor_ms(self) -> float:
        """50 files of 2 KB copied, flushed and renamed one by one, then the folder: the disk's own share."""
        made = self._staged(50)
        source = made / "projects" / self.key / "memory"
        target = self.base / f"copies{self.number}"
        target.mkdir()
        began = time.perf_counter()
        for entry in os.scandir(source):
            body = Path(entry.path).read_bytes()
            fd = os.open(target / ("." + entry.name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, body)
            os.fsync(fd)
            os.close(fd)
            os.rename(target / ("." + entry.name), target / entry.name)
        fd = os.open(target, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        return (time.perf_counter() - began) * 1e3


def main() -> int:
    with sandbox() as (base, environment):
        bench = Bench(base, environment)
        with daemon(environment):
            subprocess.run(
                [PYTHON, "-P", "-m", "memctl", "enroll", str(bench.agent)],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            time.sleep(1)
            empty, callback = in_turn(ROUNDS, bench.heal_ms, bench.callback_ms)
            full, callback2, copies = in_turn(
                10, lambda: bench.heal_ms(50), bench.callback_ms, bench.copy_floor_ms
            )
        bench.bare.kill()
        bench.bare.wait()
    allowed = [2 * bare + 1.5 * copy for bare, copy in zip(callback2, copies, strict=True)]
    return section(
        f"heal, step {STEP_MS} ms",
        [
            Row("new login, empty / bare callback", empty, callback, "ms", 2.0),
            Row("new login, empty / bare callback", empty, callback, "ms", 2.0, 0.95),
            Row("new login, empty / the 300 ms allowed", empty, [300.0], "ms", 1.0, 0.95),
            Row("new login with 50 notes / 2 x callback + 1.5 x copies", full, allowed, "ms", 1.0),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
