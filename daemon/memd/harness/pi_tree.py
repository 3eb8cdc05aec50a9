"""The session files of Pi and of OMP, which grew out of it: one grammar, a tree of entries in JSON Lines.

    {"type":"title",...}      OMP: the first 256 bytes, rewritten in place when the title changes
    {"type":"session",...}    the header: version, id, cwd, and what it was forked from
    {"type":...,"id":...,"parentId":...,"timestamp":...}      entries

Version 1 has no ids and is a plain list; version 2 has the tree; version 3 renamed one role. A program that
opens an older file rewrites it with ids of its own making. Ids are eight hexadecimal digits, unique in one
file only, and forks and clones copy entries with ids and times. So an event's origin is made of its times,
role and call id, which survive both.

Entries are appended, so file order is right. Which of them are the main line is `pi_branches`: events are
given as the main line's when they come, and a `Turn` says when a branch was left.

    source  Pi 1.6.0 (0.73.1 for older files) and OMP 18.2.3: session files, documentation and program read
            2026-11
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.harness.losses import Losses
from memd.harness.model import MAX_EVENT_BYTES, Event, Kind, Parsed, Session, Turn
from memd.harness.packets import is_own
from memd.harness.pi_branches import Branches, BranchState
from memd.harness.records import FAULTS, clip, compact, each, head_lines, split
from memd.harness.times import rfc3339

SILENT = frozenset(
    {
        "context_edit",
        "credential_pin",
        "custom",
        "label",
        "mode_change",
        "model_change",
        "model_usage",
        "reset_boundary",
        "service_tier_change",
        "session",
        "session_info",
        "thinking_level_change",
        "title",
        "title_change",
        "ttsr_injection",
        "usage",
    }
)
"""Bookkeeping: entry types that nobody would miss in a conversation. `custom` is what extensions remember."""

ASIDE = frozenset({"model_usage", "usage"})
"""Written to the branch that caused it, without going there."""

COMPACTIONS = {"compaction": "compaction", "compact": "compaction", "summary": "compaction"}
SUMMARY_ROLES = {"compactionSummary": "compaction", "branchSummary": "branch"}
RESULT_ROLES = frozenset({"toolResult", "tool_result", "tool"})
SHELLS = {"bashExecution": ("bash", "!"), "pythonExecution": ("python", "$")}
INSTRUCTIONS = frozenset({"system", "developer"})
ATTACHED = frozenset({"custom", "hookMessage", "fileMention"})
CALLS = frozenset({"toolCall", "tool_call", "tool_use"})
REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
IMAGES = frozenset({"image", "document"})
STOPPED = frozenset({"aborted", "error", "length"})

OPENERS = tuple(
    b'{"type":"%b' % kind
    for kind in (b'message"', b'compaction"', b'branch_summary"', b"session", b"custom", b"model_", b'label"')
)
HEAD_LINES = 64

_ARTIFACTS = re.compile(rb"\d{4}-\d\d-\d\dT[\d-]+Z?_(.+)")  # beside `<name>.jsonl`: what its sub-agents wrote


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")
    input: msgspec.Raw = msgspec.Raw(b"")


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[_Block] | None = None
    timestamp: Any = None
    attribution: Any = None
    synthetic: Any = None
    stopReason: Any = None
    errorMessage: Any = None
    toolCallId: str | None = None
    toolName: str | None = None
    isError: bool | None = None
    summary: str | None = None
    command: str | None = None
    code: str | None = None
    output: str | None = None
    exitCode: Any = None
    excludeFromContext: bool | None = None


class _Entry(msgspec.Struct, gc=False):
    """What every entry is read for. What is not named is skipped unread."""

    type: str = ""
    id: str | None = None
    parentId: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: Any = None
    message: _Message | None = None
    summary: str | None = None
    content: str | list[_Block] | None = None
    text: str | None = None


class _Header(msgspec.Struct, gc=False):
    """The fields of the records that say something of the session."""

    type: str = ""
    id: str | None = None
    cwd: str | None = None
    version: Any = None
    timestamp: Any = None
    title: str | None = None
    name: str | None = None
    parentSession: str | None = None


_entry = msgspec.json.Decoder(_Entry).decode
_header = msgspec.json.Decoder(_Header).decode


class _Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    parent: str = ""  # the session that this one is a sub-agent of
    has_header: bool = False
    last: str = ""
    branches: BranchState = msgspec.field(default_factory=BranchState)


_memory = msgspec.msgpack.Decoder(_Memory).decode

About = dict[str, str | bool | int]


def _is_entry(entry: _Entry) -> bool:
    is_named = bool(entry.id) and isinstance(entry.timestamp, str)
    return is_named and (entry.type == "session" or entry.parentId is not msgspec.UNSET)


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: _Memory) -> None:
        self.session = memory.session
        self.parent = memory.parent
        self.has_header = memory.has_header
        self.last = memory.last
        self.branches = Branches(memory.branches)
        self.events: list[Event] = []
        self.turns: list[Turn] = []
        self.sessions: list[Session] = []
        self.losses = Losses()
        self.entry = _Entry()
        self.at = 0
        self.strays: About = {}

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for entry, line, start in each(lines, at, _entry, _is_entry, OPENERS, self._lose, SILENT):
            self._take(entry, line, start)

    def _take(self, entry: _Entry, line: bytes, at: int) -> None:
        kind = entry.type
        if kind == "session" or kind == "title":
            self._learn(line)
            return
        self.entry, self.at = entry, at
        parent = entry.parentId
        is_stray = isinstance(parent, str) and parent != self.last and len(parent) <= 128
        self.strays = {"parent_id": parent} if is_stray and isinstance(parent, str) else {}
        count = len(self.events)
        if kind == "message":
            self._message(entry.message)
        elif kind not in SILENT:
            self._other(entry, kind)
        elif kind == "title_change" or kind == "session_info":
            self._learn(line)
        if entry.id and len(entry.id) <= 128:
            self._place(entry.id, parent, len(self.events) > count, kind in ASIDE)
            self.last = entry.id

    def _place(
        self, entry: str, parent: str | msgspec.UnsetType | None, is_visible: bool, is_aside: bool
    ) -> None:
        named = "" if isinstance(parent, msgspec.UnsetType) else parent
        changes = self.branches.step(entry, named, self.at, is_visible=is_visible, is_aside=is_aside)
        if not changes or self.parent:  # all of a sub-agent's is beside the main line anyway
            return
        for first, last, is_side in changes:
            self.turns.append(Turn(session=self.session, first=first, last=last, is_side=is_side))
        if any(is_side for _, _, is_side in changes):
            self._lose("branch")

    def _learn(self, line: bytes) -> None:
        try:
            header = _header(line)
        except FAULTS:
            return
        if header.type != "session":
            title = header.title or header.name
            if title and self.has_header:
                self.sessions.append(Session(id=self.session, title=clip(title, 512)[0]))
        elif header.id and not self.has_header:
            self.has_header = True
            self.session = clip(header.id, 512)[0]
            self.sessions.append(_session(header, self.parent))
            if self.parent:
                self.losses.add(self.parent, "sub-agent")

    # ------------------------------------------------------------------------- messages

    def _message(self, message: _Message | None) -> None:
        role = message.role if message else ""
        if message is None:
            self._lose("unknown-shape")
        elif role == "assistant":
            self._assistant(message)
        elif role == "user":
            is_agents = message.attribution == "agent" and not self.parent
            if message.synthetic is True or is_agents:
                self._lose("synthetic")
            else:
                self._blocks(message.content, "user", {})
        elif role in RESULT_ROLES:
            self._result(message)
        elif role in SHELLS:
            self._shell(message, *SHELLS[role])
        elif role in SUMMARY_ROLES:
            self._summary(message.summary, SUMMARY_ROLES[role])
        elif role in INSTRUCTIONS:
            self._lose("system-prompt")
        elif role in ATTACHED:
            self._attached(message.content)
        else:
            self._lose("role")

    def _assistant(self, message: _Message) -> None:
        stopped = message.stopReason
        count = len(self.events)
        is_stopped = isinstance(stopped, str) and stopped in STOPPED
        self._blocks(message.content, "assistant", {"status": stopped} if is_stopped else {})
        if isinstance(message.errorMessage, str) and message.errorMessage and len(self.events) == count:
            self._lose("api-error")

    def _blocks(self, content: str | list[_Block] | None, role: str, about: About) -> None:
        if isinstance(content, str):
            self._text(content, role, 0, about)
            return
        for index, block in enumerate(content or ()):
            kind = block.type
            if kind == "text":
                self._text(block.text or "", role, index, about)
            elif kind in CALLS:
                name = clip(block.name or "tool", 256)[0]
                body, is_cut = compact(block.arguments or block.input, MAX_EVENT_BYTES - 4 * len(name) - 2)
                if is_cut:
                    self._lose("shortened")
                known: About = {"tool": name, "tool_call_id": clip(block.id or "", 512)[0]}
                self._add("tool_call", "assistant", f"{name}: {body}", index, known, call=block.id or "")
            elif kind in REASONING:
                self._lose("reasoning")
            else:
                self._lose("image" if kind in IMAGES else "unknown-block")

    def _text(self, text: str, role: str, index: int, about: About) -> None:
        if not text or text.isspace():
            return
        if is_own(text):
            self._lose("own-packet")
        else:
            self._add("message", role, text, index, about)

    def _result(self, message: _Message) -> None:
        content = self._flat(message.content)
        if is_own(content):
            self._lose("own-packet")
            return
        call = message.toolCallId or ""
        about: About = {"tool": clip(message.toolName or "tool", 256)[0], "tool_call_id": clip(call, 512)[0]}
        if message.isError is not None:
            about["is_error"] = message.isError
        self._add("tool_result", "tool", content, 0, about, call=call)

    def _shell(self, message: _Message, tool: str, sign: str) -> None:
        """What a person ran themselves, and what it printed; not what they kept from the model."""
        command = message.command or message.code or ""
        if message.excludeFromContext or not command:
            self._lose("command")
            return
        self._add("message", "user", f"{sign} {command}", 0, {})
        output = message.output or ""
        if is_own(output):
            self._lose("own-packet")
            return
        about: About = {"tool": tool}
        code = message.exitCode
        if isinstance(code, int) and not isinstance(code, bool) and -(1 << 31) <= code < 1 << 31:
            about["exit_code"] = code
        self._add("tool_result", "tool", output, 1, about)

    def _attached(self, content: str | list[_Block] | None) -> None:
        text = content if isinstance(content, str) else "\n".join(block.text or "" for block in content or ())
        self._lose("own-packet" if is_own(text) else "attachment")

    def _flat(self, content: str | list[_Block] | None) -> str:
        if isinstance(content, str):
            return content
        texts = []
        for block in content or ():
            if block.text:
                texts.append(block.text)
            elif block.type != "text":
                self._lose("image" if block.type in IMAGES else "unknown-block")
        return "\n".join(texts)

    # ----------------------------------------------------------------------- the others

    def _other(self, entry: _Entry, kind: str) -> None:
        if kind in COMPACTIONS:
            content = entry.content if isinstance(entry.content, str) else ""
            self._summary(entry.summary or content or entry.text, COMPACTIONS[kind])
        elif kind == "branch_summary":
            self._summary(entry.summary, "branch")
        elif kind == "custom_message":
            self._attached(entry.content)
        elif kind == "session_init":
            self._lose("system-prompt")
        else:
            self._lose("unknown-type")

    def _summary(self, text: str | None, which: str) -> None:
        if text and not text.isspace():
            self._add("compaction", "assistant", text, 0, {"summary_type": which})

    def _add(self, kind: Kind, role: str, content: str, index: int, about: About, *, call: str = "") -> None:
        content, is_cut = clip(content)
        if is_cut:
            self._lose("shortened")
        entry = self.entry
        said = entry.timestamp if isinstance(entry.timestamp, str) else rfc3339(entry.timestamp)
        sent = rfc3339(entry.message.timestamp) if entry.message else ""
        name = entry.id if entry.id and len(entry.id) <= 128 else ""
        when = clip(said or sent, 64)[0]
        if when:
            origin = f"{when}/{sent}/{entry.message.role if entry.message else entry.type}/{call}"
        else:
            origin = f"{self.session}/{name or self.at}"
        self.events.append(
            Event(
                session=self.session,
                origin=origin,
                kind=kind,
                role=role,
                content=content,
                at=self.at,
                record=name,
                block=index,
                occurred_at=when,
                is_side=bool(self.parent),
                metadata={**about, **self.strays},
            )
        )

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole entries of one session file into events.

    events   `record` is the entry's id; `metadata.parent_id` stands where the parent is not the entry before
    turns    branches that were left or taken up again
    raises   nothing: what cannot be read is a loss
    """
    try:
        memory = _memory(state) if state else _Memory()
    except FAULTS:
        memory = _Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    reader = _Reader(memory)
    reader.read(lines, base)
    after = _Memory(
        session=reader.session,
        parent=reader.parent,
        has_header=reader.has_header,
        last=reader.last,
        branches=reader.branches.state(),
    )
    return Parsed(
        events=reader.events,
        turns=reader.turns,
        losses=reader.losses.done(),
        sessions=reader.sessions,
        consumed=consumed,
        state=msgspec.msgpack.encode(after),
    )


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session of a file, from its header; None while there is none.

    A file in a folder that is named like a session's file is one that its sub-agents wrote.
    """
    parent = ""
    for folder in path.split(b"/")[:-1]:
        if match := _ARTIFACTS.fullmatch(folder):
            parent = match[1].decode("utf-8", "replace")
    for line in head_lines(head, HEAD_LINES):
        try:
            header = _header(line)
        except FAULTS:
            continue
        if header.type == "session" and header.id:
            return _session(header, parent)
    return None


def begin(session: Session, flavor: str) -> bytes:
    """The state before the first entry. `has_header` stays open, so that `parse` reports the session too."""
    return msgspec.msgpack.encode(_Memory(session=session.id, parent=session.parent))


def _session(header: _Header, parent: str) -> Session:
    return Session(
        id=clip(header.id or "", 512)[0],
        cwd=header.cwd or "",
        title=clip(header.title or "", 512)[0],
        started=header.timestamp if isinstance(header.timestamp, str) else rfc3339(header.timestamp),
        is_side=bool(parent),
        parent=parent,
        forked_from="" if parent else _named(header.parentSession or ""),
    )


def _named(reference: str) -> str:
    """The id of a session that is named by its id or by the path of its file, `<time>_<id>.jsonl`."""
    name = re.split(r"[/\\]", reference)[-1]
    if name.endswith(".jsonl"):
        name = name.removesuffix(".jsonl").partition("_")[2] or name.removesuffix(".jsonl")
    return clip(name, 512)[0]
