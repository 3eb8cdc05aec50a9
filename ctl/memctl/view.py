"""What people see of memory entries: tables on a terminal, plain lines elsewhere, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memctl.lines import filled
from memctl.paths import shown
from memd.protocol import Entry

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"linked": "green", "migrated": "green", "returned": "green", "skipped": "yellow", "failed": "red"}


def print_json(document: object) -> None:
    """One JSON document on standard output; odd bytes of paths are escaped, never lost."""
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def console() -> Console:
    """Standard output as rich sees it; NO_COLOR is honoured by rich itself."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def entries_json(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "agent": shown(entry.agent),
            "config_home": shown(entry.config_home),
            "path": shown(entry.path),
            "outcome": entry.outcome,
            "changed": entry.changed,
            "reason": entry.reason,
            "remedy": entry.remedy,
            "set_aside": shown(entry.set_aside) if entry.set_aside else None,
            "added": entry.added,
            "replaced": entry.replaced,
            "superseded": entry.superseded,
            "unchanged": entry.unchanged,
            "steps": list(entry.steps),
            "left_behind": [
                {"path": shown(left.path), "reason": left.reason, "remedy": left.remedy}
                for left in entry.left_behind
            ],
        }
        for entry in entries
    ]


def print_entries(entries: Sequence[Entry], *, planned: bool = False) -> None:
    """Each login in a line, with what was done (or would be), and indented what needs a person."""
    from rich.text import Text

    out = console()

    def indented(text: str) -> None:
        for line in filled("    " + text, sys.stdout, "    "):
            out.print(Text(line))  # soft-wrapped: a path is never cut

    for entry in entries:
        word, style = _word(entry, planned), STYLES.get(entry.outcome, "")
        head = f"{shown(entry.config_home)}  "
        if len(filled(head + word, sys.stdout, "    ")) > 1:
            out.print(Text(head.rstrip()))
            head = "    "
        out.print(Text(head).append(word, style=style))
        for step in entry.steps:
            indented(step)
        if entry.set_aside:
            indented(f"the old folder is kept as {shown(entry.set_aside)}")
        if entry.reason:
            indented(entry.reason)
        if entry.remedy:
            indented("-> " + entry.remedy)
        for left in entry.left_behind:
            indented(f"left behind: {shown(left.path)}: {left.reason}")
            if left.remedy:
                indented("-> " + left.remedy)


def _word(entry: Entry, planned: bool) -> str:
    if entry.outcome == "linked" and not entry.changed:
        return "linked already"
    if planned:
        return {"linked": "would be linked", "migrated": "would be merged and linked"}.get(
            entry.outcome, entry.outcome
        )
    if entry.outcome == "migrated":
        return (
            f"merged and linked: {entry.added} added, {entry.replaced} replaced, "
            f"{entry.superseded} superseded, {entry.unchanged} unchanged"
        )
    return entry.outcome


def worst(entries: Iterable[Entry]) -> int:
    """The exit status that a list of entries deserves: 0, or 75 when something failed half-way."""
    return 75 if any(entry.outcome == "failed" for entry in entries) else 0
