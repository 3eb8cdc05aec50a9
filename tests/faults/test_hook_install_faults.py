"""A kill or an error at every file operation of installing hooks and taking them out again.

After it the settings are the old ones or the new ones, whole, and the same command brings all to its end.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memctl import files, hook_files, hook_install, hook_record
from memd.errors import MemdError
from memd.harness import registry
from memd.harness.hooking import Hooks, Settings
from support_faults import Faults, failing, killing, survives

pytestmark = pytest.mark.faults

BEFORE = b'{\n  "theirs": "kept", // why\n  "hooks": {"Stop": []}\n}\n'


class Scene:
    """Settings that are a link into somebody's dotfiles, in a home of their own."""

    def __init__(self, top: Path) -> None:
        self.real = top / "dotfiles" / "settings.json"
        self.real.parent.mkdir(parents=True)
        self.real.write_bytes(BEFORE)
        self.link = top / ".agent" / "settings.json"
        self.link.parent.mkdir()
        self.link.symlink_to(self.real)
        self.place = Settings(path=os.fsencode(self.link), form="json-hooks")

    def install(self) -> None:
        with hook_record.lock():
            hook_files.place()
            noted = hook_record.read().of("claude", self.place.path)
            change = hook_install.plan_install(
                "claude", hooks(), self.place, noted, b"/usr/bin/python3", lambda _: True
            )
            assert change.state != "refused", change.error
            hook_install.note_before([change])
            hook_install.apply(change, 1)

    def uninstall(self) -> None:
        with hook_record.lock():
            noted = hook_record.read().of("claude", self.place.path)
            change = hook_install.plan_uninstall("claude", hooks(), self.place, noted)
            hook_install.apply(change, 2)
            hook_install.note_after([change])

    def left(self) -> set[str]:
        """What lies beside the settings and is no copy."""
        return {one.name for one in self.real.parent.iterdir() if ".bak-" not in one.name}


def hooks() -> Hooks:
    found = registry.resolve("claude").hooks
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_files, "_compile", lambda _: None)


@contextlib.contextmanager
def installed(faults: Faults) -> Iterator[Faults]:
    """Every system call of `memctl.files` goes through `faults`."""
    real = files.os
    files.os = faults  # type: ignore[assignment]
    try:
        yield faults
    finally:
        files.os = real  # type: ignore[misc]


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
        with installed(killing(at)):
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
        with installed(Faults(at, failing(number), only_writes=True)):
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
