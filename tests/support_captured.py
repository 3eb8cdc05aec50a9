"""Captured homes of harnesses: what their `expected.json` and `MANIFEST.json` say must come of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memd.harness.model import Event
from support_imports import Reading, losses_of, readings

FIXTURES = Path(__file__).parent / "fixtures"


def scenarios(harness: str) -> list[str]:
    """Every captured home, as its path below the harness's folder."""
    folder = FIXTURES / harness
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob("expected.json"))


def expected(harness: str, scenario: str) -> dict[str, Any]:
    """Per session: `cwd`, `title`, `forked_from`, `events` and `losses`."""
    found = json.loads((FIXTURES / harness / scenario / "expected.json").read_bytes())
    sessions = found["sessions"]
    assert isinstance(sessions, dict)
    return sessions


def manifest(harness: str, scenario: str) -> dict[str, Any]:
    """What was done when it was captured, and the marks that must and must not come out of it."""
    name = scenario.split("/")[0]
    found = json.loads((FIXTURES / harness / name / "MANIFEST.json").read_bytes())
    assert isinstance(found, dict)
    return found


def imported(harness: str, scenario: str) -> list[Reading]:
    return readings(FIXTURES / harness / scenario, harness)


def described(found: list[Reading]) -> dict[str, Any]:
    """What came of a home, in the form of `expected.json`."""
    sessions: dict[str, Any] = {}
    for reading in found:
        told = [session for part in reading.parts for session in part.sessions]
        row: dict[str, Any] = {"cwd": reading.session.cwd}
        if told and told[-1].title:
            row["title"] = told[-1].title[:80]
        if reading.session.forked_from:
            row["forked_from"] = reading.session.forked_from
        row["events"] = [_shown(event) for event in reading.events]
        row["losses"] = dict(sorted(losses_of(found, reading.session.id).items()))
        sessions[reading.session.id] = row
    return sessions


def _shown(event: Event) -> list[str]:
    return [event.kind, event.role, event.content.split("\n")[0][:100]]


def all_text(found: list[Reading]) -> str:
    return "\n".join(event.content for reading in found for event in reading.events)
