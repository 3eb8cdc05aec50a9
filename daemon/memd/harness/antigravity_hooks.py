"""What Antigravity calls memd for, and what its calls say that stands nowhere else.

    file     ~/.gemini/config/hooks.json
             {"memd": {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command"}]}],
                       "PreInvocation": [{"type": "command", "command"}], ...}}
    stdin    {conversationId, workspacePaths, stepIdx, toolCall: {name, args}, invocationNum, error, ...}
    stdout   PreToolUse: {"decision": "allow"}, whatever happens: anything else keeps every tool from running
             PreInvocation: {"injectSteps": [{"ephemeralMessage": TEXT}]} or {}; the rest {}

`PreInvocation` comes with every call of the model. One whose `invocationNum` is the number 0 begins a turn,
and with the first turn the conversation. `Stop` ends a turn. The steps of a conversation are kept in a form
that is not documented, so its calls of tools are taken from here: known by conversation, step, kind and
content, so that a call that is told before and after it ran, or twice, is one event.

    source  descriptions of Antigravity CLI 1.3, read 2026-12; the program was not run
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from memd.harness.arguments import uuid_or_nothing
from memd.harness.hooking import Heard, HookEvent, Hooks, Settings, text
from memd.harness.losses import Losses
from memd.harness.packets import is_own
from memd.harness.records import clip
from memd.harness.times import rfc3339

if TYPE_CHECKING:
    from memd.harness.model import Environment, Event, Kind, Parsed

START, BEFORE_TOOL, AFTER_TOOL, STOP = "PreInvocation", "PreToolUse", "PostToolUse", "Stop"
ALLOW, NOTHING = '{"decision":"allow"}', "{}"
MAX_STEP = 1 << 40


def settings(environment: Environment) -> tuple[Settings, ...]:
    return (Settings(path=environment.home.rstrip(b"/") + b"/.gemini/config/hooks.json", form="json-named"),)


def hear(event: str, payload: Mapping[str, object]) -> Heard:
    """A call before one of the model's is a start only when it begins a turn."""
    number = payload.get("invocationNum")
    is_start = isinstance(number, int) and not isinstance(number, bool) and number == 0
    if event == START and not is_start:
        return Heard()
    return Heard(session=uuid_or_nothing(text(payload, "conversationId")), cwd=_directory(payload))


def answer(event: str, told: str) -> str:
    if event == BEFORE_TOOL:
        return ALLOW
    return _injected(told) if event == START and told else NOTHING


def _injected(told: str) -> str:
    whole = told.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
    return msgspec.json.encode({"injectSteps": [{"ephemeralMessage": whole}]}).decode()


def events_of(event: str, payload: Mapping[str, object], at_ms: int) -> Parsed:
    """The call of a tool, and that it failed; nothing of a payload that does not name its conversation."""
    from memd.harness.model import Parsed, Session

    session, cwd = uuid_or_nothing(text(payload, "conversationId")), _directory(payload)
    if event not in (BEFORE_TOOL, AFTER_TOOL) or not session:
        return Parsed()
    losses = Losses()
    events = []
    call = payload.get("toolCall")
    if isinstance(call, Mapping):
        name = text(call, "name").encode("utf-8", "replace").decode()
        name = clip(name, 256)[0] or "tool"
        arguments = _compact(call.get("args"))
        about: dict[str, str | bool | int] = {"tool": name}
        step = _step(payload)
        events.append(
            _event(session, step, "tool_call", "assistant", f"{name}: {arguments}", about, at_ms, losses)
        )
        error = payload.get("error")
        if event == AFTER_TOOL and isinstance(error, str) and error.strip():
            if is_own(error):
                losses.add(session, "own-packet")
            else:
                about = {**about, "is_error": True}
                events.append(_event(session, step, "tool_result", "tool", error, about, at_ms, losses))
    elif event == BEFORE_TOOL:
        losses.add(session, "unknown-shape")
    return Parsed(
        events=events, losses=losses.done(), sessions=[Session(id=session, cwd=cwd, also=_others(payload))]
    )


def _event(
    session: str,
    step: int,
    kind: Kind,
    role: str,
    content: str,
    about: dict[str, str | bool | int],
    at_ms: int,
    losses: Losses,
) -> Event:
    from memd.harness.model import Event

    content, is_cut = clip(content.encode("utf-8", "replace").decode())
    if is_cut:
        losses.add(session, "shortened")
    return Event(
        session=session,
        origin=f"{session}/step/{step}" if step >= 0 else f"{session}/{at_ms}",
        kind=kind,
        role=role,
        content=content,
        at=max(step, 0),
        record=f"step-{step}" if step >= 0 else "",
        block=0 if kind == "tool_call" else 1,
        occurred_at=rfc3339(at_ms),
        metadata=about,
    )


def _compact(value: object) -> str:
    try:
        return "" if value is None else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair is no text
        return ""


def _step(payload: Mapping[str, object]) -> int:
    """The number of the step; -1: it does not say."""
    number = payload.get("stepIdx")
    is_step = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MAX_STEP
    return int(number) if is_step else -1  # type: ignore[call-overload]


def _workspaces(payload: Mapping[str, object]) -> list[str]:
    found = payload.get("workspacePaths")
    paths = found if isinstance(found, list) else [payload.get("cwd")]
    return [text({"path": one}, "path") for one in paths if isinstance(one, str) and one.startswith("/")]


def _directory(payload: Mapping[str, object]) -> str:
    return next((path for path in _workspaces(payload) if path), "")


def _others(payload: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(path for path in _workspaces(payload) if path)[1:64]


HOOKS = Hooks(
    events=(
        HookEvent(name=START, role="start", harmless=NOTHING, matters=True, is_each_turn=True),
        HookEvent(name=BEFORE_TOOL, role="activity", harmless=ALLOW, keeps=True, matcher=""),
        HookEvent(name=AFTER_TOOL, role="activity", harmless=NOTHING, keeps=True, matcher=""),
        HookEvent(name=STOP, role="activity", harmless=NOTHING),
    ),
    settings=settings,
    hear=hear,
    answer=answer,
    wrapper=_injected(""),
    events_of=events_of,
)
