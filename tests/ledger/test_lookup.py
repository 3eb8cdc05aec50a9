"""Whether a session is still in its harness's store: three answers, never two."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memd.harness import registry
from memd.harness.model import Environment
from memd.ledger.lookup import Look, look_for
from support_adapters import FIXTURES
from support_opencode import Store as Database

GONE = "ffffffff-0000-4000-8000-000000000000"


def ask(home: Path, harness: str, session: str) -> Look:
    adapter = registry.resolve(harness)
    stores = adapter.stores(Environment(home=os.fsencode(home)))
    return look_for(adapter, stores, session, os.fsencode(home / "scratch"))


def sessions(harness: str) -> list[tuple[str, str]]:
    """Scenario and session of every captured file that has a session of its own."""
    adapter = registry.resolve(harness)
    found = []
    for scenario in sorted((FIXTURES / harness).iterdir()):
        for store in adapter.stores(Environment(home=os.fsencode(scenario))):
            for path in sorted(Path(os.fsdecode(store.root)).rglob("*.jsonl")):
                rel = os.fsencode(path.relative_to(os.fsdecode(store.root)))
                head = path.read_bytes()
                if beside := adapter.beside(rel):
                    about = Path(os.fsdecode(store.root + b"/" + beside))
                    head = about.read_bytes() if about.is_file() else b""
                session = adapter.identify(rel, head, store.flavor) if head else None
                if session is not None and not session.is_side:
                    found.append((scenario.name, session.id))
    return found


@pytest.mark.parametrize("harness", ["claude", "codex", "pi", "omp", "kimi", "command-code", "grok", "kiro"])
def test_every_captured_session_is_found_where_it_was_begun(harness: str) -> None:
    found = sessions(harness)
    assert found
    for scenario, session in found:
        look = ask(FIXTURES / harness / scenario, harness, session)
        assert look.outcome == "present", (scenario, session)
        assert look.cwd.startswith("/")
        assert session.encode() in look.path
        assert ask(FIXTURES / harness / scenario, harness, GONE).outcome == "absent"


def test_without_a_store_a_session_is_absent(tmp_path: Path) -> None:
    for name in registry.adapters():
        assert ask(tmp_path, name, GONE).outcome == "absent"


def claude(home: Path) -> tuple[Path, str]:
    """A home with one session of Claude, and the session's file."""
    shutil.copytree(FIXTURES / "claude" / "simple", home, dirs_exist_ok=True)
    [(_, session)] = [one for one in sessions("claude") if one[0] == "simple"]
    [path] = home.rglob(f"{session}.jsonl")
    return path, session


def test_what_a_swept_session_leaves_behind_is_not_the_session(tmp_path: Path) -> None:
    path, session = claude(tmp_path)
    path.unlink()
    beside = path.parent / session / "tool-results"
    beside.mkdir(parents=True)
    (beside / "1.txt").write_text(session)
    (path.parent / "sessions-index.json").write_text(f'[{{"sessionId": "{session}"}}]')
    (path.parent / f"{GONE}.jsonl").write_text(f'{{"sessionId": "{session}", "cwd": "/w"}}\n')
    assert ask(tmp_path, "claude", session).outcome == "absent"


def test_an_empty_transcript_holds_no_session(tmp_path: Path) -> None:
    path, session = claude(tmp_path)
    path.write_bytes(b"")
    assert ask(tmp_path, "claude", session).outcome == "absent"


def test_a_side_conversation_is_nothing_to_resume(tmp_path: Path) -> None:
    path, session = claude(tmp_path)
    side = path.parent / session / "subagents"
    side.mkdir(parents=True, exist_ok=True)
    path.rename(side / f"agent-{session}.jsonl")
    assert ask(tmp_path, "claude", session).outcome == "absent"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_does_not_say_that_the_session_is_gone(tmp_path: Path) -> None:
    path, session = claude(tmp_path)
    path.parent.chmod(0)
    try:
        look = ask(tmp_path, "claude", session)
    finally:
        path.parent.chmod(0o700)
    assert look.outcome == "unknown"
    assert "cannot be read" in look.reason


def test_a_store_that_is_not_a_folder_is_absent_and_one_that_denies_reading_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = claude(tmp_path)

    def denied(folder: bytes) -> list[object]:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", denied)
    assert ask(tmp_path, "claude", session).outcome == "unknown"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_that_memd_does_not_follow_leaves_it_open(tmp_path: Path, what: str) -> None:
    path, session = claude(tmp_path)
    link = path if what == "file" else path.parent
    link.rename(tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "elsewhere")
    look = ask(tmp_path, "claude", session)
    assert (look.outcome, "is a link" in look.reason) == ("unknown", True)
    assert ask(tmp_path, "claude", GONE).outcome == "absent"


def test_a_linked_memory_folder_makes_nothing_doubtful(tmp_path: Path) -> None:
    path, _ = claude(tmp_path)
    (tmp_path / "owned").mkdir()
    (tmp_path / "owned" / f"{GONE}.md").write_text("a note")
    shutil.rmtree(path.parent / "memory")
    (path.parent / "memory").symlink_to(tmp_path / "owned")
    assert ask(tmp_path, "claude", GONE).outcome == "absent"


def test_a_store_behind_a_linked_root_is_looked_into(tmp_path: Path) -> None:
    path, session = claude(tmp_path)
    root = path.parent.parent
    root.rename(tmp_path / "shared")
    root.symlink_to(tmp_path / "shared")
    assert ask(tmp_path, "claude", session).outcome == "present"


def opencode(home: Path) -> Path:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    return folder / "opencode.db"


def test_a_database_is_asked_for_the_session(tmp_path: Path) -> None:
    path = opencode(tmp_path)
    database = Database(path)
    database.session()
    try:
        look = ask(tmp_path, "opencode", "ses_1")
        assert (look.outcome, look.path) == ("present", os.fsencode(path))
        assert ask(tmp_path, "opencode", "ses_2").outcome == "absent"
        assert ask(tmp_path, "opencode", "' or '1'='1").outcome == "absent"
    finally:
        database.db.close()


def test_a_database_of_another_shape_says_nothing(tmp_path: Path) -> None:
    path = opencode(tmp_path)
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    look = ask(tmp_path, "opencode", "ses_1")
    assert look.outcome == "unknown"
    assert look.reason
