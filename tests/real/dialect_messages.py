"""Anthropic Messages: `POST /v1/messages`. Pure.

source  Claude Code 2.1.197, requests recorded 2026-11
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
    pieces,
    spoken,
    texts_of,
    tools_of,
)
from real.script import Json, Turn, choose_prompt


def _read(body: Json) -> Turn:
    messages = items_of(body.get("messages"))
    told = [(str(m.get("role")), texts_of(m.get("content"))) for m in messages]
    prompt, step = choose_prompt(told, only_last_block=True)
    system = texts_of(body.get("system")) + [
        text for role, texts in told if role == "system" for text in texts
    ]
    tools = tools_of(body.get("tools"))
    return Turn(prompt, step, as_json(body), "\n".join(system), tools, forced_tool(body.get("tool_choice")))


def _stop_reason(answer: Answer) -> str:
    return "tool_use" if answer.reply.calls else "end_turn"


def _usage(answer: Answer, tokens_out: int) -> Json:
    return {
        "input_tokens": answer.tokens_in,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens_out,
    }


def _message(answer: Answer, content: list[Json], stop: str | None, tokens_out: int) -> Json:
    return {
        "id": f"msg_{answer.tag}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(answer, tokens_out),
    }


def _tool_blocks(answer: Answer) -> list[Json]:
    return [
        {"type": "tool_use", "id": f"toolu_{answer.tag}{n}", "name": call.tool, "input": call.arguments}
        for n, call in enumerate(answer.reply.calls)
    ]


def _whole(answer: Answer) -> Json:
    said: list[Json] = [{"type": "text", "text": answer.reply.text}] if answer.reply.text else []
    return _message(answer, said + _tool_blocks(answer), _stop_reason(answer), answer.tokens_out)


def _stream(answer: Answer) -> Iterator[Frame | Pause]:
    reply = answer.reply
    yield _event("message_start", message=_message(answer, [], None, 1))
    index = 0
    if reply.thinking:
        yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
        yield _delta(index, {"type": "thinking_delta", "thinking": reply.thinking})
        yield _delta(index, {"type": "signature_delta", "signature": "c2ln" + answer.tag})
        yield _event("content_block_stop", index=index)
        index += 1
    if reply.text or not reply.calls:
        yield _start(index, {"type": "text", "text": ""})
        for piece in spoken(reply):
            yield piece if isinstance(piece, Pause) else _delta(index, {"type": "text_delta", "text": piece})
        yield _event("content_block_stop", index=index)
        index += 1
    for block in _tool_blocks(answer):
        yield _start(index, {**block, "input": {}})
        for piece in pieces(as_json(block["input"])):
            yield _delta(index, {"type": "input_json_delta", "partial_json": piece})
        yield _event("content_block_stop", index=index)
        index += 1
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop_reason(answer), "stop_sequence": None},
        usage={"output_tokens": answer.tokens_out},
    )
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> Frame:
    return Frame({"type": kind, **fields}, kind)


def _start(index: int, block: Json) -> Frame:
    return _event("content_block_start", index=index, content_block=block)


def _delta(index: int, delta: Json) -> Frame:
    return _event("content_block_delta", index=index, delta=delta)


MESSAGES = Dialect("messages", _read, _whole, _stream)
