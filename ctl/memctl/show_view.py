"""How `memctl show` writes its projects: lines that fit, and nothing that could trick a terminal. Pure."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from memd.workstream.adoption import age

if TYPE_CHECKING:
    from memctl.show_projects import Project

_ODD = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Offer(NamedTuple):
    """What there is to choose from.

    harnesses  word and title of those that can be started
    parent     where a new project would go
    can_go_on  a launch that names no harness is possible
    """

    projects: Sequence[Project]
    harnesses: Sequence[tuple[str, str]]
    parent: bytes
    home: bytes
    can_go_on: bool = True


class Choice(NamedTuple):
    """project: None for a new one, whose name is `new`. word: of a harness; empty: where one left off"""

    project: Project | None
    new: str
    word: str


def starts(offer: Offer, project: Project | None) -> list[tuple[str, str]]:
    """What may be started there: word and description. In another checkout of a project nothing was left."""
    found = [(word, f"{title}" if word == title else f"{word}  ({title})") for word, title in offer.harnesses]
    if project is not None and offer.can_go_on and project.source == "registry" and project.workstream_count:
        found.insert(0, ("", "go on where you left off"))
    return found


def plain(text: str) -> str:
    """The text with `?` for every sign that could move a cursor or turn the direction of writing."""
    return "".join("?" if unicodedata.category(sign) in _ODD else sign for sign in text)


def place(path: bytes, home: bytes) -> str:
    """A path for people, the home as `~`."""
    top = home.rstrip(b"/")
    if top and (path == top or path.startswith(top + b"/")):
        path = b"~" + path[len(top) :]
    return plain(path.decode("utf-8", "backslashreplace"))


def name(project: Project) -> str:
    """A project's name, with its workspace where that is not the usual one."""
    text = project.project if project.workspace == "default" else f"{project.workspace}/{project.project}"
    return plain(text)


def rows(projects: Sequence[Project], home: bytes, width: int, now: float | None = None) -> list[str]:
    """A line for each project, at most `width` columns wide: its name, when it was used, where it lies."""
    now = time.time() if now is None else now
    cells = [(name(one), age(one.last_updated, now), place(one.path, home)) for one in projects]
    first = min(max((cell_len(title) for title, _, _ in cells), default=0), max(width // 3, 12))
    second = max((len(when) for _, when, _ in cells), default=0)
    lines = []
    for title, when, where in cells:
        lead = f"{set_cell_size(cut(title, first), first)}  {when:<{second}}  "
        lines.append((lead + cut_before(where, width - cell_len(lead))).rstrip())
    return lines


def cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def cut_before(text: str, width: int) -> str:
    """The end of the text: of a path that is what tells it from others."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > max(width - 1, 0):
        text = text[1:]
    return "…" + text


def fitting(projects: Sequence[Project], words: str, home: bytes) -> list[Project]:
    """The projects whose workspace, name or path hold all the words, in any case. A slash may lead in."""
    wanted = words.removeprefix("/").casefold().split()
    return [
        one
        for one in projects
        if all(word in f"{one.workspace}/{one.project} {place(one.path, home)}".casefold() for word in wanted)
    ]
