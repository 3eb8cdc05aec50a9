"""Hooks and a real memd: what an agent's start is told, and what becomes of calls that met no daemon."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.harness import registry
from memd.harness.hooking import HookEvent
from support_daemon import Home, eventually
from support_git import checkout
from support_hooks import command, placed

SESSION = "7c1f2a0e-5b1d-4c53-9a10-000000000001"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.end_all()


def fire(home: Home, event: str, cwd: Path, harness: str = "claude", **payload: object) -> str:
    """What the installed command of an event prints."""
    hook_file = placed(home.path / ".local" / "share")
    stdin = {"session_id": SESSION, "cwd": str(cwd), "hook_event_name": event, **payload}
    done = subprocess.run(
        command(hook_file, harness, event_of(harness, event)),
        input=json.dumps(stdin).encode(),
        capture_output=True,
        env=home.environment,
        cwd=cwd,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def event_of(harness: str, name: str) -> HookEvent:
    hooks = registry.resolve(harness).hooks
    assert hooks is not None
    event = hooks.event(name)
    assert event is not None
    return event


def context(printed: str) -> str:
    answer: dict[str, dict[str, str]] = json.loads(printed)
    return answer["hookSpecificOutput"]["additionalContext"]


def share(home: Home, topics: int) -> Path:
    """A shared memory folder that is switched on and has an index."""
    config = home.path / ".config" / "memd"
    config.mkdir(parents=True)
    (config / "memory.jsonc").write_text('{"shared_dir": true}')
    folder = home.path / ".agents" / "memory"
    folder.mkdir(parents=True)
    lines = []
    for number in range(topics):
        (folder / f"topic-{number}.md").write_text(f"# topic {number}\n")
        lines.append(f'- [topic {number}](topic-{number}.md) - what "was" learnt about {number}\n')
    (folder / "MEMORY.md").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("topics", [3, 190])
def test_a_start_of_claude_prints_the_memory_block_within_its_limit(home: Home, topics: int) -> None:
    share(home, topics)
    app = checkout(home.path / "app")
    with home.daemon():
        printed = fire(home, "SessionStart", app, source="startup")
        assert len(printed) <= 10_000
        text = context(printed)
        assert text.startswith("<!-- memd:memory:v1 -->")
        assert "topic 2" in text
        assert ("more lines of the index are not shown" in text) is (topics > 100)
        again = context(fire(home, "SessionStart", app, source="compact"))
        assert again.startswith("<!-- memd:memory:v1 -->")
        assert fire(home, "SessionStart", app, source="startup", agent_id="a1") == ""


def test_without_a_shared_folder_a_start_prints_nothing(home: Home) -> None:
    app = checkout(home.path / "app")
    with home.daemon():
        for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
            assert fire(home, event, app) == ""


def test_a_handoff_comes_before_the_memory_and_only_once(home: Home) -> None:
    share(home, 150)
    app = checkout(home.path / "app")
    with home.daemon():
        made = home.memctl("handoff", "create", "the port stays 8123", cwd=app)
        assert made.returncode == 0, made.stderr
        text = context(fire(home, "SessionStart", app))
        assert text.startswith("<!-- memd:handoff:v1 -->")
        assert 0 < text.index("the port stays 8123") < text.index("<!-- memd:memory:v1 -->")
        assert "8123" not in context(fire(home, "SessionStart", app, session_id="another"))


def test_calls_that_met_no_daemon_are_taken_in_and_status_says_when_each_fired(home: Home) -> None:
    app = checkout(home.path / "app")
    spool = home.path / ".local" / "state" / "memd" / "spool"
    for event in ("SessionStart", "Stop"):
        assert fire(home, event, app) == ""
    assert len(list(spool.iterdir())) == 2
    with home.daemon() as daemon:
        eventually(lambda: not list(spool.iterdir()))
        hooks = home.json("status")["hooks"]
        assert (hooks["waiting"], hooks["oldest_s"]) == (0, None)
        fired = {row["event"]: row["last_at"] for row in hooks["fired"] if row["harness"] == "claude"}
        assert fired["SessionStart"] is not None
        assert fired["UserPromptSubmit"] is None
        assert "claude: SessionStart just now" in home.memctl("status", COLUMNS="200").stdout
        assert home.stop(daemon) == 0
    with home.daemon():
        again = {row["event"]: row["last_at"] for row in home.json("status")["hooks"]["fired"]}
        assert again["Stop"] == fired["Stop"]


def test_a_stop_has_its_transcript_read_at_once(home: Home) -> None:
    app = checkout(home.path / "app")
    folder = home.path / ".claude" / "projects" / str(app).replace("/", "-")
    folder.mkdir(parents=True)
    transcript = folder / f"{SESSION}.jsonl"
    record = {
        "type": "user",
        "uuid": "u-1",
        "sessionId": SESSION,
        "cwd": str(app),
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "user", "content": "look at the harbour"},
    }
    with home.daemon():
        transcript.write_text(json.dumps(record) + "\n")
        fire(home, "SessionEnd", app, transcript_path=str(transcript))
        eventually(lambda: "harbour" in home.memctl("search", "harbour").stdout)


def test_a_hook_the_daemon_does_not_know_gets_the_answer_of_its_command(home: Home) -> None:
    hook_file = placed(home.path / ".local" / "share")
    event = HookEvent(name="FromALaterMemd", role="activity", harmless='{"decision":"allow"}')
    with home.daemon():
        done = subprocess.run(
            command(hook_file, "claude", event),
            input=b"{}",
            capture_output=True,
            env=home.environment,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"decision":"allow"}', b"")
    assert not (home.path / ".local" / "state" / "memd" / "spool").exists()


def test_the_command_by_hand_is_answered_like_the_installed_one(home: Home) -> None:
    share(home, 3)
    app = checkout(home.path / "app")
    stdin = json.dumps({"session_id": SESSION, "cwd": str(app)})
    with home.daemon():
        done = home.memctl("hook", "claude-code", "SessionStart", cwd=app, stdin=stdin)
    assert done.returncode == 0
    assert context(done.stdout).startswith("<!-- memd:memory:v1 -->")


def test_a_daemon_that_is_stopped_and_goes_on_claims_nothing_for_a_hook_that_left(home: Home) -> None:
    app = checkout(home.path / "app")
    with home.daemon() as daemon:
        assert home.memctl("handoff", "create", "the port stays 8123", cwd=app).returncode == 0
        daemon.send_signal(signal.SIGSTOP)
        assert fire(home, "SessionStart", app) == ""
        daemon.send_signal(signal.SIGCONT)
        assert home.answers()
        assert "8123" in context(fire(home, "SessionStart", app, session_id="another"))
