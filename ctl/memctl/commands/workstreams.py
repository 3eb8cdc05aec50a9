"""memctl workstreams, rename-workstream, workstream-search: lines of work in one checkout."""

from __future__ import annotations

import argparse
import os
import sys

from memctl import work
from memd import protocol_work as asked
from memd.errors import UsageError

MAX_LISTED = 100


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listing = subparsers.add_parser(
        "workstreams",
        description="The workstreams of this checkout: first the one that the next run goes on with.",
    )
    listing.add_argument(
        "action", nargs="?", choices=("bind",), help="bind: go on here with one of another checkout"
    )
    listing.add_argument("name", nargs="?", default="", metavar="NAME", help="of the one to bind")
    listing.add_argument("--workstream-id", metavar="ID", help="the one to bind, by its id")
    listing.add_argument(
        "--all", action="store_true", help="also those of other checkouts of this repository, on any machine"
    )
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many, up to 100")
    listing.add_argument("--offset", type=int, default=0, metavar="N", help="without the first N")
    rename = subparsers.add_parser(
        "rename-workstream", description="Give a workstream of this checkout another name."
    )
    which = rename.add_mutually_exclusive_group(required=True)
    which.add_argument("--from", dest="old", metavar="NAME", help="its name now")
    which.add_argument("--workstream-id", metavar="ID", help="its id")
    rename.add_argument("--to", required=True, metavar="NAME", help="its new name")
    search = subparsers.add_parser(
        "workstream-search",
        description="Search one workstream; without words its newest events. Words are literal; "
        '"two words" side by side; begin*.',
    )
    search.add_argument("query", nargs="*", metavar="WORD", help="words to look for")
    search.add_argument(
        "--workstream-id", metavar="ID", help="which one; inside a run that of the run (MEMD_WORKSTREAM_ID)"
    )
    search.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many, up to 100")
    for parser in (listing, rename):
        work.add_scope(parser)
    for parser in (listing, rename, search):
        parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    match options.command:
        case "workstreams":
            if not 1 <= options.limit <= MAX_LISTED:
                raise UsageError(f"--limit {options.limit}: it must be from 1 to {MAX_LISTED}")
            if options.offset < 0:
                raise UsageError(f"--offset {options.offset}: it must be at least 0")
            action: asked.AnyAction = asked.Workstreams(
                limit=options.limit, offset=options.offset, everywhere=options.all, **work.asking(options)
            )
            if options.action == "bind":
                if bool(options.name) == bool(options.workstream_id):
                    raise UsageError("say which workstream to bind", remedy="Give its name or its id.")
                action = asked.BindWorkstream(
                    name=work.text(options.name),
                    workstream_id=work.text(options.workstream_id or ""),
                    **work.asking(options),
                )
        case "rename-workstream":
            action = asked.RenameWorkstream(
                name=work.text(options.old or ""),
                workstream_id=work.text(options.workstream_id or ""),
                to=work.text(options.to),
                **work.asking(options),
            )
        case _:
            return _search(options)
    return work.show(action, as_json=options.json)


def _search(options: argparse.Namespace) -> int:
    id = options.workstream_id or os.environ.get("MEMD_WORKSTREAM_ID", "")
    if not id:
        raise UsageError(
            "no workstream is named",
            remedy="Give --workstream-id; `memctl workstreams` lists them. Inside a run it is known.",
        )
    action = asked.SearchWorkstream(
        workstream_id=work.text(id),
        query=work.text(" ".join(options.query)),
        limit=options.limit,
        **work.asking(is_anywhere=True),
    )
    if options.json and action.run:
        from memd.frame import NOTICE

        print(f"What was said in a workstream follows. {NOTICE}", file=sys.stderr)
    return work.show(action, as_json=options.json)
