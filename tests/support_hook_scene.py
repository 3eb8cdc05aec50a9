"""Settings of an agent before hooks are installed in them, and both ways to change them."""

from __future__ import annotations

import os
from pathlib import Path

from memctl.hooks import files as hook_files
from memctl.hooks import install as hook_install
from memctl.hooks import record as hook_record
from memd.harness import registry
from memd.harness.hooking import Hooks, Settings

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
