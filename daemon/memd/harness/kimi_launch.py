"""How Kimi Code is started.

    kimi [options]                      a session on the screen
    kimi [options] -p PROMPT            one prompt; asks for nothing, and refuses --yolo, --auto and --plan
    kimi [options] COMMAND ...          a command
    --session [ID]                      goes on in that session; without an id it shows a list

No option gives a new session an id. `--agent` and `--agent-file` are for a new session only. A session goes
on in its own directory and in no other. `--yolo` asks when it must, `--auto` never: both stand for a choice.

    source  Kimi Code 2.1.0, run and read 2026-12
"""

from __future__ import annotations

from collections.abc import Sequence

from memd.harness.arguments import HELP, NO_SESSION, VERSION, Grammar, appended, is_usable, names, scan
from memd.harness.launching import Argv, Intent, Launch, Said

_RESUME = ("--session", "-S", "--resume", "-r")
_SELECTORS = (*_RESUME, "--continue", "-c", "-C")
_PASSING = (*HELP, *VERSION, "-V", *NO_SESSION)
_PROMPT = ("--prompt", "-p")
_AGENTS = ("--agent", "--agent-file")
_YOLO = ("--yolo", "-y", "--yes", "--auto-approve", "--auto")
_COMMANDS = names(
    "export fork provider session acp web server rc remote login doctor vis install-desktop migrate "
    "upgrade update __plugin_run_node"
)
_GRAMMAR = Grammar(
    valued=names("--model -m --output-format --skills-dir --add-dir") | {*_PROMPT, *_AGENTS},
    optional=frozenset(_RESUME),
    switches=names("--continue -c -C --plan") | {*_YOLO, *_PASSING},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    session = found.value(*_RESUME)
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or found.command(_COMMANDS) is not None,
        is_batch=found.has(*_PROMPT),
        has_selector=found.has(*_SELECTORS),
        session=session if is_usable(session) else "",
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours: list[str] = []
    session = intent.session
    notices: tuple[str, ...] = ()
    if session and found.has(*_AGENTS):
        session = ""
        notices = ("Kimi begins a new session: it takes --agent and --agent-file for no other.",)
    if session:
        ours += ("--session", session)
    if intent.is_yolo and not found.has(*_YOLO, *_PROMPT):
        ours.append("--yolo")
    return Argv(arguments=appended(native, ours), session=session, notices=notices)


LAUNCH = Launch(
    executables=("kimi",),
    is_pooled=True,
    variables=("KIMI_CODE_HOME",),
    read=read,
    compose=compose,
    is_bound=True,
)
