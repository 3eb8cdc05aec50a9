"""Hooks in the real Codex: installed they do not run, trusted they do, and a changed one no longer.

source  codex-cli 0.171.0, run 2026-12
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from real.harnesses import HARNESSES
from real.namespace import HOME
from real.product import Memd
from real.rig import World

pytestmark = pytest.mark.real

CODEX = HARNESSES["codex"]
PROJECT = f"{HOME}/proj"
HOOKS = f"{HOME}/.codex/hooks.json"
OTHER = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n'


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    made = make_world("codex")
    made.put_all(CODEX.settings([PROJECT]))
    made.put(f"{PROJECT}/code.txt", "code\n")
    made.put(HOOKS, OTHER)
    return made


def finding(memd: Memd) -> dict[str, str]:
    found = json.loads(memd.ctl("doctor", "--json", may_fail=True).out)["findings"]
    (one,) = [one for one in found if one["subject"] == "hooks of codex"]
    assert isinstance(one, dict)
    return one


def heard(world: World) -> bool:
    """Whether hooks of ours ran in a turn of Codex: with no daemon they leave notes for it."""
    spool = world.outside(f"{HOME}/.local/state/memd/spool")
    before = len(list(spool.glob("*")))
    world.run(*CODEX.turn("hello", ()), cwd=PROJECT)
    return len(list(spool.glob("*"))) > before


def trust(memd: Memd) -> str:
    """How Codex sees our hooks, told by an install that changes nothing."""
    done = memd.ctl("install-hooks", "--agent", "codex", "--apply", "--json")
    (one,) = json.loads(done.out)
    assert one["changed"] is False
    return str(one["trust"])


def test_hooks_run_once_codex_was_told_to_trust_them(world: World) -> None:
    memd = Memd(world)
    before = world.outside(f"{HOME}/.codex/config.toml").read_text()
    done = memd.ctl("install-hooks", "--agent", "codex", "--apply")
    assert "once you trust them" in done.err
    assert "--trust" in done.err
    assert trust(memd) == "untrusted"
    assert finding(memd)["level"] == "warning"
    assert "not told to trust" in finding(memd)["message"]
    assert not heard(world)

    done = memd.ctl("install-hooks", "--agent", "codex", "--apply", "--trust")
    assert "Codex trusts memd's hooks" in done.err
    assert trust(memd) == "trusted"
    settings = world.outside(f"{HOME}/.codex/config.toml").read_text()
    assert settings.startswith(before.rstrip())
    assert settings.count("trusted_hash") == 4, "another tool's hook was none of ours to trust"
    assert finding(memd)["level"] == "ok"
    assert heard(world)

    installed = world.outside(HOOKS).read_text()
    world.put(HOOKS, installed.replace('"timeout": 10', '"timeout": 9'))
    assert "changed since it was: sessionStart" in finding(memd)["message"]
    world.put(HOOKS, installed.replace("codex Stop", "codex  Stop"))
    assert "not as this memctl would write" in finding(memd)["message"]
    memd.ctl("install-hooks", "--agent", "codex", "--apply")
    assert world.outside(HOOKS).read_text() == installed, "the text Codex trusts is the one before"
    assert finding(memd)["level"] == "ok"

    memd.ctl("uninstall-hooks", "--agent", "codex", "--apply")
    assert world.outside(HOOKS).read_text() == OTHER


def test_a_hook_switched_off_in_codex_is_named(world: World) -> None:
    memd = Memd(world)
    memd.ctl("install-hooks", "--agent", "codex", "--apply", "--trust")
    config = world.outside(f"{HOME}/.codex/config.toml")
    world.put(f"{HOME}/.codex/config.toml", config.read_text() + "\n[features]\nhooks = false\n")
    assert "[features]" in finding(memd)["message"]
    assert not heard(world)
