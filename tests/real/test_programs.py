"""Installing a program: once, whole or not at all; a skip for the network, a failure for a wrong pin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from real.programs import PINS, require
from real.rig import why_not
from real.running import RigError

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "there are namespaces"),
]


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first in PATH for a stand-in `npm`, and a cache of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stand_in(folder, "node", "exit 0")
    return folder


def stand_in(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_program_is_installed_once(npm: Path) -> None:
    stand_in(npm, "npm", 'echo "$@" >> ../runs; mkdir -p node_modules/.bin')
    first = require("claude")
    assert require("claude") == first
    assert first.search[0].is_dir()
    (run,) = (first.folder.parent / "runs").read_text().splitlines()
    assert run.startswith("install --ignore-scripts")
    assert '"@anthropic-ai/claude-code": "2.1.197"' in (first.folder / "package.json").read_text()


def test_half_an_install_is_none(npm: Path) -> None:
    stand_in(npm, "npm", "mkdir half; echo 'npm error code ENOTFOUND' >&2; exit 1")
    with pytest.raises(
        pytest.skip.Exception, match="claude could not be installed: npm error code ENOTFOUND"
    ):
        require("claude")
    stand_in(npm, "npm", "mkdir -p node_modules/.bin")
    assert not (require("claude").folder / "half").exists()


def test_wrong_pin_is_a_failure(npm: Path) -> None:
    stand_in(npm, "npm", "echo 'npm error code ETARGET' >&2; exit 1")
    with pytest.raises(RigError, match="the pin of codex is wrong"):
        require("codex")


def test_changed_pin_gets_a_folder_of_its_own() -> None:
    tags = [pin.tag for pin in PINS.values()]
    assert len(set(tags)) == len(tags)
