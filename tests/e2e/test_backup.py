"""memctl backup while memd works, and memctl restore: what memctl says is the same before and after."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memctl import hook
from memd import protocol
from memd.service import backup_replace, backup_restore
from memd.service.backup_places import Roots
from support_daemon import Home, eventually
from support_terminal import Terminal


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "h").resolve(), runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def name_of(number: int) -> str:
    return str(uuid.UUID(int=number, version=4))


def talk(home: Home, number: int, lines: int = 40) -> None:
    """A session of Claude Code with a text of its own in every record."""
    folder = home.path / ".claude" / "projects" / "-home-dev-proj"
    folder.mkdir(parents=True, exist_ok=True)
    session, parent, out = name_of(number), None, []
    for at in range(lines):
        own = str(uuid.UUID(int=number * 10_000 + at + 1, version=4))
        role = "user" if at % 2 == 0 else "assistant"
        text = f"session {number} says {at}: the harbour is at port {at} " + "word " * 60
        said: Any = text if role == "user" else [{"type": "text", "text": text}]
        out.append(
            {
                "type": role,
                "uuid": own,
                "parentUuid": parent,
                "sessionId": session,
                "cwd": "/home/dev/proj",
                "version": "2.1.197",
                "timestamp": f"2026-02-03T10:{at // 60:02}:{at % 60:02}.000Z",
                "message": {"role": role, "content": said},
            }
        )
        parent = own
    made = folder / f".{session}"
    made.write_text("".join(json.dumps(line) + "\n" for line in out))
    made.rename(folder / f"{session}.jsonl")


def said(home: Home, *sessions: int) -> dict[str, str]:
    """What memctl prints of all that a backup holds."""
    commands: list[tuple[str, ...]] = [
        ("search", "harbour", "session", "--limit", "1000", "--json"),
        ("workstreams", "--json"),
        ("handoff", "list", "--json"),
        ("memory", "list", "--json"),
        *(("export", "--session", name_of(number)) for number in sessions),
    ]
    found = {}
    for words in commands:
        done = home.memctl(*words, cwd=home.path / "proj")
        assert done.returncode == 0, (words, done.stderr)
        found[" ".join(words)] = done.stdout
    return found


def prepared(home: Home) -> None:
    proj = home.path / "proj"
    (proj / ".git").mkdir(parents=True)
    for number in (1, 2, 3):
        talk(home, number)
    assert home.memctl("import", "--wait").returncode == 0
    for words in (
        ("adopt", "--session", name_of(1), "--new", "the harbour"),
        ("handoff", "create", "go on with the harbour", "--step", "measure it"),
        ("memory", "write", "Harbour", "--summary", "where it is"),
    ):
        done = home.memctl(*words, cwd=proj, stdin="at the sea\n")
        assert done.returncode == 0, (words, done.stderr)


def is_clean(home: Home) -> bool:
    done = home.memctl("ledger", "check")
    assert done.returncode == 0, done.stdout + done.stderr
    return "everything agrees" in done.stdout


def test_a_backup_made_while_an_import_runs_gives_back_what_was_there(home: Home, tmp_path: Path) -> None:
    home.start()
    prepared(home)
    for number in range(100, 160):
        talk(home, number)
    home.memctl("import")
    done = home.memctl("backup", "b.tar.zst", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(home.path / "b.tar.zst")
    assert home.memctl("import", "--wait").returncode == 0
    full = said(home, 1, 2, 3, 100, 159)

    other = Home((tmp_path / "o").resolve(), runtime=tmp_path / "run2")
    try:
        (other.path / ".claude").symlink_to(home.path / ".claude")  # the rest is read from there again
        (other.path / "proj" / ".git").mkdir(parents=True)
        restored = other.memctl("restore", str(home.path / "b.tar.zst"))
        assert restored.returncode == 0, restored.stderr
        assert "kept" not in restored.stdout
        other.start()
        assert is_clean(other)
        assert other.memctl("import", "--wait").returncode == 0
        for words in full:
            if words.startswith("export"):
                assert said_one(other, words) == full[words], words
        assert is_clean(other)
    finally:
        other.memctl("down")
        other.end_all()


def said_one(home: Home, words: str) -> str:
    done = home.memctl(*words.split(), cwd=home.path / "proj")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_restore_over_data_asks_keeps_it_and_starts_memd_again(home: Home) -> None:
    home.start()
    prepared(home)
    before = said(home, 1, 2, 3)
    assert home.memctl("backup", "b.tar.zst").returncode == 0
    mode = (home.path / "b.tar.zst").stat().st_mode & 0o777
    assert mode == 0o600
    for words in (("forget", "--session", name_of(2), "--yes"), ("handoff", "cancel")):
        assert home.memctl(*words, cwd=home.path / "proj").returncode == 0
    changed = said_one(home, "search harbour session --limit 1000 --json")
    assert changed != before["search harbour session --limit 1000 --json"]

    refused = home.memctl("restore", "b.tar.zst")
    assert refused.returncode == 77
    assert "--yes" in refused.stderr
    assert "--into" in refused.stderr
    assert said_one(home, "search harbour session --limit 1000 --json") == changed

    done = home.memctl("restore", "b.tar.zst", "--yes")
    assert done.returncode == 0, done.stderr
    assert home.memctl("status").returncode == 0  # it ran before, it runs again
    assert said(home, 1, 2, 3) == before
    assert is_clean(home)
    kept = list((home.path / ".local/share/memd").rglob("before-restore-*/ledger.sqlite3"))
    assert len(kept) == 1
    assert str(kept[0].parent) in done.stdout


def test_a_restore_that_was_cut_off_is_finished_by_the_next_start(home: Home) -> None:
    daemon = home.start()
    prepared(home)
    before = said(home, 1)
    assert home.memctl("backup", "b.tar.zst").returncode == 0
    assert home.memctl("forget", "--session", name_of(1), "--yes").returncode == 0
    home.stop(daemon)
    base = bytes(home.path)
    roots = Roots(base + b"/.local/share/memd", base + b"/.config/memd", base + b"/.local/state/memd")
    work = backup_restore.Restore(backup_restore.Backup(base + b"/b.tar.zst"), roots)
    plan = work.stage(lambda _what, _done, _total: None)
    backup_replace.begin(roots, plan)  # the power went off here
    work.close()
    assert (home.path / ".local/state/memd/restore.json").exists()
    home.start()
    assert said(home, 1) == before
    assert is_clean(home)
    assert not (home.path / ".local/state/memd/restore.json").exists()
    assert not list(home.path.rglob(".memd-restore*"))


def test_into_a_folder_is_a_memd_of_its_own(home: Home) -> None:
    home.start()
    prepared(home)
    before = said(home, 1, 2, 3)
    assert home.memctl("backup").returncode == 0
    (backup,) = home.path.glob("memd-backup-*.tar.zst")
    assert home.memctl("restore", str(backup), "--into", "look").returncode == 0
    assert home.memctl("down").returncode == 0
    there = {
        "XDG_DATA_HOME": str(home.path / "look/data"),
        "XDG_CONFIG_HOME": str(home.path / "look/config"),
        "XDG_STATE_HOME": str(home.path / "look/state"),
    }
    home.environment.update(there)
    home.start()
    place = ".local/share/memd/memory"
    assert said(home, 1, 2, 3) == {
        words: text.replace(place, "look/data/memd/memory") for words, text in before.items()
    }


def test_a_ledger_on_a_server_is_left_to_pg_dump(home: Home) -> None:
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[ledger]\nengine = "postgresql"\nconnection = "host=/nowhere"\nschema = "mine"\n')
    home.start()
    done = home.memctl("backup", "b.tar.zst")
    assert done.returncode == 77
    assert "pg_dump" in done.stderr
    assert "--schema=mine" in done.stderr
    assert not (home.path / "b.tar.zst").exists()


def test_a_file_that_is_no_backup_changes_nothing(home: Home) -> None:
    home.start()
    prepared(home)
    before = said(home, 1)
    (home.path / "text").write_text("no backup")
    done = home.memctl("restore", "text", "--yes")
    assert done.returncode == 65
    assert "another backup" in done.stderr
    assert home.memctl("restore", "missing", "--yes").returncode == 64
    assert said(home, 1) == before


def test_a_client_that_leaves_calls_its_backup_off(home: Home) -> None:
    home.start()
    prepared(home)
    target = home.path / "b.tar.zst"
    sock = hook.dial(home.socket(), 5.0)
    sock.sendall(hook.frame(b"j", protocol.encode(protocol.Backup(path=bytes(target)))))
    sock.close()
    eventually(lambda: home.memctl("backup", "second.tar.zst").returncode == 0)
    assert not list(home.path.glob(".memd-*.tmp"))


# ----------------------------------------------------------------------------- on a terminal


def on_terminal(home: Home, *words: str) -> Terminal:
    return Terminal([sys.executable, "-P", "-m", "memctl", *words], home.environment, home.path)


def test_on_a_terminal_a_restore_asks_and_does_nothing_after_a_no(home: Home) -> None:
    home.start()
    prepared(home)
    assert home.memctl("backup", "b.tar.zst").returncode == 0
    assert home.memctl("handoff", "cancel", cwd=home.path / "proj").returncode == 0
    before = said(home, 1)
    terminal = on_terminal(home, "restore", "b.tar.zst")
    try:
        shown = terminal.until("[y/N]")
        assert "moved aside" in shown
        terminal.type("n\n")
        assert terminal.wait() == 77
        assert "nothing was restored" in terminal.text()
    finally:
        terminal.close()
    assert said(home, 1) == before
    assert not list(home.path.rglob(".memd-restore*"))

    terminal = on_terminal(home, "restore", "b.tar.zst")
    try:
        terminal.until("[y/N]")
        terminal.type("\x03")  # Ctrl-C
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.text()
    finally:
        terminal.close()
    assert said(home, 1) == before

    terminal = on_terminal(home, "restore", "b.tar.zst")
    try:
        terminal.until("[y/N]")
        terminal.type("y\n")
        assert terminal.wait(60.0) == 0
        assert "what was there is in" in terminal.text()
    finally:
        terminal.close()
    assert said(home, 1) != before


def test_on_a_terminal_a_backup_ends_with_what_it_wrote(home: Home) -> None:
    home.start()
    prepared(home)
    terminal = on_terminal(home, "backup", "b.tar.zst")
    try:
        assert terminal.wait(60.0) == 0
        assert "written and checked" in terminal.text()
    finally:
        terminal.close()
