"""memctl enroll, memctl unenroll: which agent homes have one memory in all logins."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TypeVar

from memctl import asking, client, view
from memctl.lines import say
from memctl.paths import shown
from memd import protocol

R = TypeVar("R")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    enroll = subparsers.add_parser(
        "enroll",
        description="Give the agent that lives in PATH one memory, linked into every login of Claude Code.",
    )
    unenroll = subparsers.add_parser(
        "unenroll",
        description="Turn every link of an agent back into a real folder with a copy of its memory.",
    )
    for parser in (enroll, unenroll):
        parser.add_argument("path", nargs="?", default=".", help="the agent's directory (default: here)")
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument(
            "--yes", action="store_true", help="take the root that PATH lies in, without asking"
        )


def run(options: argparse.Namespace) -> int:
    path = os.path.abspath(os.fsencode(options.path))
    seen = client.client_config_dir()
    if options.command == "enroll":
        done = _confirmed(
            lambda yes: client.ask(
                protocol.Enroll(path=path, confirmed=yes, config_dir=seen), protocol.Enrolled
            ),
            "Enrol {} instead?",
            options.yes,
        )
        if done is None:
            return 77
        _show(done.agent, done.entries, options.json)
        if not options.json:
            word = "enrolled" if done.is_new else "already enrolled"
            say(f"{shown(done.agent.home)} is {word}; its memory is {shown(done.agent.owned)}")
            if not done.entries:
                say("No login was found yet; each one is linked the moment it appears.")
        return view.worst(done.entries)
    gone = _confirmed(
        lambda yes: client.ask(
            protocol.Unenroll(path=path, confirmed=yes, config_dir=seen), protocol.Unenrolled
        ),
        "Unenrol {}?",
        options.yes,
    )
    if gone is None:
        return 77
    _show(gone.agent, gone.entries, options.json)
    if not options.json:
        print(
            f"{shown(gone.agent.home)} is no longer enrolled; its memory stays in {shown(gone.agent.owned)}"
        )
    return view.worst(gone.entries)


def _confirmed(ask: Callable[[bool], R], question: str, yes: bool) -> R | None:
    """The reply; where memd wants a yes first, a person is asked for it. None: the answer was no."""
    try:
        return ask(yes)
    except client.Rejected as reason:
        if not client.needs_yes(reason) or not sys.stdin.isatty():
            raise
        print(f"{reason}", file=sys.stderr)
        if not asking.agreed(question.format(shown(reason.path))):
            print("nothing was changed", file=sys.stderr)
            return None
        return ask(True)


def _show(agent: protocol.Agent, entries: tuple[protocol.Entry, ...], as_json: bool) -> None:
    if as_json:
        view.print_json(
            {
                "home": shown(agent.home),
                "owned": shown(agent.owned),
                "entries": view.entries_json(entries),
            }
        )
    else:
        view.print_entries(entries)
