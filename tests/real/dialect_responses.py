"""OpenAI Responses over HTTP: `POST /v1/responses`. Pure.

source  codex-cli 0.171.0, requests recorded 2026-11
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
    told = _told(body.get("input"))
    prompt, step = choose_prompt(told, only_last_block=False)
    system = [str(body.get("instructions") or "")]
    system += [text for role, texts in told if role in _SYSTEM_ROLES for text in texts]
    tools = tools_of(body.get("tools"))
    return Turn(prompt, step, as_json(body), "\n".join(system), tools, forced_tool(body.get("tool_choice")))


def _told(given: object) -> list[tuple[str, list[str]]]:
    """(role, texts) of a request's input; the parallel calls of one turn stand as one assistant answer."""
    if isinstance(given, str):
        return [("user", [given])]
    told: list[tuple[str, list[str]]] = []
    was_call = False
    for item in items_of(given):
        kind = str(item.get("type", "message"))
        if kind == "message":
            told.append((str(item.get("role")), texts_of(item.get("content"))))
        elif kind.endswith("_call") and not was_call:
            told.append(("assistant", []))
        was_call = kind.endswith("_call")
    return told


def _items(answer: Answer) -> list[Json]:
    reply, tag = answer.reply, answer.tag
    items: list[Json] = []
    if reply.thinking:
        summary: Json = {"type": "summary_text", "text": reply.thinking}
        items.append(
            {"type": "reasoning", "id": f"rs_{tag}", "summary": [summary], "encrypted_content": "c2ln" + tag}
        )
    if reply.text or not reply.calls:
        items.append(_message_item(answer, reply.text))
    offered = {tool.name: tool for tool in tools_of(answer.body.get("tools"))}
    for n, call in enumerate(reply.calls):
        tool = offered.get(call.tool)
        if tool is not None and tool.is_freeform:
            given = call.arguments.get("input", as_json(call.arguments))
            items.append({"type": "custom_tool_call", "id": f"ctc_{tag}{n}", "call_id": f"call_{tag}{n}",
                          "name": call.tool, "input": given, "status": "completed"})  # fmt: skip
            continue
        space, _, name = call.tool.rpartition(".")
        item: Json = {"type": "function_call", "id": f"fc_{tag}{n}", "call_id": f"call_{tag}{n}",
                      "name": name, "arguments": as_json(call.arguments), "status": "completed"}  # fmt: skip
        if space:
            item["namespace"] = space
        items.append(item)
    return items


def _message_item(answer: Answer, text: str) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{answer.tag}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _response(answer: Answer, status: str, items: list[Json]) -> Json:
    response: Json = {
        "id": f"resp_{answer.tag}",
        "object": "response",
        "created_at": 1,
        "model": answer.model,
        "status": status,
        "output": items,
    }
    if status == "completed":
        response["usage"] = {
            "input_tokens": answer.tokens_in,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.tokens_in + answer.tokens_out,
        }
    return response


def _whole(answer: Answer) -> Json:
    return _response(answer, "completed", _items(answer))


def _stream(answer: Answer) -> Iterator[Frame | Pause]:
    number = 0

    def event(kind: str, **fields: object) -> Frame:
        nonlocal number
        number += 1
        return Frame({"type": kind, "sequence_number": number - 1, **fields}, kind)

    yield event("response.created", response=_response(answer, "in_progress", []))
    items = _items(answer)
    for at, item in enumerate(items):
        if item["type"] != "message":
            yield event("response.output_item.added", output_index=at, item=item)
        else:
            where: Json = {"output_index": at, "item_id": item["id"], "content_index": 0}
            begun: Json = {**item, "status": "in_progress", "content": []}
            yield event("response.output_item.added", output_index=at, item=begun)
            empty: Json = {"type": "output_text", "text": "", "annotations": []}
            yield event("response.content_part.added", part=empty, **where)
            sent = ""
            for piece in spoken(answer.reply):
                if isinstance(piece, Pause):
                    yield piece
                    continue
                sent += piece
                yield event("response.output_text.delta", delta=piece, **where)
            items[at] = item = _message_item(answer, sent)
            yield event("response.output_text.done", text=sent, **where)
        yield event("response.output_item.done", output_index=at, item=item)
    yield event("response.completed", response=_response(answer, "completed", items))


RESPONSES = Dialect("responses", _read, _whole, _stream)
