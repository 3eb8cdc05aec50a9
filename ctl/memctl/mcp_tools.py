"""The tools that `memctl mcp` offers: what each takes, what it answers. Knows nothing of the protocol MCP.

Every tool takes flat arguments and answers with text, also when something is wrong: an agent reads it and
goes on. What other agents wrote stands in the frame of untrusted text. Results are bounded.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from memctl import client, work
from memd import protocol
from memd import protocol_memory as m
from memd import protocol_work as w
from memd.errors import MemdError, NotFound, UsageError
from memd.frame import NOTICE, framed

MAX_RESULT_CHARS = 30_000
MAX_HITS = 50
MAX_LISTED = 300

Arguments = Mapping[str, object]
R = TypeVar("R", bound=m.Result)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """`takes` and `needs` are the properties of its JSON schema and those that must be given."""

    name: str
    says: str
    takes: dict[str, dict[str, Any]]
    needs: tuple[str, ...] = ()
    answer: Callable[[Arguments], str]
    is_read_only: bool = False

    def schema(self) -> dict[str, Any]:
        """As plain as every provider accepts: an object of scalars."""
        return {"type": "object", "properties": self.takes, "required": list(self.needs)}


class Answer(msgspec.Struct, frozen=True):
    text: str
    is_error: bool = False


def call(name: str, arguments: Arguments) -> Answer:
    """What a tool answers; raises nothing."""
    tool = TOOLS.get(name)
    if tool is None:
        return Answer(f"There is no tool {name!r}; there are {', '.join(TOOLS)}.", is_error=True)
    try:
        for needed in tool.needs:
            _text(arguments, needed, needs=True)
        return Answer(_bounded(tool.answer(arguments)))
    except MemdError as reason:
        return Answer(f"{reason}\n{reason.remedy}", is_error=True)


# ------------------------------------------------------------------ arguments


def _text(arguments: Arguments, name: str, *, needs: bool = False) -> str:
    value = arguments.get(name)
    if value is None and not needs:
        return ""
    if not isinstance(value, str) or (needs and not value.strip()):
        raise UsageError(f"the argument {name!r} must be a text that is not empty", remedy="Give it.")
    return value.encode("utf-8", "replace").decode("utf-8")


def _flag(arguments: Arguments, name: str, otherwise: bool) -> bool:
    """A boolean, also one that a model wrote as a text."""
    value = arguments.get(name)
    if value is None:
        return otherwise
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise UsageError(f"the argument {name!r} must be true or false", remedy="Give true or false.")
    return value


def _limit(arguments: Arguments, otherwise: int) -> int:
    value = arguments.get("limit")
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError("the argument 'limit' must be a whole number", remedy="Give a whole number.")
    return max(1, min(value, MAX_HITS))


# ------------------------------------------------------------------ answers


def _ask(action: m.AnyAction, expect: type[R]) -> R:
    result = client.ask(protocol.Memory(action=action), protocol.MemoryReply).result
    assert isinstance(result, expect)
    return result


def _with_notes(text: str, result: m.Result) -> str:
    return text + "".join(f"\nNote: {note}" for note in result.notes)


def _evidence(lead: str, kind: str, text: str) -> str:
    return f"{lead} {NOTICE}\n{framed(kind, text[:MAX_RESULT_CHARS])}"


def _bounded(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS + 1000:
        return text
    return text[:MAX_RESULT_CHARS] + "\n(cut: the result was longer)"


def _row(topic: m.Topic) -> str:
    marks = "".join(
        f" [{word}]"
        for word, holds in (
            ("pinned", topic.is_pinned),
            ("perhaps old", topic.is_stale),
            ("file missing", topic.is_missing),
        )
        if holds
    )
    return f"- {topic.name} ({topic.file}){marks} {topic.date[:10]} -- {topic.summary}"


def _write(arguments: Arguments) -> str:
    mode = _text(arguments, "mode") or "append"
    if mode not in ("append", "replace"):
        raise UsageError(f"the mode {mode!r} is neither append nor replace", remedy="Give one of the two.")
    done = _ask(
        m.WriteTopic(
            topic=_text(arguments, "topic", needs=True),
            body=_text(arguments, "content", needs=True),
            summary=_text(arguments, "summary", needs=True),
            pin=_flag(arguments, "pin", False),
            replace=mode == "replace",
            key=secrets.token_hex(16),
        ),
        m.Changed,
    )
    return _with_notes(f"{done.outcome}: {done.topic.name} in {done.topic.file}", done)


def _read(arguments: Arguments) -> str:
    found = _ask(m.ReadTopic(topic=_text(arguments, "topic", needs=True)), m.TopicText)
    body = found.content.decode("utf-8", "replace")
    lead = f"The topic {found.topic.name!r}, file {found.topic.file}."
    if len(body) > MAX_RESULT_CHARS:
        lead += f" Only the first {MAX_RESULT_CHARS} of {len(body)} characters follow."
    return _with_notes(_evidence(lead, "memory-topic", body), found)


def _list(arguments: Arguments) -> str:
    found = _ask(m.ListTopics(), m.Topics)
    if not found.topics:
        return _with_notes("There are no topics yet.", found)
    rows = [_row(topic) for topic in found.topics[:MAX_LISTED]]
    lead = f"{len(found.topics)} topics"
    if len(rows) < len(found.topics):
        lead += f", the first {len(rows)} of them"
    if found.unlisted:
        lead += f"; {found.unlisted} more files are not in the index, repair_memory lists them"
    return _with_notes(_evidence(lead + ".", "memory-index", "\n".join(rows)), found)


def _search(arguments: Arguments) -> str:
    words = _text(arguments, "query", needs=True)
    found = _ask(m.SearchTopics(words=words, limit=_limit(arguments, 10)), m.Hits)
    if not found.hits:
        return _with_notes("No topic has all these words.", found)
    rows = [_row(hit.topic) + "".join(f"\n    {line}" for line in hit.lines) for hit in found.hits]
    lead = f"{len(found.hits)} topics fit" + (
        f", {found.left_out} more were left out" if found.left_out else ""
    )
    return _with_notes(_evidence(lead + ".", "memory-hits", "\n".join(rows)), found)


def _pin(arguments: Arguments) -> str:
    topic = _text(arguments, "topic", needs=True)
    done = _ask(m.PinTopic(topic=topic, pin=_flag(arguments, "pin", True)), m.Changed)
    return _with_notes(f"{done.outcome}: {done.topic.name}", done)


def _remove(arguments: Arguments) -> str:
    done = _ask(m.RemoveTopic(topic=_text(arguments, "topic", needs=True)), m.Changed)
    return _with_notes(f"removed from the index: {done.topic.name}; the file {done.topic.file} stays", done)


def _repair(arguments: Arguments) -> str:
    done = _ask(m.RepairIndex(), m.Repaired)
    words = [f"{len(done.added)} topics listed" + (":" if done.added else ".")]
    words += [_row(topic) for topic in done.added[:MAX_LISTED]]
    words += [
        f"not listed: {row.file.decode('utf-8', 'replace')}: {row.reason}. {row.remedy}"
        for row in done.reported
    ]
    return _with_notes("\n".join(words), done)


def _history(arguments: Arguments) -> str:
    request = protocol.Search(
        query=_text(arguments, "query", needs=True),
        form="json",
        harness=_text(arguments, "harness"),
        role=_text(arguments, "role"),
        limit=_limit(arguments, 10),
    )
    status, body = client.ask_text(request)
    hits = json.loads(body) if not status else []
    if not hits:
        return "Nothing that any agent said has these words."
    text = json.dumps(hits, ensure_ascii=False, indent=1)
    lead = "What agents and people said, best hits first"
    if len(text) > MAX_RESULT_CHARS:
        lead += "; the end was cut, ask for fewer with limit"
    return _evidence(lead + ".", "history-hits", text)


def _handoff(arguments: Arguments) -> str:
    action = _text(arguments, "action", needs=True)
    if action not in ("create", "show"):
        raise UsageError(f"the action {action!r} is neither create nor show", remedy="Give one of the two.")
    asking = work.asking()
    if action == "create":
        wanted: w.AnyAction = w.CreateHandoff(
            summary=_text(arguments, "summary", needs=True),
            questions=_items(arguments, "questions"),
            steps=_items(arguments, "next_steps"),
            files=_items(arguments, "files"),
            harness=_text(arguments, "to").strip(),
            **asking,
        )
    else:
        wanted = w.ShowHandoff(**asking)
    try:
        return work.ask(wanted, as_json=False, color=False)[1].decode("utf-8", "replace")
    except MemdError as reason:
        if action == "show" and reason.code == NotFound.code:
            return f"{reason}."
        raise


def _items(arguments: Arguments, name: str) -> tuple[str, ...]:
    """One thing a line, also as a model lists them."""
    lines = (line.strip().removeprefix("- ").strip() for line in _text(arguments, name).splitlines())
    return tuple(line for line in lines if line)


def _string(says: str, **more: object) -> dict[str, Any]:
    return {"type": "string", "description": says, **more}


_TOPIC = _string("The topic's name, its file, or a part of the name that no other topic has.")
_QUERY = _string("Words that must all occur.")
_LIMIT = {"type": "integer", "description": f"At most so many hits, up to {MAX_HITS}."}

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            name="write_memory",
            says="Write down something worth knowing in later sessions, for every agent on this machine. "
            "The text is added to the topic, or replaces it.",
            takes={
                "topic": _string("The topic's name: a few words."),
                "content": _string("The text, in Markdown."),
                "summary": _string("What the topic is about, in one line."),
                "pin": {"type": "boolean", "description": "Keep it from being marked as old or removed."},
                "mode": _string("append (the usual) or replace.", enum=["append", "replace"]),
            },
            needs=("topic", "content", "summary"),
            answer=_write,
        ),
        Tool(
            name="read_memory",
            says="Read a topic of the shared memory.",
            takes={"topic": _TOPIC},
            needs=("topic",),
            answer=_read,
            is_read_only=True,
        ),
        Tool(
            name="list_memories",
            says="List the topics of the shared memory.",
            takes={},
            answer=_list,
            is_read_only=True,
        ),
        Tool(
            name="search_memory",
            says="Find topics of the shared memory by words.",
            takes={"query": _QUERY, "limit": _LIMIT},
            needs=("query",),
            answer=_search,
            is_read_only=True,
        ),
        Tool(
            name="pin_memory",
            says="Pin a topic, or take the pin off.",
            takes={
                "topic": _TOPIC,
                "pin": {"type": "boolean", "description": "true pins, false unpins; true when not given."},
            },
            needs=("topic",),
            answer=_pin,
        ),
        Tool(
            name="remove_memory",
            says="Take a topic off the index. Its file stays; a pinned topic is refused.",
            takes={"topic": _TOPIC},
            needs=("topic",),
            answer=_remove,
        ),
        Tool(
            name="repair_memory",
            says="List topic files that the index has lost. Only when the user asks for it.",
            takes={},
            answer=_repair,
        ),
        Tool(
            name="handoff",
            says="Leave a note for the session that goes on with this project, whichever agent that is; it "
            "is given the note at its start, once. Or show the note that waits, without taking it.",
            takes={
                "action": _string("create or show.", enum=["create", "show"]),
                "summary": _string("create: what was done, what holds and what is next, in a few sentences."),
                "questions": _string("create: open questions, one a line."),
                "next_steps": _string("create: what comes next, one a line."),
                "files": _string("create: files that matter, one a line."),
                "to": _string("create: only for a session of this agent program, such as claude or codex."),
            },
            needs=("action",),
            answer=_handoff,
        ),
        Tool(
            name="search_history",
            says="Search everything that agents and people said in any session on this machine.",
            takes={
                "query": _string("Words, or a phrase in quotation marks."),
                "harness": _string("Only sessions of this agent program, such as claude or codex."),
                "role": _string("Only what user, assistant or tool said."),
                "limit": _LIMIT,
            },
            needs=("query",),
            answer=_history,
            is_read_only=True,
        ),
    )
}
