"""How Pi is started.

    pi [options] [--] [@files...] [messages...]
    pi COMMAND ...                                    in the first place only
    --session-id ID                                   that session of this directory, or a new one of that id
    --session PATH|ID                                 an id may be cut short; one of another directory: a
                                                      question on the screen, and nothing at all without one
    --fork PATH|ID [--session-id ID]                  a copy

Versions before 1.0 know neither `--session-id` nor `--approve`, and stop at an option they do not know.

    source  Pi 1.6.0 and 0.73.1, run and read 2026-12
"""

from __future__ import annotations

from collections.abc import Sequence

from memd.harness.arguments import (
    HELP,
    NO_SESSION,
    VERSION,
    Grammar,
    Scan,
    appended,
    is_first,
    is_usable,
    names,
    scan,
    uuid_or_nothing,
)
from memd.harness.launching import Argv, Intent, Launch, Said

_SELECTORS = ("--session", "--session-id", "--continue", "-c", "--resume", "-r", "--fork")
_PASSING = (*HELP, *VERSION, *NO_SESSION, "--export", "--list-models")
_APPROVALS = ("--approve", "-a", "--no-approve", "-na")
_COMMANDS = names("auth config install list mcp remove uninstall update")
_GRAMMAR = Grammar(
    valued=names(
        "--provider --model --api-key --system-prompt --append-system-prompt --name -n --session "
        "--session-id --fork --session-dir --models --tools -t --exclude-tools -xt --thinking "
        "--export --extension -e --skill --prompt-template --theme"
    ),
    optional=names("--mode --print -p --use-theme --list-models --tui-mode"),
    switches=names(
        "--continue -c --resume -r --no-tools -nt --no-builtin-tools -nbt --no-extensions -ne "
        "--no-mcp --no-skills -ns --no-prompt-templates -np --no-themes --no-context-files -nc "
        "--verbose --offline"
    )
    | {*NO_SESSION, *_APPROVALS, *HELP, *VERSION},
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    folder = found.value("--session-dir")
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or is_first(native, _COMMANDS),
        is_batch=found.has("--print", "-p") or found.value("--mode") in ("json", "rpc"),
        has_selector=found.has(*_SELECTORS),
        session=_session(found),
        folders={"PI_CODING_AGENT_SESSION_DIR": folder} if folder else {},
    )


def _session(found: Scan) -> str:
    chosen = found.value("--session-id")
    if chosen:
        return chosen if is_usable(chosen) else ""
    return "" if found.has("--fork") else uuid_or_nothing(found.value("--session"))


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours: list[str] = []
    session = intent.session
    notices: tuple[str, ...] = ()
    if session:
        ours += ("--session", session)
    elif intent.new_id and "--session-id" in intent.supports:
        ours += ("--session-id", intent.new_id)
        session = intent.new_id
    if intent.is_yolo and not found.has(*_APPROVALS):
        # a help that was read, which names itself, and does not know the word
        if "--help" in intent.supports and "--approve" not in intent.supports:
            notices = ("--yolo is left out: this version of Pi asks for no approvals and has no word for it",)
        else:
            ours.append("--approve")
    return Argv(arguments=appended(native, ours), session=session, notices=notices)


LAUNCH = Launch(
    executables=("pi",),
    is_pooled=True,
    variables=("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
    probes=("--session-id", "--approve", "--help"),
    yolo_probes=("--approve", "--help"),
    read=read,
    compose=compose,
    is_bound=True,
)
