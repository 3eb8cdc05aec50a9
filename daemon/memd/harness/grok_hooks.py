"""What Grok Build calls memd for.

    file    <GROK_HOME>/hooks/memd.json, of memd alone
            {"hooks": {EVENT: [{"hooks": [{"type": "command", "command", "timeout"}]}]}}
    stdin   {hookEventName, sessionId, cwd, workspaceRoot, transcriptPath?, source?, reason?, ...}; older
            versions write some of these names with underscores
    stdout  Stop: {"hookSpecificOutput": {"hookEventName", "additionalContext"}} is one more round with the
            text in the user's name; else {}

What SessionStart, UserPromptSubmit and the events of tools print reaches nobody. A new session is told by
`--rules` (`memd.harness.grok_launch`). One that goes on is told after its first answer: `Stop` comes then,
and again after the round that our answer caused, with `stopHookActive`; after a turn that failed or was
broken off it has another `reason`. A sub-agent has prompts, under an id of its own and without any mark, but
no SessionStart and no Stop: so prompts are not listened to. `/new` begins a session of another id in the same
process, and nothing says that the old one ended.

Grok runs Claude Code's hooks too; those know it and leave it alone.

    source  Grok Build 0.2.111, seen 2026-12
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import Heard, HookEvent, Hooks, Settings, above, context_json, folder, text

if TYPE_CHECKING:
    from memd.harness.model import Environment

STOP = "Stop"
NOTHING = "{}"
_INNER = (
    *("subagentType", "subagent_type", "subagentId", "subagent_id"),
    *("parentSessionId", "parent_session_id"),
)


def settings(environment: Environment) -> tuple[Settings, ...]:
    """A file of its own in the Grok home that the environment names."""
    path = folder(environment, "GROK_HOME", b".grok") + b"/hooks/memd.json"
    return (Settings(path=path, form="json-own"),)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    transcript = text(payload, "transcriptPath", "transcript_path")
    home = above(transcript, "sessions", 3)
    return Heard(
        session=text(payload, "sessionId", "session_id"),
        cwd=text(payload, "cwd", "workspaceRoot"),
        transcript=transcript,
        variables={"GROK_HOME": home} if home else {},
        is_new=payload.get("source") == "new",
        is_inner=any(payload.get(name) for name in _INNER) or (event == STOP and not _is_over(payload)),
    )


def _is_over(payload: Mapping[str, object]) -> bool:
    """Whether a turn ended by itself, and not the one that our own answer caused."""
    is_ours = payload.get("stopHookActive", payload.get("stop_hook_active"))
    return is_ours is not True and payload.get("reason", "end_turn") == "end_turn"


def answer(event: str, told: str) -> str:
    """One more round with the text; an empty object when there is nothing to tell."""
    return context_json(event, told) if told and event == STOP else NOTHING


HOOKS = Hooks(
    events=(
        HookEvent(name="SessionStart", role="link", harmless=NOTHING, timeout_s=5),
        HookEvent(name=STOP, role="prompt", harmless=NOTHING, may_tell=True, timeout_s=5),
        HookEvent(name="SessionEnd", role="end", harmless=NOTHING, timeout_s=3),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    wrapper=context_json(STOP, ""),
)
