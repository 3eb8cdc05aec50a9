"""How Command Code is started.

    command-code [options] [message]    a session on the screen
    command-code [options] -p [query]   one query
    command-code [options] COMMAND ...  a command, also behind a query
    --session PATH|ID                   goes on in it; an id may be cut short
    --resume [ID|NAME]                  the same; without a name it shows a list
    --fork-session                      with one of these: a copy under another id

No option gives a new session an id. Options that it does not know it passes over. `--permission-mode` says
how much may be done; `--accept-edits` is less than the wrapper's `--yolo`, and no choice against it.

With `-p` no hook of the start is called (`memd.harness.command_code_hooks`): nothing counts as told then.

    source  Command Code 1.64.0, run and read 2026-12
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memd.harness.arguments import HELP, NO_SESSION, VERSION, Grammar, appended, names, scan, uuid_or_nothing
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Launch, Said

_RESUME = ("--session", "--resume", "-r")
_SELECTORS = (*_RESUME, "--sessions", "--continue", "-c", "--fork-session")
_PASSING = (*HELP, *VERSION, *NO_SESSION, "--list-models", "--ide-setup")
_PRINT = ("--print", "-p")
_YOLO = ("--yolo", "--dangerously-skip-permissions")
_MODE = "--permission-mode"
_COMMANDS = names(
    "info status help whoami update feedback issue taste learn-taste mcp skills mods login logout"
)
_GRAMMAR = Grammar(
    valued=names(
        "--session --name -n --max-turns --output-format --tools-enable --model -m --effort --theme "
        "--config --permission-mode --add-dir --mod --mod-option --skill"
    ),
    optional=names("--resume -r --print -p --worktree -w"),
    switches=names(
        "--sessions --continue -c --fork-session --trust -t --tools-all --local-only --plan --accept-edits "
        "--auto-accept --no-skills --skip-onboarding --no-auto-update"
    )
    | {*_YOLO, *_PASSING},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    chosen = "" if found.has("--fork-session") else found.value(*_RESUME)
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or found.command(_COMMANDS) is not None,
        is_batch=found.has(*_PRINT),
        has_selector=found.has(*_SELECTORS),
        session=uuid_or_nothing(chosen),
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours: list[str] = []
    notices: tuple[str, ...] = ()
    if intent.session:
        ours += ("--session", intent.session)
    if intent.is_yolo and found.has(_MODE):
        notices = (f"--yolo is left out: {_MODE} says what Command Code may do.",)
    elif intent.is_yolo and not found.has(*_YOLO):
        ours.append("--yolo")
    return Argv(arguments=appended(native, ours), session=intent.session, notices=notices)


def deliver(text: str, argv: Argv, doorway: Doorway) -> Delivered:
    """Nothing: on the screen the hook tells it, and with a query nobody can."""
    notices = (*argv.notices, _LATER) if doorway.said.is_batch else argv.notices
    return Delivered(argv=replace(argv, notices=notices), is_told=False)


_LATER = (
    "Command Code calls no hook before a query of -p: what this session has not seen stays due until it is "
    "on the screen."
)

LAUNCH = Launch(
    executables=("command-code", "cmdc", "commandcode"),
    is_pooled=True,
    read=read,
    compose=compose,
    deliver=deliver,
)
