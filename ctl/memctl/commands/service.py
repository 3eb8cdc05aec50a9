"""memctl service install | uninstall | status."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from memctl import view
from memctl.lines import say
from memctl.paths import shown
from memctl.services import ServiceManager, ServiceState, judge, service_manager, service_state
from memd.errors import Unavailable

if TYPE_CHECKING:
    from memctl import service_install

NOT_RUNNING = 69

DID = {
    "create": "wrote",
    "update": "renewed",
    "same": "already right:",
    "keep": "kept",
    "remove": "removed",
    "none": "not there:",
}
WOULD = {
    **DID,
    "create": "would write",
    "update": "would renew",
    "remove": "would remove",
    "keep": "would keep",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "service", description="Run memd from `systemd --user` or launchd, from login on."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    install = actions.add_parser(
        "install",
        description="Write the service files for this installation of memd, enable and start them. "
        "Files that you edited are kept. Repeat it after memd was moved or upgraded.",
    )
    install.add_argument("--no-start", action="store_true", help="start with the next login, not now")
    install.add_argument("--dry-run", action="store_true", help="show the files, write and start nothing")
    uninstall = actions.add_parser(
        "uninstall", description="Stop the service and remove its files, except those that you edited."
    )
    uninstall.add_argument("--dry-run", action="store_true", help="say what would be removed, remove nothing")
    status = actions.add_parser(
        "status",
        description="Say what is installed and runs. Exit status: 0 well, 69 not installed or not running.",
    )
    for action in (install, uninstall, status):
        action.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    manager = service_manager()
    if manager is None:
        raise Unavailable(
            f"memd knows no service manager on {sys.platform}",
            remedy="Run it with `memctl up`, which needs none.",
        )
    if options.action == "status":
        return _status(manager, options.json)
    from memctl import service_install

    if options.action == "install":
        report = service_install.install(
            manager,
            service_install.this_installation(),
            start=not options.no_start,
            dry_run=options.dry_run,
        )
    else:
        report = service_install.uninstall(manager, dry_run=options.dry_run)
    if options.json:
        view.print_json(
            {
                "manager": manager.name,
                "dry_run": options.dry_run,
                "files": [
                    {
                        "path": shown(step.file.path),
                        "action": step.action,
                        "text": step.text.decode() if options.dry_run and step.text else None,
                    }
                    for step in report.steps
                ],
                "notes": list(report.notes),
                "ok": report.trouble is None,
            }
        )
    else:
        _print_report(report, options.dry_run)
    if report.trouble is not None:
        raise report.trouble
    return 0


def _print_report(report: service_install.Report, dry_run: bool) -> None:
    words = WOULD if dry_run else DID
    for step in report.steps:
        print(f"{words[step.action]} {shown(step.file.path)}")
        if dry_run and step.text:
            print(step.text.decode())
    for note in report.notes:
        print(note)


def _status(manager: ServiceManager, as_json: bool) -> int:
    state = service_state(manager)
    level, message, remedy = judge(state)
    running = state.running
    is_well = state.is_usable and state.is_active and level != "problem"
    if as_json:
        view.print_json(_as_json(state, level, message, remedy))
        return 0 if is_well else NOT_RUNNING
    say(message)
    if remedy:
        say(remedy)
    for file in state.files:
        by = f", written by memd {file.version}" if file.version else ""
        say(f"  {shown(file.path)}: {file.state}{by}", "    ")
    for path in state.drop_ins:
        print(f"  {shown(path)}: yours")
    if running is not None and running.pid:
        said = f", {running.status_text}" if running.status_text else ""
        again = f", restarted {running.restarts} times" if running.restarts else ""
        print(f"  pid {running.pid}{said}{again}")
    return 0 if is_well else NOT_RUNNING


def _as_json(state: ServiceState, level: str, message: str, remedy: str) -> dict[str, object]:
    running = state.running
    return {
        "manager": state.manager,
        "level": level,
        "message": message,
        "remedy": remedy,
        "installed": state.is_installed,
        "files": [
            {"path": shown(file.path), "state": file.state, "version": file.version or None}
            for file in state.files
        ],
        "drop_ins": [shown(path) for path in state.drop_ins],
        "lingers": state.lingers,
        "running": None
        if running is None
        else {
            "reachable": running.is_reachable,
            "enabled": running.is_enabled,
            "active": running.is_active,
            "listening": running.is_listening,
            "pid": running.pid or None,
            "restarts": running.restarts,
            "status": running.status_text,
            "trouble": running.trouble,
        },
    }
