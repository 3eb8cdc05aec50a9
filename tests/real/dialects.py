"""What the three request formats share: how they are read and how a stream of frames is described. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from real.script import Json, Reply, Tool, Turn

_PIECE_CHARS = 40  # many small deltas, as a model sends them
_LARGE_PIECE_CHARS = 2000


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    data: Json | str
    event: str = ""


@dataclass(frozen=True)
class Pause:
    """The place in a stream where a slow or held reply waits."""


@dataclass(frozen=True)
class Answer:
    """A reply with what its rendering needs: a tag that makes its ids unique, and sizes in tokens."""

    body: Json
    reply: Reply
    tag: str
    tokens_in: int
    tokens_out: int

    @property
    def model(self) -> object:
        return self.body.get("model", "scripted-model")


@dataclass(frozen=True)
class Dialect:
    name: str
    read: Callable[[Json], Turn]
    whole: Callable[[Answer], Json]
    stream: Callable[[Answer], Iterator[Frame | Pause]]


def texts_of(content: object) -> list[str]:
    """The text pieces of a message's content, tool results left out."""
    if isinstance(content, str):
        return [content]
    out: list[str] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, dict) and part.get("type") in ("text", "input_text", "output_text"):
            out.append(str(part.get("text") or ""))
    return out


def tools_of(listed: object, prefix: str = "") -> tuple[Tool, ...]:
    """Every tool a request offers, those in a namespace as `namespace.tool`."""
    out: list[Tool] = []
    for item in listed if isinstance(listed, list) else []:
        if not isinstance(item, dict):
            continue
        if item.get("type") == "namespace":
            out += tools_of(item.get("tools"), f"{item.get('name', '')}.")
            continue
        function = item.get("function")
        spec: Mapping[str, object] = function if isinstance(function, dict) else item
        schema = spec.get("parameters") or spec.get("input_schema")
        out.append(
            Tool(
                name=prefix + str(spec.get("name") or spec.get("type") or ""),
                schema=schema if isinstance(schema, dict) else {},
                is_freeform=item.get("type") == "custom",
            )
        )
    return tuple(out)


def forced_tool(choice: object) -> str:
    """The tool that a request's `tool_choice` names; empty when the model is free."""
    if not isinstance(choice, dict):
        return ""
    function = choice.get("function")
    return str((function if isinstance(function, dict) else choice).get("name") or "")


def items_of(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def pieces(text: str) -> list[str]:
    size = _LARGE_PIECE_CHARS if len(text) > 4000 else _PIECE_CHARS
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def spoken(reply: Reply) -> Iterator[str | Pause]:
    """The visible text in pieces; a slow or held reply first says a whole line, then pauses."""
    if reply.stall_s or reply.hold:
        yield "SLOW-START\n\n"  # a whole line: screens hold back half lines
        yield Pause()
    yield from pieces(reply.text)
