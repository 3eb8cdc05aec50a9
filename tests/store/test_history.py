"""What every engine tells of a stretch of time."""

from __future__ import annotations

from memd.harness.model import Loss, Session
from memd.ledger.store.history import Bounds
from memd.ledger.store.workstreams import UNRESOLVED
from support_engines import Lines
from support_ledger import CWD, S1, S2, batch, entry
from support_workstreams import WALL_MS, handoff, run

SIDE = "33333333-0000-4000-8000-000000000003"


def put(lines: Lines, session: str, *times: str, harness: str = "claude", **facts: object) -> None:
    said = [
        entry(f"{harness} {session} {number}", session=session, at=number, occurred_at=when)
        for number, when in enumerate(times)
    ]
    lines.writer.append(
        batch(*said, harness=harness, sessions=[Session(id=session, **{"cwd": CWD, **facts})])  # type: ignore[arg-type]
    )


def test_an_empty_ledger_has_an_empty_history(lines: Lines) -> None:
    found = lines.reader.history()
    assert (found.sessions, found.session_count, found.counts, found.event_count) == ([], 0, [], 0)
    assert (found.runs, found.handoffs, found.workstreams) == ([], [], {})


def test_events_are_counted_by_ten_minutes_and_harness_once_however_many_copies(lines: Lines) -> None:
    put(lines, S1, "2026-02-03T10:00:01.000Z", "2026-02-03T10:09:59Z", "2026-02-03T10:10:00Z", "")
    put(lines, S2, "2026-02-03T10:05:00+02:00", harness="command-code")
    copy = entry(f"claude {S1} 0", session=S2, occurred_at="2026-02-03T10:00:01.000Z")
    lines.writer.append(batch(copy))
    found = lines.reader.history()
    counts = {(one.at, one.harness): one.events for one in found.counts}
    assert counts == {
        ("2026-02-03T10:00Z", "claude"): 2,
        ("2026-02-03T10:10Z", "claude"): 1,
        ("0Z", "claude"): 1,
        ("2026-02-03T10:00+02:00", "command-code"): 1,
    }
    assert found.event_count == 5
    text = sum(len(f"claude {S1} {number}") for number in range(4)) + len(f"command-code {S2} 0")
    assert sum(one.bytes for one in found.counts) == text


def test_text_is_counted_in_bytes(lines: Lines) -> None:
    lines.put(entry("größer\n" * 20_000))
    (count,) = lines.reader.history().counts
    assert count.bytes == len(lines.texts()[0].encode()) > 60_000


def test_side_conversations_are_counted_at_the_session_that_began_them(lines: Lines) -> None:
    put(lines, S1, "2026-02-03T10:00:00Z")
    put(lines, SIDE, "2026-02-03T10:01:00Z", is_side=True, parent=S1)
    found = lines.reader.history()
    assert [row.id for row in found.sessions] == [S1]
    assert (found.session_count, found.side_count, found.sides) == (1, 1, {("claude", S1): 1})


def test_a_moment_leaves_out_what_was_over_before_it(lines: Lines) -> None:
    put(lines, S1, "2026-02-01T10:00:00Z")
    put(lines, S2, "2026-02-01T10:00:00Z", "2026-02-03T12:00:00+02:00", harness="codex")
    found = lines.reader.history("2026-02-03T10:00:00Z")
    assert [(row.harness, row.id) for row in found.sessions] == [("codex", S2)]
    assert (found.session_count, found.harnesses, found.event_count) == (1, {"codex": 1}, 3)
    assert [one.at for one in found.counts] == ["2026-02-03T12:00+02:00"]
    assert lines.reader.history("2026-02-03T10:00:01Z").sessions == []


def test_the_newest_are_shown_and_all_are_counted(lines: Lines) -> None:
    lines.workstream()
    for number in range(1, 6):
        put(lines, f"{S1[:-1]}{number}", f"2026-02-0{number}T10:00:00Z")
        over = {"state": "finished", "began_ms": WALL_MS + number, "ended_ms": WALL_MS + number}
        lines.work(lambda work, number=number, over=over: work.put_run(run(f"run-{number}", **over)))
        lines.work(
            lambda work, number=number: work.put_handoff(
                handoff(f"h{number}", created_ms=WALL_MS + number, state="cancelled")
            )
        )
    found = lines.reader.history("", Bounds(sessions=2, runs=3, handoffs=1))
    assert [row.id[-1] for row in found.sessions] == ["5", "4"]
    assert [one.id for one in found.runs] == ["run-5", "run-4", "run-3"]
    assert [one.id for one in found.handoffs] == ["h5"]
    assert (found.session_count, found.run_count, found.handoff_count) == (5, 5, 5)


def test_runs_that_ended_or_go_on_since_then_are_told_with_their_workstream(lines: Lines) -> None:
    lines.workstream(name="login page")
    lines.workstream("w2")
    day = 86_400_000
    for row in (
        run("old", state="finished", ended_ms=WALL_MS - 2 * day),
        run("new", state="expired", ended_ms=WALL_MS),
        run("none", state="cancelled", ended_ms=WALL_MS),
        run("version", state="finished", ended_ms=WALL_MS, is_passing=True),
        run("now", workstream="w2", began_ms=WALL_MS - 3 * day),
    ):
        lines.work(lambda work, row=row: work.put_run(row))
    since = "2026-09-21T00:00:00Z"  # WALL_MS is on that day
    found = lines.reader.history(since)
    assert [(one.id, one.workstream) for one in found.runs] == [("new", "w1"), ("now", "w2")]
    assert {id: row.name for id, row in found.workstreams.items()} == {"w1": "login page", "w2": "w2"}
    assert found.run_count == 2
    assert lines.reader.history().run_count == 3


def test_an_open_handoff_is_told_however_old_it_is(lines: Lines) -> None:
    lines.workstream()
    lines.work(lambda work: work.put_handoff(handoff("h1", workstream="w1")))
    found = lines.reader.history("2027-01-01T00:00:00Z")
    assert [(one.id, one.cwd) for one in found.handoffs] == [("h1", b"/home/dev/proj")]
    assert list(found.workstreams) == ["w1"]


def test_the_workstreams_of_a_shown_session_are_named(lines: Lines) -> None:
    lines.workstream()
    lines.workstream("w2")
    put(lines, S1, "2026-02-03T10:00:00Z")
    lines.link(S1)
    lines.link(S1, workstream="w2")
    lines.link(S2)
    found = lines.reader.history()
    assert found.links == {("claude", S1): ["w1", "w2"]}
    assert set(found.workstreams) == {"w1", "w2"}


def test_a_session_of_losses_alone_is_one_and_what_memd_says_of_a_run_is_none(lines: Lines) -> None:
    lines.writer.append(
        batch(
            sessions=[Session(id=S1, cwd=CWD)],
            losses=[Loss(session=S1, what="images", sentence="an image", count=3)],
        )
    )
    put(lines, f"{UNRESOLVED}run-1", "2026-02-03T10:00:00Z")
    found = lines.reader.history()
    assert [(row.id, row.losses) for row in found.sessions] == [(S1, 3)]
