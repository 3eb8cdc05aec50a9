"""memctl sessions, search, export, import: what the ledger holds."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time

from memctl import client, quick
from memd import protocol
from memd.errors import UsageError

STORE_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "OMP_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
"""Where a harness of this shell keeps its sessions, if not in the usual place; nothing else is sent."""

UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sessions = subparsers.add_parser(
        "sessions",
        description="The sessions of every agent, newest activity first. What memd notes of a run that was on"
        " no session it knows is none: `status` and `report` count none of these either.",
    )
    search = subparsers.add_parser(
        "search",
        description='Search all that agents said. Words are literal; "two words" side by side; begin*.',
    )
    search.add_argument("query", nargs="+", metavar="WORD", help="words to look for")
    for parser in (sessions, search):
        parser.add_argument("--harness", default="", metavar="H", help="only this harness")
        parser.add_argument("--cwd", default="", metavar="DIR", help="only sessions begun in DIR or below it")
        parser.add_argument("--limit", type=int, metavar="N", help="at most so many")
        parser.add_argument("--json", action="store_true", help="one JSON document")
    sessions.add_argument("--orphaned", action="store_true", help="only those whose directory is gone")
    search.add_argument("--role", default="", metavar="R", help="user, assistant or tool")
    search.add_argument(
        "--kind", default="", metavar="K", help="message, tool_call, tool_result, compaction, annotation"
    )
    search.add_argument(
        "--since", default="", metavar="T", help="a date, an RFC 3339 time, or 30m, 4h, 2d, 1w"
    )
    export = subparsers.add_parser("export", description="One session in order, as JSON lines or Markdown.")
    export.add_argument("--session", required=True, metavar="ID", help="as `memctl sessions` shows it")
    export.add_argument("--harness", default="", metavar="H", help="when two harnesses share the id")
    export.add_argument("--format", choices=["jsonl", "markdown"], default="jsonl", help="how it is printed")
    importing = subparsers.add_parser("import", description="Look at every store now.")
    importing.add_argument(
        "--wait", action="store_true", help="return when all that is visible now is in the ledger"
    )
    importing.add_argument("--store", metavar="DIR", help="a store outside the usual places")
    importing.add_argument("--harness", default="", metavar="H", help="whose store that is")


def run(options: argparse.Namespace) -> int:
    match options.command:
        case "sessions":
            code = _print(
                protocol.Sessions(
                    form="json" if options.json else "text",
                    color=quick.wants_color(),
                    width=quick.columns(),
                    harness=options.harness,
                    cwd=_absolute(options.cwd),
                    limit=_limit(options.limit, 0),
                    orphaned=options.orphaned,
                )
            )
            if options.orphaned and not options.json:
                hint = "`memctl adopt --session ID` binds one to the checkout that it shall go on in"
                print(hint, file=sys.stderr)
            return code
        case "search":
            return _print(
                protocol.Search(
                    query=_text(" ".join(options.query)),
                    form="json" if options.json else "text",
                    color=quick.wants_color(),
                    width=quick.columns(),
                    harness=options.harness,
                    cwd=_absolute(options.cwd),
                    role=options.role,
                    kind=options.kind,
                    since=since(options.since, time.time()),
                    limit=_limit(options.limit, 20),
                )
            )
        case "export":
            return _export(options)
    if options.store and not options.harness:
        raise UsageError("--store needs --harness: whose sessions are in it?")
    if options.store and not os.path.isdir(options.store):
        raise UsageError(f"--store {options.store}: there is no such directory", remedy="Check the path.")
    done = client.ask(
        protocol.Import(
            wait=options.wait,
            harness=options.harness,
            store=_absolute(options.store or ""),
            variables=store_variables(),
            config_dir=client.client_config_dir(),
        ),
        protocol.Done,
    )
    print(done.message, file=sys.stderr)
    return 0


def _export(options: argparse.Namespace) -> int:
    after = -1
    while True:
        request = protocol.Export(
            session=options.session, harness=options.harness, form=options.format, after=after
        )
        code, text = client.ask_text(request)
        reached, _, page = text.partition(b"\n")
        if not page or code:
            return code
        sys.stdout.buffer.write(page)
        after = int(reached)


def _print(request: protocol.Sessions | protocol.Search) -> int:
    code, text = client.ask_text(request)
    sys.stdout.buffer.write(text)
    return code


def store_variables() -> dict[str, bytes]:
    return {name: value for name in STORE_VARIABLES if (value := os.environb.get(name.encode(), b""))}


def since(text: str, now: float, option: str = "--since") -> str:
    """The RFC 3339 time that a date, a time or an age means; empty stays empty.

    raises  UsageError
    """
    if not text:
        return ""
    if age := re.fullmatch(r"(\d{1,6})([mhdw])", text):
        moment = time.gmtime(max(0.0, now - int(age[1]) * UNITS_S[age[2]]))
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)
    import datetime

    try:
        moment_in = datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError):  # the second: at an end of what a date can say
        raise UsageError(f"{option} {text}: neither a date, nor a time, nor an age like 2d") from None
    return moment_in.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(words: str) -> str:
    """What a terminal sent that is not UTF-8 becomes U+FFFD: it can be searched for, and found nowhere."""
    return os.fsencode(words).decode("utf-8", "replace")


def _absolute(path: str) -> bytes:
    return os.path.realpath(os.fsencode(path)) if path else b""


def _limit(given: int | None, usual: int) -> int:
    if given is None:
        return usual
    if given < 1:
        raise UsageError(f"--limit {given}: it must be at least 1")
    return given
