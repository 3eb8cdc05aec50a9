"""What is asked of workstreams and handoffs: the inner part of `work` requests. Closed sets, version 1.

All of them are answered as rendered text. `memd.protocol` carries these.
"""

from __future__ import annotations

import msgspec


class Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    """cwd: the client's directory; `workspace` and `project`: what the command line says of the scope."""

    cwd: bytes
    workspace: str = ""
    project: str = ""


class Workstreams(Action, frozen=True, kw_only=True, tag="workstreams"):
    """The workstreams of a checkout, the selected one first."""

    limit: int = 20


AnyAction = Workstreams
