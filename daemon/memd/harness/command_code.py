"""Command Code: where its sessions lie and how to read them.

    ~/.commandcode/projects/<bucket>/<session>.jsonl                a session
    ~/.commandcode/projects/<bucket>/<session>.checkpoints.jsonl    and other files beside it, never read

A header, then entries that name the entry they follow: a tree in JSON Lines, appended only, a turn at a time
once it is complete. The file's name is the session's id. Forks and clones copy entries with their ids (eight
hexadecimal digits, unique in one file only) and times, so an event's origin is both. Different directories
give one bucket the same name: the header's `cwd` decides. Another version than the known one is not read.

What hooks add to a prompt stands beside its content; what mods and hooks say in the user's name says so.

    source  Command Code 1.64.0, session files and program read 2026-11
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from memd.harness.command_code_hooks import HOOKS
from memd.harness.command_code_launch import LAUNCH
from memd.harness.command_code_records import (
    IMAGES,
    MODEL,
    OPENERS,
    PACKET_BYTES,
    REASONING,
    RESULTS,
    SILENT,
    TYPED,
    Block,
    Entry,
    Header,
    Memory,
    Message,
    Meta,
    decode_attached,
    decode_block,
    decode_entry,
    decode_header,
    decode_memory,
    decode_piece,
    encode_memory,
    is_header,
)
from memd.harness.losses import Losses
from memd.harness.model import (
    MAX_EVENT_BYTES,
    Adapter,
    Environment,
    Event,
    Kind,
    OutputLimit,
    Parsed,
    Session,
    Store,
)
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, clip, compact, each, split
from memd.harness.times import rfc3339

MAX_HEADER_BYTES = 128 * 1024
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_GLOB = "-".join("?" * count for count in (8, 4, 4, 4, 12))

About = dict[str, str | bool | int]


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: Memory) -> None:
        self.session = memory.session
        self.has_header = memory.has_header
        self.events: list[Event] = []
        self.sessions: list[Session] = []
        self.losses = Losses()
        self.entry = Entry()
        self.at = 0
        self.when = ""
        self.about: About = {}

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for entry, line, start in each(lines, at, decode_entry, _is_entry, OPENERS, self._lose, SILENT):
            self._take(entry, line, start)

    def _take(self, entry: Entry, line: bytes, at: int) -> None:
        kind = entry.type
        if kind == "session":
            self._learn(line)
            return
        self.entry, self.at = entry, at
        self.when = clip(entry.timestamp or "", 64)[0]
        parent = entry.parentId
        self.about = {"parent_id": parent} if isinstance(parent, str) and 0 < len(parent) <= 128 else {}
        if kind == "message":
            self._message(entry.message)
        elif kind == "compaction":
            self._summary(entry.summary, "compaction", "compaction")
        elif kind == "branch_summary":
            self._summary(entry.summary, "message", "branch-summary")
        elif kind == "custom_message":
            self._attached(line)
        elif kind == "session_info":
            if entry.name:
                self.sessions.append(Session(id=self.session, title=clip(entry.name, 512)[0]))
        elif kind not in SILENT:
            self._lose("unknown-type")

    def _learn(self, line: bytes) -> None:
        try:
            header = decode_header(line)
        except FAULTS:
            return
        if self.has_header or not is_header(header):
            return
        self.has_header = True
        self.session = self.session or clip(header.sessionId or header.id, 512)[0]
        self.sessions.append(_session(header, self.session))

    # ------------------------------------------------------------------------- messages

    def _message(self, message: Message | None) -> None:
        if message is None or isinstance(message.content, msgspec.UnsetType):
            self._lose("unknown-shape")
            return
        meta, role = message.meta or Meta(), message.role
        self.when = rfc3339(meta.createdAt) or self.when  # a whole turn is written with one time
        if bytes(meta.injected) not in (b"", b"null", b"{}"):
            own = any(marker in bytes(meta.injected) for marker in PACKET_BYTES)
            self._lose("own-packet" if own else "attachment")
        if role != "user" and role != "assistant":
            self._lose("role")
        elif meta.isSummary is True:
            texts = [block.text for block in self._blocks(message.content) if block.text]
            self._summary("\n".join(texts), "compaction", "compaction")
        elif meta.isMeta is True or meta.isAutomated is True or not _is_said(role, meta.source):
            is_mods = (meta.source or "").startswith("mod:")
            self._lose("attachment" if is_mods else "synthetic")
        else:
            for index, block in enumerate(self._blocks(message.content)):
                self._block(block, role, index, is_result=meta.source == RESULTS)

    def _blocks(self, content: Sequence[msgspec.Raw]) -> list[Block]:
        """The pieces that can be read; places are kept."""
        blocks = []
        for raw in content:
            try:
                blocks.append(decode_block(raw))
            except FAULTS:
                self._lose("unknown-shape")
                blocks.append(_NOTHING)
        return blocks

    def _block(self, block: Block, role: str, index: int, *, is_result: bool) -> None:
        kind = block.type
        if block is _NOTHING:
            return
        if kind == "text":
            if block.text is None:
                self._lose("unknown-shape")
            elif is_result:
                self._lose("synthetic")
            else:
                self._text(block.text, role, index)
        elif kind == "tool_use" and role == "assistant":
            self._call(block, index)
        elif kind == "tool_result" and role == "user":
            self._result(block, index)
        elif kind in REASONING:
            self._lose("reasoning")
        else:
            self._lose("image" if kind in IMAGES else "unknown-block")

    def _text(self, text: str, role: str, index: int) -> None:
        if not text or text.isspace():
            return
        if is_own(text):
            self._lose("own-packet")
        else:
            self._add("message", role, text, index, {})

    def _call(self, block: Block, index: int) -> None:
        if block.id is None or block.name is None or not bytes(block.input).startswith(b"{"):
            self._lose("unknown-shape")
            return
        name = clip(block.name or "tool", 256)[0]
        body, is_cut = compact(block.input, MAX_EVENT_BYTES - 4 * len(name) - 2)
        if is_cut:
            self._lose("shortened")
        about: About = {"tool": name, "tool_use_id": clip(block.id, 512)[0]}
        self._add("tool_call", "assistant", f"{name}: {body}", index, about)

    def _result(self, block: Block, index: int) -> None:
        if block.tool_use_id is None or block.content is None:
            self._lose("unknown-shape")
            return
        texts = []
        for raw in block.content:
            try:
                piece = decode_piece(raw)
            except FAULTS:
                self._lose("unknown-shape")
                continue
            if piece.text and piece.type == "text":
                texts.append(piece.text)
            elif piece.type != "text":
                self._lose("image" if piece.type in IMAGES else "unknown-block")
        text = "\n".join(texts)
        if is_own(text):
            self._lose("own-packet")
            return
        about: About = {"tool_use_id": clip(block.tool_use_id, 512)[0], "is_error": block.is_error is True}
        # without text it is kept too: it tells a finished call from an unfinished one
        self._add("tool_result", "tool", text, index, about)

    # --------------------------------------------------------------------------- others

    def _summary(self, text: str | None, kind: Kind, which: str) -> None:
        if text is None:
            self._lose("unknown-shape")
        elif text.strip():
            self._add(kind, "assistant", text, 0, {"summary_type": which})

    def _attached(self, line: bytes) -> None:
        try:
            content = decode_attached(line).content
        except FAULTS:
            content = None
        text = content if isinstance(content, str) else "\n".join(piece.text or "" for piece in content or ())
        self._lose("own-packet" if is_own(text) else "attachment")

    def _add(self, kind: Kind, role: str, content: str, index: int, about: About) -> None:
        content, is_cut = clip(content)
        if is_cut:
            self._lose("shortened")
        entry = self.entry
        name = entry.id if entry.id and len(entry.id) <= 128 else ""
        stamp = clip(entry.timestamp or "", 64)[0]
        self.events.append(
            Event(
                session=self.session,
                origin=f"{stamp}/{name}" if stamp and name else f"{self.session}@{name or self.at}",
                kind=kind,
                role=role,
                content=content,
                at=self.at,
                record=name,
                block=index,
                occurred_at=self.when,
                metadata={**about, **self.about},
            )
        )

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)


_NOTHING = Block()


def _is_entry(entry: Entry) -> bool:
    return bool(entry.id) and bool(entry.timestamp) and entry.parentId is not msgspec.UNSET


def _is_said(role: str, source: str | None) -> bool:
    """Whether a person or the model said it, or a tool answered."""
    if source is None:
        return True
    return source in TYPED or source == RESULTS if role == "user" else source == MODEL


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole entries of one session file into events.

    events   `record` is the entry's id, `metadata.parent_id` the entry it follows: all branches are given, in
             the order in which they were written
    raises   nothing: what cannot be read is a loss
    source   Command Code 1.64.0, session files read 2026-11
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
    after = Memory(session=reader.session, has_header=reader.has_header)
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        sessions=reader.sessions,
        consumed=consumed,
        state=encode_memory(after),
    )


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session of a file, from its name and its header; None where the two disagree.

    The header of a fork is its parent's, with the fork's id as `sessionId`.
    """
    name = path.rsplit(b"/", 1)[-1].removesuffix(b".jsonl")
    line, newline, _rest = head.partition(b"\n")
    if not _UUID.fullmatch(name) or not newline or len(line) > MAX_HEADER_BYTES:
        return None
    try:
        header = decode_header(line)
    except FAULTS:
        return None
    session = name.decode("ascii")
    own = header.id if header.sessionId is None else header.sessionId
    return _session(header, session) if is_header(header) and own == session else None


def _session(header: Header, session: str) -> Session:
    parent = header.id if header.id != session else _named(header.parentSession or "")
    return Session(
        id=session,
        cwd=header.cwd,
        started=clip(header.timestamp, 64)[0],
        forked_from=clip(parent, 512)[0] if parent != session else "",
    )


def _named(file: str) -> str:
    """The id of the session whose file this is."""
    return re.split(r"[/\\]", file)[-1].removesuffix(".jsonl")


def begin(session: Session, flavor: str) -> bytes:
    """The state before the header. `has_header` stays open, so that `parse` reports the session."""
    return encode_memory(Memory(session=session.id))


def stores(environment: Environment) -> tuple[Store, ...]:
    """The one place there is: no variable moves it."""
    root = environment.home.rstrip(b"/") + b"/.commandcode/projects"
    return (Store(root=root, patterns=(f"*/{_UUID_GLOB}.jsonl",)),)


ADAPTER = Adapter(
    name="command-code",
    title="Command Code",
    aliases=("commandcode", "cmdc", "cmd"),
    stores=stores,
    identify=identify,
    begin=begin,
    parse=parse,
    start_output_limit=OutputLimit(4_000),
    launch=LAUNCH,
    hooks=HOOKS,
)
