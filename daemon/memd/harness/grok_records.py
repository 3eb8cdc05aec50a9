"""The records of Grok Build's two logs: their fields as they are read, and the words in them.

source  Grok Build 0.2.111, session files and program read 2026-11
"""

from __future__ import annotations

from typing import Any

import msgspec

from memd.harness.records import FAULTS

SILENT_UPDATES = frozenset(
    {
        "auto_compact_cancelled",
        "auto_compact_failed",
        "auto_compact_started",
        "auto_continue_completed",
        "auto_recovery_exhausted",
        "auto_recovery_started",
        "available_commands_update",
        "compaction_checkpoint",
        "config_option_update",
        "current_mode_update",
        "diff_review",
        "feedback_request",
        "goal_updated",
        "hook_execution",
        "hooks_changed",
        "image_dropped",
        "interaction_resolved",
        "memory_dream_completed",
        "memory_files",
        "memory_flush_completed",
        "memory_flush_started",
        "memory_session_saved",
        "model_auto_switched",
        "model_changed",
        "monitor_event",
        "pending_interaction",
        "plan",
        "plugin_updates_installed",
        "plugins_changed",
        "relay_sync_status",
        "retry_state",
        "rewind_marker",  # what was taken back stays
        "scheduled_task_created",
        "scheduled_task_deleted",
        "scheduled_task_fired",
        "session_info_update",
        "session_recap",
        "session_recap_unavailable",
        "session_summary_generated",
        "subagent_finished",
        "subagent_progress",
        "task_backgrounded",
        "task_completed",
        "tool_call_delta_chunk",
        "usage_update",
    }
)
"""Bookkeeping of `updates.jsonl`."""

FINISHED = frozenset({"completed", "failed"})
TEXTS = frozenset({"text", "input_text", "output_text"})
IMAGES = frozenset({"image", "image_url", "input_image", "audio", "resource", "resource_link", "document"})
NOTICES = ("<user_info>", "<system-reminder>")
PACKET_WORDS = ("<!-- memd:", "<!-- ai-memory:managed-workstream-packet")
SUMMARIES = "compaction_meta"
OPENERS = (b'{"timestamp":', b'{"type":"')


class Block(msgspec.Struct, gc=False):
    """A piece of a message, of either log."""

    type: str = ""
    text: str | None = None
    content: Any = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class Shown(msgspec.Struct, gc=False):
    """What a tool call shows: text in a block, a difference, a terminal."""

    type: str = ""
    content: Block | None = None


class Tool(msgspec.Struct, gc=False):
    name: str | None = None


class UpdateMeta(msgspec.Struct, gc=False):
    tool: Tool | None = msgspec.field(default=None, name="x.ai/tool")


class Update(msgspec.Struct, gc=False):
    """`params.update`: one thing that happened. What is not named is skipped unread."""

    sessionUpdate: str = ""
    content: Block | list[Shown] | None = None
    toolCallId: str | None = None
    title: str | None = None
    rawInput: msgspec.Raw = msgspec.Raw(b"")
    rawOutput: msgspec.Raw = msgspec.Raw(b"")
    status: str | None = None
    message: str | None = None
    stop_reason: str | None = None
    summary_preview: str | None = None
    meta: UpdateMeta | None = msgspec.field(default=None, name="_meta")


class ParamsMeta(msgspec.Struct, gc=False):
    eventId: str | None = None
    agentTimestampMs: Any = None


class Params(msgspec.Struct, gc=False):
    update: Update | None = None
    meta: ParamsMeta | None = msgspec.field(default=None, name="_meta")


class Call(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")


class Backend(msgspec.Struct, gc=False):
    """A tool that ran at the provider's."""

    tool_type: str | None = None
    action: msgspec.Raw = msgspec.Raw(b"")


class Record(msgspec.Struct, gc=False):
    """A line of either log: `updates.jsonl` has `params`, `chat_history.jsonl` has `type`."""

    timestamp: Any = None
    params: Params | None = None
    type: str = ""
    content: Any = None
    synthetic_reason: Any = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    kind: Backend | str | None = None


class Where(msgspec.Struct, gc=False):
    id: str = ""
    cwd: str = ""


class Summary(msgspec.Struct, gc=False):
    """`summary.json`. `num_messages` counts the lines of `updates.jsonl`."""

    info: Where
    generated_title: Any = None
    created_at: Any = None
    session_kind: Any = None
    parent_session_id: Any = None
    num_messages: Any = None


class Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    is_side: bool = False
    nameless: dict[int, int] = {}  # sums of what had no id, and how often it was said


decode_record = msgspec.json.Decoder(Record).decode
decode_summary = msgspec.json.Decoder(Summary).decode
decode_memory = msgspec.msgpack.Decoder(Memory).decode
encode_memory = msgspec.msgpack.Encoder().encode


def visible(value: object, depth: int = 16) -> str:
    """What a value shows: texts of strings, lists and objects; anything else as JSON; nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and depth:
        return "\n".join(text for text in (visible(item, depth - 1) for item in value) if text)
    if isinstance(value, dict):
        for key in ("text", "content", "output"):
            if isinstance(value.get(key), str):
                return str(value[key])
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except FAULTS:
        return ""


def told_to_the_model(output: object) -> str:
    """The text that a tool's raw output holds for the model; empty when it names none."""
    for holder in (output, *(output.values() if isinstance(output, dict) else ())):
        if not isinstance(holder, dict):
            continue
        for key in ("output_for_prompt", "tool_output_for_prompt"):
            if isinstance(holder.get(key), str):
                return str(holder[key])
    return ""
