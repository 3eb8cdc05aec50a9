"""`memctl doctor` resolves every installed hook to what would run, without a daemon too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support_daemon import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run", PATH="/usr/bin:/bin")
    for folder in (".claude", ".pi/agent"):
        (made.path / folder).mkdir(parents=True)
    yield made
    made.memctl("down")


@pytest.fixture
def installed(home: Home) -> Home:
    assert home.memctl("install-hooks", "--apply").returncode == 0
    return home


def findings(home: Home, **more: Any) -> dict[str, tuple[str, str]]:
    """Level and message of what is said of hooks, by subject."""
    done = home.memctl("doctor", "--json", **more)
    return {
        one["subject"]: (one["level"], one["message"])
        for one in json.loads(done.stdout)["findings"]
        if one["subject"].startswith("hook")
    }


def settings(home: Home) -> Path:
    return home.path / ".claude" / "settings.json"


def hook(home: Home) -> Path:
    return home.path / ".local/share/memd/hook/memd_hook.py"


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_agents_without_hooks_are_noted_and_no_more(home: Home) -> None:
    assert findings(home) == {
        "hooks of claude": ("note", f"none in {settings(home)}"),
        "hooks of pi": ("note", f"none in {home.path}/.pi/agent/extensions/memd-pi.ts"),
    }


def test_installed_hooks_are_well_also_without_a_daemon(installed: Home) -> None:
    installed.memctl("down")
    assert {level for level, _ in findings(installed).values()} == {"ok"}
    assert findings(installed)["hooks of claude"][1] == f"4 events in {settings(installed)}"
    assert findings(installed)["hook"] == ("ok", str(hook(installed)))


def test_a_directory_that_is_gone_keeps_nobody_from_looking_and_installing(installed: Home) -> None:
    gone = installed.path / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    for words, status in (("doctor --json", 0), ("install-hooks --agent claude", 0)):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", script, str(gone), sys.executable, "-P", "-m", "memctl", *words.split()],
            env=installed.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert "gone" not in done.stderr


def test_an_interpreter_that_is_gone_is_named(installed: Home) -> None:
    text = settings(installed).read_text()
    interpreter = json.loads(text)["hooks"]["Stop"][0]["hooks"][0]["command"].split()[0]
    settings(installed).write_text(text.replace(interpreter, "/gone/bin/python3.9"))
    assert findings(installed)["hooks of claude"] == (
        "warning",
        f"{settings(installed)}: /gone/bin/python3.9, which is to run the hook, does not",
    )


def test_hooks_of_another_memd_and_missing_events_are_named(installed: Home) -> None:
    rewrite(settings(installed), str(hook(installed)), "/elsewhere/memd_hook.py")
    rewrite(settings(installed), '"SessionEnd": [', '"Sometimes": [')
    level, message = findings(installed)["hooks of claude"]
    assert level == "warning"
    assert "/elsewhere/memd_hook.py belongs to another memd" in message
    assert "no hook for SessionEnd" in message
    assert "a hook for Sometimes, which memd no longer listens to" in message


def test_the_file_that_hooks_run_is_looked_at(installed: Home) -> None:
    hook(installed).write_bytes(b"old")
    assert findings(installed)["hook"][0] == "warning"
    hook(installed).unlink()
    level, message = findings(installed)["hook"]
    assert (level, message) == ("problem", f"{hook(installed)}, which agents run, is not there")


@pytest.mark.parametrize(
    "name", [".claude/settings.json", "work/.claude/settings.json", "work/.claude/settings.local.json"]
)
def test_a_switch_that_keeps_hooks_from_running_is_named(installed: Home, name: str) -> None:
    path = installed.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, "disableAllHooks": True}))
    (installed.path / "work").mkdir(exist_ok=True)
    level, message = findings(installed, cwd=installed.path / "work")["hooks of claude"]
    assert level == "warning"
    assert f"`disableAllHooks` in {path}" in message


def test_a_plug_in_that_is_not_this_packages_is_named(installed: Home) -> None:
    plugin = installed.path / ".pi/agent/extensions/memd-pi.ts"
    plugin.write_text(plugin.read_text() + "// mine\n")
    assert findings(installed)["hooks of pi"] == ("warning", f"{plugin}: it was edited")


def test_settings_that_broke_are_named(installed: Home) -> None:
    rewrite(settings(installed), "{", "{{")
    level, message = findings(installed)["hooks of claude"]
    assert level == "warning"
    assert "not JSON" in message


def test_a_folder_that_no_variable_names_any_more_is_still_looked_at(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home.memctl("install-hooks", "--agent", "pi", "--apply", PI_CODING_AGENT_DIR=str(elsewhere))
    done = home.memctl("doctor", "--json")
    told = [one for one in json.loads(done.stdout)["findings"] if one["subject"] == "hooks of pi"]
    assert [(one["level"], os.path.dirname(one["message"].split()[-1])) for one in told] == [
        ("note", f"{home.path}/.pi/agent/extensions"),
        ("ok", f"{elsewhere}/extensions"),
    ]


def test_an_agent_whose_hooks_have_nowhere_to_stand_is_noted(home: Home) -> None:
    (home.path / ".kiro").mkdir()
    done = home.memctl("install-hooks", "--agent", "kiro", "--apply")
    agents = home.path / ".kiro/agents"
    assert f"{agents} holds no file for hooks to stand in" in done.stderr
    told = json.loads(home.memctl("doctor", "--json").stdout)["findings"]
    levels = {one["level"]: one["message"] for one in told if one["subject"] == "hooks of kiro"}
    assert levels["ok"] == f"2 events in {home.path}/.kiro/hooks/memd.json"
    assert levels["note"].startswith(f"{agents} holds no file for hooks")
    agents.mkdir()
    (agents / "mine.json").write_text("{}")
    assert home.memctl("install-hooks", "--agent", "kiro", "--apply").returncode == 0
    again = json.loads(home.memctl("doctor", "--json").stdout)["findings"]
    assert {one["level"] for one in again if one["subject"] == "hooks of kiro"} == {"ok"}


def test_a_program_whose_folder_is_still_to_be_made_is_told_of_too(home: Home, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "kiro-cli"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = home.memctl("install-hooks", PATH=f"{program.parent}:/usr/bin:/bin")
    assert ".kiro/agents holds no file for hooks to stand in" in done.stderr
    assert ".kiro" not in home.memctl("install-hooks").stderr
