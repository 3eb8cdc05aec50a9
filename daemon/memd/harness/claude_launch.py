"""How Claude Code is started."""

from __future__ import annotations

from collections.abc import Sequence

from memd.harness.arguments import Grammar, appended, scan
from memd.harness.launching import Argv, Intent, Launch, Said

_GRAMMAR = Grammar(optional=frozenset({"--resume", "-r"}), valued=frozenset({"--session-id"}))
_SELECTORS = ("--resume", "-r", "--continue", "-c", "--session-id")
_YOLO = "--dangerously-skip-permissions"
_PASSING = ("--help", "-h", "--version", "-v", "--no-session-persistence")
_UTILITIES = frozenset(
    {"agents", "auth", "auto-mode", "doctor", "install", "mcp", "plugin", "plugins", "project"}
    | {"setup-token", "ultrareview", "update", "upgrade"}
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    return Said(
        is_passing=(bool(native) and native[0] in _UTILITIES) or found.has(_PASSING),
        is_batch=found.has(("--print", "-p")),
        has_selector=found.has(_SELECTORS),
        session=found.value(("--resume", "-r", "--session-id")),
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    ours: list[str] = []
    if intent.session:
        ours += ["--resume", intent.session]
    elif intent.new_id:
        ours += ["--session-id", intent.new_id]
    if intent.is_yolo and not scan(native, _GRAMMAR).has((_YOLO,)):
        ours.append(_YOLO)
    return Argv(arguments=appended(native, ours), session=intent.session or intent.new_id)


LAUNCH = Launch(
    executables=("claude",),
    is_pooled=True,
    variables=("CLAUDE_CONFIG_DIR",),
    read=read,
    compose=compose,
)
