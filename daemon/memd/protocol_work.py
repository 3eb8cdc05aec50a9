"""What is asked of workstreams, handoffs and sessions: the inner part of `work` requests. Version 1.

All of them are answered as rendered text. `memd.protocol` carries these.
"""

from __future__ import annotations

import msgspec


class Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    """Who asks, and where.

    cwd        the client's directory; `workspace` and `project`: what the command line says of the scope
    variables  those of the client's that decide: HOME, XDG_CONFIG_HOME, MEMD_IGNORE_MARKER, CLAUDE_CONFIG_DIR
    path       the client's PATH
    run        the run that the client was started in (MEMD_RUN_ID); empty: none
    """

    cwd: bytes
    workspace: str = ""
    project: str = ""
    variables: dict[str, bytes] = {}
    path: bytes = b""
    run: str = ""


class Workstreams(Action, frozen=True, kw_only=True, tag="workstreams"):
    """The workstreams of a checkout, the selected one first; without the first `offset` of them.

    everywhere  also those of other checkouts of the same repository
    """

    limit: int = 20
    offset: int = 0
    everywhere: bool = False


class BindWorkstream(Action, frozen=True, kw_only=True, tag="bind-workstream"):
    """Let one of another checkout of the same repository belong to this one too; one field says which."""

    name: str = ""
    workstream_id: str = ""


class Projects(Action, frozen=True, kw_only=True, tag="projects"):
    """Every workspace and project that has a workstream, last used first. Always answered as JSON."""


class RenameWorkstream(Action, frozen=True, kw_only=True, tag="rename-workstream"):
    """Exactly one of `name` and `workstream_id` says which one."""

    to: str
    name: str = ""
    workstream_id: str = ""


class SearchWorkstream(Action, frozen=True, kw_only=True, tag="search-workstream"):
    """The best hits first; of an empty query the newest events first."""

    workstream_id: str
    query: str = ""
    limit: int = 20


class CreateHandoff(Action, frozen=True, kw_only=True, tag="create-handoff"):
    """harness, workstream: whom it is for, at most one of them. lifetime_s: 0 is the usual one"""

    summary: str
    questions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    harness: str = ""
    workstream: str = ""
    lifetime_s: int = 0


class ListHandoffs(Action, frozen=True, kw_only=True, tag="list-handoffs"):
    """The handoffs of a scope, the open one first."""

    limit: int = 20


class ShowHandoff(Action, frozen=True, kw_only=True, tag="show-handoff"):
    """Consumes nothing. id: empty is the open one of the scope; so in the two others"""

    id: str = ""


class AcceptHandoff(Action, frozen=True, kw_only=True, tag="accept-handoff"):
    id: str = ""


class CancelHandoff(Action, frozen=True, kw_only=True, tag="cancel-handoff"):
    id: str = ""


class CarrySession(Action, frozen=True, kw_only=True, tag="carry-session"):
    """Bring a session of Claude Code into another login.

    to      the config home it shall go on in; empty: the one in use
    source  the only one to take it from; empty: whichever has it
    """

    session: str
    to: bytes = b""
    source: bytes = b""


class AdoptSession(Action, frozen=True, kw_only=True, tag="adopt-session"):
    """Bind a session to a workstream of this checkout.

    workstream, new  which one; neither: the one that the next run would go on with
    """

    session: str
    harness: str = ""
    workstream: str = ""
    new: str = ""


class RenameProject(Action, frozen=True, kw_only=True, tag="rename-project"):
    """Another name or workspace for a project; `to_*` empty: as it is. `project`: its name now."""

    to_workspace: str = ""
    to_project: str = ""


AnyAction = (
    Workstreams
    | Projects
    | BindWorkstream
    | RenameWorkstream
    | SearchWorkstream
    | CreateHandoff
    | ListHandoffs
    | ShowHandoff
    | AcceptHandoff
    | CancelHandoff
    | CarrySession
    | AdoptSession
    | RenameProject
)
