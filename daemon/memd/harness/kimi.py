"""Kimi Code: where its sessions lie and how to read them.

    <KIMI_CODE_HOME>/sessions/<bucket>/<session>/state.json                  which session, where it was begun
    <KIMI_CODE_HOME>/sessions/<bucket>/<session>/agents/main/wire.jsonl      its journal
    <KIMI_CODE_HOME>/sessions/<bucket>/<session>/agents/<agent>/wire.jsonl   a sub-agent's, counted only

One JSON object a line, with the time in milliseconds. The journal says most things twice: what the model's
context gets (`context.*`) is taken, what the screen and the bookkeeping get is not. It is appended to, but
written anew when an older version's is opened and when a damaged one is repaired; records keep their times
then, and so do the copies in a fork. So an event's origin is the time and the record's own id.

Taking prompts back appends `context.undo`: what was said since stays, beside the main line.

    source  Kimi Code 2.1.0, journals and program read 2026-11
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Sequence

import msgspec

from memd.harness.kimi_hooks import HOOKS
from memd.harness.kimi_launch import LAUNCH
from memd.harness.kimi_records import (
    IMAGES,
    INSTRUCTIONS,
    OPENERS,
    REASONING,
    SILENT,
    STEPS,
    TYPED_BY_HAND,
    Content,
    Function,
    LoopEvent,
    Memory,
    Message,
    Origin,
    Part,
    Record,
    Result,
    decode_memory,
    decode_record,
    decode_state,
    decode_tag,
    encode_memory,
)
from memd.harness.losses import Losses
from memd.harness.model import (
    Adapter,
    Environment,
    Event,
    Kind,
    Parsed,
    Session,
    Store,
    Turn,
)
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, arguments, clip, compact, recover, split
from memd.harness.times import rfc3339

MAX_PROMPTS = 64  # prompts that can still be taken back
MAX_TIMELESS = 2_000  # things without a time that are told apart
JOURNAL = b"wire.jsonl"
MAIN = b"main"

About = dict[str, str | bool | int]


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: Memory) -> None:
        self.session = memory.session
        self.prompts = list(memory.prompts)
        self.timeless = dict(memory.timeless)
        self.events: list[Event] = []
        self.turns: list[Turn] = []
        self.losses = Losses()
        self.at = 0
        self.when = ""
        self.name = ""

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for line in lines:
            start = at
            at += len(line) + 1
            try:
                if decode_tag(line).type in SILENT:
                    continue
                record = decode_record(line)
            except FAULTS:
                found = recover(line, decode_record, _is_record, OPENERS, SILENT)
                if found.what:
                    self._lose(found.what)
                if found.record is None:
                    continue
                record, start = found.record, start + found.start
            self.at, self.when, self.name = start, rfc3339(record.time), ""
            self._take(record)

    def _take(self, record: Record) -> None:
        kind = record.type
        if kind == "context.append_message":
            self._message(record.message)
        elif kind == "context.append_loop_event":
            self._loop(record.event)
        elif kind == "context.apply_compaction":
            self.prompts.clear()
            self._add("compaction", "assistant", _summary(record), 0, {})
        elif kind == "context.clear":
            self.prompts.clear()
        elif kind == "context.undo":
            self._undo(record.count)
        elif kind in INSTRUCTIONS:
            if record.systemPrompt:
                self._lose("system-prompt")
        elif kind not in SILENT:
            self._lose("unknown-type")

    # ------------------------------------------------------------------------- messages

    def _message(self, message: Message | None) -> None:
        if message is None:
            self._lose("unknown-shape")
            return
        if message.partial is True:
            return  # it comes again when it is whole
        role = message.role
        self.name = message.id or ""
        if role == "user":
            origin = message.origin or Origin()
            is_typed = not isinstance(origin.kind, str) or origin.kind == "user"
            if is_typed or (origin.kind in TYPED_BY_HAND and origin.trigger == "user-slash"):
                self._prompt(origin)
            if is_typed:
                self._texts(message, "user")
            else:
                self._injected(message, origin.kind)
        elif role == "assistant":
            count = self._texts(message, "assistant")
            for index, call in enumerate(message.toolCalls or ()):
                named = call.function or Function()
                given = bytes(call.arguments) or bytes(named.arguments)
                self._call(named.name or call.name, arguments(given), count + index, call.id)
        elif role == "tool":
            self.name = message.toolCallId or self.name
            content = None if isinstance(message.content, msgspec.UnsetType) else message.content
            self._result(content, {"tool_call_id": clip(message.toolCallId or "", 512)[0]})
        else:
            self._lose("system-prompt" if role in ("system", "developer") else "role")

    def _texts(self, message: Message, role: str) -> int:
        """One event a text; returns how many pieces there were, of whatever kind."""
        if isinstance(message.content, msgspec.UnsetType):
            return 1
        pieces = _pieces(message.content)
        texts = [text for text in (self._visible(piece) for piece in pieces) if text is not None]
        for index, text in enumerate(texts):
            self._text(text, role, index)
        return len(pieces)

    def _visible(self, piece: str | Part) -> str | None:
        """The text of a piece; None, and counted, for one that is something else."""
        if isinstance(piece, str):
            return piece
        kind = piece.type
        if kind == "text":
            return _text_of(piece)
        if kind in REASONING:
            self._lose("reasoning")
        elif kind:
            self._lose("image" if kind in IMAGES else "unknown-block")
        return None

    def _injected(self, message: Message, kind: object) -> None:
        """What a hook or Kimi itself said in the user's name."""
        content = None if isinstance(message.content, msgspec.UnsetType) else message.content
        text = "\n".join(piece if isinstance(piece, str) else _text_of(piece) for piece in _pieces(content))
        if is_own(_unwrapped(text)):
            self._lose("own-packet")
        else:
            self._lose("attachment" if kind == "hook_result" else "synthetic")

    def _prompt(self, origin: Origin) -> None:
        """A place to which a person can go back."""
        if origin.inTurn is not True:
            self.prompts.append(self.at)
            del self.prompts[:-MAX_PROMPTS]

    def _undo(self, count: object) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= len(self.prompts):
            return
        first = self.prompts[-count]
        del self.prompts[-count:]
        self.turns.append(Turn(session=self.session, first=first, last=self.at, is_side=True))
        self._lose("branch")

    # ----------------------------------------------------------------- what the model does

    def _loop(self, event: LoopEvent | None) -> None:
        if event is None:
            self._lose("unknown-shape")
            return
        kind = event.type
        self.name = event.toolCallId or event.uuid or ""
        if kind == "content.part":
            text = None if event.part is None else self._visible(event.part)
            if text is not None:
                self._text(text, "assistant", 0)
        elif kind == "tool.call":
            self._call(event.name, compact(event.args)[0], 0, event.toolCallId)
        elif kind == "tool.result":
            result = event.result or Result()
            about: About = {"tool_call_id": clip(event.toolCallId or "", 512)[0]}
            if result.isError is not None:
                about["is_error"] = result.isError
            self._result(result.output, about)
        elif kind not in STEPS:
            self._lose("unknown-block")

    def _call(self, name: str | None, body: str, block: int, call: str | None) -> None:
        tool = clip(name or "tool", 256)[0]
        about: About = {"tool": tool, "tool_call_id": clip(call or "", 512)[0]}
        self._add("tool_call", "assistant", f"{tool}: {body}", block, about, call=call or "")

    def _result(self, output: Content, about: About) -> None:
        texts = (self._visible(piece) for piece in _pieces(output))
        text = "\n".join(text for text in texts if text)
        if is_own(text):
            self._lose("own-packet")
        else:  # without text it is kept too: it tells a finished call from an unfinished one
            self._add("tool_result", "tool", text, 0, about)

    def _text(self, text: str, role: str, block: int) -> None:
        if is_own(_unwrapped(text)):
            self._lose("own-packet")
        else:
            self._add("message", role, text, block, {})

    def _add(self, kind: Kind, role: str, content: str, block: int, about: About, *, call: str = "") -> None:
        if kind != "tool_result" and (not content or content.isspace()):
            return
        content, is_cut = clip(content)
        if is_cut:
            self._lose("shortened")
        self.events.append(
            Event(
                session=self.session,
                origin=self._origin(kind, content, call),
                kind=kind,
                role=role,
                content=content,
                at=self.at,
                record=self.name if len(self.name) <= 128 else "",
                block=block,
                occurred_at=self.when,
                metadata=about,
            )
        )

    def _origin(self, kind: str, content: str, call: str) -> str:
        """The time and the record's name; without a time how often the same was said before."""
        if self.when:
            return f"{self.when}/{self.name or call}"
        told = zlib.crc32(f"{kind}\0{content}\0{self.name}".encode("utf-8", "surrogatepass"))
        count = self.timeless.pop(told, 0)
        self.timeless[told] = count + 1  # the latest last
        if len(self.timeless) > MAX_TIMELESS:
            del self.timeless[next(iter(self.timeless))]
        return f"{self.session}/{self.name}#{count}"

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)


def _is_record(record: Record) -> bool:
    return bool(record.type) and (record.time is not None or record.type in SILENT)


def _pieces(content: Content) -> Sequence[str | Part]:
    if isinstance(content, list):
        return content
    return [""] if content is None else [content]


def _text_of(piece: Part) -> str:
    return piece.text or (piece.content if isinstance(piece.content, str) else "")


def _summary(record: Record) -> str:
    said = record.summary
    if isinstance(said, Message):
        content = None if isinstance(said.content, msgspec.UnsetType) else said.content
        said = "".join(piece if isinstance(piece, str) else _text_of(piece) for piece in _pieces(content))
    return said or record.contextSummary or ""


def _unwrapped(text: str) -> str:
    """What a hook printed, without the tag that Kimi puts round it."""
    head = text[:512].lstrip()
    if head.startswith("<hook_result") and ">" in head:
        return text.lstrip().partition(">")[2]
    return text


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole records of one journal into events.

    events   `record` is the message's, the piece's or the call's own id; file order is right
    turns    prompts that were taken back, and all that followed them
    raises   nothing: what cannot be read is a loss
    source   Kimi Code 2.1.0, journals read 2026-11
    """
    try:
        memory = decode_memory(state) if state else Memory()
    except FAULTS:
        memory = Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    if memory.parent:
        return _count_side(memory, lines, consumed)
    reader = _Reader(memory)
    reader.read(lines, base)
    after = Memory(session=reader.session, prompts=reader.prompts, timeless=reader.timeless)
    return Parsed(
        events=reader.events,
        turns=reader.turns,
        losses=reader.losses.done(),
        consumed=consumed,
        state=encode_memory(after),
    )


def _count_side(memory: Memory, lines: Sequence[bytes], consumed: int) -> Parsed:
    """A sub-agent's journal: that there is one is all that is taken from it."""
    losses = Losses()
    if not memory.is_counted and any(lines):
        losses.add(memory.parent, "sidechain")
        memory.is_counted = True
    return Parsed(losses=losses.done(), consumed=consumed, state=encode_memory(memory))


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session of a journal, from its folder's name and its `state.json`; None where they disagree."""
    parts = path.split(b"/")
    if len(parts) < 4 or parts[-1] != JOURNAL or parts[-3] != b"agents":
        return None
    try:
        state = decode_state(head)
    except FAULTS:
        return None
    session = parts[-4].decode("utf-8", "replace")
    if state.id is not msgspec.UNSET and state.id != session:
        return None
    named = [cwd for cwd in (state.cwd, state.workDir) if isinstance(cwd, str)]
    if not named or not named[0] or len({posixpath.normpath(cwd) for cwd in named}) > 1:
        return None
    started = rfc3339(state.createdAt)
    if parts[-2] != MAIN:
        agent = f"{session}/{parts[-2].decode('utf-8', 'replace')}"
        return Session(id=agent, cwd=named[0], started=started, is_side=True, parent=session)
    title = clip(state.title, 512)[0] if isinstance(state.title, str) else ""
    parent = clip(state.forkedFrom, 512)[0] if isinstance(state.forkedFrom, str) else ""
    if parent and title == f"Fork: {parent}":  # an id is no title: the first words make a better one
        title = ""
    return Session(id=session, cwd=named[0], title=title, started=started, forked_from=parent)


def beside(path: bytes) -> bytes:
    """`state.json` of the session that a journal belongs to."""
    parts = path.split(b"/")
    return b"/".join([*parts[:-3], b"state.json"]) if len(parts) > 3 else b""


def begin(session: Session, flavor: str) -> bytes:
    return encode_memory(Memory(session=session.id, parent=session.parent if session.is_side else ""))


def stores(environment: Environment) -> tuple[Store, ...]:
    """The sessions of the Kimi home that the environment names; one that is blank names none."""
    chosen = environment.variables.get("KIMI_CODE_HOME", b"")
    home = (chosen if chosen.strip() else environment.home + b"/.kimi-code").rstrip(b"/")
    return (Store(root=home + b"/sessions", patterns=("*/*/agents/*/wire.jsonl",), rewrites=True),)


ADAPTER = Adapter(
    name="kimi",
    title="Kimi Code",
    aliases=("kimi-code", "kimi-cli"),
    id_prefix="session_",
    stores=stores,
    identify=identify,
    beside=beside,
    begin=begin,
    parse=parse,
    launch=LAUNCH,
    hooks=HOOKS,
)
