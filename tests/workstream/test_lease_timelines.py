"""Leases told as timelines, on a real store, without evidence of processes: only the clock counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.ledger.store.workstreams import Process, RunGone
from memd.workstream import closing, opening
from memd.workstream.lease import Busy, unseen
from memd.workstream.opening import Ask
from support_cases import CASES, make
from support_ledger import entry
from support_workstreams import CWD, PLACE, Clock, Lines


def timelines() -> dict[str, Any]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        make("31-lease-timelines", Path(folder))
        found = json.loads((Path(folder) / "timelines.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


class Play:
    """One ledger, some clients; every client knows the last run it was given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.began_ms = self.clock.ms
        self.lines = Lines(root, self.clock)
        self.runs: dict[str, str] = {}
        self.count = 0
        self.texts: list[str] = []

    def go_to(self, second: float) -> None:
        self.clock.go(second - (self.clock.ms - self.began_ms) / 1000)

    def do(self, who: str, operation: str) -> str:
        try:
            getattr(self, operation.replace("-", "_"))(who)
        except Busy:
            return "conflict"
        except RunGone:
            return "gone"
        return "ok"

    def prepare(self, who: str) -> None:
        self.count += 1
        ask = Ask(place=PLACE, cwd=CWD, harness="claude", launcher=Process(ord(who)))
        made = self.lines.work(lambda work: opening.prepare(work, ask, "w1", f"run-{self.count}", unseen))
        self.runs[who] = made.run.id
        self.lines.work(lambda work: opening.start(work, made.run.id, None))

    def beat(self, who: str) -> None:
        self.lines.work(lambda work: opening.beat(work, self.runs[who]))

    lost_beat = beat

    def finish(self, who: str) -> None:
        self.lines.work(lambda work: closing.close(work, self.runs[who], is_imported=True))

    def cancel(self, who: str) -> None:
        self.lines.work(lambda work: opening.cancel(work, self.runs[who]))

    def append(self, who: str) -> None:
        text = f"{who} {self.clock.ms}"
        self.lines.say(self.runs[who], entry(text))
        self.texts.append(text)

    def restart(self, _who: str) -> None:
        self.lines.close()
        self.lines = Lines(self.root, self.clock)


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    made = Play(tmp_path / "ledger")
    yield made
    made.lines.close()


@pytest.mark.parametrize("name", sorted(timelines()))
def test_every_answer_is_as_told(name: str, play: Play) -> None:
    for second, who, operation, answer in timelines()[name]:
        play.go_to(second)
        # a daemon that sets its clock must not free a lease early
        play.clock.wall_ms += 86_400_000 if second % 2 else -86_400_000
        assert (second, who, operation, play.do(who, operation)) == (second, who, operation, answer)
        assert len(play.lines.reader.workstreams.active_runs()) <= 1
    assert play.lines.texts() == play.texts
    assert play.lines.problems() == []


def test_a_reboot_voids_the_lease_and_its_run_is_gone(play: Play) -> None:
    assert play.do("A", "prepare") == "ok"
    play.clock.boot = "boot-2"
    play.clock.ms = 5_000
    assert play.do("A", "beat") == "gone"
    assert play.do("B", "prepare") == "ok"
    assert play.do("A", "append") == "gone"


def test_the_case_is_the_one_that_the_project_keeps() -> None:
    assert json.loads((CASES / "31-lease-timelines" / "expect.json").read_text())["lease_seconds"] == 90
