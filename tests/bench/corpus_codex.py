"""Codex rollouts as the program writes them: messages twice, calls and their output, token counts.

source  codex-cli 0.142 to 0.171, rollouts read 2026-11
"""

from __future__ import annotations

import datetime
from typing import Any

from corpus_claude import line, stamp
from corpus_text import Text

WINDOW = 258_400


class Codex:
    """One rollout that is being written."""

    def __init__(self, text: Text, cwd: str, thread: str, start: datetime.datetime) -> None:
        self.text, self.random = text, text.random
        self.cwd, self.now = cwd, start
        self.lines: list[str] = []
        self.size = 0
        self._total = 0
        git = {"commit_hash": text.hex(40), "branch": "main"}
        self.put(
            "session_meta",
            {"id": thread, "timestamp": stamp(start), "cwd": cwd, "originator": "codex_cli_rs",
             "cli_version": "0.142.0", "source": "cli", "model_provider": "openai",
             "base_instructions": {"text": text.cut("prose", 14_000)}, "git": git},
        )  # fmt: skip
        self._said("developer", "input_text", text.cut("prose", 3000))
        context = f"<environment_context>\n  <cwd>{cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        self._said("user", "input_text", context)

    def put(self, kind: str, payload: dict[str, Any]) -> None:
        self.now += datetime.timedelta(milliseconds=self.random.randint(5, 12_000))
        made = line({"timestamp": stamp(self.now), "type": kind, "payload": payload})
        self.lines.append(made)
        self.size += len(made) + 1

    def _item(self, **payload: Any) -> None:
        self.put("response_item", payload)

    def _note(self, **payload: Any) -> None:
        self.put("event_msg", payload)

    def _said(self, role: str, kind: str, text: str) -> None:
        self._item(type="message", role=role, content=[{"type": kind, "text": text}])

    def turn(self) -> None:
        text = self.text
        turn = text.uuid()
        self._note(type="task_started", turn_id=turn, model_context_window=WINDOW)
        sandbox = {"type": "workspace-write", "network_access": False}
        self.put(
            "turn_context",
            {"turn_id": turn, "cwd": self.cwd, "approval_policy": "on-request",
             "sandbox_policy": sandbox, "model": "gpt-5.5-codex", "effort": "high", "summary": "auto"},
        )  # fmt: skip
        prompt = text.cut("prose", text.size(220, 1.1, 12, 30_000))
        self._said("user", "input_text", prompt)
        self._note(type="user_message", message=prompt, images=[], local_images=[], text_elements=[])
        for _ in range(max(1, int(self.random.expovariate(1 / 6)))):
            self._step()
        answer = text.cut("prose", text.size(700, 0.9, 20, 20_000))
        self._note(type="agent_message", message=answer, phase="final_answer")
        self._said("assistant", "output_text", answer)
        self._note(type="task_complete", turn_id=turn, last_agent_message=answer)
        if self.random.random() < 0.02:
            kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}]
            self.put("compacted", {"message": text.cut("prose", 6000), "replacement_history": kept})
            self._note(type="context_compacted")

    def _step(self) -> None:
        text = self.text
        if self.random.random() < 0.6:
            thought = text.cut("prose", text.size(120, 0.7, 20, 3000))
            self._note(type="agent_reasoning", text=thought)
            self._item(
                type="reasoning",
                summary=[{"type": "summary_text", "text": thought}],
                content=None,
                encrypted_content="gAAAA" + text.letters(text.size(1300, 0.6, 400, 12_000)),
            )
        call = "call_" + text.letters(24)
        if self.random.random() < 0.82:
            command = {"cmd": text.cut("code", text.size(130, 1.0, 8, 6000)), "workdir": self.cwd}
            self._item(type="function_call", name="exec_command", arguments=line(command), call_id=call)
            output = text.cut("output", text.size(1500, 1.6, 0, 120_000))
            head = f"Chunk ID: {text.hex(6)}\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"
            self._item(type="function_call_output", call_id=call, output=head + output)
        else:
            change = text.cut("code", text.size(900, 1.2, 40, 60_000))
            patch = f"*** Begin Patch\n*** Update File: src/a.py\n{change}*** End Patch"
            self._item(
                type="custom_tool_call", status="completed", call_id=call, name="apply_patch", input=patch
            )
            done = {
                "output": "Success. Updated the following files:\nM src/a.py\n",
                "metadata": {"exit_code": 0},
            }
            self._item(type="custom_tool_call_output", call_id=call, output=line(done))
        self._total += self.random.randint(1000, 90_000)
        usage = {"input_tokens": self._total, "output_tokens": 420, "total_tokens": self._total + 420}
        info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": WINDOW}
        self._note(type="token_count", info=info, rate_limits={"limit_id": "codex", "secondary": None})
