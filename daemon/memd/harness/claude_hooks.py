"""What Claude Code calls memd for.

    file    settings.json of each config home
            {"hooks": {EVENT: [{"hooks": [{"type": "command", "command", "timeout"}]}]}}
    stdin   {session_id, transcript_path, cwd, hook_event_name, source?, agent_id?, ...}
    stdout  {"hookSpecificOutput": {"hookEventName", "additionalContext"}}, 10,000 characters; or nothing

A fork names the old session at SessionStart and its own from UserPromptSubmit on. `agent_id` marks a
sub-agent; `agent_type` alone does not. Grok Build runs these hooks too, with names in camel case: a Grok
session must not be taken for one of Claude's.

    source  Claude Code 2.1.197, Grok Build 0.2.111, seen 2026-11
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import (
    Caveat,
    Heard,
    HookEvent,
    Hooks,
    Look,
    Settings,
    above,
    context_json,
    folder,
    json_object,
    shown,
    text,
)

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The login that the environment names, or the usual one, then the others that are known."""
    chosen = folder(environment, "CLAUDE_CONFIG_DIR", b".claude")
    homes = dict.fromkeys((chosen, *(home.rstrip(b"/") for home in environment.config_homes)))
    return tuple(Settings(path=home + b"/settings.json", form="json-hooks") for home in homes)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    if "hookEventName" in payload and "hook_event_name" not in payload:
        return Heard(
            session=text(payload, "sessionId"),
            cwd=text(payload, "cwd", "workspaceRoot"),
            transcript=text(payload, "transcriptPath"),
            harness="grok",
        )
    source = payload.get("source")
    transcript = text(payload, "transcript_path")
    login = above(transcript, "projects", 2)
    return Heard(
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        transcript=transcript,
        variables={"CLAUDE_CONFIG_DIR": login} if login else {},
        is_inner=bool(payload.get("agent_id")),
        is_again=source == "compact",
        is_clear=source == "clear",
    )


def answer(event: str, told: str) -> str:
    """A text for the model; nothing when there is nothing to tell."""
    return context_json(event, told) if told else ""


def caveats(place: Settings, cwd: bytes, look: Look) -> tuple[Caveat, ...]:
    """The switches that turn all hooks off, in the login's settings, the checkout's and the machine's."""
    found = []
    names = (place.path, cwd + b"/.claude/settings.json", cwd + b"/.claude/settings.local.json")
    for path in dict.fromkeys((*names, *MANAGED)):
        said = json_object(look(path))
        for switch in ("disableAllHooks", *(("allowManagedHooksOnly",) if path in MANAGED else ())):
            if said.get(switch) is True:
                message = f"`{switch}` in {shown(path)} keeps all hooks from running"
                found.append(
                    Caveat(message=message, remedy="Take that line out, or go without.", is_off=True)
                )
    return tuple(found)


MANAGED = (
    b"/etc/claude-code/managed-settings.json",
    b"/Library/Application Support/ClaudeCode/managed-settings.json",
)

HOOKS = Hooks(
    events=(
        HookEvent(name="SessionStart", role="start", matters=True, timeout_s=10),
        HookEvent(name="UserPromptSubmit", role="prompt", may_tell=True, timeout_s=5),
        HookEvent(name="Stop", role="activity", timeout_s=5),
        HookEvent(name="SessionEnd", role="end", timeout_s=3),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    wrapper=context_json("UserPromptSubmit", ""),
    owns_memory=True,
    caveats=caveats,
)
