"""memctl install-mcp, uninstall-mcp: memd's MCP server in an agent's settings; shown unless told to apply."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import sys

from memctl import files, mcp_entries, paths, settings_files, view
from memctl.paths import shown
from memd.errors import Refused


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    install = subparsers.add_parser(
        "install-mcp",
        description="Put memd's MCP server into an agent's settings. All else in them stays, byte for byte. "
        "Without --apply it only shows the change.",
    )
    uninstall = subparsers.add_parser(
        "uninstall-mcp",
        description="Take memd's MCP server out of an agent's settings. All else in them stays, byte for "
        "byte. Without --apply it only shows the change.",
    )
    for parser in (install, uninstall):
        parser.add_argument(
            "--agent", required=True, metavar="NAME", help="claude, codex, opencode, kimi or crush"
        )
        parser.add_argument("--apply", action="store_true", help="make the change")
        parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    from memd.harness.registry import canonical

    agent = canonical(options.agent) or options.agent.strip().lower()
    variables = {os.fsdecode(name): value for name, value in os.environb.items()}
    is_install = options.command == "install-mcp"
    target = mcp_entries.target(agent, paths.home_dir(), variables, os.path.lexists, server_command())
    path, old = settings_files.read_through(target.path)
    try:
        text = (old or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{shown(path)} is not UTF-8", remedy="Put the entry in by hand.") from None
    try:
        new = target.edit(text) if is_install else target.remove(text)
    except Refused as reason:
        raise Refused(f"{shown(path)}: {reason}; nothing was changed", remedy=reason.remedy) from None
    changes = new != text
    if changes and options.apply:
        facts = os.stat(path) if old is not None else None
        files.write(path, new.encode("utf-8"), old, 0o600, like=facts)
    if options.json:
        view.print_json(
            {
                "agent": agent,
                "path": shown(path),
                "changes": changes,
                "applied": changes and options.apply,
                "command": list(server_command()),
            }
        )
        return 0
    if not changes:
        print(f"{shown(path)} has {'the entry already' if is_install else 'no entry of memd'}")
    elif options.apply:
        does = "starts memd's MCP server" if is_install else "goes without memd's MCP server"
        print(f"{agent} {does} from now on ({shown(path)})")
    else:
        name = shown(path)
        lines = difflib.unified_diff(
            text.splitlines(keepends=True), new.splitlines(keepends=True), name, name + " (with --apply)"
        )
        sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in lines)
        runs = f"It runs: {shlex.join(server_command())}\n" if is_install else ""
        print(f"\n{runs}Add --apply to make this change.", file=sys.stderr)
    return 0


def server_command() -> tuple[str, ...]:
    """What starts the server, whatever the agent's PATH and directory are."""
    return (sys.executable, "-P", "-m", "memctl", "mcp")
