"""memctl handoff: a note from one session to whoever goes on, read once."""

from __future__ import annotations

import argparse
import re
import sys

from memctl import work
from memd import protocol_work as asked
from memd.errors import UsageError

UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
MAX_LIFETIME_S = 366 * 86400
MAX_SUMMARY_BYTES = 1 << 18


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    handoff = subparsers.add_parser(
        "handoff",
        description="A note from one session to whoever goes on in this project. The next session is given "
        "it at its start, once.",
    )
    actions = handoff.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser(
        "create",
        help="write one; it takes the place of one that is still open",
        description="Write a handoff. It takes the place of one that is still open in this project.",
    )
    create.add_argument("summary", nargs="?", metavar="SUMMARY", help="else, or for -, standard input")
    create.add_argument("--question", action="append", default=[], metavar="Q", help="what is open")
    create.add_argument("--step", action="append", default=[], metavar="S", help="what comes next")
    create.add_argument("--file", action="append", default=[], metavar="F", help="what it is about")
    to = create.add_mutually_exclusive_group()
    to.add_argument("--to", default="", metavar="HARNESS", help="only for a session of this harness")
    to.add_argument("--workstream", default="", metavar="NAME", help="only for this workstream")
    create.add_argument(
        "--expires", default="", metavar="DURATION", help="30m, 4h, 2d or 1w from now; else a week"
    )
    listing = actions.add_parser("list", help="the open one and those before it")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many, up to 100")
    parsers = [create, listing]
    for name, says in (
        ("show", "how it reads; nobody has received it then"),
        ("accept", "take it yourself: no session will be given it"),
        ("cancel", "take it back"),
    ):
        parser = actions.add_parser(name, help=says)
        parser.add_argument("id", nargs="?", default="", metavar="ID", help="else the open one")
        parsers.append(parser)
    for parser in parsers:
        work.add_scope(parser)
        parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    asking = work.asking(options)
    action: asked.AnyAction
    match options.action:
        case "create":
            lifetime_s = duration_s(options.expires, "--expires")
            action = asked.CreateHandoff(
                summary=_summary(options.summary),
                questions=tuple(map(work.text, options.question)),
                steps=tuple(map(work.text, options.step)),
                files=tuple(map(work.text, options.file)),
                harness=work.text(options.to),
                workstream=work.text(options.workstream),
                lifetime_s=lifetime_s,
                **asking,
            )
        case "list":
            if options.limit < 1:
                raise UsageError(f"--limit {options.limit}: it must be at least 1")
            action = asked.ListHandoffs(limit=options.limit, **asking)
        case "show":
            action = asked.ShowHandoff(id=work.text(options.id), **asking)
        case "accept":
            action = asked.AcceptHandoff(id=work.text(options.id), **asking)
        case _:
            action = asked.CancelHandoff(id=work.text(options.id), **asking)
    return work.show(action, as_json=options.json)


def duration_s(text: str, option: str) -> int:
    """Seconds of a duration like 2d; 0 for none. raises UsageError"""
    if not text:
        return 0
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", text)
    seconds = int(found[1]) * UNITS_S[found[2]] if found else 0
    if not 0 < seconds <= MAX_LIFETIME_S:
        raise UsageError(f"{option} {text}: write 30m, 4h, 2d or 1w; at most a year")
    return seconds


def _summary(given: str | None) -> str:
    if given not in (None, "-"):
        return work.text(given or "")
    if given is None and sys.stdin.isatty():
        raise UsageError(
            "the handoff has no summary",
            remedy='Give it as an argument, or on standard input: `memctl handoff create "what is next"`.',
        )
    read = sys.stdin.buffer.read(MAX_SUMMARY_BYTES + 1)
    if len(read) > MAX_SUMMARY_BYTES:
        raise UsageError("the summary is too long", remedy="Shorten it to at most 16,000 characters.")
    return read.decode("utf-8", "replace")
