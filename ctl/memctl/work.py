"""What commands about workstreams, handoffs and sessions say of the client, and how they print the answer."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, TypedDict

from memctl import client, quick
from memd import protocol
from memd import protocol_work as asked
from memd.errors import UsageError

VARIABLES = ("HOME", "XDG_CONFIG_HOME", "MEMD_IGNORE_MARKER")


class Asking(TypedDict):
    """The fields of `memd.protocol_work.Action`."""

    cwd: bytes
    workspace: str
    project: str
    variables: dict[str, bytes]
    path: bytes
    run: str


def add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", default="", metavar="W", help="instead of the directory's")
    parser.add_argument("--project", default="", metavar="P", help="instead of the directory's")


def asking(options: argparse.Namespace | None = None, *, is_anywhere: bool = False) -> Asking:
    """Who asks, and where. raises UsageError when the directory is gone

    is_anywhere  that does not matter: what is meant is named by its id
    """
    try:
        cwd = os.getcwdb()
    except OSError:
        if not is_anywhere:
            raise UsageError("this directory is gone", remedy="Change to one that exists.") from None
        cwd = b"/"
    environment = os.environb
    variables = {name: environment[name.encode()] for name in VARIABLES if environment.get(name.encode())}
    if config_dir := client.client_config_dir():
        variables["CLAUDE_CONFIG_DIR"] = config_dir
    return Asking(
        cwd=cwd,
        workspace=text(getattr(options, "workspace", "")),
        project=text(getattr(options, "project", "")),
        variables=variables,
        path=environment.get(b"PATH", b""),
        run=text(os.environ.get("MEMD_RUN_ID", "")),
    )


def text(words: str) -> str:
    """Words as a document can hold them: what is not UTF-8 in them becomes U+FFFD."""
    return os.fsencode(words).decode("utf-8", "replace")


def ask(action: asked.AnyAction, *, as_json: bool, color: bool | None = None) -> tuple[int, bytes]:
    """The exit status and what to print."""
    return client.ask_text(
        protocol.Work(
            action=action,
            form="json" if as_json else "text",
            color=quick.wants_color() if color is None else color,
            width=quick.columns(),
            config_dir=client.client_config_dir(),
        )
    )


def show(action: asked.AnyAction, *, as_json: bool) -> int:
    """Print the answer; the exit status."""
    code, body = ask(action, as_json=as_json)
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
    return code


def document(action: asked.AnyAction) -> Any:
    """The answer as a JSON value."""
    import json

    return json.loads(ask(action, as_json=True)[1])
