"""What a person meets who types something off, or whose home is not as memd would like it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import processes
from support_daemon import Home, eventually
from support_terminal import Terminal

MEMCTL = [sys.executable, "-P", "-m", "memctl"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def test_down_returns_when_the_process_is_gone(home: Home) -> None:
    assert home.memctl("up", "--quiet").returncode == 0
    pid = home.json("status")["pid"]
    assert processes.is_alive(pid)
    done = home.memctl("down")
    assert done.returncode == 0, done.stderr
    assert not processes.is_alive(pid)
    again = home.memctl("down")
    assert (again.returncode, again.stderr) == (0, "memd is not running\n")


def test_forgetting_a_session_that_is_not_there_says_so_as_export_does(home: Home) -> None:
    exported = home.memctl("export", "--session", "nope")
    for words in (["--yes"], ["--dry-run"], ["--yes", "--json"], ["--yes", "--harness", "claude"]):
        done = home.memctl("forget", "--session", "nope", *words)
        assert (done.returncode, done.stdout) == (65, "")
        if "--harness" not in words:
            assert done.stderr == exported.stderr
    assert home.memctl("forget", "--matching", "nothing like it", "--yes").returncode == 0


def test_a_removed_topic_comes_back_by_its_name_and_by_its_file(home: Home) -> None:
    assert home.memctl("memory", "write", "Dev server", "--summary", "s", stdin="8080").returncode == 0
    for name in ("dev-server", "dev-server.md", "dev Server"):
        assert home.memctl("memory", "remove", "Dev server").returncode == 0
        done = home.memctl("memory", "restore", name)
        assert (done.returncode, done.stdout) == (0, "Dev server (dev-server.md): restored\n")
    missing = home.memctl("memory", "restore", "nope")
    assert missing.returncode == 77
    assert "there is no topic file nope here" in missing.stderr


@pytest.mark.parametrize(
    "words", [["up"], ["sessions"], ["run", "claude"], ["memory", "list"], ["workstreams", "--json"]]
)
def test_a_home_that_cannot_be_written_to_is_named_with_what_to_do(home: Home, words: list[str]) -> None:
    done = without_rights(home, *words)
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr.startswith(f"memctl: memd cannot start: cannot make the folder {home.path}/.local")
    assert "make it writable" in done.stderr
    assert "XDG_STATE_HOME" in done.stderr


def test_doctor_names_a_home_that_cannot_be_written_to(home: Home) -> None:
    done = without_rights(home, "doctor")
    assert done.returncode == 1
    assert f"{home.path} cannot be written to" in done.stdout
    assert "make it writable" in done.stdout


def without_rights(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a home that may not be written to."""
    command = [*MEMCTL, *words]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may write everywhere, and setpriv is not installed")
        rights = "-dac_override,-dac_read_search"
        command = [setpriv, f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    home.path.chmod(0o500)
    try:
        return subprocess.run(
            command, env=home.environment, cwd="/", capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        home.path.chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [
        ["where"],
        ["enroll"],
        ["heal", "--cwd", "."],
        ["workstreams"],
        ["handoff", "list"],
        ["run", "claude"],
        ["show", "--json"],
        ["search", "x", "--cwd", "."],
        ["adopt", "--session", "x"],
        ["memory", "import-claude"],
    ],
)
def test_a_directory_that_is_gone_is_named(home: Home, tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, str(gone), *MEMCTL, *words],
        env=home.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == "memctl: this directory is gone\nChange to one that exists.\n"


def test_a_bad_pattern_is_reported_with_its_line(home: Home) -> None:
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[redaction]\nextra_patterns = []\n")
    assert home.memctl("up", "--quiet").returncode == 0
    config.write_text('[redaction]\nextra_patterns = [\n  "fine",\n  "(unclosed",\n]\n')
    says = f"{config}:4: redaction.extra_patterns[1] '(unclosed': missing )"
    reload = home.memctl("reload")
    assert reload.returncode == 78
    assert says in reload.stderr
    shown = home.memctl("config", "--show")
    assert shown.returncode == 78
    assert says in shown.stderr
    doctor = home.memctl("doctor")
    assert doctor.returncode == 1
    assert says in doctor.stdout


@pytest.mark.parametrize("words", [["nonsense"], ["--nonsense"], ["--detached", "x"], ["up"]])
def test_memd_with_words_that_mean_nothing_shows_its_usage(home: Home, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "memd", *words],
        env=home.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("usage: memd [-h] [--version] [--detached]\n")
    assert "memctl" in done.stderr


def claude_line(home: Home, number: int, content: str, cwd: str) -> None:
    session = f"{number:08d}-0000-4000-8000-000000000000"
    record = {
        "parentUuid": None,
        "type": "user",
        "uuid": f"{number:08d}-1111-4000-8000-000000000000",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "cwd": cwd,
        "sessionId": session,
        "message": {"role": "user", "content": content},
    }
    folder = home.path / ".claude" / "projects" / "-work-one"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text(json.dumps(record) + "\n")


def test_a_word_behind_a_colour_is_found_and_forgotten(home: Home) -> None:
    claude_line(home, 1, "build \x1b[1;31mQUOKKA\x1b[0m done", "/work/one")
    assert home.memctl("import", "--wait").returncode == 0
    (hit,) = home.json("search", "quokka")
    assert hit["content"] == "build QUOKKA done"
    assert home.memctl("forget", "--matching", "quokka", "--yes").returncode == 0
    assert home.json("search", "build") == []


def test_a_directory_with_a_nul_keeps_no_session_out(home: Home) -> None:
    claude_line(home, 1, "about the wombat", "/etc/\0x")
    assert home.memctl("import", "--wait").returncode == 0
    assert len(home.json("search", "wombat")) == 1


def test_a_damaged_ledger_is_no_health_and_says_what_brings_it_back(home: Home) -> None:
    claude_line(home, 1, "about the wombat", "/work/one")
    assert home.memctl("import", "--wait").returncode == 0
    assert home.memctl("down").returncode == 0
    ledger = home.path / ".local" / "share" / "memd" / "ledger"
    for path in ledger.glob("ledger.sqlite3-*"):
        path.unlink()
    (ledger / "ledger.sqlite3").write_bytes(b"no database at all " * 1000)
    assert home.memctl("up", "--quiet").returncode == 0
    eventually(lambda: home.json("status")["health"] == "degraded")
    refused = home.memctl("search", "wombat")
    assert refused.returncode == 75
    assert "memctl restore FILE" in refused.stderr
    assert home.memctl("down").returncode == 0
    for path in ledger.glob("ledger.sqlite3*"):
        path.rename(home.path / path.name)
    assert home.memctl("up", "--quiet").returncode == 0
    home.memctl("ledger", "check", "--repair")
    assert len(home.json("search", "wombat")) == 1


@pytest.mark.parametrize("words", [["forget", "--matching", "wombat"], ["enroll"]])
def test_the_end_of_the_input_is_a_no(home: Home, words: list[str]) -> None:
    claude_line(home, 1, "about the wombat", "/work/one")
    assert home.memctl("import", "--wait").returncode == 0
    below = home.path / "agent" / "sub"
    below.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(below.parent)], check=True)
    terminal = Terminal([*MEMCTL, *words], home.environment, below)
    try:
        terminal.until("[y/N]")
        terminal.type("\x04")
        terminal.wait()
        assert "Traceback" not in terminal.text()
    finally:
        terminal.close()
    assert len(home.json("search", "wombat")) == 1


def test_a_role_that_there_is_not_is_told_with_those_there_are(home: Home) -> None:
    done = home.memctl("search", "wombat", "--role", "nope")
    assert done.returncode == 64
    assert "user, assistant, tool" in done.stderr
    for role in ("user", "assistant", "tool"):
        assert home.memctl("search", "wombat", "--role", role).returncode == 0


def test_a_kind_that_there_is_not_is_told_with_those_there_are(home: Home) -> None:
    done = home.memctl("search", "wombat", "--kind", "nope")
    assert done.returncode == 64
    assert "tool_result" in done.stderr
