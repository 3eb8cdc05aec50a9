"""The acceptance runner, tried with stand-ins: what it copies, what it judges, what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import support_kept_engines
from support_stand_ins import install
from support_terminal import Terminal

RUN = Path(__file__).parent / "run"


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """The environment of a person who has the stand-ins installed, and a home with much in it."""
    install(tmp_path / "bin")
    home = tmp_path / "home"
    for name in (".kimi-code/config.toml", ".codex/auth.json", ".codex/history.jsonl", ".ssh/id"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("SECRET")
    (home / ".claude.json").write_text(json.dumps({"userID": "u", "projects": {"/secret": {}}}))
    return {
        "HOME": str(home),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path),
    }


def run(world: dict[str, str], *words: str, do: str = "", code: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, RUN, "--json", "--env", "FAKE_DO", *words],
        env={**world, "FAKE_DO": do},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


def test_what_holds_is_ok(world: dict[str, str]) -> None:
    crush, antigravity = run(
        world, "--harness", "crush", "--harness", "antigravity", do="say:one tool:two say:three"
    )
    assert set(antigravity["checks"].values()) - {"ok"} <= {antigravity["checks"]["live"]}
    assert {check: how for check, how in crush["checks"].items() if how != "ok"}.keys() <= {"hooks", "live"}
    assert crush["checks"]["hooks"] == "-"  # it has none
    assert not [path for path in Path(world["TMPDIR"]).iterdir() if path.name.startswith("memd-acceptance")]


def test_nothing_that_needs_a_model_is_started_when_told_so(world: dict[str, str]) -> None:
    (report,) = run(world, "--harness", "crush", "--deterministic-only", do="say:never")
    assert report["checks"]["utility"] == "ok"
    assert {how for check, how in report["checks"].items() if check not in ("utility", "hooks")} == {"-"}


def test_what_does_not_hold_is_named_and_makes_the_run_fail(world: dict[str, str]) -> None:
    (report,) = run(world, "--harness", "crush", do="exit:3", code=1)
    assert report["checks"]["import"].startswith("failed: no event")
    assert report["checks"]["link"].startswith("failed")


def test_an_engine_that_is_not_installed_is_no_failure(world: dict[str, str]) -> None:
    (report,) = run(world, "--harness", "grok")
    assert (report["note"], set(report["checks"].values())) == ("not installed", {"-"})


def test_only_logins_are_copied_and_only_the_own_one(world: dict[str, str]) -> None:
    for name in ("claude", "codex"):
        program = Path(world["PATH"].partition(":")[0]) / name
        program.write_text("#!/bin/sh\necho 1.0\n")
        program.chmod(0o755)
    reports = run(world, "--harness", "claude", "--harness", "codex", "--deterministic-only", "--keep")
    claude, codex = (Path(report["home"]) for report in reports)
    assert json.loads((claude / ".claude.json").read_text()) == {"userID": "u"}
    assert (codex / ".codex/auth.json").read_text() == "SECRET"
    assert (codex / ".codex/auth.json").stat().st_mode & 0o077 == 0
    for home in (claude, codex):
        assert not (home / ".codex/history.jsonl").exists()
        assert not (home / ".ssh").exists()
    assert not (claude / ".codex/auth.json").exists()


def test_hooks_that_the_person_has_already_are_no_failure(world: dict[str, str]) -> None:
    support_kept_engines.install(Path(world["PATH"].partition(":")[0]))
    hook = "python3 -I -S /home/me/.local/share/memd/hook/memd_hook.py kimi Stop || true"
    settings = Path(world["HOME"]) / ".kimi-code/config.toml"
    settings.write_text(f'token = "SECRET"\n\n[[hooks]]\nevent = "Stop"\ncommand = "{hook}"\n')
    before = settings.read_bytes()
    (report,) = run(world, "--harness", "kimi", "--deterministic-only")
    assert report["checks"]["hooks"] == "ok"
    assert settings.read_bytes() == before


def test_a_login_that_a_person_names_is_copied_too(world: dict[str, str]) -> None:
    words = ("--harness", "crush", "--deterministic-only", "--keep", "--auth", "crush=.ssh/id")
    (report,) = run(world, *words)
    assert (Path(report["home"]) / ".ssh/id").read_text() == "SECRET"


def test_kiro_needs_a_person_and_says_what_to_do(world: dict[str, str]) -> None:
    (report,) = run(world, "--harness", "kiro-v2", do="say:x")
    assert report["note"] == "needs a person at a terminal"
    assert report["checks"]["hooks"] == "ok"
    command = [sys.executable, str(RUN), "--harness", "kiro-v3", "--env", "FAKE_DO"]
    screen = Terminal(command, {**world, "FAKE_DO": "say:hello"}, Path(world["HOME"]))
    try:
        for _ in range(2):
            screen.until("Press Enter to begin.")
            screen.type("\r")
        shown = screen.until("| kiro-v3 |")
        assert "Leave it the usual way" in shown
    finally:
        screen.close()


def test_help_names_every_engine() -> None:
    done = subprocess.run([sys.executable, RUN, "--help"], capture_output=True, text=True, check=True)
    assert os.access(RUN, os.X_OK)
    for name in ("claude", "command-code", "kiro-v2", "kiro-v3", "antigravity"):
        assert name in done.stdout
