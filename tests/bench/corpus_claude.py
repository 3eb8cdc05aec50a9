"""Claude Code sessions as the program writes them: one record per content block, results kept twice.

source  Claude Code 2.1.197, session files read 2026-11
"""

from __future__ import annotations

import datetime
import json
from typing import Any

from corpus_text import Text

TOOLS = {
    "Bash": 40, "Read": 25, "Edit": 14, "Grep": 8, "Write": 4, "Glob": 3, "TodoWrite": 3, "Task": 2,
    "WebFetch": 1,
}  # fmt: skip
ATTACHMENTS = ("edited_text_file", "todo_reminder", "hook_additional_context", "skill_listing")


def line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def stamp(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class Claude:
    """One session file that is being written; `side` names the sub-agent whose file it is."""

    def __init__(self, text: Text, cwd: str, session: str, start: datetime.datetime, side: str = "") -> None:
        self.text, self.random = text, text.random
        self.cwd, self.session, self.now, self.side = cwd, session, start, side
        self.lines: list[str] = []
        self.size = 0
        self.parent: str | None = None
        self.prompt = ""

    def put(self, record: dict[str, Any]) -> None:
        made = line(record)
        self.lines.append(made)
        self.size += len(made) + 1

    def _chained(self, record: dict[str, Any]) -> str:
        """A record with its place in the chain and what every record says of its session."""
        name = self.text.uuid()
        self.now += datetime.timedelta(milliseconds=self.random.randint(40, 30_000))
        about: dict[str, Any] = {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.197",
            "gitBranch": "main",
        }
        if self.side:
            about["agentId"] = self.side
        head = {"parentUuid": self.parent, "isSidechain": bool(self.side)}
        self.put({**head, **record, "uuid": name, "timestamp": stamp(self.now), **about})
        self.parent = name
        return name

    def user(self, content: object, **more: Any) -> str:
        message = {"role": "user", "content": content}
        return self._chained({"promptId": self.prompt, "type": "user", "message": message, **more})

    def assistant(self, blocks: list[dict[str, Any]], stop: str) -> str:
        message_id, request = "msg_01" + self.text.letters(22), "req_011" + self.text.letters(21)
        name = ""
        for block in blocks:
            usage = {
                "input_tokens": self.random.randint(1, 9),
                "cache_creation_input_tokens": self.random.randint(0, 9000),
                "cache_read_input_tokens": self.random.randint(0, 180_000),
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 512},
                "output_tokens": self.random.randint(1, 4000),
                "service_tier": "standard",
            }
            message = {
                "model": "claude-opus-4-8",
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop if block is blocks[-1] else None,
                "stop_sequence": None,
                "usage": usage,
            }
            name = self._chained({"message": message, "requestId": request, "type": "assistant"})
        return name

    def turn(self) -> None:
        """A prompt, some steps with tools, an answer, and the bookkeeping round them."""
        text, chance = self.text, self.random.random
        self.prompt = text.uuid()
        prompt = text.cut("prose", text.size(220, 1.1, 12, 30_000))
        if not self.side and chance() < 0.6:
            self._snapshot()
        typed = {"permissionMode": "default", "promptSource": "typed"}
        if not self.side and chance() < 0.03:
            image = {"type": "base64", "media_type": "image/png", "data": text.letters(2000) * 30}
            self.user([{"type": "text", "text": prompt}, {"type": "image", "source": image}], **typed)
        else:
            self.user(prompt, **typed)
        if chance() < 0.35:
            snippet = text.cut("code", text.size(400, 1.2, 20, 40_000))
            kind = self.random.choice(ATTACHMENTS)
            attachment = {"type": kind, "filename": "src/a.py", "snippet": snippet}
            self._chained({"attachment": attachment, "type": "attachment"})
        for _ in range(max(1, int(self.random.expovariate(1 / 5)))):
            self._step()
        answer = text.cut("prose", text.size(700, 0.9, 20, 20_000))
        self.assistant([{"type": "text", "text": answer}], "end_turn")
        if not self.side:
            self._close()

    def _step(self) -> None:
        text, chance = self.text, self.random.random
        blocks: list[dict[str, Any]] = []
        if chance() < 0.5:
            thought = text.cut("prose", text.size(500, 1.0, 30, 30_000)) if chance() < 0.6 else ""
            signature = text.letters(text.size(500, 0.7, 200, 6000))
            blocks.append({"type": "thinking", "thinking": thought, "signature": signature})
        if chance() < 0.45:
            blocks.append({"type": "text", "text": text.cut("prose", text.size(260, 1.0, 10, 20_000))})
        tool = self.random.choices(list(TOOLS), weights=list(TOOLS.values()))[0]
        given, output, result = self._tool(tool)
        if chance() < 0.0006:  # now and then somebody prints a megabyte
            output = text.cut("output", self.random.randint(400_000, 1_000_000))
            result = {"stdout": output[:30_000], "stderr": "", "persistedOutputSize": len(output)}
        call = "toolu_01" + text.letters(22)
        blocks.append({"type": "tool_use", "id": call, "name": tool, "input": given})
        source = self.assistant(blocks, "tool_use")
        block = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": chance() < 0.05}
        self.user([block], toolUseResult=result, sourceToolAssistantUUID=source)

    def _tool(self, tool: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        """What a call is given, what the model sees of its result, and what the program keeps beside it."""
        text = self.text
        path = text.path(self.cwd)
        if tool == "Bash":
            command = f"cd {self.cwd} && " + text.cut("code", text.size(120, 1.0, 8, 8000))
            output = text.cut("output", text.size(700, 1.7, 0, 60_000)) or "(No output)"
            given = {"command": command, "description": text.cut("prose", 40)}
            return given, output, {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        if tool == "Read":
            body = text.cut("code", text.size(3500, 1.5, 40, 420_000))
            lines = body.split("\n")
            output = "\n".join(f"{number}\t{row}" for number, row in enumerate(lines, 1))
            file = {"filePath": path, "content": body, "numLines": len(lines), "startLine": 1}
            return {"file_path": path}, output, {"type": "text", "file": file}
        if tool in ("Edit", "Write"):
            old = text.cut("code", text.size(300, 1.0, 10, 9000))
            new = text.cut("code", text.size(420, 1.2, 10, 40_000))
            given = {"file_path": path, "old_string": old, "new_string": new}
            if tool == "Write":
                given = {"file_path": path, "content": new}
            patch = {
                "oldStart": 1,
                "oldLines": 3,
                "newStart": 1,
                "newLines": 4,
                "lines": new.split("\n")[:40],
            }
            original = text.cut("code", text.size(5000, 1.3, 100, 300_000))
            result = {"filePath": path, "oldString": old, "newString": new, "originalFile": original,
                      "structuredPatch": [patch], "userModified": False, "replaceAll": False}  # fmt: skip
            return given, f"The file {path} has been updated successfully.", result
        sought = {
            "pattern": self.random.choice(text.words),
            "path": self.cwd,
            "prompt": text.cut("prose", text.size(100, 1.0, 8, 5000)),
        }
        output = text.cut("output", text.size(600, 1.5, 20, 30_000))
        return sought, output, {"mode": "content", "numFiles": 7, "filenames": [], "content": output}

    def _snapshot(self) -> None:
        name = self.text.uuid()
        files = {
            f"src/{self.random.choice(self.text.words[100:4000])}.py": {
                "backupFileName": f"{self.text.hex(16)}@v2",
                "version": 2,
                "backupTime": stamp(self.now),
            }
            for _ in range(self.random.choice((0, 1, 3, 8, 20)))
        }
        snapshot = {"messageId": name, "trackedFileBackups": files, "timestamp": stamp(self.now)}
        self.put({"type": "file-history-snapshot", "messageId": name, "snapshot": snapshot})

    def _close(self) -> None:
        kind = self.random.random()
        if kind < 0.5:
            about = {"subtype": "turn_duration", "durationMs": self.random.randint(1000, 900_000)}
            self._chained({"type": "system", **about, "isMeta": False})
        if kind > 0.97:
            about = {"subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False}
            self._chained({"type": "system", **about, "logicalParentUuid": self.parent})
            summary = self.text.cut("prose", self.text.size(9000, 0.5, 2000, 40_000))
            self.user(
                "This session continues an earlier conversation. " + summary,
                isVisibleInTranscriptOnly=True,
                isCompactSummary=True,
            )
