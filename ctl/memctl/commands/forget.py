"""memctl forget, memctl ledger: taking things out of the ledger for good, and checking what is in it."""

from __future__ import annotations

import argparse
import os
import sys
import time

from memctl import asking, client, view
from memctl.commands.sessions import since
from memctl.lines import remark, say
from memd import protocol
from memd.errors import UsageError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    forget = subparsers.add_parser(
        "forget",
        description="Remove events from the ledger for good. What is forgotten never comes back.",
    )
    forget.add_argument("--session", default="", metavar="ID", help="one session")
    forget.add_argument("--harness", default="", metavar="H", help="with the others: only of this harness")
    forget.add_argument("--project", default="", metavar="DIR", help="sessions begun in DIR or below it")
    forget.add_argument("--before", default="", metavar="DATE", help="what was said before that")
    forget.add_argument("--matching", default="", metavar="QUERY", help="what a search for QUERY finds")
    forget.add_argument("--dry-run", action="store_true", help="only say what would go")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    forget.add_argument("--json", action="store_true", help="one JSON document")
    ledger = subparsers.add_parser("ledger", description="Look after the ledger.")
    actions = ledger.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", description="Compare rows and index with the segments.")
    check.add_argument("--repair", action="store_true", help="derive anew what disagrees")
    check.add_argument("--json", action="store_true", help="one JSON document")
    migrate = actions.add_parser(
        "migrate",
        description="Copy the ledger to another engine, compare both, and leave the first as it is. memd must"
        " be down. What was cut off is gone on with when it is begun again.",
    )
    migrate.add_argument("--to", required=True, choices=("postgresql", "sqlite"), help="which one")
    migrate.add_argument(
        "--without-forgotten", action="store_true", help="leave the record of what was forgotten behind"
    )
    migrate.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    if options.command != "ledger":
        return _forget(options)
    if options.action == "migrate":
        from memctl import migrate

        return migrate.run(options.to, as_json=options.json, without_forgotten=options.without_forgotten)
    return _check(options)


def _forget(options: argparse.Namespace) -> int:
    chosen = (options.session, options.project, options.before, options.matching)
    if not any(chosen):
        raise UsageError("say what to forget: --session, --project, --before or --matching")

    def request(dry_run: bool) -> protocol.Forget:
        return protocol.Forget(
            harness=options.harness,
            session=options.session,
            project=os.path.realpath(os.fsencode(options.project)) if options.project else b"",
            before=since(options.before, time.time(), "--before"),
            matching=options.matching,
            dry_run=dry_run,
        )

    if options.session or not (options.dry_run or options.yes):
        planned = client.ask(request(True), protocol.Forgotten)
        if options.session and not planned.session_count:
            _must_exist(options.session, options.harness)
        if planned.events and not (options.dry_run or options.yes) and not _agrees(planned):
            print("nothing was forgotten", file=sys.stderr)
            return 77
    done = client.ask(request(options.dry_run), protocol.Forgotten)
    if options.json:
        view.print_json(
            {
                "events": done.events,
                "sessions": [{"harness": harness, "id": session} for harness, session in done.sessions],
                "session_count": done.session_count,
                "segments": done.segments,
                "elsewhere": done.elsewhere,
                "handoffs": done.handoffs,
                "dry_run": options.dry_run,
            }
        )
        return 0
    word = "would be forgotten" if options.dry_run else "forgotten"
    events = view.count(done.events, "event")
    say(f"{events} of {view.count(done.session_count, 'session')} {word}")
    if done.elsewhere:
        say(f"{done.elsewhere} of them also stood in copies of these sessions")
    if done.handoffs:
        say(f"{view.count(done.handoffs, 'handoff')} {word} with them")
    return 0


def _must_exist(session: str, harness: str) -> None:
    """raises Rejected for a session that the ledger does not have, in the words of `export`"""
    client.ask_text(protocol.Export(session=session, harness=harness, after=(1 << 62)))


def _agrees(planned: protocol.Forgotten) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "forgetting cannot be undone", remedy="Repeat with --yes, or with --dry-run to look."
        )
    events = view.count(planned.events, "event")
    remark(f"{events} of {view.count(planned.session_count, 'session')} would be gone for good.")
    return asking.agreed("Forget them?")


def _check(options: argparse.Namespace) -> int:
    report = client.ask(protocol.CheckLedger(repair=options.repair), protocol.LedgerReport)
    left = report.problem_count - report.repaired
    if options.json:
        view.print_json(
            {
                "ok": left == 0,
                "events": report.events,
                "segments": report.segments,
                "problem_count": report.problem_count,
                "repaired": report.repaired,
                "problems": [
                    {"what": what, "where": where, "sentence": sentence}
                    for what, where, sentence in report.problems
                ],
            }
        )
        return 0 if left == 0 else 65
    for what, where, sentence in report.problems:
        say(f"{what}: {where}: {sentence}")
    say(
        f"{view.count(report.events, 'event')} in {view.count(report.segments, 'segment')}, "
        + (view.count(report.problem_count, "disagreement") if report.problem_count else "everything agrees")
        + (f", {report.repaired} repaired" if report.repaired else "")
    )
    if left:
        remark("`memctl ledger check --repair` derives rows and index from the segments again")
    return 0 if left == 0 else 65
