"""Running git: read-only questions with a time limit, as the client would run it.

Nothing in a repository is written or started: no lock is taken, the index is not refreshed, and a file system
monitor that the repository names is not run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence

import msgspec

ANSWER_S = 10.0
KEPT_BYTES = 1 << 20


class Answer(msgspec.Struct, frozen=True):
    """The beginning of what git printed, and size and SHA-256 of all of it."""

    head: bytes
    size: int
    sha256: str


class Git:
    """Asks the git of a client's PATH, with its HOME and nothing else of its environment.

    Calls block: they belong in a thread.
    """

    def __init__(self, variables: Mapping[str, bytes], timeout_s: float = ANSWER_S) -> None:
        path = os.fsdecode(variables.get("PATH", b"")) or os.defpath
        self._program = shutil.which("git", path=path)
        self._timeout_s = timeout_s
        self._environment = {
            "PATH": path,
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        for name in ("HOME", "XDG_CONFIG_HOME"):
            if name in variables:
                self._environment[name] = os.fsdecode(variables[name])

    def text(self, cwd: bytes, words: Sequence[str]) -> bytes | None:
        """All of a short answer; None when there is none, or it is long."""
        answer = self.ask(cwd, words)
        return None if answer is None or answer.size > KEPT_BYTES else answer.head

    def ask(self, cwd: bytes, words: Sequence[str]) -> Answer | None:
        """What git answers; None when it is missing, refuses or takes too long."""
        if self._program is None:
            return None
        command = [self._program, "--no-optional-locks", "-c", "core.fsmonitor=", *words]
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        assert process.stdout is not None
        limit = threading.Timer(self._timeout_s, process.kill)
        limit.start()
        head, size, digest = b"", 0, hashlib.sha256()
        try:
            with process.stdout as stdout:
                while chunk := stdout.read(1 << 16):
                    digest.update(chunk)
                    size += len(chunk)
                    head += chunk[: KEPT_BYTES - len(head)]
        finally:
            status = process.wait()
            limit.cancel()
        return Answer(head, size, digest.hexdigest()) if status == 0 else None
