"""What every engine of the ledger promises; today there is one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.harness.model import Session, Turn
from memd.ledger.store import rows, sqlite
from memd.ledger.store.interface import Filter, Interrupted, SessionRow
from support_ledger import CWD, S1, S2, Ledger, batch, entry, event_id, loss


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        yield made


def only(rows: list[SessionRow]) -> SessionRow:
    assert len(rows) == 1
    return rows[0]


def test_positions_are_dense_per_session(ledger: Ledger) -> None:
    ledger.put(entry("a"), entry("b", session=S2), entry("c"))
    ledger.put(entry("d", session=S2), entry("e"))
    assert list(zip(ledger.sequences(), ledger.texts(), strict=True)) == [(1, "a"), (2, "c"), (3, "e")]
    assert list(zip(ledger.sequences(S2), ledger.texts(S2), strict=True)) == [(1, "b"), (2, "d")]


def test_same_batch_twice_changes_nothing(ledger: Ledger) -> None:
    first = ledger.put(entry("a"), entry("b"))
    again = ledger.put(entry("a"), entry("b"))
    assert (first.stored, again.stored, again.duplicates) == (2, 0, 2)
    assert ledger.texts() == ["a", "b"]


def test_first_version_is_kept(ledger: Ledger) -> None:
    ledger.put(entry("first", id="x", metadata={"tool": "Bash"}))
    ledger.put(entry("second", id="x", role="assistant", metadata={"tool": "Read"}))
    [kept] = ledger.reader.export("claude", S1)
    assert (kept.content, kept.role, kept.metadata) == ("first", "user", {"tool": "Bash"})


def test_known_id_of_another_kind_is_refused_alone(ledger: Ledger) -> None:
    ledger.put(entry("a"))
    said = ledger.put(entry("a", kind="tool_result"), entry("b"))
    assert (said.refused, said.stored) == (1, 1)
    assert ledger.texts() == ["a", "b"]
    assert [(row.what, row.count) for row in ledger.reader.losses("claude", S1)] == [("conflict", 1)]


def test_known_id_of_another_kind_in_one_batch_is_refused(ledger: Ledger) -> None:
    said = ledger.put(entry("a"), entry("a", kind="tool_call"))
    assert (said.stored, said.refused) == (1, 1)


def test_a_copied_session_shares_its_events(ledger: Ledger) -> None:
    ledger.put(entry("a"), entry("b"))
    said = ledger.put(entry("a", session=S2), entry("b", session=S2), entry("c", session=S2))
    assert (said.standing, said.stored) == (2, 1)
    assert ledger.texts(S2) == ["a", "b", "c"]
    assert ledger.sequences(S2) == [1, 2, 3]
    assert ledger.reader.stats().events == 3


def test_side_events_keep_their_place_beside_the_main_line(ledger: Ledger) -> None:
    ledger.put(entry("a"), entry("aside", is_side=True), entry("b"))
    assert ledger.texts() == ["a", "b"]
    assert ledger.sequences() == [1, 3]
    assert ledger.texts(side=True) == ["a", "aside", "b"]
    row = only(ledger.reader.sessions(Filter()))
    assert (row.events, row.side_events) == (2, 1)


def test_a_branch_that_is_left_changes_sides_and_back(ledger: Ledger) -> None:
    ledger.put(entry("a", at=0), entry("b", at=10), entry("c", at=20))
    left = Turn(session=S1, first=10, last=20, is_side=True)
    ledger.put(entry("d", at=30), entry("e", at=40), turns=[left, replace(left, first=40, last=40)])
    assert ledger.texts() == ["a", "d"]
    assert ledger.texts(side=True) == ["a", "b", "c", "d", "e"]
    row = only(ledger.reader.sessions(Filter()))
    assert (row.events, row.side_events) == (2, 3)
    assert ledger.problems() == []
    back = replace(left, is_side=False)
    ledger.put(turns=[back, left, replace(back, first=20)])
    assert ledger.texts() == ["a", "c", "d"]
    assert ledger.sequences() == [1, 3, 4]
    assert ledger.problems() == []
    ledger.put(turns=[Turn(session="unknown", first=0, last=99, is_side=True)])
    assert [row.id for row in ledger.reader.sessions(Filter())] == [S1]


def test_a_replaced_event_leaves_the_session(ledger: Ledger) -> None:
    ledger.put(entry("a", at=0), entry("summary as a reply", at=10), entry("b", at=20))
    ledger.put(entry("summary", kind="compaction", at=30, replaces=10))
    assert ledger.texts() == ["a", "b", "summary"]
    assert ledger.reader.search("reply", Filter()) == []
    assert only(ledger.reader.sessions(Filter())).events == 3
    assert ledger.problems() == []


def test_a_replaced_event_stays_where_else_it_stands(ledger: Ledger) -> None:
    ledger.put(entry("a", at=10))
    ledger.put(entry("a", at=10, session=S2))
    ledger.put(entry("b", at=20, replaces=10))
    assert (ledger.texts(), ledger.texts(S2)) == (["b"], ["a"])
    assert ledger.problems() == []


def test_an_event_replaced_in_its_own_batch_is_gone(ledger: Ledger) -> None:
    ledger.put(entry("a", at=10), entry("b", at=20, replaces=10))
    assert ledger.texts() == ["b"]
    assert ledger.problems() == []


def test_cursor_moves_with_its_rows(ledger: Ledger) -> None:
    assert ledger.writer.cursor(b"source") == b""
    ledger.put(entry("a"), source=b"source", cursor=b"\x00\xff1")
    ledger.put(source=b"source", cursor=b"2")
    assert ledger.writer.cursor(b"source") == ledger.reader.cursor(b"source") == b"2"
    ledger.writer.drop_source(b"source")
    assert ledger.reader.cursor(b"source") == b""
    assert ledger.texts() == ["a"]


def test_losses_add_up_per_session_and_class(ledger: Ledger) -> None:
    ledger.put(entry("a"), source=b"s", losses=[loss("reasoning", 2), loss("image")])
    ledger.put(source=b"s", losses=[loss("reasoning")])
    ledger.put(source=b"other", losses=[loss("reasoning", 4)])
    counted = [(row.what, row.count) for row in ledger.reader.losses("claude", S1)]
    assert counted == [("image", 1), ("reasoning", 7)]
    assert only(ledger.reader.sessions(Filter())).losses == 8


def test_a_source_read_again_counts_its_losses_anew(ledger: Ledger) -> None:
    ledger.put(entry("a"), source=b"s", losses=[loss("reasoning", 2), loss("image")])
    ledger.put(entry("a"), source=b"s", losses=[loss("reasoning", 3)], is_restart=True)
    assert [(row.what, row.count) for row in ledger.reader.losses("claude", S1)] == [
        ("image", 0),
        ("reasoning", 3),
    ]
    assert ledger.problems() == []


def test_first_cwd_stands_and_last_title(ledger: Ledger) -> None:
    ledger.put(entry("how do I\n start?"), sessions=[Session(id=S1)])
    assert only(ledger.reader.sessions(Filter())).title == "how do I start?"
    ledger.put(sessions=[Session(id=S1, cwd="/one", title="t1", version="1")])
    ledger.put(sessions=[Session(id=S1, cwd="/two", title="t2", started="2020-01-01T00:00:00Z")])
    row = only(ledger.reader.sessions(Filter()))
    assert (row.cwd, row.title, row.version) == ("/one", "t2", "1")


def test_a_directory_learnt_late_finds_what_came_before(ledger: Ledger) -> None:
    ledger.put(entry("early words"), sessions=[Session(id=S1)])
    ledger.put(sessions=[Session(id=S1, cwd="/late")])
    assert [hit.cwd for hit in ledger.reader.search("early", Filter(cwd="/late"))] == ["/late"]
    assert ledger.problems() == []


def test_sessions_are_listed_newest_first_and_filtered(ledger: Ledger) -> None:
    ledger.put(entry("a"), sessions=[Session(id=S1, cwd="/w/one")])
    ledger.put(
        entry("b", session=S2, occurred_at="2026-02-04T10:00:00Z"),
        sessions=[Session(id=S2, cwd="/w/one/below")],
    )
    ledger.put(entry("c", session="other"), harness="codex", sessions=[Session(id="other", cwd="/w/one2")])
    rows = ledger.reader.sessions(Filter())
    assert [row.id for row in rows] == [S2, "other", S1]
    assert [row.id for row in ledger.reader.sessions(Filter(cwd="/w/one/"))] == [S2, S1]
    assert [row.id for row in ledger.reader.sessions(Filter(harness="codex"))] == ["other"]
    assert [row.id for row in ledger.reader.sessions(Filter(since="2026-02-04"))] == [S2]
    assert [row.id for row in ledger.reader.sessions(Filter(), limit=1, offset=1)] == ["other"]
    assert [row.id for row in ledger.reader.find(S1)] == [S1]


def test_a_fork_is_stitched_to_its_parent(ledger: Ledger) -> None:
    ledger.put(entry("a", at=0), entry("b", at=1), entry("only in the parent", at=2))
    ledger.put(
        entry("c", session=S2, at=5),
        sessions=[Session(id=S2, cwd=CWD, forked_from=S1, forked_at=2)],
    )
    ledger.put(entry("d", session=S2, at=6), entry("aside", session=S2, at=7, is_side=True))
    exported = [
        (event.session, event.sequence, event.content) for event in ledger.reader.export("claude", S2)
    ]
    assert exported == [(S1, 1, "a"), (S1, 2, "b"), (S2, 3, "c"), (S2, 4, "d")]
    for after in range(6):
        rest = [event.sequence for event in ledger.reader.export("claude", S2, after=after)]
        assert rest == [number for number in (1, 2, 3, 4) if number > after]
    assert ledger.texts(S2, side=True) == ["a", "b", "c", "d", "aside"]
    assert [hit.sequence for hit in ledger.reader.search("d", Filter())] == [4]


def test_sessions_forked_in_a_circle_end(ledger: Ledger) -> None:
    ledger.put(entry("a"), sessions=[Session(id=S1, forked_from=S2, forked_at=9)])
    ledger.put(entry("b", session=S2), sessions=[Session(id=S2, forked_from=S1, forked_at=9)])
    assert ledger.texts() == ["b", "a"]


def test_everything_comes_back_after_a_restart(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"), entry("b", occurred_at="2031-01-01T00:00:00Z"), source=b"s", cursor=b"1")
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"), entry("c"), entry("d", occurred_at="2032-01-01T00:00:00Z"))
        assert ledger.texts() == ["a", "b", "c", "d"]
        assert ledger.sequences() == [1, 2, 3, 4]
        assert ledger.reader.cursor(b"s") == b"1"
        assert ledger.problems() == []


def test_files_are_private(tmp_path: Path) -> None:
    with Ledger(tmp_path / "data" / "ledger") as ledger:
        ledger.put(entry("a"))
        modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*") if path.is_file()}
        folders = {path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*") if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


def test_a_query_can_be_called_off(ledger: Ledger) -> None:
    for number in range(40):
        ledger.put(*(entry(f"common word{number} {at}", at=at) for at in range(100)))
    raised: list[Exception] = []
    stop = threading.Event()

    def call_off() -> None:
        while not stop.is_set():
            ledger.reader.interrupt()

    caller = threading.Thread(target=call_off)
    caller.start()
    try:
        for _ in range(200):
            try:
                ledger.reader.search("w* c*", Filter())
            except Interrupted as error:
                raised.append(error)
                break
    finally:
        stop.set()
        caller.join()
    assert raised
    assert ledger.reader.search("common", Filter(), limit=1)


def test_metadata_comes_back_with_its_types(ledger: Ledger) -> None:
    metadata = {"tool": "Bash", "is_error": True, "exit_code": -1, "loss_count": 3}
    ledger.put(entry("a", metadata=metadata, record="r-1"))
    [event] = ledger.reader.export("claude", S1)
    assert (event.metadata, event.event_id) == (metadata, event_id("a"))


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.tuples(st.sampled_from([S1, S2]), texts, st.booleans()), max_size=6), max_size=5))
def test_whatever_comes_segments_rows_and_index_agree(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[str, str, bool]]]
) -> None:
    root = tmp_path_factory.mktemp("ledger")
    with Ledger(root) as ledger:
        seen: dict[str, list[str]] = {S1: [], S2: []}
        for part in parts:
            ledger.put(*(entry(text, session=name, is_side=side) for name, text, side in part))
            for name, text, _side in part:
                if text not in seen[name]:
                    seen[name].append(text)
        for name, expected in seen.items():
            assert sorted(ledger.texts(name, side=True)) == sorted(expected)
            everything = list(ledger.reader.export("claude", name, side=True))
            assert [event.sequence for event in everything] == list(range(1, len(expected) + 1))
        assert ledger.problems() == []
        ledger.writer.seal_all()
        assert ledger.problems() == []


def test_batches_that_come_together_go_in_as_if_one_by_one(tmp_path: Path) -> None:
    coming = (
        batch(entry("a", at=1), entry("b", at=2), source=b"1", cursor=b"x", losses=[loss("image")]),
        batch(entry("c", at=3), harness="codex", source=b"2", cursor=b"y"),
        batch(entry("d", at=4, replaces=2), entry("a"), source=b"1", cursor=b"z", losses=[loss("image")]),
        batch(entry("b", session=S2, at=1), sessions=[Session(id=S2, cwd="/other")]),
    )
    with Ledger(tmp_path / "together") as together, Ledger(tmp_path / "apart") as apart:
        told = together.writer.append_all(coming)
        assert told == [apart.writer.append(one) for one in coming]
        assert [one.stored for one in told] == [2, 1, 1, 1]
        for ledger in (together, apart):
            assert ledger.texts() == ["a", "d"]
            assert ledger.texts(S1, "codex") == ["c"]
            assert ledger.reader.cursors() == {b"1": b"z", b"2": b"y"}
            assert [row.count for row in ledger.reader.losses("claude", S1)] == [2]
            assert [hit.session for hit in ledger.reader.search("b", Filter(cwd="/other"))] == [S2]
            assert ledger.problems() == []
            ledger.writer.seal_all()
            assert ledger.problems() == []


def test_of_batches_that_come_together_all_are_in_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = (batch(entry("b")), batch(entry("c"), harness="codex"), batch(entry("d")))
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"))
        with monkeypatch.context() as patch:
            patch.setattr(rows, "mark_segment", lambda *_args, **_more: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ledger.writer.append_all(coming)
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a"], [])
        assert [one.stored for one in ledger.writer.append_all(coming)] == [1, 1, 1]
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a", "b", "d"], ["c"])
        assert ledger.problems() == []
    with Ledger(tmp_path / "ledger") as ledger:
        assert (ledger.texts(), ledger.texts(S1, "codex")) == (["a", "b", "d"], ["c"])
        assert ledger.problems() == []


def test_batches_of_two_harnesses_do_not_mix(ledger: Ledger) -> None:
    ledger.writer.append(batch(entry("a"), harness="claude"))
    ledger.writer.append(batch(entry("b"), harness="codex"))
    assert ledger.texts(S1, "claude") == ["a"]
    assert ledger.texts(S1, "codex") == ["b"]
    assert [row.harness for row in ledger.reader.find(S1)] == ["codex", "claude"]


def test_ids_of_any_form_are_told_apart(ledger: Ledger) -> None:
    names = [
        "native:" + "ab" * 32,
        "native:" + "zz" * 32,
        "native:" + "ab" * 8 + "cd" * 24,
        "managed-run:1:x",
        "a",
    ]
    ledger.put(*(entry(f"text {number}", id=name) for number, name in enumerate(names)))
    assert (
        ledger.put(*(entry(f"again {number}", id=name) for number, name in enumerate(names))).duplicates == 5
    )
    assert [event.event_id for event in ledger.reader.export("claude", S1)] == names
    assert ledger.problems() == []


def test_an_idle_ledger_is_merged_and_gives_pages_back(ledger: Ledger) -> None:
    for part in range(40):
        ledger.put(*(entry(f"{part} {at} {part * at} word{at}" * 9, at=at) for at in range(150)))
    ledger.writer.rest()
    assert len(ledger.reader.search("word7", Filter(), limit=100)) == 40
    assert ledger.problems() == []
    connection = apsw.Connection(str(ledger.root / "ledger.sqlite3"))
    free = connection.pragma("freelist_count")
    pieces = connection.execute("select count(distinct segid) from event_text_idx").get
    connection.close()
    assert free < sqlite.MAX_FREE_PAGES
    assert pieces < 8
