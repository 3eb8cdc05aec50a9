"""The document and the text of `memctl report`, made of what a ledger says."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ledger.store.history import Bounds, Count
from memd.service import report_view as view
from support_ledger import S1, S2
from support_report import FACTS, HOME, Weeks
from support_workstreams import WALL_MS, Clock, Lines, handoff, run

END = WALL_MS / 1000
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
UTC = datetime.UTC
DAY = 86_400


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger", Clock()) as made:
        yield made


def documented(
    lines: Lines, *, since: str = "", bounds: Bounds | None = None, **facts: Any
) -> dict[str, Any]:
    found = view.document(
        lines.reader.history(since, bounds or Bounds()),
        since=since,
        now_ms=WALL_MS,
        home=HOME.encode(),
        version="0.0",
        facts={**FACTS, **facts},
        zone=UTC,
    )
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return decoded


def told(found: dict[str, Any], *, width: int = 80, color: bool = False) -> str:
    return view.text(found, color=color, width=width, now_s=END, zone=UTC)


def test_days_are_those_of_the_clock_on_the_wall_also_where_it_stands_at_half_hours() -> None:
    kolkata = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    counts = [
        Count("2026-02-03T18:20Z", "claude", 1, 10),
        Count("2026-02-03T18:30Z", "claude", 2, 20),
        Count("2026-02-04T00:10+05:30", "pi", 4, 40),
    ]
    days, undated = view.by_day(counts, since_s=None, now_s=END, zone=kolkata)
    assert [(day["day"], day["events"], day["bytes"]) for day in days] == [
        ("2026-02-03", 1, 10),
        ("2026-02-04", 6, 60),
    ]
    assert days[1]["by_harness"] == {"claude": 2, "pi": 4}
    assert undated == 0
    assert view.offset(END, kolkata) == "+05:30"


def test_times_that_cannot_be_are_counted_apart() -> None:
    counts = [
        Count(at, "claude", 1, 1)
        for at in ("0Z", "", "1970-01-01T00:00Z", "9999-12-31T23:50Z", "2026-13-99T99:90Z")
    ]
    assert view.by_day(counts, since_s=None, now_s=END, zone=UTC) == ([], 5)
    assert view.by_day(counts, since_s=0.0, now_s=END, zone=UTC) == ([], 0)


def test_events_within_and_before_a_time_add_up(lines: Lines) -> None:
    made = Weeks(lines, end=END)
    made.say(S1, "old", begin=END - 5 * DAY, events=4)
    made.say(S2, "new", begin=END - 3600, events=3)
    found = documented(lines, since=view.page.utc(WALL_MS - DAY * 1000))
    totals = found["totals"]
    assert (totals["sessions"], totals["events"], totals["events_before"]) == (1, 3, 4)
    assert sum(day["events"] for day in found["days"]) == 3
    assert [row["title"] for row in found["sessions"]] == ["new"]


def test_what_is_left_out_is_counted(lines: Lines) -> None:
    Weeks(lines, end=END).fill(sessions=10)
    found = documented(lines, bounds=Bounds(sessions=4))
    assert (len(found["sessions"]), found["left_out"]["sessions"]) == (4, 6)
    assert found["totals"]["sessions"] == 10
    assert sum(found["totals"]["sessions_by_harness"].values()) == 10


def test_very_long_texts_are_told_by_their_beginnings(lines: Lines) -> None:
    made = Weeks(lines, end=END)
    made.say(S1, "t" * 5000, begin=END - 3600)
    row = handoff(summary="s" * 16_000, steps=("x" * 2000,) * 50, created_ms=WALL_MS - 1000)
    lines.work(lambda work: work.put_handoff(row))
    found = documented(lines)
    assert len(found["sessions"][0]["title"]) <= view.MAX_TITLE
    assert len(found["handoffs"][0]["summary"]) == view.MAX_SUMMARY
    assert [len(step) for step in found["handoffs"][0]["steps"]] == [view.MAX_ITEM] * view.MAX_ITEMS
    assert found["handoffs"][0]["summary"].endswith("…")


def test_a_run_is_told_with_the_session_it_is_on_or_was_meant_for(lines: Lines) -> None:
    lines.workstream(name="login page")
    ended = {"state": "finished", "ended_ms": WALL_MS, "exit_code": 3}
    lines.work(lambda work: work.put_run(run("a", expected=S1, cwd=b"/home/dev/\xff")))
    lines.work(lambda work: work.put_run(run("b", expected=S1, session=S2, began_ms=WALL_MS - 1, **ended)))
    rows = documented(lines)["runs"]
    assert [(row["run_id"], row["session"], row["exit_code"]) for row in rows] == [
        ("a", S1, None),
        ("b", S2, 3),
    ]
    assert rows[0]["cwd"] == "/home/dev/\\xff"
    assert rows[0]["ended_at"] is None


def test_the_text_fits_a_terminal_and_says_nothing_that_an_agent_said(lines: Lines) -> None:
    made = Weeks(lines, end=END)
    made.fill(sessions=40)
    made.work()
    text = told(documented(lines))
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in (
        "sessions     40",
        "claude",
        "~/work/storefront",
        "1 of them now",
        "1 open",
        "1 of 2 logins linked",
    ):
        assert words in text, words
    assert "checkout test" not in text
    assert "\x1b" not in text
    assert "\x1b[" in told(documented(lines), color=True)


def test_a_directory_cannot_write_on_the_terminal(lines: Lines) -> None:
    Weeks(lines, end=END).say(S1, "t", begin=END - 60, cwd="/tmp/\x1b[2Jevil\nsessions 9000")
    text = told(documented(lines))
    assert "\x1b" not in text
    assert "/tmp/evil sessions 9000\n" in text


def test_an_empty_ledger_is_said_to_be_empty(lines: Lines) -> None:
    memory = {**FACTS["memory"], "agents": []}
    text = told(documented(lines, memory=memory))
    assert "nothing is in the ledger yet" in text
    assert "no agent enrolled" in text


def test_the_small_chart_ends_today_and_is_as_wide_as_it_may_be() -> None:
    days = [
        {"day": "2026-09-01", "events": 8},
        {"day": "2026-09-20", "events": 1},
        {"day": "2026-09-21", "events": 4},
    ]
    assert view.sparks(days, END, 5, UTC) == "   ▂█  at most 4"
    assert view.sparks(days, END, 100, UTC) == "█" + " " * 18 + "▁▄  at most 8"
    assert view.sparks(days[:1], END, 5, UTC) == "nothing in the last 5 days"


def test_the_document_has_the_fields_that_the_readme_names(lines: Lines) -> None:
    (line,) = [line for line in README.splitlines() if line.startswith("| `report --json`")]
    named = re.findall(r"`([a-z_]+)`", line)
    assert {*named, "made_by", "utc_offset", "home"} == set(documented(lines))
