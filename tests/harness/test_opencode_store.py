"""OpenCode's database as it is written: rows that change in place, killed turns, forks, large parts."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memd.harness.model import MAX_EVENT_BYTES, Environment
from memd.harness.opencode import ADAPTER, AT_REST, LOOK_BACK_MS, MESSAGES
from support_opencode import T0, Store, tool
from support_rows import HERE, RowImport, build_case, trace


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home" / "opencode.db")
    store.session()
    return store


@pytest.fixture
def reader(store: Store, tmp_path: Path) -> RowImport:
    return RowImport(ADAPTER, store.path, tmp_path / "scratch")


def contents(reader: RowImport) -> list[str]:
    return [event.content for event in reader.round()]


def test_a_turn_is_imported_as_it_becomes_complete(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "build it")
    assert contents(reader) == ["build it"]
    store.message("msg_2", "assistant")
    assert contents(reader) == []
    store.part("prt_21", "msg_2", type="text", text="", time={"start": T0})
    assert contents(reader) == []
    store.part("prt_21", "msg_2", type="text", text="I will", time={"start": T0, "end": T0})
    assert contents(reader) == ["I will"]
    store.part("prt_22", "msg_2", **tool("pending"))
    store.part("prt_22", "msg_2", **tool("running"))
    assert contents(reader) == []
    store.part("prt_23", "msg_2", type="text", text="after", time={"start": T0, "end": T0})
    assert contents(reader) == []
    store.part("prt_22", "msg_2", **tool("completed", "built"))
    assert contents(reader) == ['bash: {"command":"make"}', "built", "after"]
    store.change("msg_2", completed=True)
    assert contents(reader) == []
    assert [event.content for event in reader.events()] == [
        "build it",
        "I will",
        'bash: {"command":"make"}',
        "built",
        "after",
    ]
    assert not reader.losses


def test_a_killed_reply_is_imported_when_the_session_goes_on(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "go")
    store.message("msg_2", "assistant")
    store.part("prt_21", "msg_2", **tool("running"))
    assert contents(reader) == ["go"]
    store.say("msg_3", "again")
    assert contents(reader) == ["again"]
    store.answer("msg_4", "done")
    assert contents(reader) == ['bash: {"command":"make"}', "done"]
    call = next(event for event in reader.events() if event.kind == "tool_call")
    assert call.metadata["status"] == "unfinished"
    assert [event.content for event in reader.events()] == ["go", call.content, "again", "done"]


def test_a_killed_reply_at_the_end_is_imported_when_told_that_all_is_at_rest(
    store: Store, reader: RowImport
) -> None:
    store.say("msg_1", "go")
    store.message("msg_2", "assistant")
    store.part("prt_21", "msg_2", type="text", text="half a", time={"start": T0})
    assert contents(reader) == ["go"]
    assert [event.content for event in reader.at_rest(until=store.now - 1)] == []
    assert [event.content for event in reader.at_rest(session="ses_other")] == []
    (event,) = reader.at_rest(session="ses_1")
    assert (event.content, event.metadata) == ("half a", {"status": "unfinished"})
    assert reader.at_rest() == []
    assert contents(reader) == []


def test_a_reply_that_ends_after_it_was_taken_as_unfinished_gives_its_result_once(
    store: Store, reader: RowImport
) -> None:
    store.say("msg_1", "go")
    store.message("msg_2", "assistant")
    store.part("prt_21", "msg_2", **tool("running"))
    reader.round()
    assert [event.kind for event in reader.at_rest()] == ["tool_call"]
    store.part("prt_21", "msg_2", **tool("completed", "late result"))
    store.change("msg_2", completed=True)
    assert contents(reader) == ["late result"]
    assert [event.kind for event in reader.events()] == ["message", "tool_call", "tool_result"]


def test_a_fork_of_an_old_session_is_seen(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "long ago")
    made = store.now - 1000
    assert contents(reader) == ["long ago"]
    store.tick(3 * LOOK_BACK_MS)
    store.session("ses_other")
    store.say("msg_o", "another session moves the cursor", session="ses_other")
    reader.round()
    store.session("ses_2")
    store.message("msg_f", "user", session="ses_2", at=made)
    store.part("prt_f", "msg_f", type="text", text="long ago")
    store.say("msg_g", "new on the fork", session="ses_2")
    assert contents(reader) == ["long ago", "new on the fork"]
    assert [text for _, text in reader.said("ses_2")] == ["long ago", "new on the fork"]
    assert [text for _, text in reader.said()].count("long ago") == 1


def test_a_row_that_is_committed_late_is_seen(store: Store, reader: RowImport) -> None:
    store.say("msg_2", "stamped later, committed first")
    assert contents(reader) == ["stamped later, committed first"]
    stamped = store.now - 1500
    store.db.execute("insert into message values('msg_1', 'ses_1', ?, ?, ?)", (
        stamped, stamped, json.dumps({"role": "user", "time": {"created": stamped}}),
    ))  # fmt: skip
    store.db.execute("insert into part values('prt_1', 'msg_1', 'ses_1', ?, ?, ?)", (
        stamped, stamped, json.dumps({"type": "text", "text": "stamped first, committed later"}),
    ))  # fmt: skip
    assert contents(reader) == ["stamped first, committed later"]
    assert [event.content for event in reader.events()] == [
        "stamped first, committed later",
        "stamped later, committed first",
    ]


def test_a_clock_that_was_set_back_hides_nothing(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "in the future")
    reader.round()
    store.now -= LOOK_BACK_MS // 2
    store.say("msg_2", "in the present")
    assert [event.content for event in reader.round(now=store.now)] == ["in the present"]


def test_a_large_output_is_shortened_and_a_huge_one_left_out(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "go")
    store.message("msg_2", "assistant")
    store.part("prt_21", "msg_2", **tool("completed", "A" * (3 << 20), metadata={"exit": 3}))
    huge = tool("completed", "B" * (33 << 20))
    store.part("prt_22", "msg_2", **huge)
    store.part("prt_23", "msg_2", type="text", text="done", time={"start": T0, "end": T0})
    store.change("msg_2", completed=True)
    events = reader.round()
    assert [event.content[:30] for event in events] == [
        "go", 'bash: {"command":"make"}', "A" * 30, "done",
    ]  # fmt: skip
    assert len(events[2].content) == MAX_EVENT_BYTES
    assert events[2].metadata == {
        "tool": "bash", "tool_call_id": "call_1", "status": "completed", "is_error": False, "exit_code": 3,
    }  # fmt: skip
    assert dict(reader.losses) == {("ses_1", "shortened"): 1, ("ses_1", "oversized"): 1}


@pytest.mark.parametrize("size", [0, 2 << 20])
def test_damaged_rows_cost_nothing_but_themselves(store: Store, reader: RowImport, size: int) -> None:
    store.say("msg_1", "before")
    store.answer("msg_2", "lost")
    store.db.execute("update part set data = '{\"type\":\"text\"' || ? where id = 'msg_2_p'", ("x" * size,))
    store.answer("msg_3", "role lost")
    store.db.execute("update message set data = 'torn {' where id = 'msg_3'")
    store.say("msg_4", "after")
    assert contents(reader) == ["before", "after"]
    assert sum(reader.losses.values()) == 2


def test_bytes_that_are_no_text_cost_nothing_but_themselves(store: Store, reader: RowImport) -> None:
    store.say("msg_1", "before")
    store.db.execute(
        "update part set data = cast(x'7b2274797065223a2274657874222c2274657874223a2261ff62227d' as text)"
    )
    store.say("msg_2", "after")
    assert contents(reader) == ["a\ufffdb", "after"]
    assert dict(reader.losses) == {("ses_1", "encoding"): 1}


@pytest.mark.parametrize("odd", ["'soon'", "1.5", "-7", "x'00ff'", "9e99"])
def test_times_that_are_no_times_stop_nothing(store: Store, reader: RowImport, odd: str) -> None:
    store.say("msg_1", "odd")
    store.say("msg_2", "after")
    for table, column in (("message", "time_created"), ("message", "time_updated"), ("part", "time_updated")):
        store.db.execute(f"update {table} set {column} = {odd} where id like 'msg_1%'")
    assert "after" in [event.content for event in reader.round(now=store.now)]
    assert reader.round(now=store.now) == []
    store.say("msg_3", "later")
    assert [event.content for event in reader.round(now=store.now)] == ["later"]


def test_credentials_are_never_read(store: Store, tmp_path: Path) -> None:
    """The statements run with only the three tables that may be read."""
    path = tmp_path / "other.db"
    store.say("msg_1", "hello")
    with sqlite3.connect(path) as db:
        for name, sql in store.db.execute("select name, sql from sqlite_schema where type = 'table'"):
            if name in ("session", "message", "part"):
                db.execute(sql)
    db.close()
    reader = RowImport(ADAPTER, path, tmp_path / "scratch")
    assert reader.round() == reader.at_rest() == []
    for query in (MESSAGES, AT_REST):
        assert not {"account", "credential", "control"} & set(query.sql.replace("(", " ").split())


def test_the_folder_stays_byte_for_byte_beside_a_living_writer(tmp_path: Path) -> None:
    """OpenCode in another process writes on while its store is read, and can still quit cleanly."""
    path = tmp_path / "home" / "opencode.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
    )
    assert writer.stdin and writer.stdout
    try:
        reader = RowImport(ADAPTER, path, tmp_path / "scratch")
        for n in range(5):
            assert writer.stdout.readline() == f"{n}\n"
            before = trace(path.parent)
            assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
            assert contents(reader) == [f"prompt {n}", f"reply {n}"]
            assert trace(path.parent) == before
            writer.stdin.write("\n")
            writer.stdin.flush()
        assert writer.wait() == 0
        assert set(trace(path.parent)) == {"opencode.db"}
        assert contents(reader) == []
        assert set(trace(path.parent)) == {"opencode.db"}
    finally:
        writer.kill()
        writer.communicate()


_WRITER = """
import sys
from pathlib import Path
from support_opencode import Store
store = Store(Path(sys.argv[1]))
store.session()
for n in range(5):
    store.say(f"msg_{n}_u", f"prompt {n}")
    store.answer(f"msg_{n}_v", f"reply {n}")
    print(n, flush=True)
    sys.stdin.readline()
store.db.close()
"""


def test_case_23_rows_only_in_the_log(tmp_path: Path) -> None:
    build_case("23-opencode-rows-only-in-wal", tmp_path)
    expected = json.loads((HERE / "cases/23-opencode-rows-only-in-wal/expect.json").read_text())
    folder = tmp_path / "home/.local/share/opencode"
    before = trace(folder)
    reader = RowImport(ADAPTER, folder / "opencode.db", tmp_path / "scratch")
    reader.round()
    reader.at_rest()
    assert reader.said(expected["session"]) == expected["messages"]
    assert reader.sessions[expected["session"]].cwd == str(tmp_path / expected["workdir"])
    assert trace(folder) == before


def test_case_24_times_are_milliseconds(tmp_path: Path) -> None:
    build_case("24-seconds-and-milliseconds", tmp_path)
    reader = RowImport(ADAPTER, tmp_path / "home/.local/share/opencode/opencode.db", tmp_path / "scratch")
    (event,) = reader.round()
    assert event.occurred_at == "2026-02-04T10:00:01.000Z"
    assert next(iter(reader.sessions.values())).started == "2026-02-04T10:00:00.000Z"


def test_the_store_follows_the_environment() -> None:
    home, *_ = ADAPTER.stores(Environment(home=b"/home/x\xff"))
    assert (home.root, home.database) == (b"/home/x\xff/.local/share/opencode", True)
    assert ADAPTER.stores(Environment(home=b"/h", variables={"XDG_DATA_HOME": b"/data/"}))[0].root == (
        b"/data/opencode"
    )
    named = ADAPTER.stores(Environment(home=b"/h", variables={"OPENCODE_DB": b"/d/my[1].db"}))[0]
    assert (named.root, named.patterns) == (b"/d", ("my[[]1].db",))
    files = ADAPTER.stores(Environment(home=b"/h"))[-1]
    assert (files.root, files.documents) == (b"/h/.local/share/opencode/storage", True)
    assert ADAPTER.identify(b"opencode.db", b"SQLite format 3\0...", "sqlite") is not None
    assert ADAPTER.identify(b"opencode.db", b"", "sqlite") is None
