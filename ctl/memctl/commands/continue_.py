"""memctl continue: from anywhere, go on in the checkout that was used last."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memctl import ledger_address, registry, work
from memctl.checkouts import Objection, enter, newest_first, objection
from memctl.paths import shown
from memctl.registry import Link
from memd.errors import NotFound

MAX_NAMED = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "continue",
        description="Go on where you left off, in the checkout that was used last: the same as `memctl run` "
        "without a name in its directory.",
    )
    parser.add_argument("--workspace", default="", metavar="W", help="only checkouts of this workspace")
    parser.add_argument("--yolo", action="store_true", help="as for `memctl run`")
    parser.add_argument("--fresh", action="store_true", help="as for `memctl run`")


def run(options: argparse.Namespace) -> int:
    workspace = work.text(options.workspace).strip()
    chosen = choose(registry.links(), workspace)
    print(
        f"memctl: going on with {chosen.workspace}/{chosen.project} in {shown(chosen.path)}", file=sys.stderr
    )
    enter(chosen, "memctl continue")
    from memctl import cli

    words = [f"--{word}" for word in ("yolo", "fresh") if getattr(options, word)]
    return cli.run(["run", *words])


def choose(rows: Sequence[Link], workspace: str = "") -> Link:
    """The newest link that is good; those passed over are named on standard error. raises NotFound"""
    candidates, skipped = newest_first(rows, ledger_address.here(), workspace)
    chosen = None
    for link in candidates:
        reason = objection(link)
        if not reason:
            chosen = link
            break
        skipped.append(Objection(link, reason))
    for said in skipped[:MAX_NAMED]:
        print(f"memctl: passed over {said}", file=sys.stderr)
    if len(skipped) > MAX_NAMED:
        print(f"memctl: and {len(skipped) - MAX_NAMED} more", file=sys.stderr)
    if chosen is not None:
        return chosen
    where = f" in workspace {workspace!r}" if workspace else ""
    if not skipped:
        raise NotFound(
            f"no checkout{where} was worked in yet", remedy="Start in one of them, with `memctl run HARNESS`."
        )
    raise NotFound(
        f"of {len(skipped)} saved checkouts{where} none can be used",
        remedy="Go to the one you mean and start there, with `memctl run`.",
    )
