"""What the scripted model answers: directives in the prompt, played one step per request. Pure.

A prompt holds steps, separated by `;;` or line ends. Each request after a tool result plays the next:

    USE_TOOL <command>            call the shell tool
    READ_FILE <path>              call the reading tool (the shell where there is none)
    WRITE_FILE <path> <text>      call the writing tool (the shell where there is none); `\\n` is a line end;
                                  an absolute path: some programs take no other
    USE_AGENT <prompt>            call the sub-agent tool
    CALL <tool> <json>            call any tool by name
    PARALLEL <cmd> || <cmd>       several shell calls in one turn
    THINK <text>                  hidden reasoning, then a short text
    SAY <text>                    that text
    BIG <n>                       a text of n characters
    SLOW <seconds>                a first piece, a pause, the rest
    HOLD <word>                   a first piece, then nothing until the test releases <word>
    USAGE <n>                     claims that the request was n tokens long
    FAIL <status>                 an HTTP error
    REPORT_CONTEXT <s1> <s2> ...  "CONTEXT s1=yes s2=no": whether each stands anywhere else in the request

`$MEMORY` in a step stands for the memory directory that the program's own request names: the model
writes where it was told to, as a real one does. Steps used up: "DONE"; no steps at all: "ACK"; both
repeat the SENTINEL-... words of the prompt. Requests for a title or a summary are known and answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Json = dict[str, object]

SENTINEL = re.compile(r"SENTINEL-[A-Za-z0-9_]+")
VERBS = (
    "USE_TOOL", "READ_FILE", "WRITE_FILE", "USE_AGENT", "CALL", "PARALLEL", "THINK", "SAY", "BIG", "SLOW",
    "HOLD", "USAGE", "FAIL", "REPORT_CONTEXT",
)  # fmt: skip
_STEP = re.compile(r"(?:^|(?<=[\s;\"]))(" + "|".join(VERBS) + r")\b[ \t]*(.*)$", re.S)
_MEMORY = re.compile(r"memory[^`\n]{0,80}`(/[^`\n]+?/memory)/?`")

# Texts in the user's role that a program or one of its hooks wrote; nobody typed them.
INJECTED = (
    "<system-reminder>", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions",
    "<permissions instructions>", "<hook_context", "<hook_result", "<command-name>", "<local-command",
    "<command-message>", "<turn_aborted>", "<skills_instructions>", "<collaboration_mode>",
    "<subagent_notification>", "<model_switch>", "<task-notification>", "<user_info>", "<!-- memd:",
    "Called the ",
)  # fmt: skip
_TOLD = re.compile(r"\A<hook_context\b.*?</hook_context>\s*", re.S)  # Command Code: in the prompt's own block
_TITLE_MARKS = (
    "title generator", "generate a title for this conversation", "sentence-case title",
    "write a 5-10 word title", "generate a short title", "session title", "concise, single-line task title",
    "word title using only the task",
)  # fmt: skip
_SUMMARY_MARKS = (
    "create a detailed summary of the conversation", "detailed summary of our conversation",
    "context checkpoint compaction", "create a handoff summary for another llm",
    "provide a detailed prompt for continuing our conversation", "summarize the conversation",
    "anchored summary", "structured context checkpoint summary", "create a handoff summary for the\nmodel",
    "summarize the following conversation", "faithful, concise summary of the conversation",
)  # fmt: skip
_SHELL_TOOLS = (
    "bash", "exec_command", "shell_command", "shell", "local_shell", "container.exec", "run_terminal_cmd",
    "run_terminal_command", "run_command", "run_shell_command", "terminal", "execute",
)  # fmt: skip
_READ_TOOLS = ("read", "read_file", "readfile", "view", "file_read")
_WRITE_TOOLS = ("write", "write_file", "create_file")
_AGENT_TOOLS = ("agent", "task")
_PATH_KEYS = ("file_path", "filePath", "path", "target_file", "file")
_TEXT_KEYS = ("content", "contents", "text")
_COMMAND_KEYS = ("command", "cmd")


@dataclass(frozen=True)
class Tool:
    """A tool as the request offers it; `schema` is its JSON schema."""

    name: str
    schema: Mapping[str, object] = field(default_factory=dict)
    is_freeform: bool = False  # takes one text instead of a JSON object


@dataclass(frozen=True)
class Turn:
    """One request, reduced to what the script needs."""

    prompt: str  # what a person typed last
    step: int  # how many answers the model has given since
    raw: str  # the whole request as JSON
    system: str
    tools: tuple[Tool, ...]
    forced_tool: str = ""  # the one tool the model must call: no person waits for that answer


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Json


@dataclass(frozen=True)
class Reply:
    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    stall_s: float = 0.0
    hold: str = ""
    status: int = 200
    claimed_tokens: int = 0  # 0: an estimate from the size of the request
    is_turn: bool = True  # what a person waits for; not a title, not a summary


def steps_of(prompt: str) -> list[tuple[str, str]]:
    """The directives of a prompt as (verb, argument), in order."""
    found = (_STEP.search(piece.strip().strip('"')) for piece in re.split(r";;|\n", prompt))
    return [(m.group(1), m.group(2).strip().rstrip('"').strip()) for m in found if m]


def choose_prompt(messages: Sequence[tuple[str, Sequence[str]]], *, only_last_block: bool) -> tuple[str, int]:
    """What was typed last, and how many assistant answers came after it.

    messages         (role, texts) in order, roles "user", "assistant" and others; tool results left out
    only_last_block  the program merges a prompt that got no answer into the next message, as an
                     earlier block (Claude Code 2.1.197, seen after an API error)
    """
    answers = 0
    for role, texts in reversed(messages):
        if role == "assistant":
            answers += 1
        bare = [_TOLD.sub("", text) for text in texts]
        typed = [text for text in bare if text.strip() and not text.lstrip().startswith(INJECTED)]
        if role == "user" and typed:
            return (typed[-1] if only_last_block else "\n".join(typed)), answers
    return "", answers


def decide(turn: Turn) -> Reply:
    """The reply to one request."""
    if turn.forced_tool and (call := _call(turn, (turn.forced_tool.lower(),), {})):
        return Reply(calls=(call,), is_turn=False)
    prompt = turn.prompt.lower()
    wants_summary = any(mark in prompt for mark in _SUMMARY_MARKS)
    if wants_summary or (
        not turn.tools and any(mark in turn.system[:4000].lower() for mark in _SUMMARY_MARKS)
    ):
        seen = " ".join(sorted(set(SENTINEL.findall(turn.raw)))) or "none"
        return Reply(text=_summary(seen), is_turn=False)
    head = turn.system[:6000].lower() + "\n" + prompt[-12000:]
    if not turn.tools and any(mark in head for mark in _TITLE_MARKS):
        wants_json = '"json_schema"' in turn.raw or "return json" in head
        title = '{"title": "Scripted session"}' if wants_json else "Scripted session"
        title = f"<title>{title}</title>" if "<title>" in head else title
        return Reply(text=title, is_turn=False)
    echo = " ".join(dict.fromkeys(SENTINEL.findall(turn.prompt)))
    steps = steps_of(turn.prompt)
    if turn.step < len(steps):
        verb, argument = steps[turn.step]
        return _play(turn, verb, _expand(argument, turn.raw), echo)
    word = "ACK" if not steps and turn.step == 0 else "DONE"
    return Reply(text=f"{word} {echo}".strip())


def memory_directory(raw: str) -> str:
    """The memory directory that a request names, without a closing slash; empty when it names none.

    source  Claude Code 2.1.197, read 2026-11
    """
    found = _MEMORY.search(raw)
    return found.group(1) if found else ""


def _summary(seen: str) -> str:
    """Long and many-lined: some programs refuse a summary that is shorter than they expect."""
    recap = "".join(
        f"   - recap line {i:02d}: that turn was answered as its script said.\n" for i in range(40)
    )
    return (
        "<analysis>scripted</analysis>\n<summary>\n1. Primary Request and Intent: a scripted conversation.\n"
        f"2. SCRIPTED SUMMARY. Sentinels seen: {seen}\n3. Recap:\n{recap}4. Next Step: go on.\n</summary>"
    )


def _expand(argument: str, raw: str) -> str:
    return argument.replace("$MEMORY", memory_directory(raw) or "/no-memory-directory-in-the-request")


def _play(turn: Turn, verb: str, argument: str, echo: str) -> Reply:
    match verb:
        case "SAY":
            return Reply(text=argument or "said")
        case "BIG":
            size = int(argument or 1000)
            return Reply(text=("lorem scripted filler " * (size // 22 + 1))[:size])
        case "THINK":
            return Reply(thinking=f"HIDDEN-REASONING {argument}", text=f"THOUGHT {echo}".strip())
        case "SLOW":
            return Reply(text=f"SLOW-DONE {echo}".strip(), stall_s=float((argument.split() or ["5"])[0]))
        case "HOLD":
            return Reply(text=f"RELEASED {echo}".strip(), hold=(argument.split() or ["go"])[0])
        case "USAGE":
            return Reply(text=f"USED {echo}".strip(), claimed_tokens=int(argument))
        case "FAIL":
            return Reply(status=int(argument or 500))
        case "REPORT_CONTEXT":
            return Reply(text=_report(turn.raw, argument.split()))
        case "PARALLEL":
            return Reply(calls=tuple(_shell(turn, command.strip()) for command in argument.split("||")))
        case "READ_FILE":
            call = _call(turn, _READ_TOOLS, {_PATH_KEYS: argument})
            return Reply(calls=(call or _shell(turn, f"cat '{argument}'"),))
        case "WRITE_FILE":
            path, _, text = argument.partition(" ")
            body = text.replace("\\n", "\n") + "\n"
            call = _call(turn, _WRITE_TOOLS, {_PATH_KEYS: path, _TEXT_KEYS: body})
            return Reply(calls=(call or _shell(turn, f"printf '%s' '{body}' > '{path}'"),))
        case "USE_AGENT":
            return Reply(calls=(_agent(turn, argument),))
        case "CALL":
            name, _, text = argument.partition(" ")
            return Reply(calls=(Call(name, json.loads(text or "{}")),))
        case _:
            return Reply(calls=(_shell(turn, argument or "true"),))


def _report(raw: str, wanted: Sequence[str]) -> str:
    """Each wanted string with yes or no; the asking and earlier answers themselves do not count."""
    text = raw.replace("\\n", "\n").replace('\\"', '"')
    text = re.sub(r"REPORT_CONTEXT[^\n\"]*", "", text)
    text = re.sub(r"CONTEXT (?:[^\s=\"]+=(?:yes|no) ?)+", "", text)
    return "CONTEXT " + " ".join(f"{word}={'yes' if word in text else 'no'}" for word in wanted)


def _shell(turn: Turn, command: str) -> Call:
    call = _call(turn, _SHELL_TOOLS, {_COMMAND_KEYS: command})
    return call or Call("Bash", {"command": command, "description": "scripted command"})


def _agent(turn: Turn, prompt: str) -> Call:
    spawning = next((tool for tool in turn.tools if tool.name.split(".")[-1] == "spawn_agent"), None)
    if spawning is not None:
        arguments: Json = {"message": prompt}
        if '"task_name"' in turn.raw:
            arguments["task_name"] = "scripted_agent"
        return Call(spawning.name, arguments)
    tool = _pick(turn.tools, _AGENT_TOOLS) or Tool("Task")
    kind = "general" if tool.name == "task" else "general-purpose"
    return Call(tool.name, {"description": "scripted agent", "prompt": prompt, "subagent_type": kind})


def _pick(tools: Sequence[Tool], names: Sequence[str]) -> Tool | None:
    by_name = {tool.name.lower(): tool for tool in tools}
    return next((by_name[name] for name in names if name in by_name), None)


def _call(turn: Turn, names: Sequence[str], values: Mapping[tuple[str, ...], str]) -> Call | None:
    """A call of the first tool in `names` that is offered, with arguments named as in its schema."""
    tool = _pick(turn.tools, names)
    if tool is None:
        return None
    properties = tool.schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    arguments: Json = {}
    for keys, value in values.items():
        key = next((key for key in keys if key in properties), keys[0])
        is_list = _type_of(properties.get(key)) == "array"
        arguments[key] = ["bash", "-lc", value] if is_list else value
    required = tool.schema.get("required")
    for key in required if isinstance(required, list) else []:
        if key not in arguments:
            arguments[key] = _filler(_type_of(properties.get(key)))
    return Call(tool.name, arguments)


def _type_of(schema: object) -> object:
    return schema.get("type") if isinstance(schema, dict) else None


def _filler(kind: object) -> object:
    match kind:
        case "number" | "integer":
            return 5
        case "boolean":
            return False
        case "array":
            return []
        case "object":
            return {}
        case _:
            return "scripted call"
