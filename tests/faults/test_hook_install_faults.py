"""A kill or an error at every file operation of installing hooks and taking them out again.

After it the settings are the old ones or the new ones, whole, and the same command brings all to its end.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from memctl.hooks import files as hook_files
from memd.errors import MemdError
from support_faults import Faults, failing, installed_in_memctl, killing, survives
from support_hook_scene import BEFORE, Scene

pytestmark = pytest.mark.faults


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_files, "_compile", lambda _: None)


@pytest.mark.parametrize("is_install", [True, False])
def test_a_kill_anywhere_leaves_the_old_settings_or_the_new_and_the_next_run_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_install: bool
) -> None:
    at = 0
    while True:
        top = tmp_path / str(at)
        monkeypatch.setattr("posix.environ", {b"HOME": bytes(top)})
        scene = Scene(top)
        if not is_install:
            scene.install()
        before = scene.real.read_bytes()
        work: Callable[[], None] = scene.install if is_install else scene.uninstall
        with installed_in_memctl(killing(at)):
            is_through = survives(work)
        seen = scene.real.read_bytes()
        work()
        after = scene.real.read_bytes()
        assert seen in (before, after)
        assert scene.link.is_symlink()
        assert scene.left() == {"settings.json"}
        if is_install:
            assert b"memd_hook.py" in after
            assert hook_files.are_current()
            scene.uninstall()
        assert scene.real.read_bytes() == BEFORE, "what was taken out leaves the settings from before"
        if is_through:
            break
        at += 1
    assert at > 8


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES])
def test_an_error_anywhere_is_told_and_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    at = 0
    while True:
        top = tmp_path / str(at)
        monkeypatch.setattr("posix.environ", {b"HOME": bytes(top)})
        scene = Scene(top)
        told = ""
        with installed_in_memctl(Faults(at, failing(number), only_writes=True)):
            try:
                scene.install()
            except MemdError as reason:
                told = str(reason)
                assert reason.remedy
        seen = scene.real.read_bytes()
        scene.install()
        assert seen in (BEFORE, scene.real.read_bytes())
        assert scene.left() == {"settings.json"}
        if not told:
            break
        at += 1
    assert at > 8
