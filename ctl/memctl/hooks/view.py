"""What people see of hooks that were, or would be, installed: a diff, or a line per file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memctl import quick
from memctl.lines import remark
from memctl.paths import shown

if TYPE_CHECKING:
    from memctl.commands.install_hooks import Result

__all__ = ["print_diff", "show_install", "show_uninstall", "shown"]

COLORS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


def show_install(results: Sequence[Result], notices: Iterable[str], *, is_applied: bool) -> None:
    for result in results:
        change = result.change
        if change.state == "refused":
            _complain(result)
        elif not is_applied and change.is_needed:
            print_diff(change.summary())
        else:
            did = "hooks installed" if result.is_changed else "all hooks are there already"
            print(f"{change.agent}: {did} ({shown(change.path)}){_copy(result)}")
        _tell(result)
    for notice in notices:
        remark(f"note: {notice}")
    if any(result.is_changed for result in results):
        print("Agents that are running go on without; start them again.", file=sys.stderr)
    elif not is_applied and any(result.change.is_needed for result in results):
        print(file=sys.stderr)
        remark("Nothing was changed yet. Add --apply to make these changes.", "")


def show_uninstall(results: Sequence[Result], *, is_applied: bool) -> None:
    for result in results:
        change = result.change
        if change.state == "refused":
            _complain(result)
        elif not is_applied and change.is_needed:
            print_diff(change.summary())
        elif result.is_changed:
            print(f"{change.agent}: hooks taken out ({shown(change.path)}){_copy(result)}")
        _tell(result)
    if not any(result.change.is_needed or result.change.state == "refused" for result in results):
        print("No hooks of memd were found.")
    elif not is_applied and any(result.change.is_needed for result in results):
        print(file=sys.stderr)
        remark("Nothing was changed yet. Add --apply to make these changes.", "")


def _copy(result: Result) -> str:
    return f"; what it said before is in {shown(os.path.basename(result.copy))}" if result.copy else ""


def _complain(result: Result) -> None:
    remark(f"{result.change.agent}: {result.change.error}")
    remark(f"    -> {result.change.remedy}", "       ")


def _tell(result: Result) -> None:
    for notice in result.change.notices:
        remark(f"{result.change.agent}: {notice}")


def print_diff(text: str, descriptor: int = 1) -> None:
    """On standard output, or with 2 on standard error."""
    out = sys.stderr if descriptor == 2 else sys.stdout
    is_colored = quick.wants_color(descriptor)
    for line in text.splitlines(keepends=True):
        color = COLORS.get(line[:1], "") if is_colored else ""
        out.write(f"{color}{line.rstrip(chr(10))}\x1b[0m\n" if color else line)
