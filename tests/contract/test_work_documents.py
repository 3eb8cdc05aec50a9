"""The JSON of `workstreams`, `workstream-search` and `handoff list` is a contract, on record here."""

from __future__ import annotations

import json
from pathlib import Path

from memd.ledger.store.interface import StoredEvent
from memd.ledger.store.workstreams import Handoff
from memd.service import work_view as view
from memd.service.work_view import Found, Sheet
from memd.workstream.naming import Listed

GOLDEN = Path(__file__).with_name("work_documents.v1.json")
SHEET = Sheet(is_json=True, now_ms=1_790_000_060_000)


def documents() -> dict[str, list[dict[str, object]]]:
    listed = Listed(
        workstream_id="0199a000-0000-7000-8000-00000000a001",
        name="défaut",
        created_ms=1_790_000_000_000,
        last_active_ms=1_790_000_060_000,
        current=True,
        linked_harnesses=("claude", "codex"),
    )
    event = StoredEvent(
        sequence=1,
        event_id="native:00",
        harness="codex",
        session="s1",
        kind="tool_result",
        role="tool",
        content="some words",
        occurred_at="2026-01-02T03:04:05Z",
        metadata={"tool": "shell", "is_error": False},
        at=7,
    )
    found = Found(
        event=event,
        label="historical tool result (completed evidence)",
        snippet=f"some {view.MARKS[0]}words{view.MARKS[1]}",
    )
    note = Handoff(
        id="0199a000-0000-7000-8000-00000000b001",
        workspace="default",
        project="app",
        cwd=b"/w/\xc3\xa9",
        created_ms=1_790_000_000_000,
        expires_ms=1_790_000_600_000,
        summary="go on",
        questions=("why?",),
        steps=("run it",),
        files=("a.py",),
        harness="codex",
        from_harness="claude",
        from_session="s1",
        from_run="r1",
        state="accepted",
        ended_ms=1_790_000_060_000,
        taken_harness="codex",
        taken_session="s2",
    )
    return {
        "workstreams": json.loads(view.workstreams([listed], 0, "default/app", "", SHEET)),
        "workstream-search": json.loads(view.events([found], "", SHEET)),
        "handoff list": json.loads(view.handoffs([note], "default/app", {}, SHEET)),
    }


def test_the_documents_are_the_ones_on_record() -> None:
    assert json.dumps(documents(), indent=1, ensure_ascii=False) + "\n" == GOLDEN.read_text("utf-8")


def test_the_readme_names_every_field() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    for command, rows in documents().items():
        names = ",".join(f'"{name}"' for name in rows[0])
        assert f"| `{command} --json` | an array of `{{{names}}}`" in readme
