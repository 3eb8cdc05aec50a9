"""The hard cases of Codex, at the adapter's boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from support_cases import expectation, make
from support_imports import losses_of, messages_of, offers, readings
from support_order import conversation

IMPORTS = ["19-codex-fork-two-headers", "20-codex-mirrored-messages", "22-codex-huge-first-line"]


@pytest.mark.parametrize("case", IMPORTS)
@pytest.mark.parametrize("chunk", [16 << 20, 400 << 10])
def test_case_gives_exactly_its_messages(case: str, chunk: int, tmp_path: Path) -> None:
    make(case, tmp_path)
    expected = expectation(case)
    found = readings(tmp_path / "home", "codex", chunk)
    texts = [event.content for one in found for event in one.events]
    assert messages_of(found, expected["session"]) == expected["messages"]
    for text in expected.get("never", ()):
        assert not any(text in one for one in texts)
    for workdir, ids in expected.get("offers", {}).items():
        assert offers(tmp_path / "home", "codex", tmp_path / workdir) == ids


def test_19_the_later_header_changes_nothing(tmp_path: Path) -> None:
    make("19-codex-fork-two-headers", tmp_path)
    (reading,) = readings(tmp_path / "home", "codex")
    told = [session for part in reading.parts for session in part.sessions]
    assert told == [reading.session]
    assert reading.session.forked_from == "0199c0de-0000-7000-8000-00000000aaaa"
    assert reading.session.forked_at == 0  # the replay is in the file: nothing to stitch


def test_20_what_is_left_out_is_named(tmp_path: Path) -> None:
    expected = expectation("20-codex-mirrored-messages")
    make("20-codex-mirrored-messages", tmp_path)
    losses = losses_of(readings(tmp_path / "home", "codex"), expected["session"])
    assert losses == {"system-prompt": 1, "synthetic": 2, "reasoning": 1}


def test_21_cold_rollout_is_the_same_session_and_its_turns_come_once(tmp_path: Path) -> None:
    expected = expectation("21-codex-cold-rollout")
    events = []
    for step in ("1", "2", "3"):
        make("21-codex-cold-rollout", tmp_path, "--step", step)
        (reading,) = readings(tmp_path / "home", "codex")
        assert reading.session.id == expected["session"]
        assert reading.path.endswith(b".zst") == (step == "2")
        events += reading.events
    assert conversation(events) == expected["messages"]
