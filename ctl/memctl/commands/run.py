"""memctl run: start an agent in this checkout's workstream, or go on where the person left off."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

VALUED = ("--workspace", "--project", "--workstream", "--new", "--executable")

USAGE = """memctl run [--workspace W] [--project P] [--workstream N | --new N]
                  [--executable PATH] [--wait] [--carry] [--yolo] [--fresh]
                  [AGENT [ARGUMENT ...]]"""

DESCRIPTION = """Start an agent in this checkout's workstream: its own session goes on where it has one, and
it is told what other agents did meanwhile. Without AGENT, go on where you left off. Everything after AGENT is
for the agent itself, except --yolo and --fresh before a `--`. The exit status is the agent's."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of memctl, `run` first, and those from the agent's name on."""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if not word.startswith("-") or word == "-":
            break
        at += 2 if word in VALUED else 1
    return list(words[:at]), list(words[at:])


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("run", usage=USAGE, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--workspace", default="", metavar="W", help="instead of the directory's")
    parser.add_argument("--project", default="", metavar="P", help="instead of the directory's")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--workstream", default="", metavar="N", help="one that exists")
    chosen.add_argument("--new", default="", metavar="N", help="a new one of that name")
    parser.add_argument("--executable", default="", metavar="PATH", help="not the one in PATH")
    parser.add_argument(
        "--wait", action="store_true", help="wait for a workstream that somebody else has, however long"
    )
    parser.add_argument(
        "--carry", action="store_true", help="copy the session from the login it lies in, without asking"
    )
    parser.add_argument("--yolo", action="store_true", help="let the agent act without asking")
    parser.add_argument("--fresh", action="store_true", help="begin a new session")


def run(options: argparse.Namespace) -> int:
    from memctl import launcher
    from memctl.work import text

    word, *native = options.rest or [""]
    return launcher.launch(
        launcher.Order(
            word=text(word),
            native=tuple(os.fsencode(argument) for argument in native),
            workspace=text(options.workspace),
            project=text(options.project),
            workstream=text(options.workstream),
            new=text(options.new),
            executable=os.fsencode(options.executable),
            is_waiting=options.wait,
            carry=options.carry,
            is_yolo=options.yolo,
            is_fresh=options.fresh,
        )
    )
