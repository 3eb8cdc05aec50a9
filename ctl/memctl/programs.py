"""Other programs, run to their end: what they answered, within a bound."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

ASK_S = 20.0


class Answer(NamedTuple):
    status: int
    out: str
    err: str


Ask = Callable[[Sequence[str], Mapping[str, str], float], Answer]


def ask(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float) -> Answer:
    """Run a program to its end; a missing or hanging one is an answer with status 127 or 124."""
    try:
        done = subprocess.run(
            list(argv),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(124, "", f"{argv[0]} gave no answer within {timeout_s:.0f} s")
    except OSError as reason:
        return Answer(127, "", f"cannot run {argv[0]}: {reason.strerror or reason}")
    return Answer(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))


def last_line(answer: Answer) -> str:
    """What a program said last on its standard error, pointers to other programs left out."""
    lines = [line.strip() for line in answer.err.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("See ", "Hint:"))]
    return (told or lines or [f"exit status {answer.status}"])[-1]
