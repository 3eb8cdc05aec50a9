"""Where a client stands: the scope of its directory and the fingerprints of its checkout.

Everything that a client asks about a workstream goes by this, with the client's home and the client's git:
the daemon's own environment decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memd.git import Git
from memd.ledger.store.workstreams import Place
from memd.workstream import scope
from memd.workstream.scope import Scope

IGNORE_MARKER = "MEMD_IGNORE_MARKER"


class Located(msgspec.Struct, frozen=True, kw_only=True):
    scope: Scope
    place: Place


def locate(
    cwd: bytes,
    variables: Mapping[str, bytes],
    *,
    home: bytes,
    path: bytes = b"",
    workspace: str = "",
    project: str = "",
) -> Located:
    """Reads files and may ask git: it belongs in a thread.

    variables  the client's: `HOME`, and `MEMD_IGNORE_MARKER`, are what counts here
    home       when the client has none
    path       the client's PATH
    raises     UsageError for a relative directory and for names that cannot be, ConfigError for a marker that
               cannot be read as one
    """
    checkout = scope.checkout_of(cwd, Git({**variables, "PATH": path}).text)
    found = scope.resolve(
        cwd,
        variables.get("HOME") or home,
        workspace=workspace,
        project=project,
        ignore_marker=variables.get(IGNORE_MARKER) == b"1",
    )
    place = Place(
        workspace=found.workspace,
        project=found.project,
        repository=checkout.repository,
        worktree=checkout.worktree,
    )
    return Located(scope=found, place=place)
