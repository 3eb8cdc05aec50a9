"""Clients that write to the shared memory without a pause, whatever becomes of the daemon meanwhile.

Each goes on with a write until it is answered, under the same key, and notes what was answered. What a client
was told is kept must be there once, whole; what it was not told, whole or not at all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import IO

from support_daemon import Home

CLIENT = """
import io, sys
from memctl import cli
name, out = sys.argv[1], sys.stdout
number = 0
while True:
    text = f"line {name} {number} end"
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout = io.StringIO()
    words = ["memory", "write", f"Of {name}", "--summary", "s", "--key", f"{name}-{number}"]
    if cli.run(words) == 0:
        print(number, file=out, flush=True)
        number += 1
"""


def sharing(home: Home) -> Home:
    """The home with a shared memory folder in use."""
    (home.path / ".config/memd").mkdir(parents=True)
    (home.path / ".config/memd/memory.jsonc").write_text('{ "shared_dir": true }')
    (home.path / ".agents/memory").mkdir(parents=True)
    return home


class Writers:
    """Some of them in one home; `heard` is where each one's answers are kept."""

    def __init__(self, home: Home, heard: Path) -> None:
        self._home = home
        self._heard = heard
        heard.mkdir()
        self._running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        self._names: list[str] = []

    def start(self, name: str, **variables: str) -> None:
        file = (self._heard / name).open("wb")
        command = [sys.executable, "-P", "-c", CLIENT, name]
        child = subprocess.Popen(
            command,
            env={**self._home.environment, **variables},
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
        self._running.append((child, file))
        self._names.append(name)

    def answered(self) -> int:
        """How many writes were answered until now."""
        return sum(len((self._heard / name).read_bytes().split()) for name in self._names)

    def end(self) -> None:
        for child, file in self._running:
            child.kill()
            child.wait()
            file.close()
        self._running.clear()

    def check(self) -> int:
        """That all is kept that was answered, and how much that is. A daemon has to answer."""
        folder = self._home.path / ".agents/memory"
        done = self._home.memctl("memory", "write", "Last", "--summary", "s", stdin="text")
        assert done.returncode == 0, done.stderr
        for name in self._names:
            told = [int(number) for number in (self._heard / name).read_bytes().split()]
            assert told == list(range(len(told)))
            path = folder / f"of-{name}.md"
            text = path.read_text() if path.exists() else ""
            found = [int(number) for number in re.findall(rf"^line {name} (\d+) end$", text, re.MULTILINE)]
            assert found[: len(told)] == told
            rest = found[len(told) :]
            assert rest in ([], [len(told)]), "the one that was under way, whole or not at all"
            assert text.count("line") == len(found)
        left = {one.name for one in folder.iterdir()}
        assert left - {f"of-{name}.md" for name in self._names} == {"MEMORY.md", "last.md"}
        return self.answered()
