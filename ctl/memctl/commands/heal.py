"""memctl heal: repair memory links now, or show the plan."""

from __future__ import annotations

import argparse
import os

from memctl import client, view
from memd import protocol


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "heal",
        description="Make every login's memory path a link to the agent's folder. What was there is merged.",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done; change nothing")
    parser.add_argument("--cwd", metavar="DIR", help="only the agent that work in DIR belongs to")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    cwd = os.path.abspath(os.fsencode(options.cwd)) if options.cwd else b""
    healed = client.ask(
        protocol.Heal(cwd=cwd, dry_run=options.dry_run, config_dir=client.client_config_dir()),
        protocol.Healed,
    )
    if options.json:
        view.print_json(view.entries_json(healed.entries))
    elif healed.entries:
        view.print_entries(healed.entries, planned=options.dry_run)
    else:
        print("nothing to heal: no enrolled agent" + (f" works in {options.cwd}" if cwd else ""))
    return view.worst(healed.entries)
