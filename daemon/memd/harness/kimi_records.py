"""The records of a Kimi Code journal: their fields as they are read, and the words in them.

source  Kimi Code 2.1.0 (protocol 1.5): journals and program read 2026-11; older forms (messages of the
        assistant and of tools, calls below `function`) from its own migrations of 1.0 to 1.4
"""

from __future__ import annotations

from typing import Any

import msgspec

SILENT = frozenset(
    {
        "agent.message.appended",  # every message once more
        "agent.switched",
        "agent.turn.ended",
        "agent.turn.started",
        "context.undone",
        "context.update_token_count",
        "cron.add",
        "cron.cursor",
        "cron.delete",
        "file_history.checkpoint",
        "file_history.tracked",
        "forked",
        "full_compaction.begin",
        "full_compaction.cancel",
        "full_compaction.complete",
        "goal.account_usage",
        "goal.clear",
        "goal.continuation",
        "goal.create",
        "goal.update",
        "interaction.request",
        "interaction.resolved",
        "interruptionReminder.recorded",
        "llm.request",
        "llm.tools_snapshot",
        "mcp.tools_discovered",
        "metadata",
        "micro_compaction.apply",
        "permission.record_approval_result",
        "permission.set_mode",
        "plan.revision",
        "plan_mode.cancel",
        "plan_mode.enter",
        "plan_mode.exit",
        "plugin.session_start",
        "prompt.aborted",
        "prompt.accepted",
        "prompt.completed",
        "prompt.steered",
        "runtime.set_binding",
        "staleGuard.cleared",
        "staleGuard.recorded",
        "subagent.cancelled",
        "subagent.completed",
        "subagent.failed",
        "subagent.spawned",
        "subagent.started",
        "swarm_mode.enter",
        "swarm_mode.exit",
        "task.started",
        "task.terminated",
        "task.waitDelivered",
        "token_counting.measured",
        "token_counting.rebased",
        "token_counting.truncated",
        "token_counting.turn_recorded",
        "tools.register_user_tool",
        "tools.reset_active_tools",
        "tools.set_active_tools",
        "tools.unregister_user_tool",
        "tools.update_store",
        "tower_mode.enter",
        "tower_mode.exit",
        "turn.cancel",
        "turn.ended",
        "turn.prompt",  # the user's words once more
        "turn.steer",
        "turn.step.interrupted",
        "turn.step.retrying",
        "usage.record",
    }
)
"""Bookkeeping, and what says a second time what another record says."""

STEPS = frozenset({"step.begin", "step.end"})
INSTRUCTIONS = frozenset({"config.update", "profile.bind"})
REASONING = frozenset({"think", "thinking"})
IMAGES = frozenset({"image", "image_url", "video", "video_url", "audio", "audio_url", "document", "file"})
TYPED_BY_HAND = frozenset({"skill_activation", "plugin_command"})  # where a person typed the slash command
OPENERS = (b'{"type":"', b'{"message":{"', b'{"turnId":')


class Part(msgspec.Struct, gc=False):
    """A piece of a message. A piece without a type says nothing."""

    type: str = ""
    text: str | None = None
    content: Any = None


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")


class ToolCall(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")
    function: Function | None = None


class Origin(msgspec.Struct, gc=False):
    """Who a message in the user's name comes from."""

    kind: Any = None
    trigger: Any = None
    inTurn: Any = None


Content = str | Part | list[str | Part] | None


class Message(msgspec.Struct, gc=False):
    role: str = ""
    content: Content | msgspec.UnsetType = msgspec.UNSET
    id: str | None = None
    partial: Any = None
    origin: Origin | None = None
    toolCalls: list[ToolCall] | None = None
    toolCallId: str | None = None


class Result(msgspec.Struct, gc=False):
    output: Content = None
    isError: bool | None = None


class LoopEvent(msgspec.Struct, gc=False):
    """What happens while the model works: a piece of its reply, a call, a result."""

    type: str = ""
    uuid: str | None = None
    part: Part | None = None
    toolCallId: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"")
    result: Result | None = None


class Record(msgspec.Struct, gc=False):
    """What every record that says something is read for. What is not named is skipped unread."""

    type: str = ""
    time: Any = None
    message: Message | None = None
    event: LoopEvent | None = None
    summary: str | Message | None = None
    contextSummary: str | None = None
    count: Any = None
    systemPrompt: str | None = None


class Tag(msgspec.Struct, gc=False):
    type: str = ""


class State(msgspec.Struct, gc=False):
    """`state.json` of a session. `cwd` since 0.34, `workDir` before."""

    id: str | msgspec.UnsetType = msgspec.UNSET
    cwd: str | msgspec.UnsetType = msgspec.UNSET
    workDir: str | msgspec.UnsetType = msgspec.UNSET
    title: Any = None
    createdAt: Any = None
    forkedFrom: Any = None


class Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    parent: str = ""  # the session that this one is a sub-agent of: nothing is read then
    is_counted: bool = False
    prompts: list[int] = []  # where the last prompts stand that can still be taken back
    timeless: dict[int, int] = {}  # sums of what had no time, and how often it was said


decode_tag = msgspec.json.Decoder(Tag).decode
decode_record = msgspec.json.Decoder(Record).decode
decode_state = msgspec.json.Decoder(State).decode
decode_memory = msgspec.msgpack.Decoder(Memory).decode
encode_memory = msgspec.msgpack.Encoder().encode
