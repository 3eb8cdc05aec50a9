"""memctl install-hooks, uninstall-hooks: memd's hooks in agents' settings; shown unless told to apply."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memctl import view
from memctl.hooks import files as hook_files
from memctl.hooks import install as hook_install
from memctl.hooks import interpreter as hook_interpreter
from memctl.hooks import places as hook_places
from memctl.hooks import record as hook_record
from memctl.hooks import view as hook_view
from memctl.hooks.command import HOOK_NAME
from memctl.hooks.install import Change
from memctl.hooks.places import Place
from memctl.hooks.trust import Trusting
from memd.errors import MemdError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    install = subparsers.add_parser(
        "install-hooks",
        description="Have agents tell memd of their sessions, and take up what memd has to tell. Puts hooks, "
        "a plug-in or an extension into the settings of every agent on this machine; all else in them stays, "
        "byte for byte. Without --apply it only shows the change.",
    )
    install.add_argument(
        "--trust", action="store_true", help="also have Codex trust them (asks once on a terminal)"
    )
    uninstall = subparsers.add_parser(
        "uninstall-hooks",
        description="Take memd's hooks out of agents' settings again. "
        "Without --apply it only shows the change.",
    )
    for parser in (install, uninstall):
        parser.add_argument(
            "--agent", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
        )
        parser.add_argument("--apply", action="store_true", help="make the change")
        parser.add_argument("--json", action="store_true", help="one JSON document")


class Result(msgspec.Struct, kw_only=True):
    """What became of one file."""

    change: Change
    is_changed: bool = False
    copy: bytes | None = None
    trust: str = ""  # as Codex sees it; empty where that is nothing to ask for

    def document(self) -> dict[str, Any]:
        return {
            "agent": self.change.agent,
            "path": hook_view.shown(self.change.path),
            "state": self.change.state,
            "changed": self.is_changed,
            "diff": self.change.diff(),
            "backup": hook_view.shown(self.copy) if self.copy else None,
            "notices": list(self.change.notices),
            "error": self.change.error or None,
            "remedy": self.change.remedy or None,
            **({"trust": self.trust} if self.trust else {}),
        }


def run(options: argparse.Namespace) -> int:
    if options.command == "install-hooks":
        return _install(options)
    return _uninstall(options)


# ------------------------------------------------------------------------------- install


def _install(options: argparse.Namespace) -> int:
    adapters = hook_places.resolve(options.agent)
    homes, trouble = hook_places.logins(adapters, start=True)
    places = hook_places.present(adapters, homes, variables(), is_named=bool(options.agent))
    interpreter = hook_interpreter.current()
    notices = [f"memd could not be asked for other logins: {trouble}"] if trouble else []
    notices += [
        f"{one} and {other} load plug-ins from one folder, {hook_view.shown(folder)}: each file leaves "
        "the other program alone, so nothing is told twice. To keep them apart give one a folder of its own."
        for one, other, folder in hook_places.shared(places)
    ]
    notices += [
        f"{hook_view.shown(folder)} holds no file for hooks to stand in: make one, then repeat the command"
        for _, folder in hook_places.empty(adapters, variables(), is_named=bool(options.agent))
    ]
    with hook_record.lock() if options.apply else contextlib.nullcontext():
        changes = hook_install.plan_installs(places, hook_record.read(), interpreter, hook_interpreter.runs)
        changes = _together(places, changes)
        if options.apply and any(change.state != "refused" for change in changes):
            hook_files.place()  # before anything names it
        results = _carried_out(changes, is_wanted=options.apply)
    for place, result in zip(places, results, strict=True):
        _add_caveats(place, result)
    trusting = Trusting(is_wanted=options.trust, is_told=options.apply, is_asking=not options.json)
    for place, result in zip(places, results, strict=True):
        if result.change.state != "refused":
            result.trust = trusting.settle(place, result.change)
    if options.json:
        view.print_json([result.document() for result in results])
    else:
        hook_view.show_install(results, notices, is_applied=options.apply)
        trusting.show()
    if not places and not options.json:
        print("No agent was found here that memd has hooks for. Name one with --agent.", file=sys.stderr)
    return _worst(results) or trusting.exit_status


def _together(places: Sequence[Place], changes: Sequence[Change]) -> list[Change]:
    """Of files that get hooks all or none: none, when one of them cannot."""
    bad = {
        place.group: change
        for place, change in zip(places, changes, strict=True)
        if place.group and change.state == "refused"
    }
    made = []
    for place, change in zip(places, changes, strict=True):
        first = bad.get(place.group)
        if first is not None and change.state != "refused" and change.is_needed:
            change = msgspec.structs.replace(
                change,
                state="refused",
                error=f"{hook_view.shown(change.path)} stays as it is, as does {hook_view.shown(first.path)}",
                remedy=first.remedy,
                exit_status=first.exit_status,
            )
        made.append(change)
    return made


def _add_caveats(place: Place, result: Result) -> None:
    if result.change.state == "refused":
        return
    told = tuple(f"{caveat.message}. {caveat.remedy}" for caveat in hook_places.caveats(place))
    result.change = msgspec.structs.replace(result.change, notices=(*result.change.notices, *told))


# ----------------------------------------------------------------------------- uninstall


def _uninstall(options: argparse.Namespace) -> int:
    adapters = hook_places.resolve(options.agent)
    homes, _ = hook_places.logins(adapters, start=False)
    with hook_record.lock() if options.apply else contextlib.nullcontext():
        record = hook_record.read()
        changes = []
        for place in hook_places.everywhere(adapters, homes, variables(), record):
            noted = record.of(place.agent, place.settings.path)
            change = hook_install.plan_uninstall(place.agent, place.hooks, place.settings, noted)
            if change.is_needed or change.notices or (change.state == "refused" and _is_ours(change, noted)):
                changes.append(change)
        results = _carried_out(changes, is_wanted=options.apply)
    if options.json:
        view.print_json([result.document() for result in results])
    else:
        hook_view.show_uninstall(results, is_applied=options.apply)
    return _worst(results)


def _is_ours(change: Change, noted: object) -> bool:
    """Whether a file that is not understood may hold hooks of ours."""
    content = hook_places.look(change.path)
    return content is not None and (noted is not None or HOOK_NAME.encode() in content)


# -------------------------------------------------------------------------------- common


def variables() -> Mapping[str, bytes]:
    """The shell's environment, for the places that the agents' own variables name."""
    return {os.fsdecode(name): value for name, value in os.environb.items()}


def _carried_out(changes: Sequence[Change], *, is_wanted: bool) -> list[Result]:
    """The changes made, each for itself, and noted; one that fails does not stop the others."""
    results = []
    if is_wanted:
        hook_install.note_before(changes)
    for change in changes:
        result = Result(change=change)
        if is_wanted and change.state != "refused" and change.is_needed:
            try:
                result.copy = hook_install.apply(change)
                result.is_changed = True
            except MemdError as reason:
                result.change = msgspec.structs.replace(
                    change,
                    state="refused",
                    error=str(reason),
                    remedy=reason.remedy,
                    exit_status=reason.exit_status,
                )
        results.append(result)
    if is_wanted:
        hook_install.note_after([result.change for result in results])
    return results


def _worst(results: Sequence[Result]) -> int:
    return max((result.change.exit_status for result in results), default=0)
