"""memctl logs: the daemon's log, newest last."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import deque

from memctl import paths
from memd.errors import Unavailable


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("logs", description="Show the daemon's log, newest last.")
    parser.add_argument(
        "-n", "--lines", type=int, default=50, metavar="N", help="how many lines (default 50)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines are written")
    parser.add_argument(
        "--json", action="store_true", help="the lines as they are stored: one JSON object each"
    )


def run(options: argparse.Namespace) -> int:
    path = paths.log_path()
    if not os.path.exists(path):
        raise Unavailable(f"there is no log yet at {paths.shown(path)}")
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in deque(file, maxlen=max(options.lines, 0)):
            _print(line, options.json)
        at = file.tell()
    while options.follow:
        sys.stdout.flush()
        time.sleep(0.25)
        at = _print_from(path, at, options.json)
    return 0


def _print_from(path: bytes, at: int, as_json: bool) -> int:
    """Print what was added after `at`, from the start when the file was rotated; how far that went."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            file.seek(at if os.fstat(file.fileno()).st_size >= at else 0)
            for line in iter(file.readline, ""):
                _print(line, as_json)
            return file.tell()
    except FileNotFoundError:
        return 0  # between two names: look again


def _print(line: str, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(line)
        return
    try:
        event = json.loads(line)
        stamp, level, name = event.pop("timestamp"), event.pop("level"), event.pop("event")
    except (ValueError, KeyError, AttributeError):
        sys.stdout.write(line)
        return
    words = "  ".join(f"{key}={value}" for key, value in event.items())
    sys.stdout.write(f"{stamp[:19]}Z  {level:<7}  {name}  {words}".rstrip() + "\n")
