"""memctl status, the long way: what the short way could not print."""

from __future__ import annotations

import argparse
import sys

from memctl import client, quick
from memd import protocol
from memd.errors import Unavailable


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("status", description="What memd does and whether it is well.")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    answer = quick.status(["--json"] if options.json else [])
    if answer is not None:
        return answer
    pong = client.ping()
    if pong is None:
        raise Unavailable("memd does not answer as this memctl expects", remedy="Run `memctl up`.")
    print(f"memd {pong.version}, pid {pong.pid}: it does not speak this memctl's status", file=sys.stderr)
    client.ask(protocol.Diagnose(), protocol.Diagnosis, start=False)
    return 69
