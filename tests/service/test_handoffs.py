"""Handoffs as they are asked for over the socket: written scrubbed, shown framed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd.errors import NotFound, Refused, UsageError
from memd.service.handoffs import Handoffs
from memd.workstream.handoff import Note, Receiver
from support_fake_ledger import FakeRecords
from support_ledger import holding
from support_workstreams import CWD, Lines

SECRET = "ghp_" + "a1B2" * 9
CODEX = Receiver(harness="codex", cwd=CWD, session="c1")


def note(summary: str = "the port stays 8123", **more: object) -> Note:
    fields: dict[str, object] = {"workspace": "default", "project": "proj", "cwd": CWD, "summary": summary}
    return Note(**{**fields, **more})  # type: ignore[arg-type]


async def test_from_create_to_accept(tmp_path: Path) -> None:
    with Lines(tmp_path / "ledger") as lines:
        handoffs = Handoffs(FakeRecords(lines), wall_ms=lambda: lines.clock.wall_ms)
        made, before = await handoffs.create(note())
        assert before is None
        [listed] = await handoffs.listing("default", "proj")
        assert listed == made
        row, text = await handoffs.show(made.id)
        assert row.state == "open"
        assert "the port stays 8123" in text
        assert "consumed" not in text
        row, text = await handoffs.accept(made.id, CODEX)
        assert (row.state, row.taken_session) == ("accepted", "c1")
        assert "consumed" in text
        with pytest.raises(Refused):
            await handoffs.cancel(made.id)
        await handoffs.give_back("default", "proj", CODEX)
        assert (await handoffs.cancel(made.id)).state == "cancelled"
        newer, _ = await handoffs.create(note("the next one"))
        assert [one.id for one in await handoffs.listing("default", "proj")] == [newer.id, made.id]
        with pytest.raises(NotFound):
            await handoffs.show("none")
        with pytest.raises(UsageError):
            await handoffs.create(note(" "))


async def test_secrets_in_it_never_reach_the_disk(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Lines(root) as lines:
        handoffs = Handoffs(FakeRecords(lines), wall_ms=lambda: 0)
        made, _ = await handoffs.create(
            note(f"use {SECRET}", questions=[SECRET], steps=[f"export X={SECRET}"], files=[f"/w/{SECRET}"])
        )
        assert "REDACTED" in made.summary
    assert holding(root, [SECRET.encode()]) == []
