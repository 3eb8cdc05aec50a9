"""memctl hook: what installed hooks do, for people who want to see it. Agents run a file of its own."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "hook",
        description=(
            "Tell memd of an event of an agent and print what the agent is to be told. The event's JSON is"
            " read from standard input. It ends with status 0 in any case; without an answer it prints what"
            " is harmless."
        ),
    )
    parser.add_argument("harness", metavar="HARNESS", help="claude, codex, opencode, pi, ...")
    parser.add_argument("event", metavar="EVENT", help="as the harness calls it, SessionStart for example")
    parser.add_argument("--wait", action="store_true", help="for an answer up to 2 s instead of 250 ms")
    parser.add_argument(
        "--keep", action="store_true", help="what stands on standard input, while memd is away"
    )
    parser.add_argument(
        "--else",
        dest="otherwise",
        metavar="ANSWER",
        help="what to print when memd does not answer; else what is harmless for that event",
    )


def run(options: argparse.Namespace) -> int:
    """Never by `memctl hook` itself, which goes the short way; by whoever calls this module."""
    from memctl import hook, quick

    words = [options.harness, options.event]
    words += ["--wait"] if options.wait else []
    words += ["--keep"] if options.keep else []
    words += ["--else", options.otherwise] if options.otherwise is not None else []
    return hook.main(words, quick.known_event)
