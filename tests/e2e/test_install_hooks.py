"""`memctl install-hooks` and `uninstall-hooks` on whole homes: what is theirs stays."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import support_cases
from memctl.hooks import command as hook_command
from support_daemon import Home, eventually

CASE = "30-install-hooks-dotfiles"
EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = make_home(tmp_path, "home")
    yield made
    made.memctl("down")


def make_home(tmp_path: Path, name: str, **variables: str) -> Home:
    """A home in which no agent's program is found."""
    return Home(tmp_path / name, runtime=tmp_path / "run", **{"PATH": "/usr/bin:/bin", **variables})


def ours(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event, groups in json.loads(text)["hooks"].items():
        for group in groups:
            for handler in group["hooks"]:
                if hook_command.read(handler["command"]) is not None:
                    found.setdefault(event, []).append(handler["command"])
    return found


def tree(path: Path) -> dict[str, bytes | str]:
    """Every file and link below, but what belongs to memd itself."""
    found: dict[str, bytes | str] = {}
    for one in sorted(path.rglob("*")):
        name = str(one.relative_to(path))
        if name.startswith((".local", ".config/memd")):
            continue
        if one.is_symlink():
            found[name] = f"-> {os.readlink(one)}"
        elif one.is_file():
            found[name] = one.read_bytes()
    return found


def only(answer: Any) -> dict[str, Any]:
    (one,) = answer
    assert isinstance(one, dict)
    return one


# ------------------------------------------------------------------------ the dotfiles case


def test_settings_in_a_dotfiles_repository(tmp_path: Path) -> None:
    made = support_cases.build(CASE, tmp_path)
    expected = support_cases.expectation(CASE)
    home = make_home(tmp_path, expected["home"])
    assert str(home.path) == made["home"]
    real = home.path / "dotfiles" / "claude" / "settings.base.json"
    before = real.read_bytes()
    try:
        answer = only(home.json("install-hooks", "--agent", "claude", "--apply"))
        after = real.read_text()
        again = only(home.json("install-hooks", "--agent", "claude", "--apply"))
        assert (answer["state"], answer["changed"], again["state"], again["changed"]) == (
            "outdated",
            True,
            "current",
            expected["second_install_changes_bytes"],
        )
        assert real.read_text() == after
        for link in expected["still_links"]:
            assert (tmp_path / link).is_symlink()

        # everything of others, in its order
        old, new = json.loads(before), json.loads(after)
        assert list(new) == list(old)
        assert {**new, "hooks": None} == {**old, "hooks": None}
        foreign = [
            handler["command"]
            for event in old["hooks"]
            for group in new["hooks"][event]
            for handler in group["hooks"]
            if hook_command.read(handler["command"]) is None
        ]
        assert foreign == expected["foreign_commands"]
        assert new["hooks"]["SessionStart"][0] == old["hooks"]["SessionStart"][0]
        assert "備考" in after

        # one of ours per event, for every source, and a shell runs it with the least of environments
        mine = ours(after)
        assert {event: len(commands) for event, commands in mine.items()} == dict.fromkeys(EVENTS, 1)
        assert "matcher" not in new["hooks"]["SessionStart"][1]
        for commands in mine.values():
            done = subprocess.run(
                ["sh", "-c", commands[0]],
                env={"PATH": "/usr/bin:/bin", "HOME": str(home.path)},
                input=b"{}",
                capture_output=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, b"")
        (copy,) = real.parent.glob("settings.base.json.bak-*")
        assert copy.read_bytes() == before

        assert only(home.json("uninstall-hooks", "--apply"))["changed"]
        left = json.loads(real.read_text())
        del old["hooks"]["SessionStart"][1]  # the stale one of ours
        assert left == old
        assert home.json("uninstall-hooks", "--apply") == []
    finally:
        home.memctl("down")


# -------------------------------------------------------------------------- all the agents


def test_every_agent_on_the_machine_and_every_login_gets_hooks_and_loses_them_again(home: Home) -> None:
    (home.path / ".claude").mkdir()
    (home.path / ".claude.json").write_text("{}")
    (home.path / ".claude-work").mkdir()
    (home.path / ".claude-work" / ".claude.json").write_text("{}")
    (home.path / ".claude-work" / "settings.json").write_text('{\n\t"model": "x"\n}')
    (home.path / ".claude-notes").mkdir()  # no login
    for folder in (".codex", ".config/opencode", ".pi/agent", ".omp/agent"):
        (home.path / folder).mkdir(parents=True)
    (home.path / ".omp/agent/extensions").mkdir()
    before = tree(home.path)
    plan = home.json("install-hooks")
    assert tree(home.path) == before
    assert [(one["agent"], one["state"], one["changed"]) for one in plan] == [
        (agent, "missing", False) for agent in ("claude", "claude", "codex", "omp", "opencode", "pi")
    ]
    assert all(one["diff"] for one in plan)
    done = home.json("install-hooks", "--apply")
    assert [one["path"] for one in done] == [one["path"] for one in plan]
    assert all(one["changed"] and os.path.isfile(one["path"]) for one in done)
    installed = tree(home.path)
    assert not [name for name in installed if ".claude-notes" in name]
    again = home.json("install-hooks", "--apply")
    assert [(one["state"], one["changed"], one["diff"]) for one in again] == [("current", False, "")] * 6
    assert tree(home.path) == installed
    assert home.memctl("uninstall-hooks").returncode == 0
    assert tree(home.path) == installed
    assert all(one["changed"] for one in home.json("uninstall-hooks", "--apply"))
    left = {name: text for name, text in tree(home.path).items() if ".bak-" not in name}
    assert left == before


def test_taking_hooks_out_leaves_no_empty_folder(home: Home) -> None:
    before = sorted(home.path.iterdir())
    for agent in ("claude", "codex", "omp", "opencode", "pi"):
        home.json("install-hooks", "--agent", agent, "--apply")
    assert (home.path / ".omp/agent/extensions").is_dir()
    assert len(home.json("uninstall-hooks", "--apply")) == 5
    left = {one.name for one in set(home.path.iterdir()) - set(before)}
    assert left <= {".local", ".config", ".cache"}
    assert not (home.path / ".config/opencode").exists()


def test_nobody_here_is_said(home: Home) -> None:
    done = home.memctl("install-hooks")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No agent was found" in done.stderr
    assert home.json("install-hooks") == []
    assert "No hooks of memd were found" in home.memctl("uninstall-hooks").stdout


def test_an_agent_is_found_by_its_program_or_named(home: Home, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\nexit 3\n")
    (programs / "codex").chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    assert only(home.json("install-hooks", PATH=path))["agent"] == "codex"
    assert only(home.json("install-hooks", "--agent", "PI"))["agent"] == "pi"
    refused = home.memctl("install-hooks", "--agent", "nobody")
    assert refused.returncode == 64
    assert "nobody" in refused.stderr
    done = home.memctl("install-hooks", "--apply", PATH=path)
    assert done.returncode == 0
    assert "could not be asked whether it trusts" in done.stderr
    assert home.memctl("install-hooks", "--apply", "--trust", PATH=path).returncode == 69


def test_people_see_a_diff_first_and_a_line_per_file_then(home: Home) -> None:
    (home.path / ".codex").mkdir()
    (home.path / ".codex/hooks.json").write_text('{"hooks": {}}\n')
    (home.path / ".pi/agent").mkdir(parents=True)
    shown = home.memctl("install-hooks")
    assert "+++ " in shown.stdout
    assert '"SessionStart": [' in shown.stdout
    assert "memd-pi.ts" in shown.stdout
    assert len(shown.stdout) < 6000, "a whole file of memd's own is named, not shown"
    assert "Add --apply" in shown.stderr
    done = home.memctl("install-hooks", "--apply")
    assert "codex: hooks installed" in done.stdout
    assert "hooks.json.bak-" in done.stdout
    assert "once you trust them" in done.stderr
    assert "start them again" in done.stderr
    assert "all hooks are there already" in home.memctl("install-hooks", "--apply").stdout
    assert "codex: hooks taken out" in home.memctl("uninstall-hooks", "--apply").stdout
    assert (home.path / ".codex/hooks.json").read_text() == '{"hooks": {}}\n'


# --------------------------------------------------------------------- what is refused, untouched


@pytest.fixture
def codex(home: Home) -> Path:
    (home.path / ".codex").mkdir()
    return home.path / ".codex" / "hooks.json"


@pytest.mark.parametrize(
    "content", [b"{ broken", b"[]", b'{"hooks": 1}', b"\xff\xfe{\0}\0", b'{"hooks": {"Stop": 1}}']
)
def test_settings_that_are_not_understood_stay_and_the_others_get_theirs(
    home: Home, codex: Path, content: bytes
) -> None:
    codex.write_bytes(content)
    (home.path / ".pi/agent").mkdir(parents=True)
    done = home.memctl("install-hooks", "--apply")
    assert done.returncode == 77
    assert str(codex) in done.stderr
    assert "nothing was changed there" in done.stderr
    assert "->" in done.stderr
    assert codex.read_bytes() == content
    assert os.listdir(codex.parent) == ["hooks.json"]
    assert (home.path / ".pi/agent/extensions/memd-pi.ts").is_file()
    states = {one["agent"]: one["state"] for one in json.loads(home.memctl("install-hooks", "--json").stdout)}
    assert states == {"codex": "refused", "pi": "current"}


def test_links_that_lead_nowhere_are_refused_and_not_made_real(home: Home, codex: Path) -> None:
    codex.symlink_to(home.path / "gone" / "hooks.json")
    done = home.memctl("install-hooks", "--agent", "codex", "--apply")
    assert done.returncode == 77
    assert "does not exist" in done.stderr
    assert not (home.path / "gone").exists()
    codex.unlink()
    codex.symlink_to("hooks.json")  # to itself
    assert home.memctl("install-hooks", "--agent", "codex", "--apply").returncode == 77
    (home.path / ".omp").mkdir()
    (home.path / ".omp/agent").symlink_to(home.path / "unmounted")
    assert home.memctl("install-hooks", "--agent", "omp", "--apply").returncode == 77
    assert not (home.path / "unmounted").exists()


def test_what_may_not_be_written_is_refused(home: Home, codex: Path) -> None:
    codex.write_text("{}")
    codex.chmod(0o444)
    done = home.memctl("install-hooks", "--agent", "codex", "--apply")
    assert done.returncode == 77
    assert "may not be written" in done.stderr
    assert codex.read_text() == "{}"
    codex.chmod(0o644)
    codex.unlink()
    codex.mkdir()
    assert "no regular file" in home.memctl("install-hooks", "--agent", "codex", "--apply").stderr


def test_a_home_that_settings_cannot_name_is_refused(tmp_path: Path) -> None:
    home = make_home(tmp_path, "h\udcff")
    (home.path / ".codex").mkdir()
    done = home.memctl("install-hooks", "--agent", "codex", "--apply")
    assert done.returncode == 77
    assert "not UTF-8" in done.stderr
    assert "XDG_DATA_HOME" in done.stderr
    assert os.listdir(home.path / ".codex") == []
    elsewhere = tmp_path / "data"
    assert (
        home.memctl("install-hooks", "--agent", "codex", "--apply", XDG_DATA_HOME=str(elsewhere)).returncode
        == 0
    )


# -------------------------------------------------------------------------------- stays as it was


def test_mode_and_byte_order_mark_and_line_ends_are_kept(home: Home, codex: Path) -> None:
    before = '\ufeff{\r\n\t"note": "é", // c\r\n}'.encode()
    codex.write_bytes(before)
    codex.chmod(0o640)
    assert only(home.json("install-hooks", "--agent", "codex", "--apply"))["changed"]
    made = codex.read_bytes()
    assert made.startswith('\ufeff{\r\n\t"note": "é", // c\r\n\t"hooks": {\r\n'.encode())
    assert made.count(b"\n") == made.count(b"\r\n")
    assert codex.stat().st_mode & 0o777 == 0o640
    (copy,) = codex.parent.glob("*.bak-*")
    assert (copy.read_bytes(), copy.stat().st_mode & 0o777) == (before, 0o640)
    assert only(home.json("uninstall-hooks", "--agent", "codex", "--apply"))["changed"]
    assert codex.read_bytes() == before


def test_a_command_stays_the_same_through_another_environment_and_back(home: Home, codex: Path) -> None:
    """Codex's trust is lost with the text: an interpreter that runs is kept."""
    home.json("install-hooks", "--agent", "codex", "--apply")
    made = codex.read_text()
    interpreter = shlex.split(ours(made)["Stop"][0])[0]
    python = home.path / "other python"
    python.symlink_to(interpreter)
    moved = made.replace(interpreter, shlex.quote(str(python)))
    codex.write_text(moved)
    assert only(home.json("install-hooks", "--agent", "codex", "--apply"))["state"] == "current"
    assert codex.read_text() == moved
    python.unlink()
    assert only(home.json("install-hooks", "--agent", "codex", "--apply"))["state"] == "outdated"
    assert codex.read_text() == made


def test_two_installs_at_once_leave_one_of_each(home: Home, codex: Path) -> None:
    codex.write_text('{"hooks": {"Stop": []}}')
    command = [*home_command(home), "install-hooks", "--agent", "codex", "--apply"]
    running = [
        subprocess.Popen(command, env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [(one.communicate(timeout=60)[1], one.returncode) for one in running]
    assert [code for _, code in said] == [0, 0, 0], said
    assert {event: len(found) for event, found in ours(codex.read_text()).items()} == dict.fromkeys(EVENTS, 1)
    assert len(list(codex.parent.glob("*.bak-*"))) == 1


def home_command(home: Home) -> list[str]:
    import sys

    return [sys.executable, "-P", "-m", "memctl"]


# ------------------------------------------------------------------------------ plug-ins


def test_a_plug_in_that_was_edited_is_kept_beside_and_a_foreign_one_stays(home: Home) -> None:
    folder = home.path / ".pi/agent/extensions"
    folder.mkdir(parents=True)
    plugin = folder / "memd-pi.ts"
    plugin.write_text("// theirs\n")
    refused = home.memctl("install-hooks", "--agent", "pi", "--apply")
    assert refused.returncode == 77
    assert "does not come from memd" in refused.stderr
    assert "stays" in home.memctl("uninstall-hooks", "--agent", "pi", "--apply").stderr
    assert plugin.read_text() == "// theirs\n"
    plugin.unlink()
    home.json("install-hooks", "--agent", "pi", "--apply")
    good = plugin.read_text()
    plugin.write_text(good + "// mine\n")
    assert only(home.json("install-hooks", "--agent", "pi"))["state"] == "outdated"
    assert only(home.json("install-hooks", "--agent", "pi", "--apply"))["notices"]
    assert plugin.read_text() == good
    (copy,) = folder.glob("memd-pi.ts.bak-*")
    assert copy.read_text() == good + "// mine\n"


def test_a_name_of_an_older_memd_goes_only_when_it_is_ours(home: Home) -> None:
    folder = home.path / ".omp/agent/extensions"
    folder.mkdir(parents=True)
    (folder / "memd.ts").write_text("// somebody's\n")
    home.json("install-hooks", "--agent", "omp", "--apply")
    assert (folder / "memd.ts").exists()
    (folder / "memd-omp.ts").rename(folder / "memd.ts")
    assert only(home.json("install-hooks", "--agent", "omp", "--apply"))["changed"]
    assert sorted(os.listdir(folder)) == ["memd-omp.ts"]


def test_pi_and_omp_on_one_folder_are_told_of(home: Home) -> None:
    folder = home.path / "agent"
    folder.mkdir()
    done = home.memctl(
        "install-hooks", "--apply", "--agent", "pi", "--agent", "omp", PI_CODING_AGENT_DIR=str(folder)
    )
    assert done.returncode == 0
    assert "load plug-ins from one folder" in done.stderr
    assert sorted(os.listdir(folder / "extensions")) == ["memd-omp.ts", "memd-pi.ts"]
    # a folder that no variable names any more is swept too
    swept = home.json("uninstall-hooks", "--apply")
    assert sorted(one["path"] for one in swept) == [
        str(folder / "extensions" / name) for name in ("memd-omp.ts", "memd-pi.ts")
    ]
    assert os.listdir(folder) == []


# ------------------------------------------------------------------------------- the hook itself


def test_the_hook_is_renewed_by_up_where_hooks_are_installed(home: Home, codex: Path) -> None:
    hook = home.path / ".local/share/memd/hook/memd_hook.py"
    assert home.memctl("up", "--quiet").returncode == 0
    assert not hook.exists(), "nobody wanted hooks"
    home.json("install-hooks", "--agent", "codex", "--apply")
    current = hook.read_bytes()
    hook.write_bytes(b"old")
    assert "of this version now" in home.memctl("up", "--quiet").stderr
    assert hook.read_bytes() == current
    home.json("uninstall-hooks", "--apply")
    assert hook.read_bytes() == current, "an agent that still runs would be blocked without it"


def test_a_daemon_that_starts_renews_the_hook_where_hooks_are_installed(home: Home, codex: Path) -> None:
    hook = home.path / ".local/share/memd/hook/memd_hook.py"
    with home.daemon():
        assert home.memctl("down").returncode == 0
    assert not hook.exists(), "nobody wanted hooks"
    home.json("install-hooks", "--agent", "codex", "--apply")
    files = (hook, hook.with_name("memd_hook_path.py"))
    current = [path.read_bytes() for path in files]
    for path in files:
        path.write_bytes(b"of an older version")
    with home.daemon():
        eventually(lambda: [path.read_bytes() for path in files] == current)
        assert home.memctl("down").returncode == 0
    hook.unlink()
    hook.symlink_to(home.path / "elsewhere")
    with home.daemon():
        assert home.memctl("down").returncode == 0
    assert not (home.path / "elsewhere").exists()


def test_files_of_a_folder_get_hooks_together_or_not_at_all(home: Home) -> None:
    folder = home.path / ".kiro" / "agents"
    folder.mkdir(parents=True)
    before = {"one.json": '{"name": "one"}', "two.json": '{"name": "two", "hooks": {}}', "notes.md": "theirs"}
    for name, text in before.items():
        (folder / name).write_text(text)
    done = home.json("install-hooks", "--agent", "kiro", "--apply")
    assert [os.path.basename(one["path"]) for one in done] == ["one.json", "two.json", "memd.json"]
    for name in ("one.json", "two.json"):
        assert set(ours_flat(folder / name)) == {"agentSpawn", "userPromptSubmit"}
    home.json("uninstall-hooks", "--apply")
    assert {name: (folder / name).read_text() for name in before} == before
    assert not (home.path / ".kiro/hooks/memd.json").exists()

    (folder / "two.json").write_text("{ broken")
    refused = home.memctl("install-hooks", "--agent", "kiro", "--apply", "--json")
    assert refused.returncode == 77
    states = [(os.path.basename(one["path"]), one["state"]) for one in json.loads(refused.stdout)]
    assert states == [("one.json", "refused"), ("two.json", "refused"), ("memd.json", "missing")]
    assert (folder / "one.json").read_text() == before["one.json"]


def ours_flat(path: Path) -> list[str]:
    hooks = json.loads(path.read_text())["hooks"]
    return [event for event, found in hooks.items() if hook_command.read(found[0]["command"]) is not None]
