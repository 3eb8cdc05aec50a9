"""How OpenCode is started.

    opencode [options] [project]                      a session on the screen, in the folder `project`
    opencode [options] run [options] [message..]      one without a screen, in the folder of `--dir`
    opencode [options] COMMAND ...

A session goes on in the directory in which it was begun: `run --session` from another one never returns, not
even from a folder of the same checkout; on the screen the agent then works in the session's own directory.

    source  OpenCode 1.18.33, run 2026-12
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from memd.harness.arguments import (
    HELP,
    NO_SESSION,
    VERSION,
    Grammar,
    Scan,
    appended,
    inserted,
    is_usable,
    names,
    scan,
)
from memd.harness.launching import Argv, Intent, Launch, Said

_SESSION = ("--session", "-s")
_SELECTORS = (*_SESSION, "--continue", "-c", "--fork")
_YOLO, _NO_YOLO = "--auto", "--no-auto"
_PASSING = (*HELP, *VERSION, *NO_SESSION)
_SCREEN = ("--interactive", "-i")
_COMMANDS = names(
    "acp agent attach auth completion db debug export github import mcp models plug plugin pr "
    "providers serve session stats uninstall upgrade web"
)
_GRAMMAR = Grammar(
    optional=names(
        "--log-level --port --hostname --mdns-domain -m --model -s --session --prompt --agent "
        "--replay-limit --command --format --title --attach -p --password -u --username --dir "
        "--variant"
    ),
    variadic=names("--cors -f --file"),
    switches=names("--print-logs --pure --mdns --continue -c --fork --mini --no-replay --share --thinking")
    | {_YOLO, _NO_YOLO, *_SCREEN, *_PASSING},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    session = "" if found.has("--fork") else found.value(*_SESSION)
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or found.command(_COMMANDS) is not None,
        is_batch=found.command({"run"}) is not None and not found.has(*_SCREEN),
        has_selector=found.has(*_SELECTORS),
        session=session if is_usable(session) else "",
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    run = found.command({"run"})
    session = intent.session
    notices: tuple[str, ...] = ()
    if session and _is_elsewhere(found, intent.cwd):
        session = ""
        notices = ("OpenCode is started in another place: the session linked here is not resumed there",)
    arguments = tuple(native)
    if session:
        arguments = inserted(native, 0 if run is None else run.at + 1, ("--session", session))
    if intent.is_yolo and not found.has(_YOLO, _NO_YOLO):
        arguments = appended(arguments, (_YOLO,))
    return Argv(arguments=arguments, session=session, notices=notices)


def _is_elsewhere(found: Scan, cwd: str) -> bool:
    """Whether the arguments lead to another server, or to another directory than the client's."""
    if found.command({"run"}) is not None:
        named = found.value("--dir")
    else:
        named = next((word.text for word in found.words if word.is_sure), "")
    here = posixpath.normpath(cwd or ".")
    return found.has("--attach") or posixpath.normpath(posixpath.join(here, named)) != here


LAUNCH = Launch(
    executables=("opencode",),
    is_pooled=True,
    variables=("OPENCODE_DB", "OPENCODE_CONFIG_DIR"),
    read=read,
    compose=compose,
    is_bound=True,
)
