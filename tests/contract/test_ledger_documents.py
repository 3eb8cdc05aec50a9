"""The JSON of `sessions`, `search` and `export` is a contract: names, order and types, on record here."""

from __future__ import annotations

import json
from pathlib import Path

from memd.ledger.store.interface import Hit, SessionRow, StoredEvent
from memd.service import ledger_view as view

GOLDEN = Path(__file__).with_name("ledger_documents.v1.json")


def documents() -> dict[str, object]:
    session = SessionRow(
        id="s1",
        harness="codex",
        cwd="/w/é",
        title="first words",
        started="2026-01-02T03:04:05Z",
        last_activity="2026-01-02T03:05:05Z",
        events=2,
        side_events=1,
        losses=3,
    )
    hit = Hit(
        harness="codex",
        session="s1",
        cwd="/w/é",
        sequence=1,
        event_id="native:00",
        kind="message",
        role="user",
        occurred_at="2026-01-02T03:04:05Z",
        snippet=f"some {view.MARKS[0]}words{view.MARKS[1]}",
        content="some words",
    )
    event = StoredEvent(
        sequence=1,
        event_id="native:00",
        harness="codex",
        session="s1",
        kind="tool_result",
        role="tool",
        content="ok\n",
        occurred_at="",
        metadata={"tool": "shell", "is_error": False},
        at=7,
    )
    return {
        "sessions": json.loads(view.sessions_json([session])),
        "search": json.loads(view.hits_json([hit])),
        "export": [json.loads(line) for line in view.event_lines([event]).splitlines()],
    }


def test_the_documents_are_the_ones_on_record() -> None:
    assert json.dumps(documents(), indent=1, ensure_ascii=False) + "\n" == GOLDEN.read_text("utf-8")


def test_the_readme_names_every_field() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    for rows in documents().values():
        assert isinstance(rows, list)
        assert ",".join(f'"{name}"' for name in rows[0]) in readme
