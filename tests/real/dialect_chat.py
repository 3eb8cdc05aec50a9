"""OpenAI Chat Completions: `POST /v1/chat/completions`. Pure.

source  OpenCode 1.18.33 and Pi 1.6.0, requests recorded 2026-11
"""

from __future__ import annotations

from collections.abc import Iterator

from real.dialects import (
    Answer,
    Dialect,
    Frame,
    Pause,
    as_json,
    forced_tool,
    items_of,
    spoken,
    texts_of,
    tools_of,
)
from real.script import Json, Turn, choose_prompt

_SYSTEM_ROLES = ("system", "developer")


def _read(body: Json) -> Turn:
    messages = items_of(body.get("messages"))
    told = [(str(m.get("role")), texts_of(m.get("content"))) for m in messages]
    prompt, step = choose_prompt(told, only_last_block=False)
    system = [text for role, texts in told if role in _SYSTEM_ROLES for text in texts]
    tools = tools_of(body.get("tools"))
    return Turn(prompt, step, as_json(body), "\n".join(system), tools, forced_tool(body.get("tool_choice")))


def _calls(answer: Answer) -> list[Json]:
    return [
        {
            "index": n,
            "id": f"call_{answer.tag}{n}",
            "type": "function",
            "function": {"name": call.tool, "arguments": as_json(call.arguments)},
        }
        for n, call in enumerate(answer.reply.calls)
    ]


def _base(answer: Answer, kind: str) -> Json:
    return {"id": f"chatcmpl-{answer.tag}", "object": kind, "created": 1, "model": answer.model}


def _usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.tokens_in,
        "completion_tokens": answer.tokens_out,
        "total_tokens": answer.tokens_in + answer.tokens_out,
    }


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.reply.calls else "stop"


def _whole(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.reply.text or None}
    if answer.reply.calls:
        message["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in _calls(answer)]
    choice: Json = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return {**_base(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


def _stream(answer: Answer) -> Iterator[Frame | Pause]:
    base = _base(answer, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None, **fields: object) -> Frame:
        return Frame({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields})

    yield chunk({"role": "assistant", "content": ""})
    if answer.reply.thinking:
        yield chunk({"reasoning_content": answer.reply.thinking})
    if answer.reply.text:
        for piece in spoken(answer.reply):
            yield piece if isinstance(piece, Pause) else chunk({"content": piece})
    for call in _calls(answer):
        yield chunk({"tool_calls": [call]})
    yield chunk({}, _finish(answer), usage=_usage(answer))
    yield Frame("[DONE]")


CHAT = Dialect("chat", _read, _whole, _stream)
