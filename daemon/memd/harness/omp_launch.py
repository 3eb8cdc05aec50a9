"""How OMP is started.

    omp [options] [COMMAND] ...                       any other word is a message, as behind `launch`
    --resume[=ID], --session[=ID]                     the beginning of an id, a path, or a list to choose from
    --auto-approve, --approval-mode MODE              of newer versions

Options of the main command may stand before a command. The id of a new session cannot be chosen.

    source  OMP 18.2.3, run and read 2026-12
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

_RESUME = ("--resume", "-r", "--session")
_SELECTORS = (*_RESUME, "--continue", "-c", "--fork", "--from-claude", "--from-codex")
_PASSING = (*HELP, *VERSION, *NO_SESSION, "--export", "--alias", "--list-models")
_YOLO = "--auto-approve"
_APPROVALS = (_YOLO, "--approval-mode")
_COMMANDS = names(
    "__complete acp agents auth-broker auth-gateway bench browser-relay cleanse collab commit "
    "completions compress config dry-balance gallery gc git grep grievances if-bench images "
    "img install join models plugin plugins ps q read render say search setup share shell ssh "
    "stats tiny-models token ttsr update usage worktree wt"
)
# alone they are answered with a hint and nothing else
_ALONE = names("disable discover enable extensions help list marketplace remove uninstall upgrade")
_GRAMMAR = Grammar(
    valued=names(
        "--cwd --config --add-dir --mode --fork --provider --model --smol --slow --prewalk-into "
        "--plan-yolo-into --max-time --service-tier --api-key --system-prompt "
        "--append-system-prompt --provider-session-id --prompt-cache-key --session-dir --models "
        "--tools --thinking --export --hook --extension -e --trusted-extension --plugin-dir "
        "--skills --approval-mode --profile --alias"
    ),
    optional=names("--plan") | {*_RESUME},
    switches=names(
        "--allow-home --continue -c --from-claude --from-codex --no-tools --no-lsp --no-pty "
        "--hide-thinking --advisor --external-thinking --prewalk --no-prewalk --plan-yolo --print "
        "-p --print-thoughts --no-extensions --no-skills --no-rules --no-title"
    )
    | {*NO_SESSION, _YOLO, *HELP, *VERSION},
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    folder = found.value("--session-dir")
    is_alone = len(native) == 1 and is_first(native, _ALONE)
    return Said(
        is_passing=found.is_torn or is_alone or found.has(*_PASSING) or found.command(_COMMANDS) is not None,
        is_batch=found.has("--print", "-p") or found.value("--mode") not in ("", "text"),
        has_selector=found.has(*_SELECTORS),
        session="" if found.has("--fork") else uuid_or_nothing(found.value(*_RESUME)),
        folders={"PI_CODING_AGENT_SESSION_DIR": folder} if folder else {},
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    ours: list[str] = []
    notices: tuple[str, ...] = ()
    if intent.session:
        ours.append(f"--resume={intent.session}")
    if intent.is_yolo and not scan(native, _GRAMMAR).has(*_APPROVALS):
        if _YOLO in intent.supports:
            ours.append(_YOLO)
        else:
            notices = ("--yolo is left out: this OMP is not known to have a word for it",)
    return Argv(arguments=appended(native, ours), session=intent.session, notices=notices)


LAUNCH = Launch(
    executables=("omp",),
    variables=(
        "OMP_PROFILE",
        "PI_CODING_AGENT_DIR",
        "PI_CODING_AGENT_SESSION_DIR",
        "PI_CONFIG_DIR",
        "PI_PROFILE",
    ),
    probes=(_YOLO,),
    yolo_probes=(_YOLO,),
    read=read,
    compose=compose,
)
