"""memctl enroll, memctl unenroll: which agent homes have one memory in all logins."""

from __future__ import annotations

import argparse
import os
import sys

from memctl import client, view
from memctl.paths import shown
from memd import protocol


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
    enroll.add_argument("--yes", action="store_true", help="enrol the repository's root without asking")


def run(options: argparse.Namespace) -> int:
    path = os.path.abspath(os.fsencode(options.path))
    if options.command == "enroll":
        return _enroll(path, options.yes, options.json)
    gone = client.ask(
        protocol.Unenroll(path=path, config_dir=client.client_config_dir()), protocol.Unenrolled
    )
    _show(gone.agent, gone.entries, options.json)
    if not options.json:
        print(
            f"{shown(gone.agent.home)} is no longer enrolled; its memory stays in {shown(gone.agent.owned)}"
        )
    return view.worst(gone.entries)


def _enroll(path: bytes, yes: bool, as_json: bool) -> int:
    def request(confirmed: bool) -> protocol.Enroll:
        return protocol.Enroll(path=path, confirmed=confirmed, config_dir=client.client_config_dir())

    try:
        done = client.ask(request(yes), protocol.Enrolled)
    except client.Rejected as reason:
        if not client.needs_yes(reason) or not sys.stdin.isatty():
            raise
        print(f"{reason}", file=sys.stderr)
        if input(f"Enrol {shown(reason.path)} instead? [y/N] ").strip().lower() not in ("y", "yes"):
            print("nothing was changed", file=sys.stderr)
            return 77
        done = client.ask(request(True), protocol.Enrolled)
    _show(done.agent, done.entries, as_json)
    if not as_json:
        word = "enrolled" if done.is_new else "already enrolled"
        print(f"{shown(done.agent.home)} is {word}; its memory is {shown(done.agent.owned)}")
        if not done.entries:
            print("No login was found yet; each one is linked the moment it appears.")
    return view.worst(done.entries)


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
