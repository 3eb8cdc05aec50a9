"""Somebody swaps a file, a folder or a parent for a link between any two system calls of a run.

The swap is made at one call after the other. Nothing outside may be written or copied, and nothing is lost.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support_faults import Faults, installed
from support_memory import OLD_NS, World, bodies, put, snapshot
from support_scratch import in_memory

STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 9


class Stage:
    def __init__(self, top: Path) -> None:
        self.world = World(top)
        self.agent, self.login = self.world.agent(), self.world.login()
        self.owned = self.world.owned(self.agent)
        self.memory = self.world.entry(self.login, self.agent)
        self.outside = self.world.top + b"/outside"
        self.secret = put(self.outside + b"/secret.md", b"a secret", ns=OLD_NS + 9)
        put(self.outside + b"/memory/secret.md", b"another secret", ns=OLD_NS + 9)
        put(self.outside + b"/sub/deep.md", b"a third secret", ns=OLD_NS + 9)
        with installed(Faults()):
            self.world.enroll(self.agent)
        os.unlink(self.memory)
        put(self.memory + b"/note.md", b"incoming", ns=OLD_NS + 1)
        put(self.memory + b"/sub/deep.md", b"incoming, deep", ns=OLD_NS + 1)
        put(self.memory + b"/MEMORY.md", b"- [N](note.md)\n- [D](sub/deep.md)\n")
        put(self.owned + b"/note.md", b"owned", ns=OLD_NS)
        put(self.owned + b"/sub/deep.md", b"owned, deep", ns=OLD_NS)
        put(self.owned + b"/MEMORY.md", b"- [N](note.md) - owned\n")
        self.before = snapshot(self.outside)
        self.bodies = bodies(self.world.home, self.world.work)

    def swap(self, path: bytes, target: bytes) -> Callable[[], None]:
        def swap() -> None:
            try:
                os.rename(path, self.world.top + b"/taken-away")
                os.symlink(target, path)
            except FileNotFoundError:
                return

        return swap

    def check(self) -> None:
        assert snapshot(self.outside) == self.before
        taken = self.world.top + b"/taken-away"
        kept = bodies(self.world.home, self.world.work, taken)
        if os.path.isfile(taken):
            with open(taken, "rb") as file:
                kept.add(file.read())
        assert self.bodies <= kept
        assert not {body for body in bodies(self.agent) if b"secret" in body}


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    if in_memory() is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=in_memory(), prefix="memd-test-") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    "what",
    [
        "the entry",
        "its folder",
        "projects",
        "a note",
        "a sub-folder",
        "the owned folder",
        "an owned sub-folder",
        "an owned note",
        "the owned index",
        "the folder of superseded notes",
    ],
)
def test_a_swap_at_any_call_leads_nowhere(top: Path, what: str) -> None:
    with installed(Faults()) as counted:
        Stage(top / "count").world.heal()
    rounds = 0
    for at in range(0, len(counted.calls), STRIDE):
        stage = Stage(top / str(at))
        path, target = {
            "the entry": (stage.memory, stage.outside),
            "its folder": (os.path.dirname(stage.memory), stage.outside),
            "projects": (stage.login + b"/projects", stage.outside),
            "a note": (stage.memory + b"/note.md", stage.secret),
            "a sub-folder": (stage.memory + b"/sub", stage.outside + b"/sub"),
            "the owned folder": (stage.owned, stage.outside),
            "an owned sub-folder": (stage.owned + b"/sub", stage.outside + b"/sub"),
            "an owned note": (stage.owned + b"/note.md", stage.secret),
            "the owned index": (stage.owned + b"/MEMORY.md", stage.secret),
            "the folder of superseded notes": (stage.owned + b"/_superseded", stage.outside),
        }[what]
        with installed(Faults(at, stage.swap(path, target))):
            stage.world.heal()
            stage.check()
            stage.world.recover()
            stage.check()
        shutil.rmtree(stage.world.top)
        rounds += 1
    assert rounds > 20
