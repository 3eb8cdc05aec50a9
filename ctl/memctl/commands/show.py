"""memctl show: choose a project of this machine and an agent, and start it there."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memctl import view, work
from memctl.paths import shown
from memd.errors import UsageError

if TYPE_CHECKING:
    from memctl import show_projects, show_view
    from memd.harness.model import Adapter

OWN = ("--no-scan", "--json", "--yolo", "--fresh", "-h", "--help")
VALUED = ("--workspace",)

USAGE = """memctl show [--workspace W] [--no-scan] [--json] [--yolo] [--fresh]
                   [ARGUMENT ...]"""

DESCRIPTION = """Choose a project and an agent, and start it there as `memctl run` does. On offer are the
checkouts that were worked in, and what looks like a project in the current directory or right below it; a new
one is made there too. Type to filter, Enter chooses, Esc leaves. Everything from the first word on that is
none of these options is for the agent."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of memctl, `show` first, and those of the agent: from the first one on that is not ours."""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if word in VALUED:
            at += 2
        elif word in OWN or word.startswith(tuple(f"{name}=" for name in VALUED)):
            at += 1
        else:
            break
    return list(words[:at]), list(words[at:])


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("show", usage=USAGE, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--workspace", default="", metavar="W", help="only projects of this workspace")
    parser.add_argument("--no-scan", action="store_true", help="only checkouts that were worked in")
    parser.add_argument("--json", action="store_true", help="list them in one JSON document; start nothing")
    parser.add_argument("--yolo", action="store_true", help="as for `memctl run`")
    parser.add_argument("--fresh", action="store_true", help="as for `memctl run`")


def run(options: argparse.Namespace) -> int:
    if options.json and (options.rest or options.yolo or options.fresh):
        raise UsageError("--json starts nothing", remedy="Leave away what is for an agent.")
    if not options.json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("choosing needs a terminal", remedy="Use `memctl show --json`, then `memctl run`.")
    from memctl import ledger_address, registry, show_projects

    workspace = work.text(options.workspace).strip()
    here = work.asking()["cwd"]
    harnesses, ledger = show_projects.harnesses(), ledger_address.here()
    around = None if options.no_scan else here
    known = show_projects.known_scopes()
    found = show_projects.find(registry.links(), ledger, around, workspace, known)
    if options.json:
        view.print_json(
            {
                "ledger": ledger,
                "projects": [project.document() for project in found.projects],
                "harnesses": [adapter.name for adapter in harnesses],
            }
        )
    for warning in found.warnings:
        print(f"memctl: {warning}", file=sys.stderr)
    if options.json:
        return 0
    if not harnesses:
        raise UsageError(
            "no agent that memd can start was found in PATH",
            remedy="Install one, or put its folder into PATH; `memctl run --help` says more.",
        )
    return _choose(options, found.projects, harnesses, os.path.realpath(here), workspace)


def _choose(
    options: argparse.Namespace,
    projects: Sequence[show_projects.Project],
    harnesses: Sequence[Adapter],
    here: bytes,
    workspace: str,
) -> int:
    from memctl import chooser, paths, show_view

    offer = show_view.Offer(
        projects=projects,
        harnesses=[(adapter.name, adapter.title) for adapter in harnesses],
        parent=here,
        home=os.path.realpath(paths.home_dir()),
        can_go_on=not options.rest,
    )
    if chooser.can_move() and sys.stderr.isatty():
        from memctl import show_picker

        chosen = show_picker.pick(offer)
    else:
        from memctl import show_numbers

        chosen = show_numbers.pick(offer)
    return 0 if chosen is None else _start(options, chosen, here, workspace)


def _start(options: argparse.Namespace, chosen: show_view.Choice, here: bytes, workspace: str) -> int:
    from memctl import checkouts, launcher, ledger_address, registry

    if chosen.project is not None:
        link = chosen.project.link
    else:
        workspace = workspace or checkouts.scope_of(here)[0]
        path = _create(chosen.new, here, workspace)
        link = registry.Link(ledger_address.here(), workspace, chosen.new, path, "")
    checkouts.enter(link, "memctl show")
    where = f"{link.workspace}/{link.project} in {shown(link.path)}"
    print(
        f"memctl: {f'starting {chosen.word} for' if chosen.word else 'going on with'} {where}",
        file=sys.stderr,
    )
    return launcher.launch(
        launcher.Order(
            word=chosen.word,
            native=tuple(os.fsencode(argument) for argument in options.rest),
            workspace=link.workspace,
            project=link.project,
            is_yolo=options.yolo,
            is_fresh=options.fresh,
        )
    )


def _create(name: str, parent: bytes, workspace: str) -> bytes:
    from memctl import new_project
    from memctl.child import Ended, endable

    with endable():
        try:
            return new_project.create(name, parent, workspace)
        except Ended as reason:
            raise KeyboardInterrupt from reason
