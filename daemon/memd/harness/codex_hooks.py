"""What Codex calls memd for.

    hooks.json of the Codex home, of the same form as Claude Code's `hooks`
    stdin   {session_id, transcript_path, cwd, hook_event_name, source?, agent_id?, turn_id?, ...}
    stdout  {"hookSpecificOutput": {"hookEventName", "additionalContext"}}, about 10,000 bytes; or nothing

SessionStart comes at the first prompt, just before UserPromptSubmit, and names a fork by its own id. A
sub-agent's UserPromptSubmit carries the parent's session and an `agent_id`. A hook runs only when a person
trusted it, and trust is lost with every change of the command.

    source  codex-cli 0.171.0, seen 2026-11
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
    shown,
    text,
)

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The `hooks.json` of the Codex home that the environment names."""
    return (Settings(path=folder(environment, "CODEX_HOME", b".codex") + b"/hooks.json", form="json-hooks"),)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    source = payload.get("source")
    transcript = text(payload, "transcript_path")
    home = above(transcript, "sessions", 4)
    return Heard(
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        transcript=transcript,
        variables={"CODEX_HOME": home} if home else {},
        is_inner=bool(payload.get("agent_id")),
        is_again=source == "compact",
        is_clear=source == "clear",
        is_new=source in ("startup", "fork"),  # /new and /fork on the screen are told like first ones
    )


def answer(event: str, told: str) -> str:
    """A text for the model; nothing when there is nothing to tell."""
    return context_json(event, told) if told else ""


def caveats(place: Settings, cwd: bytes, look: Look) -> tuple[Caveat, ...]:
    """The feature's switch, which `codex --disable hooks` sets for one run."""
    import tomllib

    path = place.path.rpartition(b"/")[0] + b"/config.toml"
    try:
        features = tomllib.loads((look(path) or b"").decode("utf-8")).get("features")
    except (ValueError, RecursionError):
        return ()  # Codex itself complains
    if not isinstance(features, dict) or features.get("hooks") is not False:
        return ()
    message = f"`hooks = false` under [features] in {shown(path)} keeps all hooks from running"
    return (Caveat(message=message, remedy="Take that line out, or go without.", is_off=True),)


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
    trust="codex",
    caveats=caveats,
)
