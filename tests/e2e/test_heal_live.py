"""Healing while the daemon runs: new logins, re-made folders, whole trees at once, exhausted watches."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.memory.key import project_key
from support_daemon import Home, eventually

CASES = Path(__file__).resolve().parent.parent / "cases"


class Agent:
    """An agent home in a checkout below a temporary home, enrolled with a running daemon."""

    def __init__(self, home: Home, path: Path) -> None:
        self.home = home
        self.path = path
        (path / ".git").mkdir(parents=True, exist_ok=True)
        (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.owned = path / ".memd" / "memory"
        self.key = project_key(os.fsencode(path.resolve()))

    def enroll(self) -> None:
        done = self.home.memctl("enroll", str(self.path))
        assert done.returncode == 0, done.stderr

    def entry(self, login: str) -> Path:
        return self.home.path / login / "projects" / self.key / "memory"

    def is_linked(self, login: str) -> bool:
        entry = self.entry(login)
        return entry.is_symlink() and entry.resolve() == self.owned.resolve()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    yield made
    made.end_all()


@pytest.fixture
def agent(home: Home, tmp_path: Path) -> Agent:
    return Agent(home, (tmp_path / "work" / "proj").resolve())


def login(home: Home, name: str) -> Path:
    folder = home.path / name
    folder.mkdir()
    (folder / ".credentials.json").write_text('{"made": "up"}')
    return folder


def replace_by_folder(entry: Path) -> None:
    """As a harness does it in two steps; memd may make the link again in between."""
    while True:
        entry.unlink()
        try:
            entry.mkdir()
        except FileExistsError:
            continue
        return


def remove(folder: Path) -> None:
    """As a person does it; memd may make a link again in between, as long as the login is one."""
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as reason:
            if reason.errno != errno.ENOTEMPTY:
                raise


def snapshot(folder: Path) -> dict[str, str]:
    """Every path below a folder with its kind and content."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(at, name)
            key = str(path.relative_to(folder))
            if path.is_symlink():
                found[key] = "link " + os.readlink(path)
            elif path.is_dir():
                found[key] = "folder"
            else:
                found[key] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_a_login_that_appears_while_memd_runs_is_linked(home: Home, agent: Agent) -> None:
    home.start()
    agent.enroll()
    login(home, ".claude-work")
    eventually(lambda: agent.is_linked(".claude-work"), 5)


def test_a_login_that_becomes_one_only_later_is_linked_then(home: Home, agent: Agent) -> None:
    home.start()
    agent.enroll()
    (home.path / ".claude-late").mkdir()
    login(home, ".claude")
    eventually(lambda: agent.is_linked(".claude"), 5)
    assert not (home.path / ".claude-late" / "projects").exists()
    (home.path / ".claude-late" / ".credentials.json").write_text("{}")
    eventually(lambda: agent.is_linked(".claude-late"), 5)


def test_a_folder_of_another_tool_is_never_touched(home: Home, agent: Agent) -> None:
    tool = home.path / ".claude-mem"
    tool.mkdir()
    (tool / "settings.json").write_text("{}")
    before = snapshot(tool)
    home.start()
    agent.enroll()
    login(home, ".claude")
    eventually(lambda: agent.is_linked(".claude"), 5)
    assert snapshot(tool) == before


def test_a_link_replaced_by_a_real_folder_is_merged_and_made_again(home: Home, agent: Agent) -> None:
    login(home, ".claude")
    home.start()
    agent.enroll()
    for round_ in range(3):
        entry = agent.entry(".claude")
        replace_by_folder(entry)
        (entry / f"note{round_}.md").write_text(f"body {round_}\n")
        eventually(lambda: agent.is_linked(".claude"), 5)
    for round_ in range(3):
        assert (agent.owned / f"note{round_}.md").read_text() == f"body {round_}\n"


def test_a_removed_and_remade_login_is_linked_again(home: Home, agent: Agent) -> None:
    folder = login(home, ".claude")
    home.start()
    agent.enroll()
    (agent.owned / "kept.md").write_text("kept\n")
    for _ in range(3):
        remove(folder)
        login(home, ".claude")
        eventually(lambda: agent.is_linked(".claude"), 5)
    assert (agent.entry(".claude") / "kept.md").read_text() == "kept\n"


def test_a_config_dir_named_by_a_client_is_looked_after_from_then_on(
    home: Home, agent: Agent, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home.start()
    agent.enroll()
    assert home.memctl("where", str(agent.path), CLAUDE_CONFIG_DIR=str(elsewhere)).returncode == 0
    link = elsewhere / "projects" / agent.key / "memory"
    eventually(link.is_symlink, 5)
    home.end_all()
    link.unlink()
    home.start()
    eventually(link.is_symlink, 5)


def test_every_other_file_of_a_login_stays_byte_identical(home: Home, agent: Agent) -> None:
    folder = login(home, ".claude")
    (folder / "settings.json").write_text('{"theme":"dark"}')
    (folder / "projects" / "-other-project" / "memory").mkdir(parents=True)
    (folder / "projects" / "-other-project" / "memory" / "MEMORY.md").write_text("# not ours\n")
    (folder / "plans").mkdir()
    (folder / "plans" / "a.md").write_text("a plan\n")
    before = snapshot(folder)
    home.start()
    agent.enroll()
    eventually(lambda: agent.is_linked(".claude"), 5)
    after = snapshot(folder)
    ours = f"projects/{agent.key}"
    assert {k: v for k, v in after.items() if not k.startswith(ours)} == before


@pytest.mark.parametrize("mode", ["at-once", "--moved"])
@pytest.mark.parametrize("watching", ["events", "no-watches", "polling"])
def test_a_store_that_appears_all_at_once_is_healed_within_five_seconds(
    tmp_path: Path, mode: str, watching: str
) -> None:
    dest = (tmp_path / "d").resolve()
    case = CASES / "36-late-tree-burst" / "make.py"
    subprocess.run([sys.executable, "-B", case, dest], check=True, capture_output=True)
    home = Home(dest / "home", runtime=tmp_path / "run")
    agent = Agent(home, dest / "work" / "proj")
    if watching == "polling":
        (home.path / ".config/memd").mkdir(parents=True)
        (home.path / ".config/memd/config.toml").write_text('[watch]\nmode = "poll"\n')
    if watching == "no-watches":
        _start_without_watches(home)
    else:
        home.start()
    try:
        agent.enroll()
        words = [] if mode == "at-once" else [mode]
        subprocess.run(
            [sys.executable, "-B", dest / "burst.py", dest, *words], check=True, capture_output=True
        )
        eventually(lambda: agent.is_linked(".claude") and (agent.owned / "late.md").exists(), 5)
        assert (agent.owned / "late.md").read_text() == "late note\n"
        if watching == "no-watches":
            report = home.json("status")
            assert report["watch"]["state"] == "limited"
            log = (home.path / ".local/state/memd/memd.log").read_text()
            assert log.count("watch.limited") == 1
    finally:
        home.memctl("down")
        home.end_all()


def _start_without_watches(home: Home) -> None:
    """A daemon in a user namespace of its own whose watches are used up."""
    script = 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-P", "-m", "memd"]
    child = subprocess.Popen(
        command, env=home.environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    home._started.append(child)
    eventually(lambda: home.answers() or child.poll() is not None)
    if child.poll() is not None:
        assert child.stderr is not None
        pytest.skip(f"no user namespaces here: {child.stderr.read().decode().strip()}")


def test_healing_can_be_left_to_the_command(home: Home, agent: Agent) -> None:
    (home.path / ".config/memd").mkdir(parents=True)
    (home.path / ".config/memd/config.toml").write_text("[memory]\nheal = false\nrescan_s = 1\n")
    home.start()
    agent.enroll()
    login(home, ".claude")
    plan = home.json("heal", "--dry-run")
    assert [row["outcome"] for row in plan] == ["linked"]
    assert plan[0]["changed"]
    assert plan[0]["steps"]
    assert not agent.entry(".claude").exists()
    done = home.memctl("heal", "--cwd", str(agent.path))
    assert done.returncode == 0, done.stderr
    assert agent.is_linked(".claude")


def test_where_answers_in_the_contracted_form(home: Home, agent: Agent) -> None:
    login(home, ".claude")
    home.start()
    agent.enroll()
    sub = agent.path / "src"
    sub.mkdir()
    document = json.loads(home.memctl("where", "--json", str(sub)).stdout)
    assert document == {
        "root": str(agent.path),
        "key": agent.key,
        "owned": str(agent.owned),
        "entries": [
            {
                "config_home": str(home.path / ".claude"),
                "path": str(agent.entry(".claude")),
                "state": "linked",
            }
        ],
    }
    other = json.loads(home.memctl("where", "--json", str(home.path)).stdout)
    assert other["owned"] is None


def test_unenroll_leaves_folders_of_their_own_and_nothing_of_memd_in_between(
    home: Home, agent: Agent
) -> None:
    login(home, ".claude")
    login(home, ".claude-work")
    home.start()
    agent.enroll()
    (agent.owned / "n.md").write_text("n\n")
    done = home.memctl("unenroll", str(agent.path))
    assert done.returncode == 0, done.stderr
    for name in (".claude", ".claude-work"):
        entry = agent.entry(name)
        assert not entry.is_symlink()
        assert (entry / "n.md").read_text() == "n\n"
    assert home.memctl("heal").returncode == 0
    assert not agent.entry(".claude").is_symlink()


def test_an_agent_inside_a_bigger_repository_is_named_and_needs_a_yes(home: Home, agent: Agent) -> None:
    inner = agent.path / "agents" / "one"
    inner.mkdir(parents=True)
    home.start()
    asked = home.memctl("enroll", str(inner))
    assert asked.returncode == 77
    assert str(agent.path) in asked.stderr
    assert not (agent.path / ".memd").exists()
    assert not (inner / ".memd").exists()
    yes = home.memctl("enroll", "--yes", str(inner))
    assert yes.returncode == 0, yes.stderr
    assert (agent.path / ".memd" / "memory").is_dir()
    assert not (inner / ".memd").exists()


def test_owned_memory_stays_out_of_git(home: Home, agent: Agent) -> None:
    shutil.rmtree(agent.path / ".git")
    subprocess.run(["git", "init", "-q", agent.path], check=True, env=home.environment)
    home.start()
    agent.enroll()
    (agent.owned / "private.md").write_text("mine\n")
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=agent.path,
        capture_output=True,
        text=True,
        check=True,
        env=home.environment,
    )
    assert "private.md" not in status.stdout
