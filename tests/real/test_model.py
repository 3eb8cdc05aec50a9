"""The scripted model by itself: what it reads from a request and how it answers in each format."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import threading
from collections.abc import Iterator

import pytest

from real.dialect_chat import CHAT
from real.dialect_messages import MESSAGES
from real.dialect_responses import RESPONSES
from real.dialects import Dialect
from real.model import Journal, Model
from real.recorded import read_log
from real.script import Json, Tool, Turn, choose_prompt, decide, memory_directory, steps_of

_SHELL: Json = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_PATHS = {"messages": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions"}
_ROLE: dict[str, str] = {"messages": "messages", "responses": "input", "chat": "messages"}


def body_of(dialect: Dialect, prompt: str, *, stream: bool = False) -> Json:
    tools: dict[str, list[Json]] = {
        "messages": [{"name": "Bash", "input_schema": _SHELL}],
        "responses": [{"type": "function", "name": "shell_command", "parameters": _SHELL}],
        "chat": [{"type": "function", "function": {"name": "bash", "parameters": _SHELL}}],
    }
    return {
        "model": "m",
        "stream": stream,
        _ROLE[dialect.name]: [{"role": "user", "content": prompt}],
        "tools": tools[dialect.name],
    }


def turn(prompt: str, step: int = 0, tools: tuple[Tool, ...] = (Tool("Bash"),), raw: str = "") -> Turn:
    return Turn(prompt, step, raw or prompt, "", tools)


class Server:
    def __init__(self) -> None:
        self.log = io.BytesIO()
        self.journal = Journal(self.log)
        self.model = Model(self.journal, port=0)

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.model.server_address[1], timeout=10)
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        return answer.status, said

    def ask(self, dialect: Dialect, prompt: str, *, stream: bool = False) -> tuple[int, str]:
        return self.post(_PATHS[dialect.name], json.dumps(body_of(dialect, prompt, stream=stream)).encode())


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.model.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.model.shutdown()
    server.model.server_close()
    thread.join()


def events(said: str) -> list[Json]:
    lines = (line.removeprefix("data: ") for line in said.split("\n") if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_steps_are_played_one_after_each_answer() -> None:
    prompt = "USE_TOOL ls -l ;; SAY all done"
    assert steps_of(prompt) == [("USE_TOOL", "ls -l"), ("SAY", "all done")]
    assert decide(turn(prompt)).calls[0].arguments == {"command": "ls -l"}
    assert decide(turn(prompt, step=1)).text == "all done"
    assert decide(turn(prompt + " SENTINEL-x", step=2)).text == "DONE SENTINEL-x"


def test_prompt_is_what_was_typed_last_not_what_a_hook_put_in() -> None:
    told = [
        ("user", ["SAY old"]),
        ("assistant", ["old"]),
        ("user", ["<system-reminder>SAY injected</system-reminder>", "USE_TOOL ls"]),
        ("assistant", []),
        ("user", ["<hook_result>SAY injected</hook_result>"]),
    ]
    assert choose_prompt(told, only_last_block=False) == ("USE_TOOL ls", 1)


def test_prompt_is_found_behind_what_a_hook_put_into_the_same_block() -> None:
    told = [("user", ['<hook_context source="SessionStart">SAY injected</hook_context>\n\nUSE_TOOL ls'])]
    assert choose_prompt(told, only_last_block=False) == ("USE_TOOL ls", 0)


def test_prompt_merged_with_an_unanswered_one_is_its_last_block() -> None:
    told = [("user", ["FAIL 500", "SAY now"])]
    assert choose_prompt(told, only_last_block=True) == ("SAY now", 0)


def test_report_does_not_count_its_own_question() -> None:
    asked = "REPORT_CONTEXT SENTINEL-a SENTINEL-b"
    said = decide(turn(asked, raw=json.dumps({"system": "SENTINEL-a", "prompt": asked}))).text
    assert said == "CONTEXT SENTINEL-a=yes SENTINEL-b=no"


def test_tool_call_is_spelled_as_the_tools_schema_spells_it() -> None:
    write = Tool("write", {"properties": {"filePath": {}, "content": {}, "mode": {}}, "required": ["mode"]})
    (call,) = decide(turn("WRITE_FILE /a/b one\\ntwo", tools=(write,))).calls
    assert call.arguments == {"filePath": "/a/b", "content": "one\ntwo\n", "mode": "scripted call"}
    listed = Tool("shell", {"properties": {"command": {"type": "array"}}})
    (call,) = decide(turn("USE_TOOL ls", tools=(listed,))).calls
    assert call.arguments == {"command": ["bash", "-lc", "ls"]}


def test_memory_directory_is_the_one_the_request_names() -> None:
    raw = "You have a persistent, file-based memory system at `/home/dev/.claude/projects/-p/memory/`. Write"
    assert memory_directory(raw) == "/home/dev/.claude/projects/-p/memory"
    (call,) = decide(turn("READ_FILE $MEMORY/n.md", tools=(Tool("Read"),), raw=raw)).calls
    assert call.arguments == {"file_path": "/home/dev/.claude/projects/-p/memory/n.md"}


def test_tool_that_the_request_demands_is_called_and_is_no_turn() -> None:
    title = Tool("session_title", {"properties": {"t": {"type": "string"}}, "required": ["t"]})
    reply = decide(Turn("USE_TOOL ls", 0, "", "", (title,), forced_tool="session_title"))
    assert [(call.tool, call.arguments) for call in reply.calls] == [
        ("session_title", {"t": "scripted call"})
    ]
    assert not reply.is_turn


def test_title_and_summary_requests_are_no_turns() -> None:
    asked = Turn("hello SENTINEL-a", 0, "SENTINEL-a", "You are a title generator.", ())
    assert decide(asked).text == "Scripted session"
    summary = decide(turn("Please create a detailed summary of the conversation", raw="SENTINEL-z"))
    assert "SENTINEL-z" in summary.text
    assert not summary.is_turn


@pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES, CHAT], ids=lambda d: str(d.name))
def test_text_and_tool_call_come_whole_and_in_a_stream(server: Server, dialect: Dialect) -> None:
    for stream in (False, True):
        status, said = server.ask(dialect, "hello SENTINEL-a", stream=stream)
        assert status == 200
        assert "ACK SENTINEL-a" in said
        status, said = server.ask(dialect, "USE_TOOL echo 'é\u2028'", stream=stream)
        assert status == 200
        parts = events(said) if stream else [json.loads(said)]
        assert '"name": "' in json.dumps(parts)
        assert "echo" in said


def test_stream_of_messages_closes_every_block_it_opens(server: Server) -> None:
    _, said = server.ask(MESSAGES, "THINK deep", stream=True)
    kinds = [event["type"] for event in events(said)]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert "HIDDEN-REASONING deep" in said


def test_held_reply_ends_with_the_text_it_promised(server: Server) -> None:
    for dialect in (MESSAGES, RESPONSES, CHAT):
        server.journal.release(dialect.name)
        _, said = server.ask(dialect, f"HOLD {dialect.name} SENTINEL-h", stream=True)
        assert "SLOW-START" in said
        assert "RELEASED SENTINEL-h" in said


def test_failure_has_its_status_and_the_next_request_is_answered(server: Server) -> None:
    assert server.ask(CHAT, "FAIL 529")[0] == 529
    assert server.ask(CHAT, "hello")[0] == 200


def test_log_has_bodies_whole_and_no_credential(server: Server) -> None:
    packed = gzip.compress(json.dumps(body_of(MESSAGES, "hello SENTINEL-g")).encode())
    server.post("/v1/messages", packed, Authorization="Bearer hush", **{"Content-Encoding": "gzip"})
    server.post("/elsewhere", b"not json")
    first, second = read_log(server.log.getvalue() + b'{"at": 1, "seq": 3, "torn')
    assert "hello SENTINEL-g" in first.text
    assert first.is_turn
    assert first.headers["authorization"] == "***"
    assert "hush" not in server.log.getvalue().decode()
    assert second.body == {"_raw": "not json"}
    assert not second.is_turn
