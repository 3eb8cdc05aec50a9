"""What Kiro's two engines call memd for.

    v2      agents/*.json      {"hooks": {EVENT: [{"command", "max_output_size"?}]}}
                               in each agent there is; with a matcher, even an empty one, none would run
    v3      hooks/memd.json    {"version": "v1", "hooks": [{"name", "trigger", "action": {"type": "command",
                               "command"}, "timeout", "enabled"}]}
    stdin   {hook_event_name, cwd, session_id, ...}
    stdout  of a start plain text for the model; of anything else nothing at all: what `Stop` prints is taken
            for a decision, and `{}` would be put before the model

`KIRO_HOME` moves both; a session of the third engine that lies in the usual place all the same is resumed
without the variable, so hooks are put there too. Without any agent there is no place for the second engine's
hooks, and none is made.

    source  descriptions of Kiro CLI 2.16, read 2026-12; the program was not run
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import Heard, HookEvent, Hooks, Settings, text

if TYPE_CHECKING:
    from memd.harness.model import Environment

START_OUTPUT_BYTES = 65536  # what is longer is cut; 30,000 characters of a text fit in nearly always

SECOND = ("agentSpawn", "userPromptSubmit")
THIRD = ("SessionStart", "UserPromptSubmit")


def settings(environment: Environment) -> tuple[Settings, ...]:
    chosen = environment.variables.get("KIRO_HOME", b"").strip()
    usual = environment.home + b"/.kiro"
    home = (chosen if chosen.startswith(b"/") else usual).rstrip(b"/")
    found: list[Settings] = []
    for place in dict.fromkeys((home, usual)):
        found.append(Settings(path=place + b"/agents", form="json-flat", events=SECOND, each="*.json"))
        found.append(Settings(path=place + b"/hooks/memd.json", form="json-list", events=THIRD))
    return tuple(found)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    return Heard(session=text(payload, "session_id"), cwd=text(payload, "cwd"))


def answer(event: str, told: str) -> str:
    """Plain text, and only at a start."""
    return told if event in ("agentSpawn", "SessionStart") else ""


HOOKS = Hooks(
    events=(
        HookEvent(name="agentSpawn", role="start", matters=True, output_bytes=START_OUTPUT_BYTES),
        HookEvent(name="userPromptSubmit", role="prompt"),
        HookEvent(name="SessionStart", role="start", matters=True, timeout_s=5),
        HookEvent(name="UserPromptSubmit", role="prompt", timeout_s=1),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    is_escaped=False,
)
