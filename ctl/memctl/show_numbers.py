"""Choosing a project and an agent by numbers: for a terminal that can do no more, or without Textual."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from memctl import chooser, new_project
from memctl.show_projects import Project
from memctl.show_view import Choice, Offer, cut_before, fitting, place, plain, rows, starts

MAX_SHOWN = 15
ESCAPE = "\x1b"


def pick(offer: Offer) -> Choice | None:
    """None: the person leaves."""
    try:
        return _pick(offer)
    except KeyboardInterrupt:
        _write("\n")
        return None


def _pick(offer: Offer) -> Choice | None:
    shown = list(offer.projects)
    while True:
        _list(offer, shown)
        typed = _ask(f"Project [{'1' if shown else '+'}]: ")
        if typed is None:
            return None
        if typed == "+" or (not typed and not shown):
            name = _name(offer)
            if name:
                return _start(offer, None, name)
        elif not typed or (typed.isdecimal() and 1 <= int(typed[:9]) <= len(shown)):
            return _start(offer, shown[int(typed or 1) - 1], "")
        else:
            found = fitting(offer.projects, typed, offer.home)
            if not found:
                _write(f"Nothing fits {plain(typed)!r}.\n")
            shown = found or list(offer.projects)


def _list(offer: Offer, shown: Sequence[Project]) -> None:
    _write("Projects. Type a number, words to filter by, + for a new one, or q to leave.\n")
    width = shutil.get_terminal_size().columns - 6
    for number, line in enumerate(rows(shown[:MAX_SHOWN], offer.home, width), 1):
        _write(f"  {number:>2}  {line}\n")
    if len(shown) > MAX_SHOWN:
        _write(f"      and {len(shown) - MAX_SHOWN} more: type a part of the name\n")
    _write(f"   +  a new project in {cut_before(place(offer.parent, offer.home), width - 17)}\n")


def _name(offer: Offer) -> str:
    """The name of a new project; empty: none after all."""
    while True:
        typed = _ask("Name of the new project: ", leaving=(ESCAPE,))
        if not typed:
            return ""
        why = new_project.trouble(typed, offer.parent)
        if not why:
            return typed
        _write(f"{why}.\n")


def _start(offer: Offer, project: Project | None, name: str) -> Choice | None:
    """What to start there; None: the person leaves."""
    found = starts(offer, project)
    words = [word for word, _ in found]
    _write(f"Start in {place(project.path, offer.home) if project else name}:\n")
    for number, (_, text) in enumerate(found, 1):
        _write(f"  {number:>2}  {text}\n")
    while True:
        typed = _ask("Start [1]: ")
        if typed is None:
            return None
        if not typed:
            return Choice(project, name, words[0])
        if typed.isdecimal() and 1 <= int(typed[:9]) <= len(found):
            return Choice(project, name, words[int(typed) - 1])
        if typed in words:
            return Choice(project, name, typed)
        _write(f"Type a number from 1 to {len(found)}, or q to leave.\n")


def _ask(prompt: str, leaving: Sequence[str] = ("q", ESCAPE)) -> str | None:
    """What is typed, without blanks round it; None: the person leaves, or the input ends."""
    _write(prompt)
    line = chooser.read_line(lambda: None)
    if line is None:
        _write("\n")
        return None
    typed = line.strip()
    return None if typed in leaving else typed


def _write(text: str) -> None:
    out: TextIO = sys.stderr if sys.stderr.isatty() else sys.stdout
    out.write(text)
    out.flush()
