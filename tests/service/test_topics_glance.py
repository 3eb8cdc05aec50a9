"""The block about the memory folder is made once while nothing changes there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from memd.memory.shared.topics import TopicStore
from memd.protocol_memory import Context
from memd.service import topics_glance
from memd.service.topics import MemoryTopics, configuration_of, places
from memd.service.watcher import Watcher


class Shared:
    """A shared memory folder in a temporary home. made: how many blocks were made of it"""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = home / ".config" / "memd" / "memory.jsonc"
        self.folder = home / ".agents" / "memory"
        for folder in (self.settings.parent, self.folder):
            folder.mkdir(parents=True)
        self.settings.write_text('{"shared_dir": true}')
        self.index = self.folder / "MEMORY.md"
        self.index.write_text("- [one](one.md) - first\n")
        (self.folder / "one.md").write_text("text\n")
        config, state = bytes(self.settings.parent), bytes(home / "state")
        store = TopicStore(
            places(bytes(home), bytes(home / "data"), state),
            configuration_of(bytes(home), config, state, b""),
        )
        self.topics = MemoryTopics(store, Watcher(step_ms=50, poll=True), inject="auto", owned_by=nobody)
        for path in (self.settings, self.index, self.folder):
            os.utime(path, (1, 1))  # a change shows, however soon it comes
        self.made = 0
        real = self.topics._block

        def counted(action: Context, active: topics_glance.Active) -> object:
            self.made += 1
            return real(action, active)

        monkeypatch.setattr(self.topics, "_block", counted)

    def text(self, **more: object) -> str:
        return self.topics.block(Context(**{"harness": "claude", "limit": 9000, **more})).text  # type: ignore[arg-type]


async def nobody(path: bytes) -> bytes:
    await trio.lowlevel.checkpoint()
    return b""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shared:
    monkeypatch.setattr(topics_glance, "SETTLED_NS", -(10**18))  # as if all had been written long ago
    return Shared(tmp_path, monkeypatch)


def test_it_is_made_once(shared: Shared) -> None:
    text = shared.text()
    assert "first" in text
    assert shared.text() == text
    assert shared.made == 1
    shared.text(limit=2000)
    shared.text(harness="codex")
    assert shared.made == 3


def write_index(shared: Shared) -> None:
    shared.index.write_text("- [one](one.md) - other\n")


def exchange_index(shared: Shared) -> None:
    (shared.folder / "fresh").write_text("- [one](one.md) - other\n")
    os.replace(shared.folder / "fresh", shared.index)


def drop_index(shared: Shared) -> None:
    shared.index.unlink()


def add_topics(shared: Shared) -> None:
    for number in range(8):
        (shared.folder / f"more-{number}.md").write_text("text\n")


def bury(shared: Shared) -> None:
    (shared.folder / ".ocl-removed").write_text("one.md\n")


def switch_off(shared: Shared) -> None:
    shared.settings.write_text('{"shared_dir": false}')


def change_rules(shared: Shared) -> None:
    shared.settings.write_text('{"shared_dir": true, "always_persist": ["the tide"]}')


@pytest.mark.parametrize(
    "change", [write_index, exchange_index, drop_index, add_topics, bury, switch_off, change_rules]
)
def test_it_is_made_anew_after_every_change(shared: Shared, change: Callable[[Shared], None]) -> None:
    before = shared.text()
    change(shared)
    after = shared.text()
    assert shared.made == 2
    assert (after != before) is (change is not bury)


def test_what_was_written_just_now_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(tmp_path, monkeypatch)
    shared.text()
    shared.text()
    assert shared.made == 2


def test_what_comes_while_it_is_made_is_seen_next_time(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = shared.topics._store.index

    def late() -> bytes:
        found = index()
        write_index(shared)
        return found

    monkeypatch.setattr(shared.topics._store, "index", late)
    assert "first" in shared.text()
    monkeypatch.setattr(shared.topics._store, "index", index)
    assert "other" in shared.text()
