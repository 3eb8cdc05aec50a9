"""What `sessions`, `search` and `export` print: one JSON form, which is a contract, and one for people.

What a transcript says is untrusted: for people it goes through `strip_terminal` first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memd.ledger.store.interface import Hit, SessionRow, StoredEvent
from memd.ledger.terminal import strip_terminal
from memd.service.page import count, filled

MARKS = ("\ue000", "\ue001")
"""Private-use characters round the found words, until it is known how they are shown."""

ROOMY = 72  # columns, from which on a session's title stands beside its time and its count beside its id


class SessionDocument(msgspec.Struct, frozen=True):
    """One element of `memctl sessions --json`."""

    id: str
    harness: str
    cwd: str
    title: str
    started: str
    last_activity: str
    events: int
    losses: int


class EventDocument(msgspec.Struct, frozen=True):
    """One line of `memctl export`."""

    sequence: int
    event_id: str
    harness: str
    session: str
    kind: str
    role: str
    content: str
    occurred_at: str
    metadata: object


def sessions_json(rows: Sequence[SessionRow]) -> str:
    documents = [
        SessionDocument(
            row.id, row.harness, row.cwd, row.title, row.started, row.last_activity, row.events, row.losses
        )
        for row in rows
    ]
    return msgspec.json.format(msgspec.json.encode(documents), indent=2).decode() + "\n"


def sessions_text(rows: Sequence[SessionRow], *, color: bool, width: int) -> str:
    if not rows:
        return "no sessions\n"
    lines = []
    for row in rows:
        when = (row.last_activity or row.started)[:16].replace("T", " ")
        said = count(row.events, "event")
        if row.losses:
            said += f", {row.losses} left out"
        if width < ROOMY:
            lines.append(_bold(f"{when}  {row.harness}", color))
            lines += [f"  {_line(row.title, max(width - 2, 20))}"] if row.title else []
            lines += [f"  {row.id}", f"  {said}"]
        else:
            lines.append(_bold(f"{when}  {row.harness:<8}  {_line(row.title, width - 28)}", color))
            lines.append(f"                  {row.id}  {said}")
        if row.cwd:
            lines.append(f"{'  ' if width < ROOMY else ' ' * 18}{_line(row.cwd, 4096)}")
    return "\n".join(lines) + "\n"


def hits_json(hits: Sequence[Hit]) -> str:
    plain = [msgspec.structs.replace(hit, snippet=_unmarked(hit.snippet)) for hit in hits]
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def hits_text(hits: Sequence[Hit], *, color: bool, width: int) -> str:
    if not hits:
        return "nothing found\n"
    lines = []
    for hit in hits:
        when = hit.occurred_at[:16].replace("T", " ")
        who = hit.role if hit.kind == "message" else hit.kind.replace("_", " ")
        head, place = f"{when}  {hit.harness}  {who}", f"  {hit.session}#{hit.sequence}"
        is_one_line = len(head + place) <= width
        lines += [_bold(head, color) + place] if is_one_line else [_bold(head, color), place]
        if hit.cwd:
            lines.append(f"  {_line(hit.cwd, 4096)}")
        lines += [f"  {_marked(line, color)}" for line in filled(strip_terminal(hit.snippet), width - 2)]
    return "\n".join(lines) + "\n"


def event_lines(events: Sequence[StoredEvent]) -> str:
    encode = msgspec.json.encode
    return "".join(
        encode(
            EventDocument(
                event.sequence,
                event.event_id,
                event.harness,
                event.session,
                event.kind,
                event.role,
                event.content,
                event.occurred_at,
                event.metadata,
            )
        ).decode()
        + "\n"
        for event in events
    )


def event_markdown(events: Sequence[StoredEvent]) -> str:
    """A readable conversation; tool traffic in fences longer than any in it."""
    parts = []
    for event in events:
        text = strip_terminal(event.content).rstrip()
        when = f" · {event.occurred_at[:19].replace('T', ' ')}" if event.occurred_at else ""
        match event.kind:
            case "message":
                parts.append(f"## {event.role.capitalize() or 'Unknown'}{when}\n\n{text}\n")
            case "compaction":
                parts.append(f"## Compaction{when}\n\n{_quoted(text)}\n")
            case "tool_call" | "tool_result":
                word = "Call" if event.kind == "tool_call" else "Result"
                tool = str(event.metadata.get("tool", ""))
                failed = ", failed" if event.metadata.get("is_error") is True else ""
                title = f"{word} {_line(tool, 60)}".rstrip() + failed
                parts.append(f"### {title}{when}\n\n{_fenced(text)}\n")
            case _:
                parts.append(f"### {event.kind.capitalize()}{when}\n\n{_quoted(text)}\n")
    return "\n".join(parts) + ("\n" if parts else "")


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _line(text: str, width: int) -> str:
    flat = " ".join(strip_terminal(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _bold(text: str, color: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if color else text


def _marked(text: str, color: bool) -> str:
    begin, end = ("\x1b[1;33m", "\x1b[0m") if color else ("", "")
    return text.replace(MARKS[0], begin).replace(MARKS[1], end)


def _unmarked(text: str) -> str:
    return text.replace(MARKS[0], "").replace(MARKS[1], "")
