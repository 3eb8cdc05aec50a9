"""What Kimi Code calls memd for.

    file    config.toml of the Kimi home: [[hooks]] with `event` and `command`, and not one key more, for with
            one that an older version does not know the whole file is refused
    stdin   {hook_event_name, session_id, cwd, client_type, source?, prompt?, is_steer?, ...}
    stdout  UserPromptSubmit: the text as it is, put before the prompt; anything else printed there is told
            to the model too. Of the other events nothing is read

A session's start tells nobody anything: what is to be told comes with the first prompt. `/new` and `/clear`
begin a session of another id in the same process, and say `startup` like any other; the old one ends after
that. A sub-agent has its parent's session.

    source  Kimi Code 2.1.0, seen 2026-12
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import Heard, HookEvent, Hooks, Settings, folder, text

if TYPE_CHECKING:
    from memd.harness.model import Environment

PROMPT = "UserPromptSubmit"


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The `config.toml` of the Kimi home that the environment names."""
    path = folder(environment, "KIMI_CODE_HOME", b".kimi-code") + b"/config.toml"
    return (Settings(path=path, form="toml-hooks"),)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    return Heard(
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        is_new=payload.get("source") == "startup",
    )


def answer(event: str, told: str) -> str:
    """The bare text; nothing when there is nothing to tell."""
    return told if event == PROMPT else ""


HOOKS = Hooks(
    events=(
        HookEvent(name="SessionStart", role="link"),
        HookEvent(name=PROMPT, role="start", matters=True, is_each_turn=True),
        HookEvent(name="Stop", role="activity"),
        HookEvent(name="SessionEnd", role="end"),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    is_escaped=False,
)
