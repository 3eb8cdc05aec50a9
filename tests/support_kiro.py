"""A Kiro store to write into, of either engine, and the generated fixtures: no file of the real program.

`python tests/support_kiro.py` writes `tests/fixtures/kiro` anew; a test sees to it that they are the same.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures" / "kiro"
CWD = "/home/dev/demo"
T0 = 1_770_000_000_000
U = "7c0d5c1e-1111-4222-8333-{:012d}"
PACKET = "<!-- memd:workstream-packet:v1 -->\n> OLD PACKET"


def dumps(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


class Second:
    """A session of the second engine: `<uuid>.json` and `<uuid>.jsonl`."""

    def __init__(self, kiro_home: Path, session: str, cwd: str, title: str = "demo") -> None:
        self.folder = kiro_home / "sessions" / "cli"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.session = session
        self.path = self.folder / f"{session}.jsonl"
        self.number = len(self.path.read_bytes().splitlines()) if self.path.exists() else 0
        about = {"session_id": session, "cwd": cwd, "title": title, "session_state": {"version": "v1"}}
        (self.folder / f"{session}.json").write_text(json.dumps(about))

    def add(self, kind: str, *parts: object, version: object = "v1", **more: Any) -> None:
        self.number += 1
        data = {"message_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.session}/{self.number}"))}
        data |= {"content": list(parts), **more}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(dumps({"version": version, "kind": kind, "data": data}))

    def raw(self, line: str) -> None:
        self.number += 1
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)

    def prompt(self, *texts: str, time: object = 0) -> None:
        parts = [{"kind": "text", "data": text} for text in texts]
        self.add("Prompt", *parts, meta={"timestamp": time or T0 + self.number * 1000})

    def reply(self, text: str, *more: object) -> None:
        self.add("AssistantMessage", {"kind": "text", "data": text}, *more)

    def result(self, call: str, *texts: str, is_error: bool = False) -> None:
        content = [{"kind": "text", "data": text} for text in texts]
        self.add("ToolResults", part("toolResult", toolUseId=call, content=content, isError=is_error))


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"kind": kind, "data": data}


class Third:
    """A session of the third engine: `sess_<uuid>/session.json` and `messages.jsonl`."""

    def __init__(self, kiro_home: Path, session: str, *cwds: str, bucket: str = "b1", **about: Any) -> None:
        self.folder = kiro_home / "sessions" / bucket / session
        self.folder.mkdir(parents=True, exist_ok=True)
        self.session = session
        self.path = self.folder / "messages.jsonl"
        self.number = len(self.path.read_bytes().splitlines()) if self.path.exists() else 0
        facts = {"schemaVersion": "1.0.0", "dataModelVersion": 1, "id": session, "workspacePaths": [*cwds]}
        (self.folder / "session.json").write_text(json.dumps({**facts, **about}))

    def add(self, kind: str, **payload: Any) -> None:
        self.number += 1
        minute, second = divmod(self.number, 60)
        when = f"2026-02-01T10:{minute:02}:{second:02}Z"
        record = {"id": str(self.number), "timestamp": payload.pop("when", when)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(dumps({**record, "payload": {"type": kind, **payload}}))

    def prompt(self, text: str, **more: Any) -> None:
        self.add("user", content=text, **more)

    def reply(self, text: str, operation: str = "Say", **more: Any) -> None:
        self.add("assistant", operationType=operation, content=text, **more)


def write_fixtures(root: Path) -> None:
    """Every scenario below `root`, each a home; the first two hold what the recipes of the formats hold."""
    _recipe_second(root / "v2-recipe" / ".kiro")
    _recipe_third(root / "v3-recipe" / ".kiro")
    _second_odd(root / "v2-odd" / ".kiro")
    _third_odd(root / "v3-odd" / ".kiro")
    for scenario, (told, hidden) in MANIFESTS.items():
        manifest = {
            "generated": "by tests/support_kiro.py from the documented format, not by Kiro",
            "cwd": CWD,
            "expect_in_ledger": told,
            "never_in_ledger": hidden,
        }
        (root / scenario / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")


MANIFESTS: dict[str, tuple[list[str], list[str]]] = {
    "v2-recipe": (["List the TODOs", "Searching.", 'grep: {"pattern":"TODO"}', "a.py:3\nb.py:9"], ["future"]),
    "v3-recipe": (
        ["Bump the version", "Bumped to 1.4.", 'fs_write: {"path":"VERSION"}', "written"],
        ["SECRET-THOUGHT"],
    ),
    "v2-odd": (
        ["ünïcødé 東京 \u2028 MARK-ODD", "MARK-TWICE", "MARK-FAILED"],
        ["OLD PACKET", "SECRET-THOUGHT"],
    ),
    "v3-odd": (["MARK-THIRD", "MARK-REFUSED"], ["OLD PACKET", "SECRET-THOUGHT", "SECRET-PRIVATE"]),
}


def _recipe_second(home: Path) -> None:
    session = Second(home, U.format(1), CWD)
    session.add(
        "Prompt",
        {"kind": "text", "data": "List the TODOs"},
        {"kind": "image", "data": "x"},
        meta={"timestamp": 1770000001000},
    )
    session.reply("Searching.", part("toolUse", toolUseId="k1", name="grep", input={"pattern": "TODO"}))
    session.result("k1", "a.py:3", "b.py:9")
    session.add("Prompt", {"kind": "text", "data": "future"}, version="v2")


def _recipe_third(home: Path) -> None:
    session = Third(home, "sess_" + U.format(2), CWD, "/elsewhere")
    session.add("session_start")
    session.prompt("Bump the version")
    session.reply("SECRET-THOUGHT", "Think")
    session.reply("Bumped to 1.4.")
    session.add("tool_call", toolCallId="x", toolName="fs_write", args={"path": "VERSION"})
    session.add("tool_result", toolCallId="x", content="written", success=True)


def _second_odd(home: Path) -> None:
    session = Second(home, U.format(3), CWD, "odd ünïcødé")
    session.prompt("ünïcødé 東京 \u2028 MARK-ODD", "and a second text", time=1770000100)
    session.prompt(PACKET)
    session.reply("one", {"kind": "thinking", "data": "SECRET-THOUGHT"})
    session.raw(dumps({"version": "v1", "kind": "Prompt", "data": {"content": [_say("MARK-TWICE")]}}) * 2)
    session.add("AssistantMessage", part("toolUse", tool_use_id="k2", tool_name="bash", args={"c": "ls"}))
    session.result("k2", "MARK-FAILED", is_error=True)
    session.add("AssistantMessage", part("toolUse", id="k3", command="whole"))
    session.add("ToolResults", part("toolResult", id="k3", output="from output"))
    session.add("ToolResults", part("toolResult", id="k3", status="only this"), _say("stray"))
    session.add("Rating", _say("no such kind"))
    session.raw(dumps({"kind": "Prompt", "data": {"content": [_say("no version")]}}))


def _say(text: str) -> dict[str, Any]:
    return {"kind": "text", "data": text}


def _third_odd(home: Path) -> None:
    session = Third(home, "sess_" + U.format(4), CWD, bucket="0f3a")
    for kind in ("session_metadata", "turn_start", "ContextualHookInvoked", "usage_summary", "turn_end"):
        session.add(kind, note="SECRET-PRIVATE")
    session.prompt("MARK-THIRD")
    session.prompt(PACKET)
    session.prompt("   ")
    session.reply("SECRET-THOUGHT", "Plan")
    session.reply("said")
    session.add("tool_call", toolCallId="y", toolName="shell", args={"command": "false"})
    session.add("tool_result", toolCallId="y", content="MARK-REFUSED", success=False)
    session.add("tool_call", toolCallId="z", args="bare")
    session.add("tool_result", toolCallId="z", content={"not": "text"})
    session.add("tool_result", toolCallId="z", content=PACKET)
    session.add("assistant", content="without an operation SECRET-THOUGHT")
    session.add("hologram", content="SECRET-PRIVATE")


def write_unseen(home: Path) -> None:
    """Stores of other versions, mirrors, and files whose metadata names something else."""
    for number, about in enumerate(({"schemaVersion": "1.0.1"}, {"dataModelVersion": 2}, {"id": "sess_x"})):
        Third(home, "sess_" + U.format(10 + number), CWD, **about).prompt("SECRET-UNSEEN")
    Third(home, "sess_" + U.format(14), CWD).folder.joinpath("session.json").unlink()
    Second(home, U.format(15), CWD).prompt("SECRET-UNSEEN")
    (home / "sessions/cli" / f"{U.format(15)}.json").write_text('{"session_id":"x","cwd":"/home/dev/demo"}')
    Second(home, U.format(16), "demo").prompt("SECRET-UNSEEN")  # its directory is not absolute
    Second(home, "notes", CWD).prompt("SECRET-UNSEEN")
    (home / "sessions/cli" / f"{U.format(15)}.history").write_text("SECRET-UNSEEN\n")


if __name__ == "__main__":
    shutil.rmtree(FIXTURES, ignore_errors=True)
    write_fixtures(FIXTURES)
