"""How Grok Build is started, and how a session of it is told what it has not seen.

    grok [options] [prompt]                          a session on the screen
    grok [options] -p PROMPT                         one prompt
    grok [options] [prompt] COMMAND ...              a command, also behind a prompt
    --session-id UUID                                the id of a new session
    --resume [ID], --continue                        goes on in a session
    --resume ID --fork-session [--session-id UUID]   a copy under another id
    --rules TEXT                                     more for the system prompt, once; of a new session only

An id that is not there sends `--resume` to the network. `--rules` and `--append-system-prompt` are one option
under two names, and what they say to a session that goes on reaches nobody. Such a session is told by a hook
(`memd.harness.grok_hooks`) after its first answer; until then nothing counts as told. A conversation that is
begun on the screen after another (`/new`) has the same rules.

    source  Grok Build 0.2.111, run and read 2026-12
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memd.harness.arguments import HELP, NO_SESSION, VERSION, Grammar, Scan, appended, is_usable, names, scan
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Launch, Said

_RESUME = ("--resume", "-r")
_NEW = ("--session-id", "-s")
_SELECTORS = (*_RESUME, *_NEW, "--continue", "-c", "--fork-session")
_PASSING = (*HELP, *VERSION, "-V", *NO_SESSION)
_BATCH = ("--single", "-p", "--prompt-file", "--prompt-json")
_YOLO = ("--yolo", "--always-approve")
_MODE = "--permission-mode"
_RULES = ("--rules", "--append-system-prompt")
_COMMANDS = names(
    "agent completions dashboard doctor export help inspect leader login logout mcp memory models plugin "
    "sessions setup trace update version v worktree wrap"
)
_GRAMMAR = Grammar(
    valued=names(
        "--agent --agents --allow --allowedTools --allowed-tools --cwd --debug-file --deny "
        "--disallowedTools --disallowed-tools --json-schema --leader-socket --model -m --max-turns "
        "--output-format --permission-mode --reasoning-effort --effort --sandbox "
        "--system-prompt-override --system-prompt --tools --worktree-ref --ref"
    )
    | {*_NEW, *_BATCH, *_RULES},
    optional=names("--resume -r --worktree -w"),
    switches=names(
        "--continue -c --debug --disable-web-search --experimental-memory --fork-session --fullscreen "
        "--minimal --no-alt-screen --no-memory --no-plan --no-subagents --oauth --restore-code --verbatim"
    )
    | {*_YOLO, *_PASSING},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    session = _session(found)
    return Said(
        is_passing=found.is_torn or found.has(*_PASSING) or found.command(_COMMANDS, past=1) is not None,
        is_batch=found.has(*_BATCH),
        has_selector=found.has(*_SELECTORS),
        session=session if is_usable(session) else "",
    )


def _session(found: Scan) -> str:
    """Of a copy the old id says nothing."""
    return found.value(*_NEW) or ("" if found.has("--fork-session") else found.value(*_RESUME))


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours: list[str] = []
    notices: tuple[str, ...] = ()
    if intent.session:
        ours += ("--resume", intent.session)
    elif intent.new_id:
        ours += ("--session-id", intent.new_id)
    if intent.is_yolo and found.has(_MODE):
        notices = (f"--yolo is left out: {_MODE} says what Grok may do.",)
    elif intent.is_yolo and not found.has(*_YOLO):
        ours.append("--yolo")
    session = intent.session or intent.new_id
    return Argv(arguments=appended(native, ours), session=session, notices=notices)


def deliver(text: str, argv: Argv, doorway: Doorway) -> Delivered:
    """A new session with the text among its rules; one that goes on is told later, by its hook.

    A person's own rules go before ours: there may be only one.
    """
    if doorway.said.has_selector or doorway.intent.session:
        return Delivered(argv=_with(argv, _LATER), is_told=False)
    if scan(argv.arguments, _GRAMMAR).has(*_RULES):
        return Delivered(argv=_with(argv, _TAKEN), is_told=False)
    rules = text.replace("\0", "")
    if rules.startswith("-"):
        rules = "\n" + rules  # else it would be taken for an option
    return Delivered(argv=replace(argv, arguments=appended(argv.arguments, ("--rules", rules))))


_LATER = (
    "Grok hears of the work elsewhere after its first answer: memd's hook tells it, where it is installed."
)
_TAKEN = "Grok takes --rules once, and here it is taken: memd's hook tells it after its first answer."


def _with(argv: Argv, notice: str) -> Argv:
    return replace(argv, notices=(*argv.notices, notice))


LAUNCH = Launch(
    executables=("grok",),
    variables=("GROK_HOME",),
    read=read,
    compose=compose,
    deliver=deliver,
)
