"""Claude Code: where its sessions lie and how to read them.

    <config home>/projects/<key>/<session>.jsonl                          a session
    <config home>/projects/<key>/<session>/subagents/**/agent-*.jsonl     side conversations, counted only
    <config home>/projects/<key>/agent-*.jsonl                            the same, of older versions

One JSON object a line, appended only. `uuid` names a record and is kept when a conversation is copied (fork,
background, compaction replay), so it alone is the origin of an event; several records share one `message.id`.
Lines are not always in order: `parentUuid` is. A prompt typed where another was typed before is a rewind.
Folder names collide and say nothing: the first recorded `cwd` decides where a session belongs.

    source  Claude Code 2.1.197, session files and program read 2026-11
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from memd.harness.chain import Chain, sum_of
from memd.harness.claude_hooks import HOOKS
from memd.harness.claude_launch import LAUNCH
from memd.harness.claude_records import (
    CALLS,
    COMPACTIONS,
    ECHOES,
    IMAGES,
    LISTINGS,
    NOTICES,
    OPENERS,
    PACKET_BYTES,
    READ_TWICE,
    REASONING,
    RESULTS,
    SHELL_INPUT,
    SHELL_OUTPUTS,
    SILENT,
    Attachment,
    Block,
    Head,
    Memory,
    Part,
    Record,
    Whole,
    between,
    decode_extra,
    decode_head,
    decode_memory,
    decode_record,
    decode_whole,
    encode_memory,
)
from memd.harness.losses import Losses
from memd.harness.model import (
    MAX_EVENT_BYTES,
    Adapter,
    Environment,
    Event,
    Kind,
    Link,
    OutputLimit,
    Parsed,
    Session,
    Store,
    Turn,
)
from memd.harness.packets import is_own
from memd.harness.records import (
    FAULTS,
    SAFE_LENGTH,
    Recovered,
    clip,
    compact,
    head_lines,
    recover,
    split,
    whole_halves,
)

MAX_PROMPTS = 64  # places to which a person can go back
HEAD_LINES = 512  # records at the start of a file among which the session and its directory are looked for

_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class _Place(msgspec.Struct, gc=False):
    """Where the record at hand stands: what all of its events share."""

    at: int
    uuid: str
    occurred_at: str
    waits_for: str
    about: dict[str, str | bool | int]  # metadata of every event of the record


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: Memory) -> None:
        self.session = memory.session
        self.has_cwd = memory.has_cwd
        self.is_known = memory.has_cwd and memory.session != ""
        self.chain = Chain(memory.chain)
        self.events: list[Event] = []
        self.links: list[Link] = []
        self.turns: list[Turn] = []
        self.waiting_since = memory.waiting_since
        self.prompts = {parent: (uuid, at) for parent, uuid, at in memory.prompts}
        self.sessions: list[Session] = []
        self.losses = Losses()

    def read(self, lines: Sequence[bytes], at: int) -> None:
        decode, events, chain = decode_record, self.events, self.chain
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
            if not self.is_known:
                self.learn(line)
            kind, uuid, parent = record.type, record.uuid or "", record.parentUuid or ""
            before, waits_for, count = chain.last, "", len(events)
            if uuid:
                waits_for = chain.step(uuid, parent)
                for missing in chain.given_up:
                    self.links.append(Link(session=self.session, record=missing, at=start))
                if record.promptSource == "typed" and parent:
                    self._typed(parent, uuid, start)
                if waits_for or self.waiting_since >= 0:
                    first = self.waiting_since if self.waiting_since >= 0 else start
                    self.waiting_since = first if chain.is_waiting else -1
            if kind == "assistant" or kind == "user":
                strays = parent and parent != before and len(parent) <= 128
                about: dict[str, str | bool | int] = {"parent_id": parent} if strays else {}
                self._message(record, _Place(start, uuid, record.timestamp or "", waits_for, about))
            elif kind not in SILENT or kind in READ_TWICE:
                place = _Place(start, uuid, record.timestamp or "", waits_for, {})
                self._other(record, line, place)
            if uuid and chain.is_awaited and len(events) == count:
                self.links.append(Link(session=self.session, record=uuid, at=start, parent=waits_for))

    def _recovered(self, line: bytes) -> Recovered[Whole]:
        found = recover(line, decode_whole, _is_record, OPENERS, SILENT)
        if found.what:
            self.losses.add(self.session, found.what)
        return found

    def learn(self, line: bytes) -> None:
        """Take the session's id and directory from the first records that have them."""
        head = _head(line)
        if head.sessionId and not self.session:
            self.session = clip(head.sessionId, 512)[0]
        if head.cwd and self.session and not self.has_cwd:
            self.has_cwd = self.is_known = True
            started, version = head.timestamp or "", head.version or ""
            self.sessions.append(Session(id=self.session, cwd=head.cwd, started=started, version=version))

    def _typed(self, parent: str, uuid: str, at: int) -> None:
        """A prompt behind a record behind which another was typed before: that one was taken back.

        Everything since then is a branch that was left, but for records that were written too early.
        """
        place, name = sum_of(parent), sum_of(uuid)
        before, first = self.prompts.pop(place, (name, at))
        self.prompts[place] = (name, at)
        if len(self.prompts) > MAX_PROMPTS:
            del self.prompts[next(iter(self.prompts))]
        last = (at if self.waiting_since < first else self.waiting_since) - 1
        if before != name and last > first:
            self.turns.append(Turn(session=self.session, first=first, last=last, is_side=True))
            self._lose("branch")

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)

    # ------------------------------------------------------------------- user and assistant

    def _message(self, record: Record, place: _Place) -> None:
        message = record.message
        if record.isSidechain:
            self._lose("sidechain")
        elif record.isMeta:
            self._lose("synthetic")
        elif message is None:
            self._lose("unknown-shape")
        elif message.role != "user" and message.role != "assistant":
            self._lose("role")
        elif record.isApiErrorMessage:
            self._lose("api-error")
        elif record.isCompactSummary:
            content = message.content
            if not isinstance(content, str):
                content = "\n".join(block.text for block in content or () if block.text)
            self._add(place, "compaction", "assistant", content, 0, place.about)
        elif isinstance(message.content, str):
            self._text(place, message.role, message.content, 0)
        else:
            for index, block in enumerate(message.content or ()):
                self._block(place, message.role, block, index)

    def _block(self, place: _Place, role: str, block: Block, index: int) -> None:
        kind = block.type
        if kind == "text":
            self._text(place, role, block.text or "", index)
        elif kind in CALLS:
            name = clip(block.name or "tool", 256)[0]
            body, is_cut = compact(block.input, MAX_EVENT_BYTES - 4 * len(name) - 2)
            if is_cut:
                self._lose("shortened")
            made = {"tool": name, "tool_use_id": clip(block.id or "", 512)[0], **place.about}
            self._add(place, "tool_call", "assistant", f"{name}: {body}", index, made)
        elif kind in RESULTS:
            content = block.content if isinstance(block.content, str) else self._flat(block.content)
            if is_own(content):
                self._lose("own-packet")
                return
            about = {"tool_use_id": clip(block.tool_use_id or "", 512)[0], **place.about}
            if block.is_error is not None:
                about["is_error"] = block.is_error
            # without text it is kept too: it tells a finished call from an unfinished one
            self._add(place, "tool_result", "tool", content, index, about)
        elif kind in REASONING:
            self._lose("reasoning")
        else:
            self._lose("image" if kind in IMAGES else "unknown-block")

    def _flat(self, content: list[Part] | dict[str, msgspec.Raw] | None) -> str:
        """The text of a tool result that is not a plain string."""
        if isinstance(content, dict):
            return compact(msgspec.json.encode(content))[0]
        texts = []
        for part in content or ():
            if part.text:
                texts.append(part.text)
            elif part.type != "text":
                self._lose("image" if part.type in IMAGES else "unknown-block")
        return "\n".join(texts)

    def _text(self, place: _Place, role: str, text: str, index: int) -> None:
        kind: Kind = "message"
        if role == "user" and (head := text[:512].lstrip())[:1] in ("<", "["):
            if NOTICES.match(head):
                self._lose("synthetic")
                return
            if ECHOES.match(head):
                command, arguments = between(text, "command-name"), between(text, "command-args")
                if not command or not arguments:
                    self._lose("command")
                    return
                text = f"{command} {arguments}"  # what the person typed behind the command
            elif head.startswith(f"<{SHELL_INPUT}>"):
                text = f"! {between(text, SHELL_INPUT)}"
            elif head.startswith(tuple(f"<{tag}>" for tag in SHELL_OUTPUTS)):
                kind, role = "tool_result", "tool"
                text = "\n".join(out for tag in SHELL_OUTPUTS if (out := between(text, tag)))
        if not text or text.isspace():
            return
        if is_own(text):
            self._lose("own-packet")
            return
        self._add(place, kind, role, text, index, place.about)

    def _add(
        self,
        place: _Place,
        kind: Kind,
        role: str,
        content: str,
        index: int,
        about: dict[str, str | bool | int],
    ) -> None:
        if len(content) > SAFE_LENGTH:
            content, is_cut = clip(content)
            if is_cut:
                self._lose("shortened")
        self.events.append(
            Event(
                session=self.session,
                origin=place.uuid or f"{self.session}@{place.at}",
                kind=kind,
                role=role,
                content=content,
                at=place.at,
                record=place.uuid,
                block=index,
                parent=place.waits_for,
                occurred_at=place.occurred_at,
                metadata=about,
            )
        )

    # --------------------------------------------------------------------------- the others

    def _other(self, record: Record, line: bytes, place: _Place) -> None:
        kind = record.type
        try:
            extra = decode_extra(line)
        except FAULTS:
            if kind not in SILENT:
                self._lose("attachment" if kind == "attachment" else "unknown-shape")
            return
        if kind == "ai-title" or kind == "custom-title":
            title = extra.customTitle or extra.aiTitle
            if title:
                self.sessions.append(Session(id=self.session, title=clip(title, 512)[0]))
        elif record.isSidechain:
            if kind != "system":
                self._lose("sidechain")
        elif kind == "attachment":
            self._attachment(extra.attachment, line, place)
        elif kind in COMPACTIONS or (kind == "system" and extra.subtype == "compact_boundary"):
            text = extra.summary or extra.content or extra.text or ""
            if text and not text.isspace():
                if not place.uuid and extra.leafUuid:
                    place.uuid = f"{kind}:{extra.leafUuid}"
                place.about["summary_type"] = clip(extra.subtype or kind, 512)[0]
                self._add(place, "compaction", "assistant", text, 0, place.about)
        elif kind != "system":
            self._lose("unknown-type")

    def _attachment(self, attachment: Attachment | None, line: bytes, place: _Place) -> None:
        if attachment is not None and _is_typed(attachment):
            prompt = attachment.prompt
            if isinstance(prompt, str):
                prompt = [Block(type="text", text=prompt)]
            for index, block in enumerate(prompt or ()):
                self._block(place, "user", block, index)
        elif any(marker in line for marker in PACKET_BYTES):
            self._lose("own-packet")
        elif attachment is None or attachment.type not in LISTINGS:
            self._lose("attachment")


def _is_record(record: Whole) -> bool:
    return bool(record.sessionId) and bool(record.type)


def _head(line: bytes) -> Head:
    """What a line says of its session; nothing when it cannot be read."""
    try:
        return decode_head(line)
    except FAULTS:
        pass
    try:
        return decode_head(whole_halves(line).decode("utf-8", "replace").encode("utf-8"))
    except FAULTS:
        return Head()


def _is_typed(attachment: Attachment) -> bool:
    """Whether it is a prompt that was typed while the model was at work: those stand nowhere else."""
    is_prompt = attachment.commandMode is None or attachment.commandMode == "prompt"
    return attachment.type == "queued_command" and is_prompt and not attachment.isMeta


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole records of one session file into events.

    events   `record` is the `uuid`; `metadata.parent_id` is given where the parent is not the record before
    raises   nothing: what cannot be read is a loss
    source   Claude Code 2.1.197, session files read 2026-11
    """
    try:
        memory = decode_memory(state) if state else Memory()
    except FAULTS:
        memory = Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    reader = _Reader(memory)
    if memory.is_side:
        return _count_side(reader, lines, consumed)
    reader.read(lines, base)
    after = Memory(
        session=reader.session,
        has_cwd=reader.has_cwd,
        waiting_since=reader.waiting_since,
        prompts=[(parent, uuid, at) for parent, (uuid, at) in reader.prompts.items()],
        chain=reader.chain.state(),
    )
    return Parsed(
        events=reader.events,
        links=reader.links,
        turns=reader.turns,
        losses=reader.losses.done(),
        sessions=reader.sessions,
        consumed=consumed,
        state=encode_memory(after),
    )


def _count_side(reader: _Reader, lines: Sequence[bytes], consumed: int) -> Parsed:
    """A side conversation's file: how many records there are is all that is taken from it."""
    for line in lines:
        if reader.session:
            break
        reader.learn(line)
    count = sum(1 for line in lines if line)
    if count:
        reader.losses.add(reader.session, "sidechain", count)
    after = Memory(session=reader.session, is_side=True)
    return Parsed(losses=reader.losses.done(), consumed=consumed, state=encode_memory(after))


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session of a file, from its name and the first records that say `sessionId` and `cwd`.

    A side conversation's file gives its own name as the id and the session it belongs to as `parent`.
    """
    name = path.rsplit(b"/", 1)[-1].removesuffix(b".jsonl")
    session, cwd, started, version = "", "", "", ""
    for line in head_lines(head, HEAD_LINES):
        found = _head(line)
        session = session or found.sessionId or ""
        if found.cwd and not cwd:
            cwd, started, version = found.cwd, found.timestamp or "", found.version or ""
        if session and cwd:
            break
    if name.startswith(b"agent-") or b"/subagents/" in path:
        folder = path.split(b"/subagents/", 1)[0].rsplit(b"/", 1)[-1]
        parent = folder.decode("ascii") if _UUID.fullmatch(folder) else session
        side = name.decode("utf-8", "replace")
        return Session(id=side, cwd=cwd, started=started, version=version, is_side=True, parent=parent)
    if not session:
        return None
    if _UUID.fullmatch(name):  # what `--resume` looks for; a copy need not have rewritten its records
        session = name.decode("ascii")
    return Session(id=session, cwd=cwd, started=started, version=version)


def begin(session: Session, flavor: str) -> bytes:
    """The state before the first record. The directory is left open, so that `parse` reports the session."""
    memory = Memory(session=session.parent if session.is_side else session.id, is_side=session.is_side)
    return encode_memory(memory)


def stores(environment: Environment) -> tuple[Store, ...]:
    """`projects` of every login: the one the environment names first, then the others that are known."""
    chosen = environment.variables.get("CLAUDE_CONFIG_DIR") or environment.home + b"/.claude"
    homes = dict.fromkeys(home.rstrip(b"/") for home in (chosen, *environment.config_homes))
    patterns = ("*/*.jsonl", "*/*/subagents/**/agent-*.jsonl")
    return tuple(Store(root=home + b"/projects", patterns=patterns) for home in homes)


ADAPTER = Adapter(
    name="claude",
    title="Claude Code",
    aliases=("claude-code", "claudecode"),
    stores=stores,
    identify=identify,
    begin=begin,
    parse=parse,
    start_output_limit=OutputLimit(10_000),
    launch=LAUNCH,
    hooks=HOOKS,
)
