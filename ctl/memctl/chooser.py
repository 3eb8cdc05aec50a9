"""Asking a person before an agent starts: which session to take over, or yes and no.

On standard error and the terminal's input, so that what the agent prints stays clean. With Textual installed
(`memd[tui]`) on a terminal that can do it, a list to move in; else numbers. An interrupt ends it at once, and
whoever waits for the answer is called every `RENEW_S`.
"""

from __future__ import annotations

import importlib.util
import os
import select
import sys
import time
from collections.abc import Callable, Sequence

from memctl import asking
from memd.frame import harmless
from memd.protocol_runs import Choice
from memd.workstream.adoption import answer, ask_again, shown_id

RENEW_S = 30.0

Renew = Callable[[], None]


def choose(choices: Sequence[Choice], renew: Renew) -> str:
    """The session that is chosen; empty: a new one. raises KeyboardInterrupt, and what `renew` raises"""
    if can_move():
        from memctl import picker

        return picker.pick(choices, renew, RENEW_S)
    return by_number(choices, renew)


def confirm(question: str, renew: Renew) -> bool:
    """Yes or no; Enter is yes, the end of the input no."""
    while True:
        _write(f"{question} [Y/n] ")
        line = read_line(renew)
        if line is None:
            _write("\n")
            return False
        word = line.strip().casefold()
        if word in ("", "y", "yes"):
            return True
        if word in ("n", "no"):
            return False


def agree(question: str) -> bool:
    """As `asking.agreed`; of what was typed no more is taken than the line: the rest is the agent's."""
    return asking.agreed(harmless(question), lambda: read_line(lambda: None))


def by_number(choices: Sequence[Choice], renew: Renew) -> str:
    _write("Sessions that were begun here:\n")
    for number, one in enumerate(choices, 1):
        _write(f"  {number}  {described(one)}\n")
    _write("  0  begin a new session\n")
    while True:
        _write("Go on in [1]: ")
        line = read_line(renew)
        if line is None:
            _write("\n")
        chosen = answer(line, len(choices)).number
        if chosen is not None:
            return choices[chosen - 1].session if chosen else ""
        _write(ask_again(len(choices)) + "\n")


def described(one: Choice) -> str:
    """A session in one line."""
    events = f"{one.events} event{'' if one.events == 1 else 's'}"
    facts = ", ".join(part for part in (one.age, events) if part)
    return f"{shown_id(one.session)}  ({facts}){'  ' + one.title if one.title else ''}"


def read_line(renew: Renew) -> str | None:
    """What is typed until Enter; None at the end of the input."""
    held = b""
    due = time.monotonic() + RENEW_S
    while not held.endswith(b"\n"):
        left = due - time.monotonic()
        if left <= 0:
            renew()
            due = time.monotonic() + RENEW_S
            continue
        if select.select([0], [], [], left)[0]:
            more = os.read(0, 1)  # no more than this line, whatever is there already
            if not more:
                return held.decode("utf-8", "replace") if held else None
            held += more
    return held.decode("utf-8", "replace")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def can_move() -> bool:
    """Whether a list to move in can be shown here."""
    return os.environ.get("TERM", "dumb") not in ("dumb", "unknown") and (
        importlib.util.find_spec("textual") is not None
    )
