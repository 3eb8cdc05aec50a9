"""memctl setup: from an installed package to a machine whose agents share one memory, step by step."""

from __future__ import annotations

import argparse
import os
import sys

from memctl import asking, quick
from memctl.setup_steps import STEPS, Plan, Setup
from memd.errors import MemdError

NAMES = tuple(name for name, _ in STEPS)
NOTHING_DONE = 64


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "setup",
        description="Set memd up on this machine: the service that runs it, hooks in the agents that are "
        "here, one memory for the agent that lives in PATH, and what agents said before. Each step says what "
        "it would do and asks; what holds already is left alone.",
    )
    parser.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="an agent's home (default: here)"
    )
    parser.add_argument("--yes", action="store_true", help="do every step without asking")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--skip", action="append", default=[], choices=NAMES, help="leave a step out; may be repeated"
    )


def run(options: argparse.Namespace) -> int:
    setup = Setup(
        agent_home=os.path.abspath(os.fsencode(options.path)),
        is_dry=options.dry_run or not (options.yes or asking.can_ask()),
    )
    is_asking = not setup.is_dry and not options.yes
    worst = 0
    for number, (name, step) in enumerate(STEPS, 1):
        _title(f"{number}/{len(STEPS)} {name}")
        if name in options.skip:
            asking.say("left out", "  ")
            continue
        try:
            plan = step(setup)
            worst = max(worst, plan.trouble, _take(plan, is_dry=setup.is_dry, is_asking=is_asking))
        except MemdError as reason:
            asking.say(str(reason), "  ")
            asking.say(reason.remedy, "  -> ")
            worst = max(worst, reason.exit_status)
    if setup.is_dry:
        if options.dry_run:
            asking.say("Nothing was changed.")
            return worst
        asking.say("Nothing was done: nobody can be asked here. Repeat with --yes, or on a terminal.")
        return worst or NOTHING_DONE
    print(file=sys.stderr)
    return worst or quick.status([]) or 0


def _take(plan: Plan, *, is_dry: bool, is_asking: bool) -> int:
    """Do what a step is about, as far as that is wanted; the exit status."""
    asking.say(plan.says, "  ", plan.keep)
    if plan.do is None:
        return 0
    if plan.show is not None and (is_dry or is_asking):  # unasked it is done, and said in a line
        plan.show()
    if is_dry:
        return 0
    if not is_asking:
        if not plan.not_unasked:
            return plan.do()
        asking.say(f"left out: {plan.not_unasked}", "  ")
        return 0
    answer = asking.yes(f"  {plan.question}", usual=plan.usual)
    if answer:
        return plan.do()
    if answer is False and plan.declined is not None:
        plan.declined()
    asking.say("left out", "  ")
    return 0


def _title(text: str) -> None:
    is_bold = quick.wants_color(2)
    print(f"\x1b[1m{text}\x1b[0m" if is_bold else text, file=sys.stderr)
