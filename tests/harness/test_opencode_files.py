"""OpenCode's storage before it had a database: the same sessions, the same events, file by file."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from memd.harness.opencode import ADAPTER
from memd.harness.opencode_rows import UNFINISHED
from memd.ledger.documents import MAX_DOCUMENT_BYTES, fingerprint, rows
from support_opencode import T0, tool
from support_rows import HERE, RowImport, fixture, trace

DATABASE = ".local/share/opencode/opencode.db"
SCENARIOS = sorted(path.name for path in (HERE / "fixtures" / "opencode").iterdir())


def write(root: Path, path: str, document: object) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=2, ensure_ascii=False), encoding="utf-8")


def storage_of(database: Path, root: Path) -> None:
    """The files that OpenCode would have migrated into this database."""
    with sqlite3.connect(database) as db:
        sessions = "select id, project_id, parent_id, directory, title, version, time_created from session"
        for name, project, parent, directory, title, version, created in db.execute(sessions):
            about = {"id": "moved", "directory": directory, "title": title, "version": version}
            about["time"] = {"created": created, "updated": created}
            if parent:
                about["parentID"] = parent
            write(root, f"session/{project}/{name}.json", about)
        for name, session, data in db.execute("select id, session_id, data from message"):
            write(root, f"message/{session}/{name}.json", {"id": name, **json.loads(data)})
        for name, message, data in db.execute("select id, message_id, data from part"):
            write(root, f"part/{message}/{name}.json", {"id": name, **json.loads(data)})
    db.close()


def imported(root: Path, name: str = "messages", step: int = 1000) -> RowImport:
    reader = RowImport(ADAPTER, root, root)
    assert ADAPTER.parse_rows and ADAPTER.gather
    for session in sorted(root.glob("session/*/*.json")):
        source = os.fsencode(session.relative_to(root))
        assert ADAPTER.identify(source, session.read_bytes(), "files") is not None
        found = list(rows(ADAPTER.gather, os.fsencode(root), source))
        for first in range(0, len(found), step):
            reader.take(ADAPTER.parse_rows(name, found[first : first + step], reader.state))
    return reader


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_files_and_database_give_the_same_events_sessions_and_losses(scenario: str, tmp_path: Path) -> None:
    database = fixture("opencode", scenario, tmp_path) / DATABASE
    by_row = RowImport(ADAPTER, database, tmp_path / "scratch")
    by_row.round()
    by_row.at_rest()
    copy = tmp_path / "copy"
    shutil.copytree(database.parent, copy)
    root = tmp_path / "storage"
    storage_of(copy / "opencode.db", root)
    before = trace(root)
    for step in (1000, 1):
        by_file = imported(root, UNFINISHED, step)
        assert by_file.events() == by_row.events()
        assert by_file.losses == by_row.losses
        assert by_file.sessions == by_row.sessions
    assert trace(root) == before


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "storage"
    write(root, "session/p/ses_1.json", {"directory": "/w", "title": "t", "time": {"created": T0}})
    write(root, "message/ses_1/msg_1.json", {"role": "user", "time": {"created": T0 + 1}})
    write(root, "part/msg_1/prt_1.json", {"type": "text", "text": "go"})
    write(root, "message/ses_1/msg_2.json", {"role": "assistant", "time": {"created": T0 + 2}})
    write(root, "part/msg_2/prt_2.json", tool("running"))
    return root


def contents(reader: RowImport) -> list[str]:
    return [event.content for event in reader.events()]


def test_a_reply_at_work_waits_here_too(root: Path) -> None:
    assert contents(imported(root)) == ["go"]
    assert contents(imported(root, UNFINISHED)) == ["go", 'bash: {"command":"make"}']
    write(
        root, "message/ses_1/msg_3.json", {"role": "assistant", "time": {"created": T0 + 3, "completed": 1}}
    )
    assert contents(imported(root)) == ["go", 'bash: {"command":"make"}']


def test_files_that_are_being_written_or_are_no_documents_are_left_alone(root: Path) -> None:
    (root / "part/msg_1/.oc-prt_9.json.77.1.tmp").write_text('{"type":"text","text":"half')
    (root / "part/msg_1/.prt_8.json").write_text('{"type":"text","text":"half')
    (root / "part/msg_1/prt_3.json").symlink_to(root / "part/msg_1/prt_1.json")
    (root / "part/msg_1/prt_4.json").mkdir()
    os.mkfifo(root / "part/msg_1/prt_5.json")
    reader = imported(root)
    assert contents(reader) == ["go"]
    assert not reader.losses


def test_a_damaged_file_costs_nothing_but_itself(root: Path) -> None:
    (root / "part/msg_1/prt_0.json").write_text('{"type":"te')
    write(root, "message/ses_1/msg_0.json", {"role": "user", "time": {"created": T0}})
    (root / "message/ses_1/msg_0.json").write_bytes(b"\0" * 40)
    write(root, "part/msg_0/prt_1.json", {"type": "text", "text": "of nobody"})
    reader = imported(root)
    assert contents(reader) == ["go"]
    assert dict(reader.losses) == {("ses_1", "malformed"): 1, ("ses_1", "role"): 1}
    (root / "session/p/ses_1.json").write_text("{")
    assert ADAPTER.identify(b"session/p/ses_1.json", b"{", "files") is None


def test_a_file_too_large_to_read_is_a_loss(root: Path) -> None:
    with (root / "part/msg_1/prt_9.json").open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)
    reader = imported(root)
    assert contents(reader) == ["go"]
    assert dict(reader.losses) == {("ses_1", "oversized"): 1}


def test_the_fingerprint_changes_with_every_file_of_the_session(root: Path) -> None:
    assert ADAPTER.gather

    def now() -> bytes:
        return fingerprint(ADAPTER.gather, os.fsencode(root), b"session/p/ses_1.json")

    seen = [now()]
    assert now() == seen[0]
    write(root, "part/msg_2/prt_2.json", tool("completed", "ok"))
    seen.append(now())
    write(root, "part/msg_2/prt_3.json", {"type": "text", "text": "done"})
    seen.append(now())
    write(
        root, "message/ses_1/msg_2.json", {"role": "assistant", "time": {"created": T0 + 2, "completed": T0}}
    )
    seen.append(now())
    (root / "part/msg_1/prt_1.json").unlink()
    seen.append(now())
    write(root, "message/ses_other/msg_9.json", {"role": "user"})
    assert now() == seen[-1]
    assert len(set(seen)) == len(seen)
