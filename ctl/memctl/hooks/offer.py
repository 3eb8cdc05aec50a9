"""Agents that are on this machine and have no hooks of memd yet: named, and on a yes wired.

A no is remembered in `hooks-declined.json` in the state folder, so that nobody is asked twice for one file:

    {"version": 1, "declined": [{"agent": "claude", "path": "/home/me/.claude/settings.json"}]}
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from memctl import asking, files, paths
from memctl.hooks import install as hook_install
from memctl.hooks import interpreter as hook_interpreter
from memctl.hooks import places as hook_places
from memctl.hooks import record as hook_record
from memctl.hooks import view as hook_view
from memctl.hooks.install import Change
from memctl.paths import shown
from memd.errors import MemdError
from memd.harness import registry

VERSION = 1

WHAT_FOR = (
    "With hooks an agent tells memd of its sessions as it works, and takes up what memd has to tell. All "
    "else in its settings stays as it is; `memctl uninstall-hooks` takes them out again."
)


def unwired(*, start: bool) -> list[Change]:
    """The files of agents on this machine that hooks, or newer ones, would go into, or cannot (`refused`).

    start   a daemon where none runs: it knows of logins
    raises  MemdError
    """
    adapters = hook_places.resolve(())
    variables = {os.fsdecode(name): value for name, value in os.environb.items()}
    homes, _ = hook_places.logins(adapters, start=start)
    places = hook_places.present(adapters, homes, variables, is_named=False)
    if not places:
        return []
    changes = hook_install.plan_installs(
        places, hook_record.read(), hook_interpreter.current(), hook_interpreter.runs
    )
    return [change for change in changes if change.state == "refused" or change.is_needed]


def names(changes: Sequence[Change]) -> str:
    """The agents, in words."""
    titles = list(dict.fromkeys(registry.adapters()[change.agent].title for change in changes))
    return " and ".join([", ".join(titles[:-1]), titles[-1]] if len(titles) > 1 else titles)


def show(changes: Sequence[Change]) -> None:
    """The change to each file, on standard error."""
    for change in changes:
        hook_view.print_diff(change.summary(), 2)


def install(changes: Sequence[Change]) -> int:
    """Put them in, and say so; the exit status."""
    from memctl.commands import install_hooks

    agents = list(dict.fromkeys(change.agent for change in changes))
    return install_hooks.run(
        argparse.Namespace(command="install-hooks", agent=agents, apply=True, json=False, trust=False)
    )


# ------------------------------------------------------------------------------------- after `up`


def offer(*, assume_yes: bool) -> int:
    """Say which agents are not wired and offer to wire them: once on a terminal. The exit status."""
    try:
        changes = [change for change in unwired(start=True) if change.state != "refused"]
        if not assume_yes:
            refused = declined()
            changes = [change for change in changes if _key(change) not in refused]
    except MemdError as reason:
        print(f"memctl: whether agents have hooks cannot be seen: {reason}", file=sys.stderr)
        return 0
    if not changes:
        return 0
    count = "has no hooks" if len({change.agent for change in changes}) == 1 else "have no hooks"
    if any(change.state == "outdated" for change in changes):
        count += ", or older ones,"
    found = f"{names(changes)} {count} of memd yet."
    if assume_yes:
        return install(changes)
    if not asking.can_ask():
        asking.say(f"{found} `memctl install-hooks` shows them, --apply installs them.")
        return 0
    print(file=sys.stderr)
    asking.say(f"{found} {WHAT_FOR} This would change:")
    print(file=sys.stderr)
    show(changes)
    answer = asking.yes("\nInstall these hooks?", usual=False)
    if answer:
        return install(changes)
    if answer is not None:
        decline(changes)
        asking.say("Not asked again. `memctl install-hooks --apply` installs them any time.")
    return 0


# ----------------------------------------------------------------------------- what was said no to


def declined_path() -> bytes:
    return paths.state_dir() + b"/hooks-declined.json"


def declined() -> frozenset[tuple[str, str]]:
    """Agent and file of every no; none when that is not known. raises DiskError"""
    content = files.read(declined_path())[0]
    try:
        document = json.loads(content or b"{}")
        return frozenset((str(row["agent"]), str(row["path"])) for row in document.get("declined", []))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return frozenset()


def decline(changes: Sequence[Change]) -> None:
    """Remember a no. What cannot be written down is asked again."""
    try:
        rows = sorted(declined() | {_key(change) for change in changes})
        document = {"version": VERSION, "declined": [{"agent": agent, "path": path} for agent, path in rows]}
        old = files.read(declined_path())[0]
        files.write(declined_path(), (json.dumps(document, indent=1) + "\n").encode("ascii"), old, 0o600)
    except MemdError as reason:
        print(f"memctl: the answer is not remembered: {reason}", file=sys.stderr)


def _key(change: Change) -> tuple[str, str]:
    return change.agent, shown(change.path)
