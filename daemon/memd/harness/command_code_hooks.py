"""What Command Code calls memd for.

    file    ~/.commandcode/settings.json
            {"hooks": {EVENT: [{"hooks": [{"type": "command", "command", "timeout"}]}]}}, no `matcher`
    stdin   {session_id, transcript_path, cwd, hook_event_name, permission_mode, source?, ...}
    stdout  SessionStart: {"hookSpecificOutput": {"hookEventName", "additionalContext"}}, of which the model
            gets 4,000 characters; else {}

SessionStart comes on the screen only, never with `-p`; after `/clear`, `/fork` and `/clone` it comes again,
with the new session's id and `clear` or `resume`. There is no event of a prompt and none of an end. `Stop`
comes after every turn, also with `-p`; only then the turn is written. Names of other events are shown to the
person as mistakes.

    source  Command Code 1.64.0, seen 2026-12
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import Heard, HookEvent, Hooks, Settings, context_json, text

if TYPE_CHECKING:
    from memd.harness.model import Environment

START = "SessionStart"
NOTHING = "{}"


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The one file there is: no variable moves it."""
    path = environment.home.rstrip(b"/") + b"/.commandcode/settings.json"
    return (Settings(path=path, form="json-hooks"),)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    return Heard(
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        transcript=text(payload, "transcript_path"),
        is_clear=payload.get("source") == "clear",
        is_new=payload.get("source") in ("startup", "resume"),
    )


def answer(event: str, told: str) -> str:
    """A text for the model; an empty object when there is nothing to tell."""
    return context_json(event, told) if told and event == START else NOTHING


HOOKS = Hooks(
    events=(
        HookEvent(name=START, role="start", harmless=NOTHING, matters=True, timeout_s=10),
        HookEvent(name="Stop", role="prompt", harmless=NOTHING, timeout_s=5),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    wrapper=context_json(START, ""),
    is_escaped=False,  # the limit is that of the text, not of what is printed
)
