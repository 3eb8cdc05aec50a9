"""Grok Build: where its sessions lie and how to read them.

    <GROK_HOME>/sessions/<bucket>/<session>/summary.json         which session, where it was begun
    <GROK_HOME>/sessions/<bucket>/<session>/updates.jsonl        all that was said and done, appended only
    <GROK_HOME>/sessions/<bucket>/<session>/chat_history.jsonl   what the model gets; a compaction rewrites it

One session is read from one log: from `updates.jsonl` where it is, else from `chat_history.jsonl`. The first
is what Grok itself restores a session from; in the second the turns before a compaction are gone. Turns that
a person took back stay in the first, and here. Buckets are encoded or shortened paths and say nothing:
`summary.json` decides. A sub-agent's session lies among the others and says so.

An update's id begins anew with each process, so an event's origin is the id and the time in milliseconds;
copies in a fork keep both. Lines of `chat_history.jsonl` have neither: there it is what was said, and how
often it was said before, so that a rewritten file gives the same ids. (What is said after such a rewrite in
the very words of before is then taken for the same.)

    source  Grok Build 0.2.111, session files and program read 2026-11
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from memd.harness.grok_hooks import HOOKS
from memd.harness.grok_launch import LAUNCH
from memd.harness.grok_records import (
    FINISHED,
    IMAGES,
    NOTICES,
    OPENERS,
    PACKET_WORDS,
    SILENT_UPDATES,
    SUMMARIES,
    TEXTS,
    Backend,
    Block,
    Memory,
    Params,
    ParamsMeta,
    Record,
    Shown,
    Update,
    decode_memory,
    decode_record,
    decode_summary,
    encode_memory,
    told_to_the_model,
    visible,
)
from memd.harness.losses import Losses
from memd.harness.model import Adapter, Environment, Event, Kind, Parsed, Session, Store
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, arguments, clip, compact, each, split
from memd.harness.times import rfc3339

MAX_NAMELESS = 4_000  # things without an id that are told apart
UPDATES = b"updates.jsonl"
CHAT = b"chat_history.jsonl"

About = dict[str, str | bool | int]


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: Memory) -> None:
        self.session = memory.session
        self.is_side = memory.is_side
        self.nameless = dict(memory.nameless)
        self.events: list[Event] = []
        self.losses = Losses()
        self.at = 0
        self.when = ""
        self.name = ""

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for record, _, start in each(lines, at, decode_record, _is_record, OPENERS, self._lose):
            self.at, self.when, self.name = start, "", ""
            if record.params is not None:
                self._happened(record, record.params)
            else:
                self._said(record)

    # --------------------------------------------------------------------- updates.jsonl

    def _happened(self, record: Record, params: Params) -> None:
        update, about = params.update, params.meta or ParamsMeta()
        if update is None:
            self._lose("unknown-shape")
            return
        self.when = rfc3339(about.agentTimestampMs) or rfc3339(record.timestamp)
        if about.eventId and rfc3339(about.agentTimestampMs):
            self.name = clip(about.eventId, 128)[0]
        kind = update.sessionUpdate
        if kind == "user_message_chunk":
            self._chunk(update.content, "user")
        elif kind == "agent_message_chunk":
            self._chunk(update.content, "assistant")
        elif kind == "agent_thought_chunk":
            self._lose("reasoning")
        elif kind == "tool_call":
            named = update.meta.tool.name if update.meta and update.meta.tool else None
            self._call(named or update.title, compact(update.rawInput)[0], 0, update.toolCallId)
        elif kind == "tool_call_update":
            if update.status in FINISHED:
                self._finished(update)
        elif kind == "hook_annotation":
            own = any(word in (update.message or "") for word in PACKET_WORDS)
            self._lose("own-packet" if own else "attachment")
        elif kind == "turn_completed":
            if update.stop_reason == "error":
                self._lose("api-error")
        elif kind == "auto_compact_completed":
            text = update.summary_preview or "Context compacted"  # the summary itself is in another file
            self._add("compaction", "assistant", text, 0, {})
        elif kind == "subagent_spawned":
            self._lose("sub-agent")
        elif kind not in SILENT_UPDATES:
            self._lose("unknown-type" if kind else "unknown-shape")

    def _chunk(self, content: Block | list[Shown] | None, role: str) -> None:
        if not isinstance(content, Block):
            self._lose("unknown-shape")
        elif content.type == "text":
            self._text(content.text or "", role, 0)
        else:
            self._lose("image" if content.type in IMAGES else "unknown-block")

    def _finished(self, update: Update) -> None:
        texts = []
        for shown in update.content if isinstance(update.content, list) else ():
            inner = shown.content
            if shown.type == "content" and inner is not None:
                if inner.type == "text":
                    texts.append(inner.text or "")
                else:
                    self._lose("image" if inner.type in IMAGES else "unknown-block")
        try:
            output = msgspec.json.decode(update.rawOutput) if bytes(update.rawOutput) else None
        except FAULTS:
            output = None
        about: About = {
            "tool_call_id": clip(update.toolCallId or "", 512)[0],
            "is_error": update.status == "failed",
        }
        code = output.get("exit_code") if isinstance(output, dict) else None
        if isinstance(code, int) and not isinstance(code, bool) and -(1 << 31) <= code < 1 << 31:
            about["exit_code"] = code
        self._result("\n".join(text for text in texts if text) or told_to_the_model(output), about, 0)

    # ---------------------------------------------------------------- chat_history.jsonl

    def _said(self, record: Record) -> None:
        kind = record.type
        self.when = clip(record.timestamp, 64)[0] if isinstance(record.timestamp, str) else ""
        if kind == "system":
            self._lose("system-prompt")
        elif kind == "reasoning":
            self._lose("reasoning")
        elif kind == "user":
            self._prompt(record)
        elif kind == "assistant":
            block = 0
            if isinstance(record.content, str):
                self._text(record.content, "assistant", 0)
                block = 1
            for index, call in enumerate(record.tool_calls or (), block):
                self._call(call.name, arguments(call.arguments), index, call.id)
        elif kind == "tool_result":
            about: About = {"tool_call_id": clip(record.tool_call_id or "", 512)[0]}
            self._result(visible(record.content), about, 0)
        elif kind == "backend_tool_call":
            backend = record.kind if isinstance(record.kind, Backend) else Backend()
            self._call(backend.tool_type or "backend_tool", compact(backend.action)[0], 0, None)
        else:
            self._lose("unknown-type")

    def _prompt(self, record: Record) -> None:
        blocks = record.content if isinstance(record.content, list) else [record.content]
        for index, given in enumerate(blocks):
            block = _block(given)
            if block is None:
                self._lose("unknown-shape")
            elif block.type in TEXTS:
                content = block.content if isinstance(block.content, str) else ""
                self._users(block.text or content, record.synthetic_reason, index)
            elif block.type == "tool_use":
                self._call(block.name, _json(block.input), index, block.id)
            elif block.type == "tool_result":
                about: About = {"tool_call_id": clip(block.tool_use_id or "", 512)[0]}
                if block.is_error is not None:
                    about["is_error"] = block.is_error
                self._result(visible(block.content), about, index)
            else:
                self._lose("image" if block.type in IMAGES else "unknown-block")

    def _users(self, text: str, reason: object, index: int) -> None:
        if text[:512].lstrip().startswith(NOTICES):
            return  # what Grok tells every session
        if reason == SUMMARIES:
            self._add("compaction", "assistant", text, index, {})
        elif isinstance(reason, str):
            own = any(word in text for word in PACKET_WORDS)
            self._lose("own-packet" if own else "synthetic")
        else:
            self._text(text, "user", index)

    # ------------------------------------------------------------------------------ both

    def _text(self, text: str, role: str, index: int) -> None:
        if not text or text.isspace():
            return
        if is_own(_unwrapped(text)):
            self._lose("own-packet")
        else:
            self._add("message", role, text, index, {})

    def _call(self, name: str | None, body: str, index: int, call: str | None) -> None:
        tool = clip(name or "tool", 256)[0]
        about: About = {"tool": tool}
        if call:
            about["tool_call_id"] = clip(call, 512)[0]
        self._add("tool_call", "assistant", f"{tool}: {body}", index, about, call=call or "")

    def _result(self, text: str, about: About, index: int) -> None:
        if is_own(text):
            self._lose("own-packet")
        else:  # without text it is kept too: it tells a finished call from an unfinished one
            call = about["tool_call_id"]
            self._add("tool_result", "tool", text, index, about, call=str(call))

    def _add(self, kind: Kind, role: str, content: str, index: int, about: About, *, call: str = "") -> None:
        content, is_cut = clip(content)
        if is_cut:
            self._lose("shortened")
        self.events.append(
            Event(
                session=self.session,
                origin=self._origin(kind, role, content, call),
                kind=kind,
                role=role,
                content=content,
                at=self.at,
                record=self.name,
                block=index,
                occurred_at=self.when,
                is_side=self.is_side,
                metadata=about,
            )
        )

    def _origin(self, kind: str, role: str, content: str, call: str) -> str:
        """The update's id and time; where there is none, how often the same was said before."""
        if self.name:
            return f"{self.name}/{self.when}"
        text = f"{kind}\0{role}\0{call}\0{self.when}\0{content}"
        told = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        count = self.nameless.pop(told, 0)
        self.nameless[told] = count + 1  # the latest last
        if len(self.nameless) > MAX_NAMELESS:
            del self.nameless[next(iter(self.nameless))]
        return f"{self.session}/{call}#{count}"

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)


def _is_record(record: Record) -> bool:
    return record.params is not None or bool(record.type)


def _block(given: object) -> Block | None:
    """A piece of a message as it was decoded; None for something that is none."""
    if isinstance(given, str):
        return Block(type="text", text=given)
    try:
        return msgspec.convert(given, Block, strict=True) if isinstance(given, dict) else None
    except FAULTS:
        return None


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except FAULTS:
        return ""


def _unwrapped(text: str) -> str:
    """What was typed, without the tag that Grok puts round it."""
    head = text[:64].lstrip()
    return text.lstrip().removeprefix("<user_query>") if head.startswith("<user_query>") else text


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole records of one log into events.

    events   `record` is the update's id; file order is right
    raises   nothing: what cannot be read is a loss
    source   Grok Build 0.2.111, session files read 2026-11
    """
    try:
        memory = decode_memory(state) if state else Memory()
    except FAULTS:
        memory = Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    reader = _Reader(memory)
    reader.read(lines, base)
    after = Memory(session=reader.session, is_side=reader.is_side, nameless=reader.nameless)
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        consumed=consumed,
        state=encode_memory(after),
    )


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session of a log, from its `summary.json`.

    A `chat_history.jsonl` is none while the other log is expected but not begun: that comes a moment later.
    """
    name = path.rsplit(b"/", 1)[-1]
    if name != UPDATES and name != CHAT:
        return None
    try:
        summary = decode_summary(head)
    except FAULTS:
        return None
    where = summary.info
    if not where.id or not where.cwd or (name == CHAT and summary.num_messages == 0):
        return None
    kind = summary.session_kind
    title = clip(summary.generated_title, 512)[0] if isinstance(summary.generated_title, str) else ""
    started = summary.created_at
    parent = summary.parent_session_id
    named = clip(parent, 512)[0] if isinstance(parent, str) else ""
    is_side = kind == "subagent"
    return Session(
        id=clip(where.id, 512)[0],
        cwd=where.cwd,
        title=title,
        started=clip(started, 64)[0] if isinstance(started, str) else rfc3339(started),
        is_side=is_side,
        parent=named if is_side else "",
        forked_from="" if is_side else named,
    )


def beside(path: bytes) -> bytes:
    """`summary.json` of the session that a log belongs to."""
    folder, slash, _name = path.rpartition(b"/")
    return folder + b"/summary.json" if slash else b""


def instead(path: bytes) -> bytes:
    """The log that goes before a `chat_history.jsonl`."""
    folder, slash, name = path.rpartition(b"/")
    return folder + slash + UPDATES if name == CHAT else b""


def begin(session: Session, flavor: str) -> bytes:
    return encode_memory(Memory(session=session.id, is_side=session.is_side))


def stores(environment: Environment) -> tuple[Store, ...]:
    """The sessions of the Grok home that the environment names; one that is blank names none."""
    chosen = environment.variables.get("GROK_HOME", b"")
    home = (chosen if chosen.strip() else environment.home + b"/.grok").rstrip(b"/")
    patterns = ("*/*/updates.jsonl", "*/*/chat_history.jsonl")
    return (Store(root=home + b"/sessions", patterns=patterns, rewrites=True),)


ADAPTER = Adapter(
    name="grok",
    title="Grok Build",
    aliases=("grok-build",),
    stores=stores,
    identify=identify,
    beside=beside,
    instead=instead,
    begin=begin,
    parse=parse,
    launch=LAUNCH,
    hooks=HOOKS,
)
