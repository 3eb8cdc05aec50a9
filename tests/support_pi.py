"""Session files of Pi and OMP: captured ones, and ones made by hand."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memd.harness.model import Adapter, Event, Parsed
from memd.harness.pi import ADAPTER
from support_order import arrange

FIXTURES = Path(__file__).parent / "fixtures"
SESSION = "01a22ddc-c080-775b-9f4a-4e538d4468b8"


class Tree:
    """A session as it is written: each entry follows the leaf unless it names another parent."""

    def __init__(self, session: str = SESSION, **header: Any) -> None:
        self.data = b""
        self.count = 0
        self.leaf: str | None = None
        self.raw(
            {"type": "session", "version": 3, "id": session, "timestamp": self._time(), "cwd": "/w", **header}
        )

    def _time(self) -> str:
        moment = datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=self.count)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def raw(self, record: object) -> None:
        text = (
            "" if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        )
        self.data += (record if isinstance(record, bytes) else text.encode()) + b"\n"

    def entry(self, kind: str, *, parent: Any = ..., **fields: Any) -> str:
        self.count += 1
        name = f"{0xA0000000 + self.count:08x}"
        before = self.leaf if parent is ... else parent
        self.raw({"type": kind, "id": name, "parentId": before, "timestamp": self._time(), **fields})
        self.leaf = name
        return name

    def message(self, role: str, content: object = "", *, parent: Any = ..., **fields: Any) -> str:
        message = {"role": role, "content": content, "timestamp": 1_796_000_000_000 + self.count, **fields}
        return self.entry("message", parent=parent, message=message)

    def say(self, text: str, *, parent: Any = ...) -> str:
        return self.message("user", [{"type": "text", "text": text}], parent=parent)

    def answer(self, text: str, *, parent: Any = ..., **fields: Any) -> str:
        return self.message("assistant", [{"type": "text", "text": text}], parent=parent, **fields)


def parse(
    data: bytes, *, cuts: Iterable[int] = (), adapter: Adapter = ADAPTER, path: str = ""
) -> list[Parsed]:
    """The file in as many chunks as there are cuts, and one more; what a chunk left is read with the next."""
    name = os.fsencode(path or f"--w--/2026-11-30T00-00-00-000Z_{SESSION}.jsonl")
    session = adapter.identify(name, data, "")
    state = adapter.begin(session, "") if session else b""
    assert adapter.parse is not None
    at, parts = 0, []
    for end in (*sorted(cuts), len(data)):
        parsed = adapter.parse(data[at:end], at, state)
        assert 0 <= parsed.consumed <= max(0, end - at)
        at += parsed.consumed
        assert parsed.consumed == 0 or data[at - 1 : at] == b"\n"
        state = parsed.state
        parts.append(parsed)
    return parts


def cuts(data: bytes, seed: int, count: int = 12) -> list[int]:
    return [random.Random(seed * 100 + n).randrange(len(data) + 1) for n in range(count)]


def told(parts: Iterable[Parsed]) -> list[list[str]]:
    """The main line as `[kind or role, text]`."""
    return [
        [event.role if event.kind == "message" else event.kind, event.content]
        for event in arrange(parts)
        if not event.is_side
    ]


def beside(parts: Iterable[Parsed]) -> list[str]:
    return [event.content for event in arrange(parts) if event.is_side]


def lost(parts: Iterable[Parsed]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for part in parts:
        for loss in part.losses:
            counts[loss.what] += loss.count
    return dict(counts)


def sources(harness: str, scenario: str) -> list[Path]:
    return sorted((FIXTURES / harness / scenario).glob(f".{harness}/agent/sessions/**/*.jsonl"))


def scenarios(harness: str) -> list[str]:
    return sorted(path.name for path in (FIXTURES / harness).iterdir())


def manifest(harness: str, scenario: str) -> dict[str, Any]:
    found = json.loads((FIXTURES / harness / scenario / "MANIFEST.json").read_bytes())
    assert isinstance(found, dict)
    return found


def imported(adapter: Adapter, scenario: str) -> dict[str, list[Event]]:
    """The events of every session of a captured home, by session."""
    found = {}
    for path in sources(adapter.name, scenario):
        data = path.read_bytes()
        parts = parse(data, adapter=adapter, path="/".join(path.parts[-2:]))
        found[parts[0].sessions[0].id] = arrange(parts)
    return found
