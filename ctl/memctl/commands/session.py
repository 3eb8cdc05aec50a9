"""memctl session, adopt: a session that shall go on elsewhere."""

from __future__ import annotations

import argparse
import os

from memctl import work
from memd import protocol_work as asked


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    session = subparsers.add_parser("session", description="Move with a session.")
    actions = session.add_subparsers(dest="action", required=True, metavar="ACTION")
    carry = actions.add_parser(
        "carry",
        help="let a session of Claude Code go on in another login",
        description="Copy a session of Claude Code into the login in use (CLAUDE_CONFIG_DIR, else ~/.claude) "
        "so that it can be resumed there. The original stays, and nothing is overwritten.",
    )
    carry.add_argument("--session", required=True, metavar="ID", help="the session's id")
    carry.add_argument("--to", metavar="CONFIG_HOME", help="another login than the one in use")
    carry.add_argument("--from", dest="source", metavar="CONFIG_HOME", help="when several logins have it")
    adopt = subparsers.add_parser(
        "adopt",
        description="Bind a session to a workstream of this checkout, so that the next run goes on with it. "
        "Without --workstream and --new it is the workstream that the next run would use.",
    )
    adopt.add_argument("--session", required=True, metavar="ID", help="the session's id")
    adopt.add_argument("--harness", default="", metavar="H", help="when two harnesses share the id")
    which = adopt.add_mutually_exclusive_group()
    which.add_argument("--workstream", default="", metavar="NAME", help="this one")
    which.add_argument("--new", default="", metavar="NAME", help="a new one")
    work.add_scope(adopt)
    for parser in (carry, adopt):
        parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    action: asked.AnyAction
    if options.command == "adopt":
        action = asked.AdoptSession(
            session=work.text(options.session),
            harness=work.text(options.harness),
            workstream=work.text(options.workstream),
            new=work.text(options.new),
            **work.asking(options),
        )
    else:
        action = asked.CarrySession(
            session=work.text(options.session),
            to=_absolute(options.to),
            source=_absolute(options.source),
            **work.asking(),
        )
    return work.show(action, as_json=options.json)


def _absolute(path: str | None) -> bytes:
    return os.path.abspath(os.fsencode(path)) if path else b""
