"""How Claude Code is started.

    claude [options] [prompt]                         a session, on the screen or with -p
    claude [options] COMMAND ...                      a command, unless -p is there: then it is a prompt
    --session-id UUID                                 the id of a new session
    --resume ID|FILE                                  go on in a session
    --resume ID --fork-session [--session-id UUID]    a copy under another id

`--session-id` is refused beside `--resume` and `--continue` unless `--fork-session` is there too, which means
nothing without one of the two. `--bg` gives its session an id of its own. A session is found by its id from
the directory that it was begun in, and from all of a repository when that was the top of one of its
checkouts; by its file from everywhere.

    source  Claude Code 2.1.197, run and read 2026-12
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
    names,
    scan,
    uuid_or_nothing,
)
from memd.harness.launching import Argv, Intent, Launch, Said

_RESUME = ("--resume", "-r")
_SELECTORS = (*_RESUME, "--continue", "-c", "--session-id", "--from-pr", "--teleport", "--cloud", "--remote")
_YOLO = "--dangerously-skip-permissions"
_BACKGROUND = ("--bg", "--background")  # it goes on in a service when the child is gone
_PASSING = (*HELP, *VERSION, *NO_SESSION, *_BACKGROUND, "--init-only")
_BATCH = ("--print", "-p")
_COMMANDS = names(
    "agents auth auto-mode doctor gateway import-conversations install mcp plugin plugins "
    "project setup-token ultrareview update upgrade"
)
# looked for in the first place only, before any option is read
_FIRST = names("attach bridge daemon kill logs rc remote remote-control respawn rm stop sync")
_GRAMMAR = Grammar(
    valued=names(
        "--advisor --agent --agents --append-system-prompt --append-system-prompt-file "
        "--debug-file --effort --fallback-model --input-format --json-schema --managed-settings "
        "--max-budget-usd --max-thinking-tokens --max-turns --model --name -n --output-format "
        "--parent-session-id --permission-mode --permission-prompt-tool --plan-mode-instructions "
        "--plugin-dir --plugin-dir-no-mcp --plugin-url --prefill "
        "--remote-control-session-name-prefix --resume-session-at --rewind-files --sdk-url "
        "--session-id --setting-sources --settings --system-prompt --system-prompt-file "
        "--task-budget --thinking --thinking-display"
    ),
    optional=names(
        "--resume -r --debug -d --from-pr --prompt-suggestions --remote-control --rc --worktree "
        "-w --teleport --cloud --remote"
    ),
    variadic=names(
        "--add-dir --allowedTools --allowed-tools --betas --channels --disallowedTools "
        "--disallowed-tools --file --mcp-config --tools"
    ),
    switches=names(
        "--allow-dangerously-skip-permissions --ax-screen-reader --bare --brief --chrome "
        "--continue -c --disable-slash-commands --enable-auto-mode "
        "--exclude-dynamic-system-prompt-sections --fork-session --ide --include-hook-events "
        "--include-partial-messages --no-chrome --replay-user-messages --reply-on-resume "
        "--safe-mode --strict-mcp-config --tmux --verbose"
    )
    | {_YOLO, *_PASSING, *_BATCH},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    is_batch = found.has(*_BATCH)
    is_command = not is_batch and found.command(_COMMANDS) is not None
    return Said(
        is_passing=found.is_torn or is_command or found.has(*_PASSING) or is_first(native, _FIRST),
        is_batch=is_batch,
        has_selector=found.has(*_SELECTORS),
        session=_session(found),
    )


def _session(found: Scan) -> str:
    """`--resume` takes a title or a file as well, and of a fork the old id says nothing."""
    chosen = found.value("--session-id")
    if not chosen and not found.has("--fork-session"):
        chosen = found.value(*_RESUME)
    return uuid_or_nothing(chosen)


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours: list[str] = []
    session = intent.session or intent.new_id
    if intent.session:
        ours += ("--resume", intent.path or intent.session)
    if intent.new_id and (not intent.session or found.has("--fork-session")):
        ours += ("--session-id", intent.new_id)
        session = intent.new_id
    if intent.is_yolo and not found.has(_YOLO):
        ours.append(_YOLO)
    return Argv(arguments=appended(native, ours), session=session)


LAUNCH = Launch(
    executables=("claude",),
    is_pooled=True,
    variables=("CLAUDE_CONFIG_DIR",),
    read=read,
    compose=compose,
)
