"""`memctl setup`, and what `memctl up` offers: nothing is done that was not said and agreed to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support_daemon import Home
from support_fake_harness import Fakes
from support_git import checkout
from support_systemd import Python, ping, user_manager
from support_terminal import Terminal

MEMCTL = [sys.executable, "-P", "-m", "memctl"]
DARK = '{"theme": "dark"}\n'
STEPS = ["1/4 service", "2/4 hooks", "3/4 enroll", "4/4 import"]

SESSION = "2a8d3c1e-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A person with Claude Code, one session of it, and an agent's directory that holds a blank and an ö."""
    made = Home(tmp_path / "höme dir", runtime=tmp_path / "run")
    fakes = Fakes(tmp_path / "bin", made.path, names=("claude",))
    made.environment["PATH"] = f"{fakes.folder}:/usr/bin:/bin"
    (made.path / ".claude").mkdir()
    settings(made).write_text(DARK)
    agent(made)
    folder = made.path / ".claude/projects/-w"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "message": {"role": "user", "content": "hello from before"},
        "uuid": SESSION,
        "parentUuid": None,
        "sessionId": SESSION,
        "cwd": "/w",
        "timestamp": "2026-02-07T09:00:00.000Z",
        "version": "2.1.197",
    }
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(record) + "\n")
    yield made
    made.memctl("down")
    made.end_all()


def settings(home: Home) -> Path:
    return home.path / ".claude/settings.json"


def agent(home: Home) -> Path:
    path = home.path / "my ägent"
    return path if path.exists() else checkout(path)


def is_wired(home: Home) -> bool:
    return "memd_hook.py" in settings(home).read_text()


def is_enrolled(home: Home) -> bool:
    return (agent(home) / ".memd/memory").is_dir()


@pytest.fixture
def screen(home: Home) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def show(*words: str, columns: int = 80, **more: str) -> Terminal:
        made = Terminal([*MEMCTL, *words], {**home.environment, **more}, agent(home), columns=columns)
        opened.append(made)
        return made

    yield show
    for one in opened:
        one.close()


def titles(text: str) -> list[str]:
    return [line for line in text.splitlines() if line in STEPS]


# ------------------------------------------------------------------------------------------ setup


def test_yes_does_every_step_and_ends_with_the_status(home: Home) -> None:
    done = home.memctl("setup", "--yes", cwd=agent(home))
    assert done.returncode == 0, done.stderr
    assert titles(done.stderr) == STEPS
    assert is_wired(home)
    assert f"claude: hooks installed ({settings(home)})" in done.stdout + done.stderr
    assert "@@" not in done.stdout + done.stderr  # the change is shown to whoever is asked
    assert is_enrolled(home)
    assert "The ledger has 1 event of 1 session." in done.stderr
    assert done.stdout.splitlines()[-1]
    assert "memd 0." in done.stdout
    said = " ".join(done.stderr.split("\n"))
    assert f"{agent(home)} is enrolled; its memory is {agent(home)}/.memd/memory" in said
    assert home.json("status")["agents"][0]["home"] == str(agent(home))


def test_done_again_it_finds_nothing_to_do(home: Home) -> None:
    assert home.memctl("setup", "--yes", cwd=agent(home)).returncode == 0
    before, pid = settings(home).read_bytes(), home.json("status")["pid"]
    again = home.memctl("setup", "--yes", cwd=agent(home))
    assert again.returncode == 0, again.stderr
    assert f"memd runs already (pid {pid})" in again.stderr
    assert "all agents here have memd's hooks already" in again.stderr
    assert "has one memory in all logins already" in again.stderr
    assert settings(home).read_bytes() == before


@pytest.mark.parametrize("words", [["--dry-run"], ["--dry-run", "--yes"], []])
def test_without_a_yes_it_only_says_what_it_would_do(home: Home, words: list[str]) -> None:
    done = home.memctl("setup", *words, cwd=agent(home))
    assert (done.returncode, done.stdout) == (0 if words else 64, "")
    assert titles(done.stderr) == STEPS
    assert "Start memd in the background" in done.stderr
    assert '+{"theme": "dark", "hooks"' in done.stderr
    assert f"Give the agent that lives in {agent(home)} one memory" in done.stderr.replace("\n  ", " ")
    assert ("Nothing was changed." if words else "Repeat with --yes") in done.stderr
    assert not home.answers()
    assert not (home.path / ".local").exists()
    assert settings(home).read_text() == DARK
    assert not is_enrolled(home)
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("+", "-", "@", " "))]
    assert all(len(line) < 80 for line in lines)


def test_steps_can_be_left_out(home: Home) -> None:
    done = home.memctl("setup", "--yes", "--skip", "hooks", "--skip", "enroll", cwd=agent(home))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("  left out\n") == 2
    assert not is_wired(home)
    assert not is_enrolled(home)
    assert home.memctl("setup", "--skip", "nonsense").returncode == 64


def test_the_home_directory_is_nobodys_agent_home(home: Home) -> None:
    done = home.memctl("setup", "--yes", "--skip", "hooks", "--skip", "import")
    assert done.returncode == 0, done.stderr
    assert "is not an agent's own directory" in done.stderr.replace("\n  ", " ")
    assert home.json("status")["agents"] == []


def test_a_directory_without_a_sign_of_an_agent_is_not_enrolled_unasked(home: Home) -> None:
    plain = home.path / "downloads"
    plain.mkdir()
    done = home.memctl("setup", str(plain), "--yes", "--skip", "hooks", "--skip", "import")
    assert done.returncode == 0, done.stderr
    assert "left out: nothing says that an agent lives there" in done.stderr
    assert not (plain / ".memd").exists()


def test_a_step_that_fails_does_not_stop_the_others_and_is_told(home: Home) -> None:
    settings(home).write_text("{ not json")
    done = home.memctl("setup", "--yes", cwd=agent(home))
    assert done.returncode == 77, done.stderr
    assert titles(done.stderr) == STEPS
    assert "settings.json" in done.stderr
    assert "  -> " in done.stderr
    assert settings(home).read_text() == "{ not json"
    assert is_enrolled(home)
    assert "The ledger has 1 event of" in done.stderr


def test_on_a_terminal_each_step_is_asked_for(home: Home, screen: Callable[..., Terminal]) -> None:
    terminal = screen("setup")
    terminal.until("Do this? [Y/n]")
    terminal.type("\r")
    terminal.until("Install these hooks? [y/N]")
    assert '+{"theme": "dark", "hooks"' in terminal.text()
    assert not is_wired(home)
    terminal.forget()
    terminal.type("y\r")
    terminal.until("3/4 enroll")
    assert is_wired(home)
    terminal.until("Do this? [y/N]")
    terminal.forget()
    terminal.type("perhaps\r")
    terminal.until("Do this? [y/N]")
    terminal.type("\r")
    terminal.until("left out")
    terminal.until("Do this? [Y/n]")
    terminal.type("\r")
    terminal.until("The ledger has 1 event of 1 session.")
    assert terminal.wait() == 0
    assert "memd 0." in terminal.text()
    assert not is_enrolled(home)


def test_an_interrupt_ends_it(home: Home, screen: Callable[..., Terminal]) -> None:
    terminal = screen("setup")
    terminal.until("Do this? [Y/n]")
    terminal.type("\x03")
    assert terminal.wait() == 130
    assert not home.answers()


@pytest.mark.parametrize(("variable", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_left_away_on_request(
    screen: Callable[..., Terminal], variable: dict[str, str], is_colored: bool
) -> None:
    terminal = screen("setup", "--dry-run", **variable)
    assert terminal.wait() == 0
    assert (b"\x1b[1m1/4 service" in terminal.seen) == is_colored
    assert (b"\x1b[32m+" in terminal.seen) == is_colored


@pytest.mark.systemd
def test_where_a_service_manager_answers_it_runs_memd(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    python = Python(str(tmp_path / "venv"))
    with user_manager(str(tmp_path / "home"), tmp_path) as manager:
        dry = manager.run(*python.memctl("setup", "--dry-run"))
        assert "Let systemd run memd for you, with every login." in dry.stderr.replace("\n  ", " ")
        assert manager.systemctl("is-active", "memd.service", check=False).strip() != "active"
        done = manager.run(*python.memctl("setup", "--yes"))
        assert "systemd runs memd." in done.stderr
        assert manager.systemctl("is-active", "memd.service").strip() == "active"
        pid = ping(manager, python)["pid"]
        again = manager.run(*python.memctl("setup", "--yes"))
        assert "systemd runs memd already" in again.stderr
        assert ping(manager, python)["pid"] == pid


# ----------------------------------------------------------------------------- what `up` offers


def test_up_shows_the_change_and_installs_hooks_on_a_yes(home: Home, screen: Callable[..., Terminal]) -> None:
    terminal = screen("up")
    terminal.until("Claude Code has no hooks of memd yet.")
    terminal.until("Install these hooks? [y/N]")
    assert '+{"theme": "dark", "hooks"' in terminal.text()
    assert not is_wired(home)
    terminal.type("y\r")
    assert terminal.wait() == 0
    assert is_wired(home)
    assert "hooks installed" in terminal.text()
    again = screen("up")
    assert again.wait() == 0
    assert "Install these hooks" not in again.text()


def test_a_no_is_remembered_for_that_agent_alone(home: Home, screen: Callable[..., Terminal]) -> None:
    terminal = screen("up")
    terminal.until("Install these hooks? [y/N]")
    terminal.type("\r")
    terminal.until("Not asked again.")
    assert terminal.wait() == 0
    assert settings(home).read_text() == DARK
    again = screen("up")
    assert again.wait() == 0
    assert "hooks" not in again.text()
    assert "hooks" not in home.memctl("up").stderr
    (home.path / ".codex").mkdir()
    another = screen("up")
    another.until("Codex has no hooks of memd yet.")
    another.type("n\r")
    assert another.wait() == 0


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_a_question_that_was_not_answered_is_asked_again(screen: Callable[..., Terminal], key: str) -> None:
    for _ in range(2):
        terminal = screen("up")
        terminal.until("Install these hooks? [y/N]")
        terminal.type(key)
        assert terminal.wait() in (0, 130)


def test_without_a_terminal_the_agents_are_only_named(home: Home) -> None:
    done = home.memctl("up")
    assert done.returncode == 0
    assert "Claude Code has no hooks of memd yet." in done.stderr
    assert "memctl install-hooks" in done.stderr
    assert settings(home).read_text() == DARK
    assert "hooks" not in home.memctl("up", "--quiet").stderr


def test_yes_installs_them_unasked_even_after_a_no(home: Home) -> None:
    declined = home.path / ".local/state/memd/hooks-declined.json"
    declined.parent.mkdir(parents=True)
    row: dict[str, Any] = {"agent": "claude", "path": str(settings(home))}
    declined.write_text(json.dumps({"version": 1, "declined": [row]}))
    assert "hooks" not in home.memctl("up").stderr
    done = home.memctl("up", "--yes")
    assert done.returncode == 0, done.stderr
    assert is_wired(home)


@pytest.mark.parametrize("text", ["{", '{"declined": 3}', '{"declined": [{}]}', "[]", '"x"'])
def test_a_note_of_noes_that_is_not_understood_counts_for_none(home: Home, text: str) -> None:
    declined = home.path / ".local/state/memd/hooks-declined.json"
    declined.parent.mkdir(parents=True)
    declined.write_text(text)
    assert "has no hooks" in home.memctl("up").stderr


def test_settings_that_cannot_be_read_are_no_reason_not_to_start(home: Home) -> None:
    settings(home).write_text("{ not json")
    done = home.memctl("up")
    assert done.returncode == 0, done.stderr
    assert "hooks" not in done.stderr
    assert settings(home).read_text() == "{ not json"
