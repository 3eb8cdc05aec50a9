"""What a person is told when something is out of order: the truth, and where to look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home, eventually


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    (made.path / ".claude").mkdir()
    (made.path / ".claude" / ".credentials.json").write_text("{}")
    yield made
    made.memctl("down")
    made.end_all()


@pytest.fixture
def agent(home: Home, tmp_path: Path) -> Path:
    path = (tmp_path / "work" / "agent").resolve()
    (path / ".git").mkdir(parents=True)
    home.start()
    assert home.memctl("enroll", str(path)).returncode == 0
    return path


def session(home: Home, number: int, text: str, before: bytes = b"", below: str = "-work-one") -> Path:
    name = f"{number:08d}-0000-4000-8000-000000000000"
    folder = home.path / ".claude/projects" / below
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "type": "user",
        "uuid": f"{number:08d}-0000-4000-8000-000000000001",
        "cwd": "/work/one",
        "sessionId": name,
        "message": {"role": "user", "content": text},
    }
    (folder / f"{name}.jsonl").write_bytes(before + json.dumps(record).encode() + b"\n")
    return folder / f"{name}.jsonl"


def test_an_agent_home_that_was_moved_away_is_in_the_status_and_cannot_be_unenrolled_empty(
    home: Home, agent: Path
) -> None:
    (agent / ".memd" / "memory" / "n.md").write_text("n\n")
    agent.rename(agent.with_name("elsewhere"))
    home.memctl("heal")
    eventually(lambda: home.json("status")["health"] != "healthy", 40)
    refused = home.memctl("unenroll", str(agent))
    assert refused.returncode == 77
    assert "bring it back to its place first" in refused.stderr
    agent.with_name("elsewhere").rename(agent)
    assert home.memctl("heal").returncode == 0
    eventually(lambda: home.json("status")["health"] == "healthy", 40)


def test_unenrolling_from_a_folder_inside_names_the_agent_and_needs_a_yes(home: Home, agent: Path) -> None:
    inner = agent / "inner"
    inner.mkdir()
    asked = home.memctl("unenroll", str(inner))
    assert asked.returncode == 77
    assert str(agent) in asked.stderr
    assert len(home.json("status")["agents"]) == 1
    assert home.memctl("unenroll", "--yes", str(inner)).returncode == 0
    assert home.json("status")["agents"] == []


def test_nothing_is_healed_before_a_configuration_was_ever_understood(home: Home, tmp_path: Path) -> None:
    path = (tmp_path / "work" / "agent").resolve()
    (path / ".git").mkdir(parents=True)
    home.start()
    assert home.memctl("enroll", str(path)).returncode == 0
    home.end_all()
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[memory]\nheal = false\n[log]\nlevl = "info"\n')
    (home.path / ".claude-late").mkdir()
    (home.path / ".claude-late" / ".credentials.json").write_text("{}")
    home.start()
    assert "until it is corrected" in home.memctl("status").stdout
    assert not (home.path / ".claude-late" / "projects").exists()


@pytest.mark.parametrize("stamp", [9_000_000_000_000, -9_000_000_000])
def test_a_transcript_with_an_absurd_time_keeps_nothing_else_out(home: Home, stamp: int) -> None:
    odd = session(home, 1, "the odd one")
    try:
        os.utime(odd, (stamp, stamp))
    except OSError:
        pytest.skip("this file system has no such times")
    session(home, 2, "the plain one")
    home.start()
    assert home.memctl("import", "--wait").returncode == 0
    assert len(home.json("search", "plain")) == 1
    assert len(home.json("search", "odd")) == 1


def test_a_source_whose_session_cannot_be_told_is_named_in_the_status(home: Home) -> None:
    session(home, 1, "too late", before=b'{"type":"summary","x":"' + b"y" * (9 << 20) + b'"}\n')
    session(home, 2, "the plain one")
    home.start()
    assert home.memctl("import", "--wait").returncode == 0
    assert len(home.json("search", "plain")) == 1
    unreadable = home.json("status")["ledger"]["unreadable"]
    assert len(home.json("search", "late")) == 1 or "first 8 MiB" in unreadable[0][1]


def as_its_owner(home: Home) -> subprocess.Popen[bytes]:
    """A daemon that modes hold for, also where the tests run as root."""
    program = [sys.executable, "-P", "-m", "memd"]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root reads everything, and there is no setpriv")
        program = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *program]
    child = subprocess.Popen(
        program, env=home.environment, cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    eventually(lambda: home.answers() or child.poll() is not None)
    return child


def unread(home: Home) -> dict[str, str]:
    """What doctor says of sessions that cannot be read: message and remedy."""
    found = home.json("doctor")["findings"]
    return {one["message"]: one["remedy"] for one in found if one["subject"] == "sessions"}


def test_sessions_that_cannot_be_read_lower_the_health_and_doctor_says_which_and_what_to_do(
    home: Home,
) -> None:
    closed = session(home, 1, "closed").parent
    locked = session(home, 3, "locked", below="-work-three")
    long = session(home, 2, "", before=b'{"type":"summary","x":"' + b"y" * (20 << 20) + b'"}\n', below="-two")
    long.rename(long.with_name("no-session.jsonl"))
    closed.chmod(0)
    locked.chmod(0)
    child = as_its_owner(home)
    try:
        assert home.memctl("import", "--wait").returncode == 0
        status = home.json("status")
        assert status["health"] == "attention"
        words = home.memctl("status", COLUMNS="400").stdout
        assert len([line for line in words.splitlines() if "cannot be read" in line]) <= 2
        assert "`memctl doctor`" in status["health_line"]
        told = unread(home)
        for path in (closed, locked, long.with_name("no-session.jsonl")):
            assert [remedy for message, remedy in told.items() if str(path) in message and remedy], path
        assert len(told) == status["ledger"]["unreadable_needing"] == 3
        closed.chmod(0o700)
        locked.chmod(0o600)
        long.with_name("no-session.jsonl").unlink()
        assert home.memctl("import", "--wait").returncode == 0
        eventually(lambda: home.json("status")["health"] == "healthy")
        assert unread(home) == {}
        assert len(home.json("search", "locked")) == 1
    finally:
        child.terminate()
        child.wait()


def test_a_name_that_is_no_text_does_not_end_the_watching(home: Home, agent: Path) -> None:
    (home.path / ".claude" / "projects").mkdir(exist_ok=True)
    for number in range(3):
        os.close(os.open(os.fsencode(home.path) + b"/bad\xff%d" % number, os.O_CREAT | os.O_WRONLY))
    (home.path / ".claude-new").mkdir()
    (home.path / ".claude-new" / ".credentials.json").write_text("{}")
    eventually(lambda: (home.path / ".claude-new" / "projects").is_dir(), 5)
    assert "part.failed" not in (home.path / ".local/state/memd/memd.log").read_text()


def test_a_config_dir_that_is_no_login_is_not_taken_over(home: Home, agent: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "readme.txt").write_text("not a login\n")
    for folder in (str(foreign), "/proc/1"):
        assert home.memctl("where", str(agent), CLAUDE_CONFIG_DIR=folder).returncode == 0
    assert home.memctl("heal").returncode == 0
    assert sorted(path.name for path in foreign.iterdir()) == ["readme.txt"]
    assert home.json("status")["health"] == "healthy"


def test_a_long_path_is_never_cut(home: Home, tmp_path: Path) -> None:
    path = (tmp_path / ("deep " * 12) / "agent").resolve()
    (path / ".git").mkdir(parents=True)
    home.start()
    from memd.memory.key import project_key

    entry = home.path / ".claude" / "projects" / project_key(os.fsencode(path)) / "memory"
    entry.mkdir(parents=True)
    (entry / "n.md").write_text("n\n")
    done = home.memctl("enroll", str(path), COLUMNS="60")
    assert done.returncode == 0
    assert str(entry.with_name("memory.pre-shared")) in done.stdout
    where = home.memctl("where", str(path), COLUMNS="60").stdout.splitlines()
    assert f"root    {path}" in where
    assert f"  {entry}" in where


@pytest.mark.parametrize("words", [["status"], ["--help"], ["doctor"], ["where", "/"], ["config"]])
def test_a_reader_that_leaves_early_causes_no_traceback(home: Home, words: list[str]) -> None:
    home.start()
    for output in ("| true", "> /dev/full", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$0" -P -m memctl {" ".join(words)} {output}', sys.executable],
            env=home.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, (output, done.stderr)


@pytest.mark.parametrize(("words", "status"), [("--version", 0), ("nonsense", 64)])
def test_a_standard_error_that_is_closed_changes_no_answer(home: Home, words: str, status: int) -> None:
    command = ["sh", "-c", f'"$0" -P -m memctl {words} 2>&-', sys.executable]
    done = subprocess.run(command, env=home.environment, capture_output=True, check=False)
    assert (done.returncode, bool(done.stdout)) == (status, not status)


def test_answers_and_hints_in_one_file_stand_in_the_order_in_which_they_were_said(
    home: Home, tmp_path: Path
) -> None:
    session(home, 1, "an orphan")
    home.start()
    assert home.memctl("import", "--wait").returncode == 0
    for words, first, last in (
        (["sessions", "--orphaned"], "an orphan", "memctl adopt"),
        (["memory", "write", "t", "--summary", "s"], "t (t.md)", ""),
        (["search", "orphan", "--kind", "nope"], "memctl: no event", "Use one of"),
    ):
        with (tmp_path / "both").open("w") as both:
            subprocess.run(
                [sys.executable, "-P", "-m", "memctl", *words],
                env=home.environment,
                stdin=subprocess.DEVNULL,
                stdout=both,
                stderr=both,
                check=False,
            )
        said = (tmp_path / "both").read_text()
        assert said.find(first) <= said.find(last), said
        assert last in said


def test_doctor_names_a_list_of_checkouts_that_cannot_be_read(home: Home) -> None:
    def told() -> list[dict[str, str]]:
        return [one for one in home.json("doctor")["findings"] if one["subject"] == "checkouts"]

    home.start()
    assert told() == []
    listed = home.path / ".local/share/memd/projects.json"
    listed.write_text("{")
    [one] = told()
    assert one["level"] == "problem"
    assert str(listed) in one["message"]
    assert one["remedy"]


def test_the_health_line_tells_of_an_agent_that_is_lacking_and_of_a_login_that_is(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", runtime=tmp_path / "run")
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    with home.daemon():
        assert "no agent enrolled yet" in home.json("status")["health_line"]
        assert home.memctl("enroll", str(lonely), "--yes").returncode == 0
        assert home.json("status")["health_line"] == "no login to link yet"
