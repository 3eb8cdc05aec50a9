"""`memctl show`: a project and an agent are chosen on a terminal, and the agent is started there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support_desk import MEMCTL, Desk
from support_git import checkout
from support_terminal import Terminal

PLAIN = {"TERM": "dumb"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    registry(shared).unlink(missing_ok=True)
    return shared


@pytest.fixture
def around(desk: Desk, tmp_path: Path) -> Path:
    """A folder with two projects, whose names are not the plainest."""
    folder = tmp_path / "wörk dir"
    for name in ("zwei drei", "äpp"):
        checkout(folder / name)
    (folder / "other").mkdir()
    return folder


def registry(desk: Desk) -> Path:
    return desk.home.path / ".local/share/memd/projects.json"


def show(desk: Desk, cwd: Path, *words: str, do: str = "exit:7", **more: str) -> Terminal:
    terminal = Terminal(
        [*MEMCTL, "show", *words], {**desk.home.environment, "FAKE_DO": do, **more}, cwd, columns=80
    )
    desk._screens.append(terminal)
    return terminal


def listed(desk: Desk, cwd: Path, *words: str) -> Any:
    done = desk.home.memctl("show", "--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---------------------------------------------------------------------------------------- as JSON


def test_the_document_lists_projects_and_agents_and_starts_nothing(desk: Desk, around: Path) -> None:
    desk.ok("claude", cwd=around / "äpp", do="say:hello")
    found = listed(desk, around)
    assert found["ledger"] == "local"
    assert found["harnesses"] == ["claude", "codex", "omp", "opencode", "pi"]
    first, second = sorted(found["projects"], key=lambda one: str(one["source"]))
    assert (first["project"], first["source"], first["tracked"]) == ("äpp", "registry", True)
    assert (first["path"], first["workstream_count"]) == (str(around / "äpp"), 1)
    assert first["event_count"] >= 2
    assert first["last_updated"].endswith("Z")
    assert second == {
        "workspace": "default",
        "project": "zwei drei",
        "path": str(around / "zwei drei"),
        "source": "scan",
        "tracked": False,
        "workstream_count": 0,
        "event_count": 0,
        "last_updated": None,
    }
    assert [one["project"] for one in listed(desk, around, "--no-scan")["projects"]] == ["äpp"]
    assert listed(desk, around, "--workspace", "other")["projects"] == []
    assert len(desk.fakes.starts()) == 1


def test_a_link_whose_directory_moved_is_named_and_left_in_the_registry(desk: Desk, around: Path) -> None:
    desk.ok("claude", cwd=around / "äpp", do="say:hello")
    (around / "äpp").rename(around / "new")
    before = registry(desk).read_bytes()
    done = desk.home.memctl("show", "--json", "--no-scan", cwd=around)
    assert json.loads(done.stdout)["projects"] == []
    assert f"memctl: passed over default/äpp in {around}/äpp: there is no such directory" in done.stderr
    assert registry(desk).read_bytes() == before


@pytest.mark.parametrize("words", [["-m", "opus"], ["--yolo"], ["--fresh"], ["--", "x"]])
def test_a_list_refuses_what_is_for_a_launch(desk: Desk, words: list[str]) -> None:
    done = desk.home.memctl("show", "--json", *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert "--json starts nothing" in done.stderr


def test_without_a_terminal_nothing_is_asked(desk: Desk) -> None:
    done = desk.home.memctl("show", stdin="1\n1\n")
    assert (done.returncode, done.stdout) == (64, "")
    assert "memctl show --json" in done.stderr


def test_a_registry_that_is_not_understood_is_refused_and_left(desk: Desk, around: Path) -> None:
    registry(desk).parent.mkdir(parents=True, exist_ok=True)
    registry(desk).write_text('{"version":2}')
    done = desk.home.memctl("show", "--json", cwd=around)
    assert (done.returncode, done.stdout) == (78, "")
    assert registry(desk).read_text() == '{"version":2}'


# ---------------------------------------------------------------------------------- on a terminal


def test_the_agent_is_started_in_the_chosen_project_with_its_words(desk: Desk, around: Path) -> None:
    screen = show(desk, around, "-m", "two words", "--yolo", **PLAIN)
    screen.until("Project [1]: ")
    screen.forget()
    screen.type("zwei\r")
    screen.until("Project [1]: ")
    screen.type("\r")
    screen.until("Start [1]: ")
    screen.type("1\r")
    assert screen.wait() == 7
    start = desk.fakes.last()
    assert start["name"] == "claude"
    assert start["cwd"] == str(around / "zwei drei")
    assert "--session-id" in start["args"]
    assert [word for word in start["args"] if word in ("-m", "two words")] == ["-m", "two words"]
    assert "--dangerously-skip-permissions" in start["args"]
    assert f"starting claude for default/zwei drei in {around}/zwei drei" in screen.text()
    asked = screen.text().partition("Start [1]")[0]
    assert [line for line in asked.splitlines() if len(line) > 80 and str(around) not in line] == []


def test_where_one_left_off_is_the_first_choice(desk: Desk, around: Path) -> None:
    desk.ok("codex", cwd=around / "äpp", do="say:hello")
    session = desk.json("sessions", "--cwd", str(around / "äpp"))[0]["id"]
    screen = show(desk, around, **PLAIN)
    screen.until("just now")
    screen.type("äpp\r")
    screen.until("1  äpp")
    screen.type("\r")
    screen.until("go on where you left off")
    screen.type("\r")
    assert screen.wait() == 7
    assert desk.fakes.last()["name"] == "codex"
    assert desk.args() == ["resume", session]


def test_what_is_chosen_is_looked_at_again(desk: Desk, around: Path) -> None:
    screen = show(desk, around, **PLAIN)
    screen.until("Project [1]")
    screen.type("äpp\r\r")
    screen.until("Start [1]")
    (around / "äpp" / ".memd.toml").write_text('project = "elsewhere"\n')
    screen.type("\r")
    assert screen.wait() == 75
    assert "it belongs to default/elsewhere by now" in screen.text()
    assert "Run `memctl show` again." in screen.text()
    assert desk.fakes.starts() == []


@pytest.mark.parametrize("key", ["\x03", "q\r", "\x04"])
def test_leaving_is_no_failure(desk: Desk, around: Path, key: str) -> None:
    screen = show(desk, around, **PLAIN)
    screen.until("Project [1]")
    screen.type(key)
    assert screen.wait() == 0
    assert desk.fakes.starts() == []


def test_a_new_project_is_made_and_the_agent_started_in_it(desk: Desk, around: Path) -> None:
    screen = show(desk, around, "--workspace", "acme", **PLAIN)
    screen.until("Project [+]")
    screen.type("\r")
    screen.until("Name of the new project")
    screen.type("fresh\r")
    screen.until("Start in fresh")
    screen.type("pi\r")
    assert screen.wait() == 7
    assert desk.fakes.last()["name"] == "pi"
    assert desk.fakes.last()["cwd"] == str(around / "fresh")
    found = listed(desk, around, "--workspace", "acme")["projects"]
    assert [(one["workspace"], one["project"], one["source"]) for one in found] == [
        ("acme", "fresh", "registry")
    ]
    assert not [name for name in os.listdir(around) if name.startswith(".memd-project")]


def test_without_an_agent_in_path_nothing_is_asked(desk: Desk, around: Path, tmp_path: Path) -> None:
    screen = show(desk, around, PATH=str(tmp_path / "none"))
    assert screen.wait() == 64
    assert "no agent that memd can start was found in PATH" in screen.text()


def test_while_memd_is_away_projects_are_listed_and_one_is_made(
    desk: Desk, around: Path, tmp_path: Path
) -> None:
    """Everything but the launch: that one needs a daemon, and fails before the agent when there is none."""
    desk.ok("claude", cwd=around / "äpp", do="say:hello")
    assert desk.home.memctl("down").returncode == 0
    found = listed(desk, around)
    assert [(one["project"], one["tracked"]) for one in found["projects"]] == [
        ("äpp", None),
        ("zwei drei", None),
    ]
    assert not desk.home.answers()
    (tmp_path / "file").touch()
    screen = show(desk, around, XDG_STATE_HOME=str(tmp_path / "file"), **PLAIN)
    screen.until("Project [1]")
    screen.type("+\rfresh\r")
    screen.until("Start [1]")
    screen.type("claude\r")
    assert screen.wait() == 73
    assert "cannot make the folder" in screen.text()
    assert (around / "fresh" / ".memd.toml").is_file()
    assert len(desk.fakes.starts()) == 1


def test_the_window_chooses_and_leaves_the_terminal_as_it_was(desk: Desk, around: Path) -> None:
    pytest.importorskip("textual", reason="the extra `tui` is not installed")
    screen = show(desk, around, do="tty exit:7")
    screen.until("+ New project")
    screen.until("zwei drei")
    screen.type("zwei\r")
    screen.until("What shall be started in")
    screen.type("\r")
    screen.until("foreground 80")
    assert screen.wait() == 7
    assert desk.fakes.last()["cwd"] == str(around / "zwei drei")


@pytest.mark.parametrize("key", ["\x1b", "\x03", "q"])
def test_leaving_the_window_is_no_failure(desk: Desk, around: Path, key: str) -> None:
    pytest.importorskip("textual", reason="the extra `tui` is not installed")
    screen = show(desk, around, NO_COLOR="1")
    screen.until("+ New project")
    screen.until("zwei drei")
    screen.type(key)
    assert screen.wait() == 0
    assert desk.fakes.starts() == []


def test_a_directory_that_is_gone_is_named(desk: Desk, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec {' '.join(MEMCTL)} show --json"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=desk.home.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 64
    assert "this directory is gone" in done.stderr
