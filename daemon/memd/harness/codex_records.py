"""The records of a Codex rollout: their fields as they are read, and the words in them.

source  codex-cli 0.171.0, rollouts and program read 2026-11
"""

from __future__ import annotations

import re

import msgspec

from memd.harness.model import Session
from memd.harness.records import clip

SILENT = frozenset({"session_meta", "turn_context", "world_state", "token_usage_record"})
"""Bookkeeping: record types that nobody would miss in a conversation."""

SILENT_EVENTS = frozenset(
    {
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "apply_patch_approval_request",
        "auth_recovery_completed",
        "auth_recovery_started",
        "background_event",
        "context_compacted",
        "deprecation_notice",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "elicitation_abandoned",
        "elicitation_request",
        "entered_review_mode",
        "environment_connected",
        "environment_disconnected",
        "error",
        "exec_approval_request",
        "exec_command_begin",
        "exec_command_end",
        "exec_command_output_delta",
        "exited_review_mode",
        "guardian_assessment",
        "guardian_warning",
        "image_generation_begin",
        "image_generation_end",
        "item_started",
        "item_updated",
        "mcp_startup_complete",
        "mcp_startup_update",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "model_reroute",
        "model_verification",
        "network_approval_resolved",
        "patch_apply_begin",
        "patch_apply_end",
        "patch_apply_updated",
        "plan_update",
        "request_permissions",
        "request_user_input",
        "safety_buffering",
        "session_configured",
        "stream_error",
        "sub_agent_activity",
        "task_complete",
        "terminal_interaction",
        "thread_goal_updated",
        "thread_queue_changed",
        "thread_settings_applied",
        "token_count",
        "turn_aborted",
        "turn_complete",
        "turn_diff",
        "turn_moderation_metadata",
        "undo_completed",
        "undo_started",
        "view_image_tool_call",
        "warning",
        "web_search_begin",
        "web_search_end",
    }
)
"""Events for the screen; what is visible in them stands in the response items too."""

SILENT_ITEMS = frozenset({"ghost_snapshot", "configuration_update", "compaction_trigger"})
CALLS = frozenset({"function_call", "custom_tool_call", "tool_call", "tool_search_call"})
RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_result", "tool_search_output"})
ACTIONS = {"web_search_call": "web_search", "local_shell_call": "shell"}
TEXTS = frozenset({"text", "input_text", "output_text", "Text"})
IMAGES = frozenset({"input_image", "output_image", "image"})
OPENERS = (b'{"timestamp":', b'{"type":')

INJECTED = re.compile(
    r"#+ AGENTS\.md instructions(?: for [^\n]*)?\s*(?:\n|$)"
    r"|<(?:environment_context|permissions instructions|INSTRUCTIONS|user_instructions|turn_aborted"
    r"|subagent_notification|skills_instructions|skill|apps_instructions|collaboration_mode"
    r"|model_switch|hook_context)>"
    r"|</?image\b[^>]*>\s*$"
)
EXIT = re.compile(r"(?:Process exited with code|^Exit code:) (-?\d{1,10})\b")
OLD_EXIT = re.compile(r'"exit_code": ?(-?\d{1,10})\b')
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NAME = re.compile(rf"rollout-.*?-({_UUID})(?:_({_UUID}))?\.jsonl(?:\.zst)?".encode())
"""The name of a rollout: its thread, and the part of it that the file begins where one was taken back."""

PART = re.compile(_UUID)
SPAWNED = re.compile(rb'"parent_thread_id": ?"([^"\\]{1,128})"')


class Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class Item(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    content: list[Part] | None = None
    text: str | None = None


class Provenance(msgspec.Struct, gc=False):
    type: str = ""


class PartNote(msgspec.Struct, gc=False):
    provenance: Provenance | None = None


class Passthrough(msgspec.Struct, gc=False):
    content_item_metadata: list[PartNote | None] | None = None


class Payload(msgspec.Struct, gc=False):
    """The fields of every payload that is read; encrypted reasoning and histories are skipped unread."""

    type: str = ""
    id: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | dict[str, msgspec.Raw] | list[msgspec.Raw] | None = None
    input: str | dict[str, msgspec.Raw] | list[msgspec.Raw] | None = None
    call_id: str | None = None
    output: str | list[Part] | dict[str, msgspec.Raw] | None = None
    action: msgspec.Raw = msgspec.Raw(b"")
    status: str | None = None
    message: str | None = None
    summary: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None
    item: Item | None = None
    thread_name: str | None = None
    num_turns: int | None = None
    internal_chat_message_metadata_passthrough: Passthrough | None = None


class Record(msgspec.Struct, gc=False):
    type: str = ""
    timestamp: str | None = None
    payload: Payload | None = None


class Kind(msgspec.Struct, gc=False):
    type: str = ""


class Lean(msgspec.Struct, gc=False):
    type: str = ""
    payload: Kind | None = None


class Base(msgspec.Struct, gc=False):
    thread_id: str | None = None
    end_byte_offset: int | None = None


class Meta(msgspec.Struct, gc=False):
    id: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: msgspec.Raw = msgspec.Raw(b"")
    thread_source: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    history_base: Base | None = None


class Header(msgspec.Struct, gc=False):
    type: str = ""
    timestamp: str | None = None
    payload: Meta | None = None


decode_record = msgspec.json.Decoder(Record).decode
decode_lean = msgspec.json.Decoder(Lean).decode
decode_header = msgspec.json.Decoder(Header).decode


def is_record(record: Record) -> bool:
    """Whether a decoded object stands on its own, and is not a part of a torn record."""
    return record.payload is not None and record.timestamp is not None and record.type != ""


def is_injected(text: str, note: PartNote | None) -> bool:
    """Whether a user-role text is the harness's own: it says so, or (older versions) begins like one."""
    if note is not None and note.provenance is not None and note.provenance.type:
        return note.provenance.type != "user"
    return INJECTED.match(text[:512].lstrip()) is not None


def meta_session(header: Header) -> Session | None:
    """What a `session_meta` record says; None when it names no thread."""
    meta = header.payload
    if meta is None or not meta.id:
        return None
    source = bytes(meta.source)
    spawned = SPAWNED.search(source)
    parent = meta.parent_thread_id or (spawned[1].decode("utf-8", "replace") if spawned else "")
    is_side = bool(parent) or meta.thread_source == "subagent" or b'"subagent"' in source
    if is_side and not parent and meta.session_id and meta.session_id != meta.id:
        parent = meta.session_id
    forked_from, forked_at = "", 0
    if meta.forked_from_id:
        base = meta.history_base
        forked_from = meta.forked_from_id
        if base and base.thread_id and base.thread_id < forked_from:
            forked_from = base.thread_id  # the fork of a fork, from a place before the first one
        forked_at = end_of(base, forked_from)
    return Session(
        id=clip(meta.id, 512)[0],
        cwd=meta.cwd or "",
        started=meta.timestamp or header.timestamp or "",
        version=meta.cli_version or "",
        is_side=is_side,
        parent=parent,
        forked_from=clip(forked_from, 512)[0],
        forked_at=forked_at,
    )


def shift_of(part: str, thread: str) -> int:
    """Where the places of a part of a thread begin: later parts are higher, and none reaches into the next.

    A part is named by a UUID of version 7, which begins with its milliseconds. The first has the thread's.
    """
    if part == thread or not PART.fullmatch(part):
        return 0
    return (int(part.replace("-", "")[:12], 16) % (1 << 42)) << 20  # fits 63 bits until 2109


def end_of(base: Base | None, thread: str) -> int:
    """The place in a thread at which a history that is based on it begins to be its own; 0: not said."""
    if base is None or not base.end_byte_offset or base.end_byte_offset < 0:
        return 0
    return shift_of(base.thread_id or thread, thread) + base.end_byte_offset % (1 << 40)


def taken_back_to(header: Header) -> int:
    """The place in its own thread from which a file replaces what was there; 0: it replaces nothing."""
    meta = header.payload
    if meta is None or not meta.id or meta.forked_from_id:
        return 0
    base = meta.history_base
    if base and base.thread_id and base.thread_id < meta.id:
        return 1  # a fork was taken back to a place before its beginning
    return end_of(base, meta.id)
