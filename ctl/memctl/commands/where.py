"""memctl where: where Claude Code keeps the memory of work done in a directory, and what memd makes of it."""

from __future__ import annotations

import argparse
import os

from memctl import client, view
from memctl.paths import shown
from memd import protocol


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "where", description="Where the memory of work done in PATH is kept, under every login."
    )
    parser.add_argument("path", nargs="?", default=".", help="a directory (default: here)")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    path = os.path.abspath(os.fsencode(options.path))
    found = client.ask(protocol.Where(path=path, config_dir=client.client_config_dir()), protocol.WhereReply)
    if options.json:
        view.print_json(
            {
                "root": shown(found.root),
                "key": found.key,
                "owned": shown(found.owned) if found.owned else None,
                "entries": [
                    {
                        "config_home": shown(place.config_home),
                        "path": shown(place.path),
                        "state": place.state,
                    }
                    for place in found.entries
                ],
            }
        )
        return 0
    owned = shown(found.owned) if found.owned else "each login's own (not enrolled)"
    lines = [f"root    {shown(found.root)}", f"key     {found.key}", f"memory  {owned}"]
    for place in found.entries:
        lines += ["", f"{shown(place.config_home)}  {place.state}", f"  {shown(place.path)}"]
    print("\n".join(lines))  # a path is never cut: it may be copied
    return 0
