"""Each agent's settings with memd's MCP server among them."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from memctl.mcp_entries import target, with_codex, without_codex
from memd.errors import Refused
from support_daemon import Home

COMMAND = ("/usr/bin/python3", "-P", "-m", "memctl", "mcp")

CODEX = """# my settings
model = "x"   # kept

[mcp_servers.other]
command = "npx"
args = [ "-y",
  "thing" ]   # odd form

[projects."/home/x"]
trust_level = "trusted"
"""


def place(agent: str, **variables: bytes) -> bytes:
    return target(agent, b"/home/x", variables, lambda _: False, COMMAND).path


def test_every_agent_has_its_place_and_its_own_variables_move_it() -> None:
    assert place("claude") == b"/home/x/.claude.json"
    assert place("claude", CLAUDE_CONFIG_DIR=b"/c") == b"/c/.claude.json"
    assert place("codex") == b"/home/x/.codex/config.toml"
    assert place("codex", CODEX_HOME=b"/c/") == b"/c/config.toml"
    assert place("opencode") == b"/home/x/.config/opencode/opencode.json"
    assert place("opencode", XDG_CONFIG_HOME=b"/g") == b"/g/opencode/opencode.json"
    assert target("opencode", b"/home/x", {}, lambda _: True, COMMAND).path.endswith(b"/opencode.jsonc")
    assert place("kimi", KIMI_CODE_HOME=b" ") == b"/home/x/.kimi-code/mcp.json"
    assert place("crush") == b"/home/x/.config/crush/crush.json"
    assert place("crush", CRUSH_GLOBAL_CONFIG=b"/d") == b"/d/crush.json"
    with pytest.raises(Refused, match="does not know where pi keeps"):
        place("pi")


@pytest.mark.parametrize(
    ("agent", "keys"),
    [
        ("claude", ("mcpServers", "memd")),
        ("opencode", ("mcp", "memd")),
        ("kimi", ("mcpServers", "memd")),
        ("crush", ("mcp", "memd")),
    ],
)
def test_the_entry_starts_our_server(agent: str, keys: tuple[str, str]) -> None:
    made = json.loads(target(agent, b"/h", {}, lambda _: False, COMMAND).edit('{"theirs": 1}'))
    assert made["theirs"] == 1
    entry = made[keys[0]][keys[1]]
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert tuple(command) == COMMAND


def test_codex_keeps_every_byte_and_gets_a_table_at_the_end() -> None:
    made = with_codex(CODEX, COMMAND[0], COMMAND[1:])
    assert made.startswith(CODEX)
    assert tomllib.loads(made)["mcp_servers"]["memd"] == {"command": COMMAND[0], "args": list(COMMAND[1:])}
    assert with_codex(made, COMMAND[0], COMMAND[1:]) == made
    assert tomllib.loads(with_codex("", "/p", ("a",)))["mcp_servers"] == {
        "memd": {"command": "/p", "args": ["a"]}
    }
    assert "\n\n[mcp_servers.memd]" in with_codex('a = "no newline"', "/p", ())


def test_codex_entry_of_another_version_is_brought_up_to_date_in_its_place() -> None:
    old = with_codex(CODEX, "/old/python", ("x",)) + "startup_timeout_sec = 20 # mine\n\n[tui]\nx = 1\n"
    made = with_codex(old, COMMAND[0], COMMAND[1:])
    entry = tomllib.loads(made)["mcp_servers"]["memd"]
    assert entry == {"command": COMMAND[0], "args": list(COMMAND[1:]), "startup_timeout_sec": 20}
    changed = [line for line in made.splitlines() if line not in old.splitlines()]
    assert len(changed) == 2
    assert made.startswith(CODEX)


@pytest.mark.parametrize(
    "text", ["a = [", 'mcp_servers = "x"', 'mcp_servers = { other = { command = "x" } }']
)
def test_codex_settings_that_cannot_take_the_entry_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        with_codex(text, "/p", ())


def test_the_change_is_shown_first_and_made_when_told_with_link_and_mode_kept(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", runtime=tmp_path / "run")
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text('{\n  "userID": "x",\n  "mcpServers": {\n    "other": {"command": "y"}\n  }\n}')
    real.chmod(0o640)
    (home.path / ".claude.json").symlink_to(real)
    before = real.read_text()
    shown = home.memctl("install-mcp", "--agent", "claude-code")
    assert shown.returncode == 0, shown.stderr
    assert '+    "memd": {' in shown.stdout
    assert "--apply" in shown.stderr
    assert real.read_text() == before
    assert home.json("install-mcp", "--agent", "claude", "--apply")["applied"] is True
    made = json.loads(real.read_text())
    assert made["mcpServers"]["other"] == {"command": "y"}
    assert made["mcpServers"]["memd"]["args"][-1] == "mcp"
    assert os.path.islink(home.path / ".claude.json")
    assert real.stat().st_mode & 0o777 == 0o640
    assert home.json("install-mcp", "--agent", "claude", "--apply")["changes"] is False
    assert not (home.path / ".local/state/memd/address").exists(), "nothing of this needs a daemon"
    real.write_text("{ broken")
    refused = home.memctl("install-mcp", "--agent", "claude", "--apply")
    assert (refused.returncode, real.read_text()) == (77, "{ broken")
    assert "nothing was changed" in refused.stderr


JSON = '{\n  "theirs": 1, // why\n  "mcpServers": {\n    "other": {}\n  },\n}\n'


@pytest.mark.parametrize("text", [JSON, '{"theirs": 1}', "{}\n", '{"a": []}'])
@pytest.mark.parametrize("agent", ["claude", "opencode", "kimi", "crush"])
def test_taking_the_entry_out_gives_the_settings_from_before(agent: str, text: str) -> None:
    place = target(agent, b"/h", {}, lambda _: False, COMMAND)
    assert place.remove(place.edit(text)) == text
    assert place.remove(text) == text
    assert place.remove("") == ""


@pytest.mark.parametrize("text", [CODEX, "", "a = 1\n", CODEX.replace("\n", "\r\n")])
def test_codex_goes_back_to_what_it_was(text: str) -> None:
    made = with_codex(text, COMMAND[0], COMMAND[1:])
    assert without_codex(made) == text
    behind = made + "startup_timeout_sec = 9\n\n[mcp_servers.memd.env]\nA = 'b'\n\n# theirs\n[tui]\nx = 1\n"
    assert tomllib.loads(without_codex(behind)) == {**tomllib.loads(text), "tui": {"x": 1}}
    assert without_codex(behind).endswith("\n# theirs\n[tui]\nx = 1\n")
    assert without_codex(text) == text


@pytest.mark.parametrize("text", ["a = [", 'mcp_servers = { memd = { command = "x" } }'])
def test_what_cannot_be_taken_out_safely_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        without_codex(text)


def test_the_entry_is_taken_out_when_told(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", runtime=tmp_path / "run")
    settings = home.path / ".claude.json"
    settings.write_text('{\n  "userID": "x"\n}')
    before = settings.read_text()
    assert home.json("uninstall-mcp", "--agent", "claude", "--apply")["changes"] is False
    home.memctl("install-mcp", "--agent", "claude", "--apply")
    with_entry = settings.read_text()
    shown = home.memctl("uninstall-mcp", "--agent", "claude")
    assert '-    "memd": {' in shown.stdout
    assert settings.read_text() == with_entry
    assert "goes without" in home.memctl("uninstall-mcp", "--agent", "claude", "--apply").stdout
    assert settings.read_text() == before
