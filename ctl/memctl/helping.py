"""What memctl says of itself: a first page that fits a screen, all commands, what a mistyped one meant."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from memctl import cli

FIRST = frozenset(
    {
        *("run", "continue", "show", "handoff"),
        *("search", "sessions"),
        *("enroll", "memory"),
        *("install-hooks", "install-mcp"),
        *("setup", "status", "doctor"),
    }
)
"""The commands of the first page."""

MEANT = {
    "delete": "forget",
    "find": "search",
    "grep": "search",
    "history": "sessions",
    "init": "setup",
    "install": "setup",
    "kill": "down",
    "launch": "run",
    "ls": "sessions",
    "open": "show",
    "projects": "show",
    "restart": "up",
    "resume": "continue",
    "start": "up",
    "stop": "down",
    "topics": "memory",
    "version": "--version",
}
"""Words that other programs have for it."""

USAGE = "usage: memctl COMMAND [...]\n"


def run(words: Sequence[str]) -> int:
    """Answer words that are no command; the exit status."""
    if not words:
        sys.stderr.write(first_page())
        return 64
    word, *more = words
    if word in ("-h", "--help", "help"):
        unknown = [one for one in more if one not in ("-h", "--help", "-a", "--all")]
        if unknown:
            return _unknown(unknown[0])
        sys.stdout.write(all_commands() if {"-a", "--all"} & set(more) else first_page())
        return 0
    if word in ("-V", "--version"):
        from memd import __version__

        print(f"memctl {__version__}")
        return 0
    return _unknown(word)


def _unknown(word: str) -> int:
    """Say that there is no such command, and which one may be meant."""
    if word.startswith("-"):
        sys.stderr.write(f"{USAGE}memctl: {word} stands before the command; options come after it\n")
        return 64
    shown = word.encode("utf-8", "backslashreplace").decode()
    says = f"memctl: there is no command {shown!r}"
    says += perhaps(_other_words(word) or near(word, cli.commands()))
    sys.stderr.write(f"{says}\n`memctl --help` lists them.\n")
    return 64


def _other_words(word: str) -> list[str]:
    """What a word means that memctl does not have: another program's, or an agent's name."""
    if word in MEANT:
        return [MEANT[word]]
    from memd.harness.registry import canonical

    return [f"run {word}"] if canonical(word) is not None else []


def near(word: str, known: Sequence[str]) -> list[str]:
    """Those of the known words that a mistyped one may mean, the likeliest first, at most three."""
    low = word.casefold()
    begun = [name for name in known if low and name.startswith(low)]
    alike = difflib.get_close_matches(low, known, n=3, cutoff=0.6)
    return list(dict.fromkeys([*begun, *alike]))[:3]


def perhaps(words: Sequence[str]) -> str:
    """A question to put behind a complaint; empty when nothing comes near."""
    if not words:
        return ""
    quoted = [f"`{word}`" for word in words]
    return f"; did you mean {' or '.join(quoted)}?"


def first_page() -> str:
    """At most 23 lines of 80 columns: a prompt has room below it."""
    lines = [USAGE.rstrip()]
    for title, group in cli.GROUPS:
        lines.append(f"{title}:")
        lines += [f"  {name:<14} {meaning}" for name, _, meaning in group if name in FIRST]
    lines.append("")
    lines.append("memctl COMMAND --help says more of one, memctl help --all lists all of them.")
    return "\n".join(lines) + "\n"


def all_commands() -> str:
    lines = [USAGE.rstrip()]
    for title, group in cli.GROUPS:
        lines += ["", f"{title}:"]
        lines += [f"  {name:<17} {meaning}" for name, _, meaning in group]
    lines += ["", "memctl COMMAND --help says more of one; man memctl tells all of it."]
    return "\n".join(lines) + "\n"
