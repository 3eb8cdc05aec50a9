"""Codex CLI: where its rollouts lie and how to read them.

    <CODEX_HOME>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl         a thread
    <CODEX_HOME>/sessions/YYYY/MM/DD/rollout-<time>-<thread>_<part>.jsonl  how it goes on after a rewind
    the same name with `.zst`                                              it, gone cold: the same bytes
    <CODEX_HOME>/archived_sessions/rollout-...                             put away by hand

`{timestamp, ordinal, type, payload}` a line, appended only. The first `session_meta` says what the file is; a
later one belongs to a thread that was replayed into it. A visible message may stand twice, as `response_item`
and as `event_msg`, in either order, or only once: the first form is taken and its mirror left out. A
compaction writes its summary as if it were a reply and says so afterwards. A fork holds only what is new and
names the thread and the offset it goes on from. When a person takes turns back, the thread goes on in a
further file, which names the part (the first is named like the thread) and the offset it goes on from.

    source  codex-cli 0.171.0, rollouts and program read 2026-11; older forms (`user_message`,
            `agent_message`) from rollouts of 0.120 to 0.149
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memd.harness.codex_hooks import HOOKS
from memd.harness.codex_launch import LAUNCH
from memd.harness.codex_mirrors import Mirrors, Pending, Reply, sum_of
from memd.harness.codex_records import (
    ACTIONS,
    CALLS,
    EXIT,
    IMAGES,
    NAME,
    OLD_EXIT,
    OPENERS,
    RESULTS,
    SILENT,
    SILENT_EVENTS,
    SILENT_ITEMS,
    TEXTS,
    Lean,
    Part,
    Payload,
    Record,
    decode_header,
    decode_lean,
    decode_record,
    is_injected,
    is_record,
    meta_session,
    shift_of,
    taken_back_to,
)
from memd.harness.losses import Losses
from memd.harness.model import Adapter, Environment, Event, Kind, OutputLimit, Parsed, Session, Store, Turn
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, SAFE_LENGTH, Recovered, clip, compact, head_lines, recover, split

MIN_GLOBAL_ID = 16  # characters; a shorter record id is a counter of its own session
MAX_PROMPTS = 64  # turns that can still be taken back
HEAD_LINES = 512


class _Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    shift: int = 0
    is_side: bool = False
    has_header: bool = False
    prompts: list[int] = []  # where the last turns began
    pending: list[Pending] = []
    reply: Reply | None = None


_memory = msgspec.msgpack.Decoder(_Memory).decode


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: _Memory) -> None:
        self.session = memory.session
        self.shift = memory.shift
        self.is_side = memory.is_side
        self.has_header = memory.has_header
        self.mirrors = Mirrors(memory.pending, memory.reply)
        self.prompts = list(memory.prompts)
        self.events: list[Event] = []
        self.turns: list[Turn] = []
        self.taken_back: set[int] = set()
        self.sessions: list[Session] = []
        self.losses = Losses()

    def read(self, lines: Sequence[bytes], at: int) -> None:
        decode = decode_record
        for line in lines:
            start = at
            at += len(line) + 1
            try:
                record = decode(line)
            except FAULTS:
                found = self._recovered(line)
                if found.record is None:
                    continue
                record, line, start = found.record, line[found.start :], start + found.start
            kind, payload = record.type, record.payload
            if payload is None:
                if kind not in SILENT:
                    is_known = kind in ("response_item", "event_msg", "compacted", "")
                    self.losses.add(self.session, "unknown-shape" if is_known else "unknown-type")
            elif kind == "response_item":
                self._item(record, payload, start)
            elif kind == "event_msg":
                self._note(record, payload, start)
            elif kind == "compacted":
                self._compacted(record, payload, start)
            elif kind == "session_meta":
                self._learn(line, start)
            elif kind not in SILENT:
                self.losses.add(self.session, "unknown-type")

    def _recovered(self, line: bytes) -> Recovered[Record]:
        found = recover(line, decode_record, is_record, OPENERS, SILENT)
        if found.what == "unknown-shape":
            try:
                lean = decode_lean(line)
            except FAULTS:
                lean = Lean()
            inner = lean.payload.type if lean.payload else ""
            if (lean.type == "event_msg" and inner in SILENT_EVENTS) or inner in SILENT_ITEMS:
                return Recovered()
        if found.what:
            self.losses.add(self.session, found.what)
        return found

    def _learn(self, line: bytes, at: int) -> None:
        if self.has_header:
            return
        try:
            header = decode_header(line)
        except FAULTS:
            return
        said = meta_session(header)
        if said is None or (self.session and said.id != self.session):
            return
        self.session, self.is_side, self.has_header = said.id, said.is_side, True
        self.sessions.append(replace(said, shift=self.shift))
        first = taken_back_to(header)
        if first and self.shift > first:
            self._leave(first, self.shift - 1)
        if said.is_side and said.parent:
            self.losses.add(said.parent, "sub-agent")

    # ----------------------------------------------------------------------- response items

    def _item(self, record: Record, payload: Payload, at: int) -> None:
        kind = payload.type
        if kind == "message":
            self._message(record, payload, at)
        elif kind in CALLS:
            name = f"{payload.namespace}.{payload.name}" if payload.namespace else payload.name or kind
            given = payload.arguments if payload.arguments is not None else payload.input
            if given is None:
                given = payload.text or ""
            self._call(record, payload, at, name, given if isinstance(given, str) else _json(given))
        elif kind in RESULTS:
            self._result(record, payload, at)
        elif kind in ACTIONS:
            self._call(record, payload, at, ACTIONS[kind], compact(payload.action)[0])
        elif kind in ("compacted", "compaction", "context_compaction"):
            text = payload.message or payload.text or ""
            if text.strip():
                self._add(record, payload, "compaction", "assistant", text, at, 0, {})
            else:
                self.losses.add(self.session, "encrypted")
        elif kind == "reasoning":
            self.losses.add(self.session, "reasoning")
        elif kind == "agent_message":
            self.losses.add(self.session, "sub-agent")
        elif kind == "image_generation_call":
            self.losses.add(self.session, "image")
        elif kind not in SILENT_ITEMS:
            self.losses.add(self.session, "unknown-type")

    def _message(self, record: Record, payload: Payload, at: int) -> None:
        role = payload.role or ""
        content = payload.content
        parts = [Part("text", content)] if isinstance(content, str) else content or []
        if role != "user" and role != "assistant":
            if role in ("developer", "system"):
                own = any(part.text and is_own(part.text) for part in parts)
                self.losses.add(self.session, "own-packet" if own else "system-prompt")
            else:
                self.losses.add(self.session, "role")
            return
        passed = payload.internal_chat_message_metadata_passthrough
        notes = (passed.content_item_metadata if passed else None) or []
        visible: list[tuple[int, str]] = []
        for index, part in enumerate(parts):
            text = part.text or ""
            if part.type not in TEXTS:
                lost = "image" if part.type in IMAGES else "unknown-block"
                self.losses.add(self.session, "encrypted" if part.type == "encrypted_content" else lost)
            elif not text or text.isspace():
                continue
            elif role == "user" and is_injected(text, notes[index] if index < len(notes) else None):
                self.losses.add(self.session, "synthetic")
            elif is_own(text):
                self.losses.add(self.session, "own-packet")
            else:
                visible.append((index, text))
        if not visible:
            return
        sums = [sum_of(text) for _index, text in visible]
        whole = sums if len(sums) == 1 else [sum_of("".join(text for _index, text in visible)), *sums]
        match = self.mirrors.match(role, True, whole)
        if match:
            if whole[0] in match:
                return
            visible = [item for item, one in zip(visible, sums, strict=True) if one not in match]
        else:
            self.mirrors.expect(role, True, whole)
        for index, text in visible:
            self._add(record, payload, "message", role, text, at, index, {})
        is_whole = role == "assistant" and len(visible) == 1 and not match
        self.mirrors.reply = Reply(at, len(visible[0][1]), sums[0]) if is_whole else None

    def _call(self, record: Record, payload: Payload, at: int, name: str, body: str) -> None:
        name = clip(name, 256)[0]
        about: dict[str, str | bool | int] = {
            "tool": name,
            "tool_call_id": clip(payload.call_id or payload.id or "", 512)[0],
        }
        if payload.status and payload.status != "completed":
            about["status"] = clip(payload.status, 512)[0]
        self._add(record, payload, "tool_call", "assistant", f"{name}: {body}", at, 0, about)

    def _result(self, record: Record, payload: Payload, at: int) -> None:
        about: dict[str, str | bool | int] = {"tool_call_id": clip(payload.call_id or "", 512)[0]}
        output: object = payload.output
        if output is None:
            output = payload.content if payload.content is not None else payload.text
        if isinstance(output, dict):
            if bytes(output.get("success", msgspec.Raw(b""))) == b"false":
                about["is_error"] = True
            output = _inner(output)
        if isinstance(output, list):
            output = self._flat(output)
        text = output if isinstance(output, str) else ""
        if is_own(text):
            self.losses.add(self.session, "own-packet")
            return
        code = EXIT.search(text, 0, 400)
        if code is None and text.startswith('{"output"'):
            code = OLD_EXIT.search(text, max(0, len(text) - 200))
        if code and -(2**31) <= int(code[1]) < 2**31:
            about["exit_code"] = int(code[1])
        self._add(record, payload, "tool_result", "tool", text, at, 0, about)

    def _flat(self, parts: list[Part]) -> str:
        texts = []
        for part in parts:
            if part.text:
                texts.append(part.text)
            elif part.type not in TEXTS:
                self.losses.add(self.session, "image" if part.type in IMAGES else "unknown-block")
        return "\n".join(texts)

    # ------------------------------------------------------------------ events, compactions

    def _note(self, record: Record, payload: Payload, at: int) -> None:
        kind = payload.type
        if kind in SILENT_EVENTS:
            return
        role, text, name = "", "", None
        if kind == "item_completed":
            item = payload.item
            role = {"UserMessage": "user", "AgentMessage": "assistant"}.get(item.type if item else "", "")
            if item and role:
                text = "".join(part.text for part in item.content or () if part.text) or item.text or ""
                name = item.id
        elif kind == "user_message" or kind == "agent_message":
            role, text = "user" if kind == "user_message" else "assistant", payload.message or ""
        elif kind == "task_started" or kind == "turn_started":
            self.mirrors.new_turn()
        elif kind == "thread_rolled_back":
            self._rolled_back(payload.num_turns or 0, at)
        elif kind == "thread_name_updated":
            if payload.thread_name:
                self.sessions.append(Session(id=self.session, title=clip(payload.thread_name, 512)[0]))
        else:
            self.losses.add(self.session, "unknown-type")
        if not role or not text or text.isspace():
            return
        sums = [sum_of(text)]
        if self.mirrors.match(role, False, sums):
            if role == "assistant":
                self.mirrors.reply = None  # it was shown as a reply: no compaction's summary
            return
        if role == "user" and is_injected(text, None):
            self.losses.add(self.session, "synthetic")
        elif is_own(text):
            self.losses.add(self.session, "own-packet")
        else:
            self.mirrors.expect(role, False, sums)
            payload.id = name
            self._add(record, payload, "message", role, text, at, 0, {})

    def _rolled_back(self, count: int, at: int) -> None:
        """The last turns were taken back: they stay, beside the main line."""
        if count > 0 and self.prompts:
            first = self.prompts[-min(count, len(self.prompts))]
            del self.prompts[-count:]
            self._leave(first, at)
            self.mirrors.new_turn()

    def _leave(self, first: int, last: int) -> None:
        self.turns.append(Turn(session=self.session, first=first, last=last, is_side=True))
        self.losses.add(self.session, "branch")

    def _compacted(self, record: Record, payload: Payload, at: int) -> None:
        text = payload.message or payload.text or ""
        if not text and isinstance(payload.content, str):
            text = payload.content
        replaces = -1
        reply = self.mirrors.summary_of(text)
        if reply is not None:
            if any(event.at == reply.at for event in self.events):
                self.taken_back.add(reply.at)
            else:
                replaces = reply.at
        if not text.strip():
            text = "Context compacted"  # the summary itself went to the provider, encrypted
        self._add(record, payload, "compaction", "assistant", text, at, 0, {}, replaces)

    def _add(
        self,
        record: Record,
        payload: Payload,
        kind: Kind,
        role: str,
        content: str,
        at: int,
        index: int,
        about: dict[str, str | bool | int],
        replaces: int = -1,
    ) -> None:
        if role == "user" and kind == "message" and self.prompts[-1:] != [at]:
            self.prompts.append(at)
            del self.prompts[:-MAX_PROMPTS]
        if len(content) > SAFE_LENGTH:
            content, is_cut = clip(content)
            if is_cut:
                self.losses.add(self.session, "shortened")
        name = payload.id or payload.call_id or ""
        origin = name if len(name) >= MIN_GLOBAL_ID else f"{self.session}@{name or at}"
        self.events.append(
            Event(
                session=self.session,
                origin=origin,
                kind=kind,
                role=role,
                content=content,
                at=at,
                record=name,
                block=index,
                occurred_at=record.timestamp or "",
                is_side=self.is_side,
                replaces=replaces,
                metadata=about,
            )
        )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _inner(output: dict[str, msgspec.Raw]) -> object:
    """The content of an output that is an object: its text, its parts, or itself as JSON."""
    for key in ("content", "output", "text"):
        raw = bytes(output.get(key, msgspec.Raw(b"")))
        try:
            if raw.startswith(b'"'):
                return msgspec.json.decode(raw, type=str)
            if raw.startswith(b"["):
                return msgspec.json.decode(raw, type=list[Part])
        except FAULTS:
            continue
    return _json(output)


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole records of one rollout into events.

    events   `record` is the item's id or its call id; file order is right, so no `parent`
    raises   nothing: what cannot be read is a loss
    source   codex-cli 0.171.0, rollouts read 2026-11
    """
    try:
        memory = _memory(state) if state else _Memory()
    except FAULTS:
        memory = _Memory()
    lines, consumed = split(chunk)
    reader = _Reader(memory)
    reader.read(lines, base + memory.shift)
    events = reader.events
    if reader.taken_back:
        events = [event for event in events if event.at not in reader.taken_back]
    after = _Memory(
        session=reader.session,
        shift=memory.shift,
        is_side=reader.is_side,
        has_header=reader.has_header,
        prompts=reader.prompts,
        pending=reader.mirrors.pending,
        reply=reader.mirrors.reply,
    )
    return Parsed(
        events=events,
        turns=reader.turns,
        losses=reader.losses.done(),
        sessions=reader.sessions,
        consumed=consumed,
        state=msgspec.msgpack.encode(after) if lines else state,
    )


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The thread of a rollout: what its first `session_meta` says, else the id in its name."""
    match = NAME.fullmatch(path.rsplit(b"/", 1)[-1])
    named = match[1].decode("ascii") if match else ""
    shift = shift_of(match[2].decode("ascii"), named) if match and match[2] else 0
    for line in head_lines(head, HEAD_LINES):
        if b'"session_meta"' not in line:
            continue
        try:
            said = meta_session(decode_header(line))
        except FAULTS:
            continue
        if said is not None and (said.id == named or not named):
            return replace(said, shift=shift)
    return Session(id=named, shift=shift) if named and b"\n" in head else None


def begin(session: Session, flavor: str) -> bytes:
    """The state before the first record. The header is still read, so that `parse` reports the session."""
    return msgspec.msgpack.encode(_Memory(session=session.id, shift=session.shift, is_side=session.is_side))


def kin(path: bytes) -> bytes:
    """The thread of a rollout: where turns were taken back it goes on in another file."""
    match = NAME.fullmatch(path.rsplit(b"/", 1)[-1])
    return match[1] if match else b""


def stores(environment: Environment) -> tuple[Store, ...]:
    """The rollouts of the Codex home that the environment names, those put away included."""
    home = (environment.variables.get("CODEX_HOME") or environment.home + b"/.codex").rstrip(b"/")
    patterns = ("**/*.jsonl", "**/*.jsonl.zst")
    return (
        Store(root=home + b"/sessions", patterns=patterns),
        Store(root=home + b"/archived_sessions", patterns=patterns),
    )


ADAPTER = Adapter(
    name="codex",
    title="Codex",
    aliases=("codex-cli",),
    stores=stores,
    identify=identify,
    begin=begin,
    kin=kin,
    parse=parse,
    start_output_limit=OutputLimit(9_000, "bytes"),
    launch=LAUNCH,
    hooks=HOOKS,
)
