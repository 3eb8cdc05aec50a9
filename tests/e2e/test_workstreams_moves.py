"""What moves: sessions into another login or checkout, projects to another name, as people type it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home
from support_git import checkout

SESSION = "2a8d3c1e-0000-4000-8000-000000000001"

PROGRAM = """#!/bin/sh
case "$1" in --help|--version) echo claude; exit 0;; esac
printf '%s\\n' "$CLAUDE_CONFIG_DIR" "$@" > "$HOME/launched"
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(PROGRAM)
    (programs / "claude").chmod(0o755)
    made.environment["PATH"] = f"{programs}{os.pathsep}{made.environment['PATH']}"
    yield made
    made.memctl("down")
    made.end_all()


def record(number: int, cwd: Path, text: str) -> str:
    return json.dumps(
        {
            "type": "user",
            "message": {"role": "user", "content": text},
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "parentUuid": None,
            "sessionId": SESSION,
            "cwd": str(cwd),
            "timestamp": f"2026-02-07T09:00:{number:02d}.000Z",
            "version": "2.1.197",
        }
    )


def speak(login: Path, cwd: Path, *texts: str) -> Path:
    """The transcript of a session in a login."""
    path = login / "projects" / str(cwd).replace("/", "-").replace(" ", "-") / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(record(number, cwd, text) + "\n" for number, text in enumerate(texts, 1)))
    return path


# ------------------------------------------------------------------------------------ carrying


def test_a_session_is_carried_imported_once_and_grows_in_its_new_login(home: Home) -> None:
    app = checkout(home.path / "wörk dir" / "app")
    old, new = home.path / ".claude", home.path / ".claude-work"
    original = speak(old, app, "fix the migration", "and the tests")
    side = original.with_suffix("") / "tool-results" / "b1.txt"
    side.parent.mkdir(parents=True)
    side.write_text("big")
    new.mkdir(mode=0o700)
    assert home.memctl("import", "--wait").returncode == 0
    there = {"CLAUDE_CONFIG_DIR": str(new)}
    done = home.memctl("session", "carry", "--session", SESSION, **there)
    assert done.returncode == 0, done.stderr
    assert "2 files copied" in done.stdout
    assert f"CLAUDE_CONFIG_DIR={new} claude --resume {SESSION}" in done.stdout
    copy = new / original.relative_to(old)
    assert copy.read_bytes() == original.read_bytes()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert (copy.with_suffix("") / "tool-results" / "b1.txt").read_text() == "big"
    assert home.json("session", "carry", "--session", SESSION, **there)["copied"] == []
    with copy.open("a") as file:
        file.write(record(3, app, "said in the new login") + "\n")
    assert home.memctl("import", "--wait", **there).returncode == 0
    [row] = home.json("sessions")
    assert (row["id"], row["events"]) == (SESSION, 3)
    back = home.memctl("session", "carry", "--session", SESSION, "--to", str(old))
    assert "1 file made longer" in back.stdout
    assert original.read_bytes() == copy.read_bytes()


def test_a_relative_login_is_taken_from_where_the_command_is_typed(home: Home) -> None:
    app = checkout(home.path / "app")
    original = speak(home.path / ".claude", app, "one")
    (app / "login").mkdir()
    done = home.json("session", "carry", "--session", SESSION, cwd=app, CLAUDE_CONFIG_DIR="login")
    assert done["to"] == str(app / "login")
    assert (app / "login" / original.relative_to(home.path / ".claude")).is_file()


def test_two_that_went_on_separately_are_refused_with_a_remedy(home: Home) -> None:
    app = checkout(home.path / "app")
    old, new = home.path / ".claude", home.path / ".claude-work"
    original = speak(old, app, "one", "two")
    copy = speak(new, app, "one", "three")
    before = original.read_bytes(), copy.read_bytes()
    done = home.memctl("session", "carry", "--session", SESSION, CLAUDE_CONFIG_DIR=str(new))
    assert (done.returncode, done.stdout) == (77, "")
    assert "has gone on separately" in done.stderr
    assert "memctl run claude --fresh" in done.stderr
    assert (original.read_bytes(), copy.read_bytes()) == before
    for words, code in (
        (("--session", "none"), 65),
        (("--session", "../x"), 65),
        (("--session", SESSION, "--to", "/none"), 65),
        ((), 64),
    ):
        refused = home.memctl("session", "carry", *words)
        assert refused.returncode == code, refused.stderr
        assert len(refused.stderr.splitlines()) >= 2


def test_a_launch_in_another_login_carries_the_session_only_when_told(home: Home) -> None:
    app = checkout(home.path / "app")
    old, new = home.path / ".claude", home.path / ".claude-work"
    original = speak(old, app, "one")
    new.mkdir()
    assert home.memctl("import", "--wait").returncode == 0
    assert home.memctl("adopt", "--session", SESSION, cwd=app).returncode == 0
    there = {"CLAUDE_CONFIG_DIR": str(new)}
    copy = new / original.relative_to(old)
    done = home.memctl("run", "--carry", "claude", cwd=app, **there)
    assert done.returncode == 0, done.stderr
    assert copy.read_bytes() == original.read_bytes()
    assert "was copied from" in done.stderr
    assert (home.path / "launched").read_text().splitlines() == [str(new), "--resume", SESSION]


# --------------------------------------------------------------------------- renamed checkouts


def test_a_session_whose_checkout_was_renamed_is_found_and_bound_to_the_new_one(home: Home) -> None:
    app, kept = checkout(home.path / "app"), checkout(home.path / "kept")
    transcript = speak(home.path / ".claude", app, "fix the migration")
    assert home.memctl("import", "--wait").returncode == 0
    assert home.json("sessions", "--orphaned") == []
    renamed = home.path / "shop"
    shutil.move(app, renamed)
    [row] = home.json("sessions", "--orphaned", "--harness", "claude")
    assert (row["id"], row["cwd"]) == (SESSION, str(app))
    listed = home.memctl("sessions", "--orphaned")
    assert SESSION in listed.stdout
    assert "memctl adopt" in listed.stderr
    assert home.json("sessions", "--orphaned", "--harness", "codex") == []
    done = home.memctl("adopt", "--session", SESSION, cwd=renamed)
    assert done.returncode == 0, done.stderr
    assert "is part of workstream 'default' now" in done.stdout
    [line] = home.json("workstreams", cwd=renamed)
    found = home.json("workstream-search", "migration", "--workstream-id", line["workstream_id"])
    assert [hit["content"] for hit in found] == ["fix the migration"]
    assert home.json("workstreams", cwd=kept) == []
    assert home.memctl("run", "claude", cwd=renamed).returncode == 0
    assert (home.path / "launched").read_text().splitlines() == ["", "--resume", str(transcript)]
    refused = home.memctl("adopt", "--session", "none", cwd=renamed)
    assert refused.returncode == 65
    assert "memctl sessions" in refused.stderr


# ------------------------------------------------------------------------------------ projects


def test_a_project_gets_another_name_and_the_checkout_is_told_what_it_needs(home: Home) -> None:
    app = checkout(home.path / "app")
    speak(home.path / ".claude", app, "one")
    assert home.memctl("run", "claude", cwd=app).returncode == 0
    assert home.memctl("handoff", "create", "go on", cwd=app).returncode == 0
    done = home.memctl("rename-project", "--from", "app", "--to", "shöp")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "default/app is now default/shöp: 1 workstream, 1 handoff, 1 saved checkout\n"
    assert f"{app} still counts as default/app" in done.stderr
    marker = "\n".join(line.strip() for line in done.stderr.splitlines()[1:])
    assert marker == 'workspace = "default"\nproject = "shöp"'
    assert home.json("workstreams", cwd=app) == []
    (app / ".memd.toml").write_text(marker)
    assert len(home.json("workstreams", cwd=app)) == 1
    assert home.json("handoff", "show", cwd=app)["summary"] == "go on"
    registry = json.loads((home.path / ".local/share/memd/projects.json").read_text())
    assert [(link["project"], link["path"]) for link in registry["links"]] == [("shöp", str(app))]
    moved = home.json("move-project", "--project", "shöp", "--to", "acme")
    assert (moved["workspace"], moved["workstreams"], moved["links"]) == ("acme", 1, 1)
    continued = home.memctl("continue", "--workspace", "acme", cwd="/")
    assert "belongs to default/shöp by now" in continued.stderr
    for words, code in (
        (("--from", "none", "--to", "x"), 65),
        (("--from", "shöp", "--to", "_global"), 64),
        (("--from", "shöp", "--to", " "), 64),
        (("--from", "shöp"), 64),
    ):
        refused = home.memctl("rename-project", "--workspace", "acme", *words)
        assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr


def test_a_registry_that_cannot_be_rekeyed_is_told_and_the_ledger_has_the_new_name(home: Home) -> None:
    app = checkout(home.path / "app")
    assert home.memctl("handoff", "create", "go on", cwd=app).returncode == 0
    registry = home.path / ".local/share/memd/projects.json"
    registry.write_text("{")
    done = home.memctl("rename-project", "--from", "app", "--to", "shop")
    assert done.returncode == 0
    assert "0 workstreams, 1 handoff, 0 saved checkouts" in done.stdout
    assert "cannot be used" in done.stderr
    assert registry.read_text() == "{"
    assert home.json("handoff", "list", "--project", "shop")[0]["summary"] == "go on"
