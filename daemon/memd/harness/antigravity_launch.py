"""How Antigravity CLI is started.

    agy [options]                       a session on the screen; `-i` begins it with a prompt
    agy --print, -p, --prompt ...       one without a screen
    agy COMMAND ...                     in the first place only
    --conversation UUID, --continue, -c

The id of a new conversation cannot be chosen.

    source  descriptions of Antigravity CLI 1.3, read 2026-12; the program was not run
"""

from __future__ import annotations

from collections.abc import Sequence

from memd.harness.arguments import (
    HELP,
    NO_SESSION,
    VERSION,
    Grammar,
    appended,
    is_first,
    names,
    scan,
    uuid_or_nothing,
)
from memd.harness.launching import Argv, Intent, Launch, Said

_SELECTORS = ("--conversation", "--continue", "-c")
_PASSING = (*HELP, *VERSION, *NO_SESSION)
_BATCH = ("--print", "-p", "--prompt")
_YOLO = "--dangerously-skip-permissions"
_UTILITIES = names("agent agents changelog help install models plugin plugins update")
_GRAMMAR = Grammar(
    valued=names("--conversation"),
    optional=names("--print -p --prompt -i --prompt-interactive"),
    switches=frozenset({"--continue", "-c", _YOLO, *_PASSING}),
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or is_first(native, _UTILITIES),
        is_batch=found.has(*_BATCH),
        has_selector=found.has(*_SELECTORS),
        session=uuid_or_nothing(found.value("--conversation")),
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    session = uuid_or_nothing(intent.session)
    notices: tuple[str, ...] = ()
    if intent.session and not session:
        notices = ("Antigravity begins a new conversation: the linked one has no id of Antigravity's",)
    ours = ["--conversation", session] if session else []
    if intent.is_yolo and not scan(native, _GRAMMAR).has(_YOLO):
        ours.append(_YOLO)
    return Argv(arguments=appended(native, ours), session=session, notices=notices)


LAUNCH = Launch(
    executables=("agy",),
    read=read,
    compose=compose,
)
