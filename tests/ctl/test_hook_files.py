"""The files that installed hooks run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memctl.hooks import files as hook_files
from memd.errors import Refused
from memd.harness.hooking import HookEvent
from support_hooks import command, run


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("posix.environ", {b"HOME": bytes(tmp_path)})
    return tmp_path / ".local" / "share" / "memd"


def test_they_are_put_in_place_once_and_renewed_when_they_are_old(tmp_path: Path, data: Path) -> None:
    assert not hook_files.are_current()
    assert hook_files.place()
    assert hook_files.are_current()
    assert not hook_files.place()
    path = Path(os.fsdecode(hook_files.hook_file()))
    assert path == data / "hook" / "memd_hook.py"
    path.with_name("memd_hook_path.py").write_bytes(b"old")
    assert not hook_files.are_current()
    assert hook_files.place()
    done = run(command(path, "claude", HookEvent(name="Stop", role="activity", harmless="{}")), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def test_what_they_load_is_compiled_beforehand(data: Path) -> None:
    hook_files.place()
    assert [path.suffix for path in (data / "hook" / "__pycache__").iterdir()] == [".pyc"]


def test_a_link_in_their_place_is_refused(data: Path, tmp_path: Path) -> None:
    (data / "hook").mkdir(parents=True)
    (data / "hook" / "memd_hook.py").symlink_to(tmp_path / "mine")
    with pytest.raises(Refused):
        hook_files.place()
    assert not (tmp_path / "mine").exists()
