"""How Codex is started.

    codex [options] [PROMPT]                          a session on the screen
    codex [options] resume|fork [ID] [PROMPT]         ID may be the name of a session, and may be missing
    codex exec [options] [PROMPT]                     a session without a screen; `e` is the same
    codex exec [options] resume|fork ID [PROMPT]

Options may stand before a command, and a prompt may too. `exec resume` knows fewer options than `exec`: those
it lacks must stand before it. `-i` takes all words up to the next option, a command among them.
`--dangerously-bypass-approvals-and-sandbox` is refused beside a choice of approvals, and when it comes twice.

    source  codex-cli 0.171.0, run 2026-12
"""

from __future__ import annotations

from collections.abc import Sequence

from memd.harness.arguments import (
    HELP,
    NO_SESSION,
    VERSION,
    Grammar,
    Scan,
    Word,
    appended,
    inserted,
    names,
    scan,
    uuid_or_nothing,
)
from memd.harness.launching import Argv, Intent, Launch, Said

_EXEC = names("exec e")
_SELECTORS = names("resume fork")
_CHOOSING = ("--last", "--all")  # belong to the two commands; without one Codex says so itself
_EXEC_UTILITIES = names("review help")
_UTILITIES = names(
    "a agents app app-server apply archive cloud cloud-tasks completion debug delete doctor "
    "exec-server execpolicy features help login logout mcp mcp-server migrate-nfs-db "
    "migrate-rollouts plugin queue remote-control responses-api-proxy review sandbox "
    "unarchive update"
)
_YOLO = "--dangerously-bypass-approvals-and-sandbox"
_APPROVALS = ("-a", "--ask-for-approval", "--approve-for-me")
_PASSING = (*HELP, *VERSION, *NO_SESSION, "-V", "--ephemeral")
# options of `exec` that `exec resume` does not know
_BEFORE_RESUME = names(
    "-s --sandbox -C --cd --add-dir --color -p --profile --oss --local-provider --approve-for-me"
)
_GRAMMAR = Grammar(
    valued=names(
        "-c --config --enable --disable --remote --remote-auth-token-env -m --model "
        "--local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval "
        "--thread-source --cyber-access-program --output-schema --color -o --output-last-message"
    ),
    variadic=names("-i --image"),
    switches=names(
        "--strict-config --oss --approve-for-me --dangerously-bypass-hook-trust --worktree "
        "--search --no-alt-screen --no-daemon --skip-git-repo-check --trust --ignore-user-config "
        "--ignore-rules --json --last --all --include-non-interactive"
    )
    | {_YOLO, *_PASSING},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    run = found.command(_EXEC)
    chosen = found.command(_SELECTORS, behind=run, past=1)
    utility = found.command(_UTILITIES if run is None else _EXEC_UTILITIES, behind=run)
    return Said(
        is_passing=found.is_torn or utility is not None or found.has(*_PASSING),
        is_batch=run is not None,
        has_selector=chosen is not None or found.has(*_CHOOSING),
        session=_session(found, chosen),
    )


def _session(found: Scan, chosen: Word | None) -> str:
    if chosen is None or chosen.text != "resume" or found.has("--last"):
        return ""
    return uuid_or_nothing(found.word_behind(chosen))


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    arguments = tuple(native)
    notices: tuple[str, ...] = ()
    if intent.session:
        arguments = inserted(native, _place(found), ("resume", intent.session))
    if intent.is_yolo and found.has(*_APPROVALS):
        notices = ("--yolo is left out: Codex takes it only without a choice of approvals of your own",)
    elif intent.is_yolo and not found.has(_YOLO):
        arguments = appended(arguments, (_YOLO,))
    return Argv(arguments=arguments, session=intent.session, notices=notices)


def _place(found: Scan) -> int:
    """Where `resume` goes: first, or behind `exec` and those of its options that must come before."""
    run = found.command(_EXEC)
    if run is None:
        return 0
    before = [flag.end for flag in found.flags if flag.at > run.at and flag.name in _BEFORE_RESUME]
    return max((run.at + 1, *before))


LAUNCH = Launch(
    executables=("codex",),
    is_pooled=True,
    variables=("CODEX_HOME",),
    read=read,
    compose=compose,
)
