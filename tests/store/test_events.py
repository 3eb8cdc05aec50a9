"""What every engine promises of events, sessions, cursors and losses."""

from __future__ import annotations

import threading
import time

from msgspec.structs import replace

from memd.harness.model import Session, Turn
from memd.ledger.store.interface import Filter, Interrupted, SessionRow
from support_engines import Lines
from support_ledger import CWD, S1, S2, batch, entry, event_id, loss


def only(rows: list[SessionRow]) -> SessionRow:
    assert len(rows) == 1
    return rows[0]


def test_positions_are_dense_per_session(lines: Lines) -> None:
    lines.put(entry("a"), entry("b", session=S2), entry("c"))
    lines.put(entry("d", session=S2), entry("e"))
    assert list(zip(lines.sequences(), lines.texts(), strict=True)) == [(1, "a"), (2, "c"), (3, "e")]
    assert list(zip(lines.sequences(S2), lines.texts(S2), strict=True)) == [(1, "b"), (2, "d")]


def test_same_batch_twice_changes_nothing(lines: Lines) -> None:
    first = lines.put(entry("a"), entry("b"))
    again = lines.put(entry("a"), entry("b"))
    assert (first.stored, again.stored, again.duplicates) == (2, 0, 2)
    assert lines.texts() == ["a", "b"]


def test_first_version_is_kept(lines: Lines) -> None:
    lines.put(entry("first", id="x", metadata={"tool": "Bash"}))
    lines.put(entry("second", id="x", role="assistant", metadata={"tool": "Read"}))
    [kept] = lines.reader.export("claude", S1)
    assert (kept.content, kept.role, kept.metadata) == ("first", "user", {"tool": "Bash"})


def test_known_id_of_another_kind_is_refused_alone(lines: Lines) -> None:
    lines.put(entry("a"))
    said = lines.put(entry("a", kind="tool_result"), entry("b"))
    assert (said.refused, said.stored) == (1, 1)
    assert lines.texts() == ["a", "b"]
    assert [(row.what, row.count) for row in lines.reader.losses("claude", S1)] == [("conflict", 1)]


def test_known_id_of_another_kind_in_one_batch_is_refused(lines: Lines) -> None:
    said = lines.put(entry("a"), entry("a", kind="tool_call"))
    assert (said.stored, said.refused) == (1, 1)


def test_a_copied_session_shares_its_events(lines: Lines) -> None:
    lines.put(entry("a"), entry("b"))
    said = lines.put(entry("a", session=S2), entry("b", session=S2), entry("c", session=S2))
    assert (said.standing, said.stored) == (2, 1)
    assert lines.texts(S2) == ["a", "b", "c"]
    assert lines.sequences(S2) == [1, 2, 3]
    assert lines.reader.stats().events == 3


def test_side_events_keep_their_place_beside_the_main_line(lines: Lines) -> None:
    lines.put(entry("a"), entry("aside", is_side=True), entry("b"))
    assert lines.texts() == ["a", "b"]
    assert lines.sequences() == [1, 3]
    assert lines.texts(side=True) == ["a", "aside", "b"]
    row = only(lines.reader.sessions(Filter()))
    assert (row.events, row.side_events) == (2, 1)


def test_a_branch_that_is_left_changes_sides_and_back(lines: Lines) -> None:
    lines.put(entry("a", at=0), entry("b", at=10), entry("c", at=20))
    left = Turn(session=S1, first=10, last=20, is_side=True)
    lines.put(entry("d", at=30), entry("e", at=40), turns=[left, replace(left, first=40, last=40)])
    assert lines.texts() == ["a", "d"]
    assert lines.texts(side=True) == ["a", "b", "c", "d", "e"]
    row = only(lines.reader.sessions(Filter()))
    assert (row.events, row.side_events) == (2, 3)
    assert lines.problems() == []
    back = replace(left, is_side=False)
    lines.put(turns=[back, left, replace(back, first=20)])
    assert lines.texts() == ["a", "c", "d"]
    assert lines.sequences() == [1, 3, 4]
    assert lines.problems() == []
    lines.put(turns=[Turn(session="unknown", first=0, last=99, is_side=True)])
    assert [row.id for row in lines.reader.sessions(Filter())] == [S1]


def test_a_replaced_event_leaves_the_session(lines: Lines) -> None:
    lines.put(entry("a", at=0), entry("summary as a reply", at=10), entry("b", at=20))
    lines.put(entry("summary", kind="compaction", at=30, replaces=10))
    assert lines.texts() == ["a", "b", "summary"]
    assert lines.reader.search("reply", Filter()) == []
    assert only(lines.reader.sessions(Filter())).events == 3
    assert lines.problems() == []


def test_a_replaced_event_stays_where_else_it_stands(lines: Lines) -> None:
    lines.put(entry("a", at=10))
    lines.put(entry("a", at=10, session=S2))
    lines.put(entry("b", at=20, replaces=10))
    assert (lines.texts(), lines.texts(S2)) == (["b"], ["a"])
    assert lines.problems() == []


def test_an_event_replaced_in_its_own_batch_is_gone(lines: Lines) -> None:
    lines.put(entry("a", at=10), entry("b", at=20, replaces=10))
    assert lines.texts() == ["b"]
    assert lines.problems() == []


def test_cursor_moves_with_its_rows(lines: Lines) -> None:
    assert lines.writer.cursor(b"source") == b""
    lines.put(entry("a"), source=b"source", cursor=b"\x00\xff1")
    lines.put(source=b"source", cursor=b"2")
    assert lines.writer.cursor(b"source") == lines.reader.cursor(b"source") == b"2"
    lines.writer.drop_source(b"source")
    assert lines.reader.cursor(b"source") == b""
    assert lines.texts() == ["a"]


def test_losses_add_up_per_session_and_class(lines: Lines) -> None:
    lines.put(entry("a"), source=b"s", losses=[loss("reasoning", 2), loss("image")])
    lines.put(source=b"s", losses=[loss("reasoning")])
    lines.put(source=b"other", losses=[loss("reasoning", 4)])
    counted = [(row.what, row.count) for row in lines.reader.losses("claude", S1)]
    assert counted == [("image", 1), ("reasoning", 7)]
    assert only(lines.reader.sessions(Filter())).losses == 8


def test_a_source_read_again_counts_its_losses_anew(lines: Lines) -> None:
    lines.put(entry("a"), source=b"s", losses=[loss("reasoning", 2), loss("image")])
    lines.put(entry("a"), source=b"s", losses=[loss("reasoning", 3)], is_restart=True)
    assert [(row.what, row.count) for row in lines.reader.losses("claude", S1)] == [
        ("image", 0),
        ("reasoning", 3),
    ]
    assert lines.problems() == []


def test_first_cwd_stands_and_last_title(lines: Lines) -> None:
    lines.put(entry("how do I\n start?"), sessions=[Session(id=S1)])
    assert only(lines.reader.sessions(Filter())).title == "how do I start?"
    lines.put(sessions=[Session(id=S1, cwd="/one", title="t1", version="1")])
    lines.put(sessions=[Session(id=S1, cwd="/two", title="t2", started="2020-01-01T00:00:00Z")])
    row = only(lines.reader.sessions(Filter()))
    assert (row.cwd, row.title, row.version) == ("/one", "t2", "1")


def test_a_directory_learnt_late_finds_what_came_before(lines: Lines) -> None:
    lines.put(entry("early words"), sessions=[Session(id=S1)])
    lines.put(sessions=[Session(id=S1, cwd="/late")])
    assert [hit.cwd for hit in lines.reader.search("early", Filter(cwd="/late"))] == ["/late"]
    assert lines.problems() == []


def test_sessions_are_listed_newest_first_and_filtered(lines: Lines) -> None:
    lines.put(entry("a"), sessions=[Session(id=S1, cwd="/w/one")])
    lines.put(
        entry("b", session=S2, occurred_at="2026-02-04T10:00:00Z"),
        sessions=[Session(id=S2, cwd="/w/one/below")],
    )
    lines.put(entry("c", session="other"), harness="codex", sessions=[Session(id="other", cwd="/w/one2")])
    rows = lines.reader.sessions(Filter())
    assert [row.id for row in rows] == [S2, "other", S1]
    assert [row.id for row in lines.reader.sessions(Filter(cwd="/w/one/"))] == [S2, S1]
    assert [row.id for row in lines.reader.sessions(Filter(harness="codex"))] == ["other"]
    assert [row.id for row in lines.reader.sessions(Filter(since="2026-02-04"))] == [S2]
    assert [row.id for row in lines.reader.sessions(Filter(), limit=1, offset=1)] == ["other"]
    assert [row.id for row in lines.reader.find(S1)] == [S1]


def test_a_fork_is_stitched_to_its_parent(lines: Lines) -> None:
    lines.put(entry("a", at=0), entry("b", at=1), entry("only in the parent", at=2))
    lines.put(
        entry("c", session=S2, at=5),
        sessions=[Session(id=S2, cwd=CWD, forked_from=S1, forked_at=2)],
    )
    lines.put(entry("d", session=S2, at=6), entry("aside", session=S2, at=7, is_side=True))
    exported = [(event.session, event.sequence, event.content) for event in lines.reader.export("claude", S2)]
    assert exported == [(S1, 1, "a"), (S1, 2, "b"), (S2, 3, "c"), (S2, 4, "d")]
    for after in range(6):
        rest = [event.sequence for event in lines.reader.export("claude", S2, after=after)]
        assert rest == [number for number in (1, 2, 3, 4) if number > after]
    assert lines.texts(S2, side=True) == ["a", "b", "c", "d", "aside"]
    assert [hit.sequence for hit in lines.reader.search("d", Filter())] == [4]


def test_sessions_forked_in_a_circle_end(lines: Lines) -> None:
    lines.put(entry("a"), sessions=[Session(id=S1, forked_from=S2, forked_at=9)])
    lines.put(entry("b", session=S2), sessions=[Session(id=S2, forked_from=S1, forked_at=9)])
    assert lines.texts() == ["b", "a"]


def test_a_query_can_be_called_off(lines: Lines) -> None:
    for number in range(40):
        lines.put(*(entry(f"common word{number} {at}", at=at) for at in range(100)))
    raised: list[Exception] = []
    stop = threading.Event()

    def call_off() -> None:
        while not stop.is_set():
            lines.reader.interrupt()

    caller = threading.Thread(target=call_off)
    caller.start()
    try:
        until = time.monotonic() + 60  # on a busy machine it may take many queries to hit one
        while not raised and time.monotonic() < until:
            try:
                lines.reader.search("w* c*", Filter())
            except Interrupted as error:
                raised.append(error)
    finally:
        stop.set()
        caller.join()
    assert raised
    assert lines.reader.search("common", Filter(), limit=1)


def test_metadata_comes_back_with_its_types(lines: Lines) -> None:
    metadata = {"tool": "Bash", "is_error": True, "exit_code": -1, "loss_count": 3}
    lines.put(entry("a", metadata=metadata, record="r-1"))
    [event] = lines.reader.export("claude", S1)
    assert (event.metadata, event.event_id) == (metadata, event_id("a"))


def test_batches_of_two_harnesses_do_not_mix(lines: Lines) -> None:
    lines.writer.append(batch(entry("a"), harness="claude"))
    lines.writer.append(batch(entry("b"), harness="codex"))
    assert lines.texts(S1, "claude") == ["a"]
    assert lines.texts(S1, "codex") == ["b"]
    assert [row.harness for row in lines.reader.find(S1)] == ["codex", "claude"]


def test_ids_of_any_form_are_told_apart(lines: Lines) -> None:
    names = [
        "native:" + "ab" * 32,
        "native:" + "zz" * 32,
        "native:" + "ab" * 8 + "cd" * 24,
        "managed-run:1:x",
        "a",
    ]
    lines.put(*(entry(f"text {number}", id=name) for number, name in enumerate(names)))
    assert (
        lines.put(*(entry(f"again {number}", id=name) for number, name in enumerate(names))).duplicates == 5
    )
    assert [event.event_id for event in lines.reader.export("claude", S1)] == names
    assert lines.problems() == []


def test_names_that_are_odd_or_very_long_go_in_and_are_found(lines: Lines) -> None:
    """A transcript may call itself anything: nothing of it may hold up what comes after."""
    for number, name in enumerate(("s" * 9000, "ünï-çødé 東京", "with 'quotes' and \\ and %s", "a\u200bb")):
        place = "/" + "d" * 6000 + f"/{number}"
        lines.writer.append(
            batch(
                entry(f"text {number}", session=name, role="r" * 3000, record="x" * 5000),
                source=b"/" + b"p" * 5000 + b"\xff%d" % number,
                cursor=b"\x00\xff" * 100,
                losses=[loss("w" * 3000, session=name)],
                sessions=[Session(id=name, cwd=place, title="t" * 9000, version="v" * 3000)],
            )
        )
        [row] = lines.reader.find(name)
        assert (row.id, row.cwd, row.events) == (name, place, 1)
        [hit] = lines.reader.search(f"text {number}", Filter(cwd="/" + "d" * 6000, session=name))
        assert hit.session == name
        assert lines.reader.cursor(b"/" + b"p" * 5000 + b"\xff%d" % number) == b"\x00\xff" * 100
    assert lines.problems() == []


def test_texts_of_every_kind_come_back_as_they_were(lines: Lines) -> None:
    texts = [
        "",
        " ",
        "'; drop table events; --",
        "a" * 65_536,
        "x " * 30_000 + "the end",
        "\x01\x7f\u2028\ufeff\U0001f600",
        "é" * 30_000,
        "'quoted' \\ :a & !b | (c) <-> d:*",
    ]
    lines.put(*(entry(text, id=f"id-{number}", at=number) for number, text in enumerate(texts)))
    assert lines.texts() == texts
    assert [hit.content for hit in lines.reader.search('"the end"', Filter())] == [texts[4]]
    assert [hit.content for hit in lines.reader.search('"end the"', Filter())] == []
    assert lines.problems() == []
