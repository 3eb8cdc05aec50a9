"""The records of a Claude Code session file: their fields as they are read, and the words in them.

source  Claude Code 2.1.197, session files and program read 2026-11
"""

from __future__ import annotations

import re

import msgspec

from memd.harness.chain import ChainState

SILENT = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "custom-title",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "isolation-latch",
        "last-prompt",
        "marble-origami-commit",
        "marble-origami-reset",
        "marble-origami-snapshot",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "speculation-accept",
        "system",
        "tag",
        "task-summary",
        "worktree-state",
    }
)
"""Bookkeeping: record types that nobody would miss in a conversation."""

LISTINGS = frozenset(
    {
        "agent_listing_delta",
        "date_change",
        "deferred_tools_delta",
        "mcp_instructions_delta",
        "output_style",
        "plan_mode",
        "plan_mode_exit",
        "skill_listing",
        "task_reminder",
        "todo_reminder",
        "token_usage",
    }
)
"""Bookkeeping among the attachments: what tools and skills there are, reminders, counts."""

READ_TWICE = frozenset({"system", "ai-title", "custom-title"})
"""Silent types that now and then say something about the session itself."""

COMPACTIONS = frozenset({"summary", "compact", "compaction"})
REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULTS = frozenset({"tool_result", "mcp_tool_result"})
IMAGES = frozenset({"image", "document"})
OPENERS = (b'{"parentUuid":', b'{"type":', b'{"isSidechain":')
PACKET_BYTES = (b"<!-- memd:", b"<!-- ai-memory:managed-workstream-packet")

NOTICES = re.compile(
    r"<(?:system-reminder|local-command-caveat|task-notification|mcp-resource-update|mcp-polling-update"
    r"|user-memory-input|channel|tick)\b"
    r"|\[Request interrupted by user(?: for tool use)?\]\s*$"
)
"""Texts in the user's name that the program wrote."""

ECHOES = re.compile(r"<(?:command-name|command-message|command-args|local-command-std(?:out|err))>")

SHELL_INPUT = "bash-input"
SHELL_OUTPUTS = ("bash-stdout", "bash-stderr")


def between(text: str, tag: str) -> str:
    """What stands in the first `<tag>…</tag>`, without white space around it; "" when there is none.

    Not a regular expression: those try every opening tag again when there is no closing one.
    """
    start = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", start)
    return text[start + len(tag) + 2 : end].strip() if 0 <= start < end else ""


class Part(msgspec.Struct, gc=False):
    """A piece of a tool result."""

    type: str = ""
    text: str | None = None


class Block(msgspec.Struct, gc=False):
    """A piece of a message."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    tool_use_id: str | None = None
    content: str | list[Part] | dict[str, msgspec.Raw] | None = None
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[Block] | None = None


class Record(msgspec.Struct, gc=False):
    """What every record is read for. What is not named is skipped unread, `toolUseResult` above all."""

    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = None
    timestamp: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    promptSource: str | None = None
    message: Message | None = None


class Whole(Record, gc=False):
    """A record that is asked whether it stands on its own."""

    sessionId: str | None = None


class Head(msgspec.Struct, gc=False):
    """What the first records say of the session."""

    type: str = ""
    sessionId: str | None = None
    cwd: str | None = None
    timestamp: str | None = None
    version: str | None = None


class Attachment(msgspec.Struct, gc=False):
    type: str = ""
    prompt: str | list[Block] | None = None
    commandMode: str | None = None
    isMeta: bool | None = None


class Extra(msgspec.Struct, gc=False):
    """The fields of the rarer records, read a second time."""

    attachment: Attachment | None = None
    subtype: str | None = None
    summary: str | None = None
    content: str | None = None
    text: str | None = None
    leafUuid: str | None = None
    aiTitle: str | None = None
    customTitle: str | None = None


class Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    is_side: bool = False  # a side conversation's file: counted against `session`, never read
    has_cwd: bool = False
    waiting_since: int = -1  # `at` of the first record that waits for another
    prompts: list[tuple[int, int, int]] = []  # what was typed: sums of its parent and its id, its `at`
    chain: ChainState = msgspec.field(default_factory=ChainState)


decode_record = msgspec.json.Decoder(Record).decode
decode_whole = msgspec.json.Decoder(Whole).decode
decode_head = msgspec.json.Decoder(Head).decode
decode_extra = msgspec.json.Decoder(Extra).decode
decode_memory = msgspec.msgpack.Decoder(Memory).decode
encode_memory = msgspec.msgpack.Encoder().encode
