"""Checkouts made with the real git, apart from whatever configuration the person has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Dev",
    "GIT_AUTHOR_EMAIL": "dev@example.com",
    "GIT_COMMITTER_NAME": "Dev",
    "GIT_COMMITTER_EMAIL": "dev@example.com",
    "LC_ALL": "C",
}
VARIABLES = {"PATH": os.fsencode(ENVIRONMENT["PATH"]), "HOME": b"/nonexistent"}


def git(cwd: Path, *words: str) -> bytes:
    """What git prints; fails loudly."""
    return subprocess.run(
        ["git", *words], cwd=cwd, env=ENVIRONMENT, check=True, capture_output=True, stdin=subprocess.DEVNULL
    ).stdout


def answer(cwd: Path, *words: str) -> bytes:
    """What git prints, trimmed; empty when it refuses."""
    run = subprocess.run(
        ["git", *words], cwd=cwd, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL
    )
    return run.stdout.strip() if run.returncode == 0 else b""


def checkout(path: Path, *, origin: str = "") -> Path:
    """A repository with one commit."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", "-b", "main")
    (path / "README").write_text("hello\n")
    git(path, "add", "README")
    git(path, "commit", "-qm", "first")
    if origin:
        git(path, "remote", "add", "origin", origin)
    return path
