"""memctl rename-project, move-project: other names in the ledger; nothing moves on the disk."""

from __future__ import annotations

import argparse
import json
import os
import sys

from memctl import ledger_address, registry, view, work
from memctl.checkouts import scope_of
from memctl.paths import shown
from memd import protocol_work as asked
from memd.errors import MemdError, UsageError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rename = subparsers.add_parser(
        "rename-project",
        description="Give a project another name in the ledger: its workstreams and handoffs, and where "
        "`memctl continue` finds it. No directory is renamed.",
    )
    rename.add_argument("--from", dest="old", required=True, metavar="A", help="its name now")
    rename.add_argument("--to", dest="new", required=True, metavar="B", help="its new name")
    move = subparsers.add_parser(
        "move-project", description="Let a project belong to another workspace. No directory is moved."
    )
    move.add_argument("--project", dest="old", required=True, metavar="P", help="its name")
    move.add_argument("--to", dest="new", required=True, metavar="WORKSPACE", help="its new workspace")
    for parser in (rename, move):
        parser.add_argument("--workspace", default="", metavar="W", help="its workspace now")
        parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    old, new = work.text(options.old).strip(), work.text(options.new).strip()
    if not old or not new:
        raise UsageError("a name is empty", remedy="Give both names.")
    asking = work.asking(options)
    asking["project"] = old
    is_rename = options.command == "rename-project"
    action = asked.RenameProject(
        to_project=new if is_rename else "", to_workspace="" if is_rename else new, **asking
    )
    done = work.document(action)
    before = done["previous_workspace"], done["previous_project"]
    after = done["workspace"], done["project"]
    count, hints = 0, []
    try:
        count = _rekey(before, after)
        hints = _hints(after)
    except MemdError as reason:  # the ledger has the new name already
        print(f"memctl: {reason}\n{reason.remedy}", file=sys.stderr)
    if options.json:
        view.print_json({**done, "links": count})
    else:
        counts = (
            (done["workstreams"], "workstream"),
            (done["handoffs"], "handoff"),
            (count, "saved checkout"),
        )
        told = ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts)
        print(f"{'/'.join(before)} is now {'/'.join(after)}: {told}")
    for hint in hints:
        print(hint, file=sys.stderr)
    return 0


def _rekey(before: tuple[str, str], after: tuple[str, str]) -> int:
    """The registry under the new name; how many links that changed."""
    ledger = ledger_address.here()
    count = sum(row.key == (ledger, *before) for row in registry.links())
    registry.change(lambda rows: registry.rekeyed(rows, ledger, before, after))
    return count if before != after else 0


def _hints(after: tuple[str, str]) -> list[str]:
    """A checkout goes by its marker, else by its folder's name: what must stand there from now on."""
    hints, ledger = [], ledger_address.here()
    for row in registry.links():
        if row.key != (ledger, *after) or not os.path.isdir(row.path):
            continue
        found = scope_of(row.path)
        if found != after:
            hints.append(
                f"{shown(row.path)} still counts as {'/'.join(found)}. To go on there under the new name,"
                f" let its .memd.toml say:\n"
                f"  workspace = {json.dumps(after[0], ensure_ascii=False)}\n"
                f"  project = {json.dumps(after[1], ensure_ascii=False)}"
            )
    return hints
