"""The memory link of a place is put right once while nothing changes there, and again when something does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.service import links_glance
from memd.service.healer import Healer
from memd.service.watcher import Watcher
from memd.settings import Settings
from support_memory import World, leads_to, link, put


class Kept:
    """An enrolled agent whose link in one login was put right by a healer."""

    def __init__(self, top: Path) -> None:
        self.world = World(top)
        self.login = self.world.login()
        self.agent = self.world.agent()
        self.other = self.world.agent(b"other")
        self.entry = self.world.entry(self.login, self.agent)
        self.healer = Healer(
            self.world.ownership(), self.world.ownership(), Settings(), Watcher(step_ms=50, poll=True)
        )

    def is_in_order(self) -> bool:
        return self.healer.is_in_order(self.agent, self.login)

    async def ensure(self) -> None:
        await self.healer.ensure(self.agent, self.login)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


async def test_a_place_is_in_order_once_it_was_put_right(kept: Kept) -> None:
    kept.world.enroll(kept.agent)
    assert not kept.is_in_order()
    await kept.ensure()
    assert kept.is_in_order()
    assert not kept.healer.is_in_order(kept.other, kept.login)


def replaced(kept: Kept) -> None:
    os.unlink(kept.entry)
    put(kept.entry + b"/note.md", b"what an agent wrote")


def gone(kept: Kept) -> None:
    os.unlink(kept.entry)


def led_away(kept: Kept) -> None:
    os.unlink(kept.entry)
    link(kept.other, kept.entry)


def owned_moved(kept: Kept) -> None:
    shutil.move(kept.world.owned(kept.agent), kept.world.top + b"/moved")


def another_enrolled(kept: Kept) -> None:
    kept.world.enroll(kept.other)


@pytest.mark.parametrize("change", [replaced, gone, led_away, owned_moved, another_enrolled])
async def test_whatever_changes_there_is_seen(kept: Kept, change: Callable[[Kept], None]) -> None:
    kept.world.enroll(kept.agent)
    await kept.ensure()
    change(kept)
    assert not kept.is_in_order()


@pytest.mark.parametrize("change", [replaced, gone, another_enrolled])
async def test_what_can_be_put_right_is_in_order_again(kept: Kept, change: Callable[[Kept], None]) -> None:
    kept.world.enroll(kept.agent)
    await kept.ensure()
    change(kept)
    await kept.ensure()
    assert kept.is_in_order()
    assert leads_to(kept.entry, kept.world.owned(kept.agent))


async def test_without_agents_nothing_is_to_be_done_until_one_is_enrolled(kept: Kept) -> None:
    await kept.ensure()
    assert kept.is_in_order()
    kept.world.enroll(kept.agent)
    assert not kept.is_in_order()


async def test_a_place_that_could_not_be_put_right_is_tried_each_time(kept: Kept) -> None:
    kept.world.enroll(kept.agent)
    os.unlink(kept.entry)
    put(kept.entry, b"a file where the folder belongs")
    await kept.ensure()
    assert not kept.is_in_order()


async def test_a_link_that_leads_nowhere_is_not_in_order(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.world.enroll(kept.agent)
    remember = links_glance.LinksGlance.remember

    def once_it_is_gone(glance: links_glance.LinksGlance, *told: Any) -> None:
        shutil.rmtree(kept.world.owned(kept.agent))  # between the putting right and the look at it
        remember(glance, *told)

    monkeypatch.setattr(links_glance.LinksGlance, "remember", once_it_is_gone)
    await kept.ensure()
    assert not kept.is_in_order()


async def test_the_longest_unused_places_are_forgotten(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_glance, "MAX_PLACES", 1)
    await kept.ensure()
    await kept.healer.ensure(kept.other, kept.login)
    assert not kept.is_in_order()
    assert kept.healer.is_in_order(kept.other, kept.login)


async def test_a_login_that_is_made_later_is_put_right(kept: Kept) -> None:
    kept.world.enroll(kept.agent)
    late = kept.world.home + b"/.claude-late"
    await kept.healer.ensure(kept.agent, late)
    put(late + b"/.claude.json", b"{}")
    assert not kept.healer.is_in_order(kept.agent, late)
    await kept.healer.ensure(kept.agent, late)
    assert leads_to(kept.world.entry(late, kept.agent), kept.world.owned(kept.agent))
    assert kept.healer.is_in_order(kept.agent, late)
