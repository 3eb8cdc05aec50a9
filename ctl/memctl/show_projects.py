"""What `memctl show` offers: the saved checkouts, and what a look round the current directory finds.

The look goes one level deep: the directory itself and its direct children, at most `MAX_ENTRIES` entries,
without links, dot folders and folders of dependencies. Of a scope the ledger is asked when a daemon runs;
without one everything stays on offer.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from memctl import checkouts
from memctl.paths import shown
from memctl.registry import Link
from memd.errors import MemdError

if TYPE_CHECKING:
    from memd.harness.model import Adapter

MAX_ENTRIES = 4096
MAX_WARNINGS = 3
ANSWER_S = 5.0

SIGNS = (
    b".git",
    b".memd.toml",
    b".ai-memory.toml",
    b"Cargo.toml",
    b"package.json",
    b"pyproject.toml",
    b"requirements.txt",
    b"go.mod",
    b"Gemfile",
    b"composer.json",
    b"pom.xml",
    b"docker-compose.yml",
    b"compose.yml",
)
"""A directory that has one of these is a project."""

PASSED_OVER = frozenset(
    {b"node_modules", b"target", b"dist", b"build", b"vendor", b"venv", b".venv", b"__pycache__"}
)

Scope = tuple[str, str]


class Known(NamedTuple):
    """What the ledger says of a scope."""

    workstream_count: int
    event_count: int
    last_updated: str


class Project(NamedTuple):
    """A directory to start in.

    is_tracked    whether the ledger knows its scope; None: no daemon says so
    last_updated  RFC 3339, as the ledger says it, else when it was saved; empty: never used
    """

    workspace: str
    project: str
    path: bytes
    ledger: str
    source: Literal["registry", "scan"]
    is_tracked: bool | None = None
    workstream_count: int = 0
    event_count: int = 0
    last_updated: str = ""

    @property
    def link(self) -> Link:
        return Link(self.ledger, self.workspace, self.project, self.path, "")

    def document(self) -> dict[str, object]:
        return {
            "workspace": self.workspace,
            "project": self.project,
            "path": shown(self.path),
            "source": self.source,
            "tracked": self.is_tracked,
            "workstream_count": self.workstream_count,
            "event_count": self.event_count,
            "last_updated": self.last_updated or None,
        }


class Found(NamedTuple):
    """projects: last used first. warnings: lines for people"""

    projects: list[Project]
    warnings: list[str]


def find(
    links: Sequence[Link],
    ledger: str,
    around: bytes | None,
    workspace: str,
    known: Mapping[Scope, Known] | None,
) -> Found:
    """
    ledger     only links of this one
    around     the directory to look round in; None: only saved ones
    workspace  only projects of this one; empty: of all
    known      what the ledger knows; None: no daemon answered
    """
    warnings: list[str] = []
    found: dict[bytes, Project] = {}
    for link in links:
        if link.ledger != ledger or (workspace and link.workspace != workspace):
            continue
        if known is not None and (link.workspace, link.project) not in known:
            continue
        if reason := checkouts.objection(link):
            warnings.append(f"passed over {checkouts.Objection(link, reason)}")
        elif link.path not in found:
            found[link.path] = _project(link, "registry", known, link.linked_at)
    if around is not None:
        for path in _directories(around, warnings):
            if path in found:
                continue
            try:
                scope = checkouts.scope_of(path)
            except MemdError as reason:
                warnings.append(f"passed over {shown(path)}: {reason}")
                continue
            if not workspace or scope[0] == workspace:
                found[path] = _project(Link(ledger, *scope, path, ""), "scan", known, "")
    projects = sorted(found.values(), key=lambda one: (one.workspace, one.project, one.path))
    projects.sort(key=_used_at, reverse=True)  # stable: those of one moment stay in that order
    return Found(projects, _few(warnings))


def _project(
    link: Link, source: Literal["registry", "scan"], known: Mapping[Scope, Known] | None, saved_at: str
) -> Project:
    row = None if known is None else known.get((link.workspace, link.project))
    made = Project(
        link.workspace,
        link.project,
        link.path,
        link.ledger,
        source,
        None if known is None else row is not None,
    )
    if row is not None:
        return made._replace(**row._asdict())
    return made._replace(last_updated=saved_at if checkouts.moment(saved_at) is not None else "")


def _used_at(project: Project) -> datetime.datetime:
    return checkouts.moment(project.last_updated) or datetime.datetime.min.replace(tzinfo=datetime.UTC)


def _few(warnings: list[str]) -> list[str]:
    if len(warnings) <= MAX_WARNINGS:
        return warnings
    return [*warnings[:MAX_WARNINGS], f"passed over {len(warnings) - MAX_WARNINGS} more"]


# ------------------------------------------------------------------------------------ the look round


def _directories(around: bytes, warnings: list[str]) -> Iterator[bytes]:
    """Physical paths of directories that look like projects: the directory itself, then its children."""
    here = os.path.realpath(around)
    if _is_project(here):
        yield here
    children = []
    try:
        with os.scandir(here) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES:
                    warnings.append(f"looked at {MAX_ENTRIES} entries of {shown(here)}, and no further")
                    break
                if entry.name.startswith(b".") or entry.name in PASSED_OVER:
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        children.append(entry.path)
                except OSError:
                    continue
    except OSError as reason:
        warnings.append(f"cannot look round in {shown(here)}: {reason.strerror or reason}")
    yield from (path for path in sorted(children) if _is_project(path))


def _is_project(path: bytes) -> bool:
    return any(os.path.lexists(os.path.join(path, sign)) for sign in SIGNS)


# -------------------------------------------------------------------------------------- what is asked


def known_scopes() -> dict[Scope, Known] | None:
    """What a running daemon's ledger knows; None when none runs or it does not say. raises UsageError"""
    import json

    from memctl import client, work
    from memd import protocol
    from memd import protocol_work as asked

    request = protocol.Work(action=asked.Projects(**work.asking()), form="json")
    try:
        rows = json.loads(client.ask_text(request, start=False, timeout_s=ANSWER_S)[1])
    except (MemdError, ValueError):
        return None
    return {
        (row["workspace"], row["project"]): Known(
            row["workstream_count"], row["event_count"], row["last_updated"]
        )
        for row in rows
    }


def harnesses() -> list[Adapter]:
    """Those that memd can start and whose program is in PATH."""
    import shutil

    from memd.harness import registry as known

    return [
        adapter
        for adapter in known.adapters().values()
        if adapter.launch is not None and any(map(shutil.which, adapter.launch.executables))
    ]
