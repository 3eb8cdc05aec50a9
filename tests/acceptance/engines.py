"""What the acceptance runner knows of each engine: one turn on its command line, where its login lies.

Only files that hold a login are ever copied, and only into the isolated home of that engine. Where it is not
known which file that is, none is named: `--auth NAME=PATH` says it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Turn = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class Engine:
    """
    word     what `memctl run` is given
    turn     the arguments for one prompt without a screen; None: a person has to type
    auth     files below the home that hold a login
    members  of a JSON file below the home the members that hold a login: all others stay behind
    prepare  files to be made in the isolated home: path to content
    steps    what a person is to do, where there is no other way
    """

    name: str
    harness: str
    word: str
    turn: Turn | None
    auth: tuple[str, ...] = ()
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()
    prepare: tuple[tuple[str, str], ...] = ()
    extra: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


def _print(prompt: str) -> tuple[str, ...]:
    return ("-p", prompt)


_TYPED = (
    "A session opens in this terminal.",
    "Type one short sentence, for example: say hello. Wait for the answer.",
    "Leave it the usual way (/quit).",
)
_AGENT = ((".kiro/agents/acceptance.json", '{"name": "acceptance", "tools": ["*"]}\n'),)

ENGINES = (
    Engine(
        "claude",
        "claude",
        "claude",
        _print,
        (".claude/.credentials.json",),
        ((".claude.json", ("oauthAccount", "userID", "hasCompletedOnboarding", "primaryApiKey")),),
    ),
    Engine(
        "codex",
        "codex",
        "codex",
        lambda prompt: ("exec", "--skip-git-repo-check", prompt),
        (".codex/auth.json",),
    ),
    Engine(
        "opencode",
        "opencode",
        "opencode",
        lambda prompt: ("run", prompt),
        (".local/share/opencode/auth.json",),
    ),
    Engine("pi", "pi", "pi", _print, (".pi/agent/auth.json", ".pi/agent/models.json")),
    Engine("omp", "omp", "omp", _print, (".omp/agent/auth.json", ".omp/agent/models.yml")),
    Engine("crush", "crush", "crush", lambda prompt: ("run", prompt), (".local/share/crush/crush.json",)),
    Engine("kimi", "kimi", "kimi", _print, (".kimi-code/config.toml",)),
    Engine("command-code", "command-code", "command-code", _print, (".commandcode/auth.json",)),
    Engine("grok", "grok", "grok", _print, (".grok/auth.json", ".grok/config.toml")),
    Engine("kiro-v2", "kiro", "kiro-v2", None, prepare=_AGENT, extra=("--agent", "acceptance"), steps=_TYPED),
    Engine("kiro-v3", "kiro", "kiro-v3", None, prepare=_AGENT, steps=_TYPED),
    Engine("antigravity", "antigravity", "antigravity", _print),
)
