"""argparse for people: the command is looked up in a table, and only its own module is imported."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from memctl import after
from memd.errors import MemdError

GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "work with agents",
        (
            ("run", "run", "start an agent here, or go on where you left off"),
            ("continue", "continue_", "go on in the checkout used last, from anywhere"),
            ("show", "show", "choose a project and an agent, from anywhere"),
            ("handoff", "handoff", "leave a note for the session that goes on"),
            ("workstreams", "workstreams", "list the lines of work in this checkout"),
            ("workstream-search", "workstreams", "search one of them, or show its newest events"),
            ("rename-workstream", "workstreams", "give one another name"),
            ("adopt", "session", "bind a session to a workstream of this checkout"),
            ("session", "session", "let a session of Claude Code go on in another login"),
            ("rename-project", "projects", "give a project another name"),
            ("move-project", "projects", "let it belong to another workspace"),
        ),
    ),
    (
        "find what was said",
        (
            ("search", "sessions", "search everything every agent said"),
            ("sessions", "sessions", "list sessions, newest activity first"),
            ("report", "report", "a summary of all of it, or a page for a browser"),
            ("export", "sessions", "print one session as JSON lines or Markdown"),
            ("import", "sessions", "look at every store now"),
            ("forget", "forget", "remove events for good"),
            ("ledger", "forget", "check the ledger, or move it to another engine"),
        ),
    ),
    (
        "share memory",
        (
            ("enroll", "enroll", "give an agent one memory in all logins"),
            ("unenroll", "enroll", "turn its links back into folders of their own"),
            ("heal", "heal", "repair memory links now, or show the plan"),
            ("where", "where", "say where the memory of a directory is kept"),
            ("memory", "memory", "topics for all agents: read, write, search, browse"),
        ),
    ),
    (
        "wire agents",
        (
            ("install-hooks", "install_hooks", "have agents tell memd of their sessions as they work"),
            ("uninstall-hooks", "install_hooks", "take those hooks out of their settings again"),
            ("hook", "hook", "what those hooks do, for a look at it"),
            ("install-mcp", "install_mcp", "put memd's MCP server into an agent's settings"),
            ("uninstall-mcp", "install_mcp", "take it out again"),
            ("mcp", "mcp", "serve memory and search to any agent that speaks MCP"),
        ),
    ),
    (
        "look after memd",
        (
            ("setup", "setup", "set memd up on this machine, step by step"),
            ("up", "daemon", "start memd, or restart one of another version"),
            ("down", "daemon", "stop memd"),
            ("status", "status", "what memd does and whether it is well"),
            ("doctor", "doctor", "check the installation, with a remedy for each finding"),
            ("logs", "logs", "show the daemon's log"),
            ("config", "config", "show the settings in force, with every key explained"),
            ("reload", "daemon", "re-read the configuration"),
            ("backup", "backup", "write all that memd keeps into one file"),
            ("restore", "backup", "put a backup in its place, or in a folder for a look"),
            ("service", "service", "run memd from systemd or launchd"),
            ("completion", "completion", "print what completes memctl's words in your shell"),
        ),
    ),
)

_choice = re.compile(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)$")


class Parser(argparse.ArgumentParser):
    """argparse with the exit status of sysexits(3), which names what a mistyped word may have meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Words that nobody knows are an error of the command they were given to, with its usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not any(isinstance(one, argparse._SubParsersAction) for one in self._actions):
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._options_near(unknown[0])}")
        return found, unknown

    def _options_near(self, word: str) -> str:
        from memctl import helping

        known = [name for one in self._actions for name in one.option_strings if name.startswith("--")]
        return helping.perhaps(helping.near(word, known)) if word.startswith("--") else ""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        if found := _choice.search(message):
            from memctl import helping

            known = re.findall(r"[\w-]+", found["known"])
            message += helping.perhaps(helping.near(found["word"], known))
        self.exit(64, f"{self.prog}: {message}\n")


def commands() -> list[str]:
    return [name for _, group in GROUPS for name, _, _ in group]


def module_of(command: str) -> str | None:
    for _, group in GROUPS:
        for name, module, _ in group:
            if name == command:
                return module
    return None


def parser_of(*chosen: str) -> Parser:
    """The parser of these commands, which must exist, with whatever their modules define besides."""
    parser = Parser(prog="memctl")
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for module in dict.fromkeys(map(module_of, chosen)):
        importlib.import_module(f"memctl.commands.{module}").add_parser(subparsers)
    return parser


def run(words: Sequence[str]) -> int:
    """Run one command; its exit status. No traceback reaches the user."""
    after.arrange()
    if not words or module_of(words[0]) is None:
        from memctl import helping

        if len(words) == 2 and words[0] == "help" and module_of(words[1]) is not None:
            words = [words[1], "--help"]
        else:
            return helping.run(words)
    module = module_of(words[0])
    command = importlib.import_module(f"memctl.commands.{module}")
    split = getattr(command, "split", None)  # of a command whose last words are another program's
    own, rest = split(words) if split is not None else (list(words), [])
    options = parser_of(words[0]).parse_args(own)
    options.rest = rest
    try:
        return int(command.run(options))
    except MemdError as reason:
        sys.stdout.flush()
        from memctl.lines import filled

        said = [part for line in f"memctl: {reason}".split("\n") for part in filled(line, sys.stderr, "  ")]
        sys.stderr.write("\n".join([*said, *filled(reason.remedy, sys.stderr, "")]) + "\n")
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
