"""argparse for people: the command is looked up in a table, and only its own module is imported."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from memd.errors import MemdError

GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "one line of work",
        (("run", "run", "start an agent in this checkout, or go on where you left off"),),
    ),
    (
        "the daemon",
        (
            ("setup", "setup", "set memd up on this machine, step by step"),
            ("up", "daemon", "start memd, or restart one that is older than this package"),
            ("down", "daemon", "stop memd"),
            ("status", "status", "what memd does and whether it is well"),
            ("doctor", "doctor", "check the whole installation, with a remedy for each finding"),
            ("logs", "logs", "show the daemon's log"),
            ("reload", "daemon", "re-read the configuration"),
            ("config", "config", "show the settings in force, with every key explained"),
            ("service", "service", "run memd from systemd or launchd"),
        ),
    ),
    (
        "lines of work",
        (
            ("continue", "continue_", "go on in the checkout that was used last, from anywhere"),
            ("show", "show", "choose a project and an agent, from anywhere"),
            ("workstreams", "workstreams", "list the lines of work in this checkout"),
            ("workstream-search", "workstreams", "search one of them, or show its newest events"),
            ("rename-workstream", "workstreams", "give one another name"),
            ("handoff", "handoff", "leave a note for the session that goes on"),
            ("install-hooks", "install_hooks", "have agents tell memd of their sessions as they work"),
            ("uninstall-hooks", "install_hooks", "take those hooks out of their settings again"),
            ("hook", "hook", "what those hooks do, for a look at it"),
            ("session", "session", "let a session of Claude Code go on in another login"),
            ("adopt", "session", "bind a session to a workstream of this checkout"),
            ("rename-project", "projects", "give a project another name"),
            ("move-project", "projects", "let it belong to another workspace"),
        ),
    ),
    (
        "agent-owned memory",
        (
            ("enroll", "enroll", "give an agent one memory in all logins"),
            ("unenroll", "enroll", "turn its links back into folders of their own"),
            ("heal", "heal", "repair memory links now, or show the plan"),
            ("where", "where", "say where the memory of a directory is kept"),
        ),
    ),
    (
        "memory that agents share",
        (
            ("memory", "memory", "list, read, write, search, carry over and repair topics"),
            ("mcp", "mcp", "serve memory and search to any agent that speaks MCP"),
            ("install-mcp", "install_mcp", "put that server into an agent's settings"),
            ("uninstall-mcp", "install_mcp", "take it out again"),
        ),
    ),
    (
        "what agents said",
        (
            ("search", "sessions", "search everything every agent said"),
            ("sessions", "sessions", "list sessions, newest activity first"),
            ("export", "sessions", "print one session as JSON lines or Markdown"),
            ("import", "sessions", "look at every store now"),
            ("forget", "forget", "remove events for good"),
            ("ledger", "forget", "check the ledger, or move it to another engine"),
        ),
    ),
)


class Parser(argparse.ArgumentParser):
    """argparse with the exit status of sysexits(3)."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(64, f"{self.prog}: {message}\n")


def module_of(command: str) -> str | None:
    for _, commands in GROUPS:
        for name, module, _ in commands:
            if name == command:
                return module
    return None


def overview() -> str:
    lines = ["usage: memctl COMMAND [...]    (memctl COMMAND --help says more)"]
    for title, commands in GROUPS:
        lines += ["", f"{title}:"]
        lines += [f"  {name:<17} {meaning}" for name, _, meaning in commands]
    return "\n".join(lines) + "\n"


def run(words: Sequence[str]) -> int:
    """Run one command; its exit status. No traceback reaches the user."""
    if not words:
        sys.stderr.write(overview())
        return 64
    if words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version"):
        from memd import __version__

        print(f"memctl {__version__}")
        return 0
    module = module_of(words[0])
    if module is None:
        sys.stderr.write(f"memctl: there is no command {words[0]!r}\n\n{overview()}")
        return 64
    command = importlib.import_module(f"memctl.commands.{module}")
    parser = Parser(prog="memctl")
    command.add_parser(parser.add_subparsers(dest="command", required=True, parser_class=Parser))
    split = getattr(command, "split", None)  # of a command whose last words are another program's
    own, rest = split(words) if split is not None else (list(words), [])
    options = parser.parse_args(own)
    options.rest = rest
    try:
        return int(command.run(options))
    except MemdError as reason:
        sys.stdout.flush()
        sys.stderr.write(f"memctl: {reason}\n{reason.remedy}\n")
        return reason.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise  # the reader of our output left: `main` knows what to do
    except OSError as reason:
        return _failed(reason)


def _failed(reason: OSError) -> int:
    """Say what the system refused; the exit status."""
    import os

    from memctl.paths import shown

    if isinstance(reason, FileNotFoundError) and reason.filename is None:
        try:
            os.getcwdb()
        except OSError:
            sys.stderr.write("memctl: this directory is gone\nChange to one that exists.\n")
            return 64
    what = shown(os.fsencode(reason.filename)) if reason.filename else "input or output"
    sys.stderr.write(f"memctl: {reason.strerror or reason}: {what}\n")
    sys.stderr.write("Check the path and its permissions, then try again.\n")
    return 74
