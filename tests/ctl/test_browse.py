"""The browser of topics, driven by its own pilot; and once for real in a terminal, see e2e."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from memd import protocol_memory as m
from memd.errors import Refused

pytest.importorskip("textual", reason="the extra `tui` is not installed")

from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from memctl.browse import Browser


class Fake:
    """A daemon with three topics."""

    def __init__(self) -> None:
        self.topics = {
            name: m.Topic(
                name=name, file=f"{name.lower()}.md", date="2026-09-05T10:00:00Z", summary=f"about {name}"
            )
            for name in ("Docker", "Redis", "Mail")
        }
        self.gone: dict[str, m.Topic] = {}
        self.notes: tuple[str, ...] = ()
        self.content = b"---\nname: x\n---\n\ntext of "
        self.reads: list[str] = []

    def _changed(self, topic: m.Topic, outcome: str) -> m.Changed:
        return m.Changed(store=b"/s", is_shared=True, topic=topic, path=b"/s/x", outcome=outcome)  # type: ignore[arg-type]

    def list_topics(self) -> m.Topics:
        return m.Topics(store=b"/s", is_shared=True, topics=tuple(self.topics.values()), notes=self.notes)

    def _of(self, file: str) -> m.Topic:
        return next(topic for topic in self.topics.values() if topic.file == file)

    def read(self, topic: str) -> m.TopicText:
        self.reads.append(topic)
        found = self._of(topic)
        content = self.content + found.name.encode()
        return m.TopicText(store=b"/s", is_shared=True, topic=found, path=b"/s/x", content=content)

    def pin(self, topic: str, is_pinned: bool) -> m.Changed:
        found = msgspec.structs.replace(self._of(topic), is_pinned=is_pinned)
        self.topics[found.name] = found
        return self._changed(found, "pinned" if is_pinned else "unpinned")

    def remove(self, topic: str) -> m.Changed:
        found = self._of(topic)
        if found.is_pinned:
            raise Refused(f"{found.name!r} is pinned", remedy="Unpin it first.")
        self.gone[topic] = self.topics.pop(found.name)
        return self._changed(found, "removed")

    def restore(self, file: str) -> m.Changed:
        found = self.gone.pop(file)
        self.topics[found.name] = found
        return self._changed(found, "restored")

    def repair(self) -> m.Repaired:
        found = m.Topic(name="Lost", file="lost.md")
        self.topics["Lost"] = found
        row = m.Unlisted(file=b"odd [x].md", reason="its name has brackets", remedy="Rename it.")
        return m.Repaired(store=b"/s", is_shared=True, added=(found,), reported=(row,))


Drive = Callable[[Pilot[None], "Window"], Awaitable[None]]


class Window:
    """What a person sees."""

    def __init__(self, app: Browser) -> None:
        self.app = app

    @property
    def names(self) -> list[str]:
        table = self.app.query_one("#topics", DataTable)
        return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]

    @property
    def marks(self) -> list[str]:
        table = self.app.query_one("#topics", DataTable)
        return [str(table.get_row_at(row)[1]) for row in range(table.row_count)]

    @property
    def page(self) -> str:
        return str(self.app.query_one("#text", Static).render())

    @property
    def says(self) -> str:
        return str(self.app.query_one("#says", Static).render())


def drive(fake: Fake, work: Drive) -> None:
    async def run() -> None:
        app = Browser(fake)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await work(pilot, Window(app))

    asyncio.run(run())


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def test_it_lists_the_topics_and_shows_the_one_under_the_cursor() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        assert window.names == ["Docker", "Redis", "Mail"]
        assert "text of Docker" in window.page
        assert "3 topics in /s (shared)" in window.says
        await press(pilot, "down")
        assert "text of Redis" in window.page

    drive(Fake(), work)


def test_it_filters_while_one_types() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "slash", "r", "e", "d")
        assert window.names == ["Redis"]
        assert "text of Redis" in window.page
        await press(pilot, "x")
        assert window.names == []
        assert window.page == "no topic fits"
        await press(pilot, "backspace", "backspace", "backspace", "backspace", "enter")
        assert window.names == ["Docker", "Redis", "Mail"]
        await press(pilot, "p")
        assert "*" in "".join(window.marks)

    drive(Fake(), work)


def test_letters_in_the_filter_are_words_and_no_commands() -> None:
    fake = Fake()

    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "slash", "d", "o", "p", "u", "r", "q", "slash")
        assert window.app.query_one("#filter", Input).value == "dopurq/"
        await press(pilot, "escape")
        assert len(fake.topics) == 3
        assert not any(topic.is_pinned for topic in fake.topics.values())

    drive(fake, work)


def test_pin_and_unpin_keep_the_cursor_where_it_is() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "down", "p")
        assert window.marks == ["", "*", ""]
        assert "text of Redis" in window.page
        await press(pilot, "p")
        assert window.marks == ["", "", ""]

    drive(Fake(), work)


def test_a_removal_is_undone_also_the_one_before() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "u")
        assert window.says == "nothing to undo"
        await press(pilot, "d")
        await press(pilot, "d")
        assert window.names == ["Mail"]
        assert "u brings it back" in window.says
        await press(pilot, "u")
        await press(pilot, "u")
        assert sorted(window.names) == ["Docker", "Mail", "Redis"]
        assert window.says == "Docker is back"

    drive(Fake(), work)


def test_a_refusal_is_shown_and_nothing_is_gone() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "p")
        await press(pilot, "d")
        assert "is pinned" in window.says
        assert "Unpin it first." in window.says
        assert len(window.names) == 3

    drive(Fake(), work)


def test_repair_tells_what_it_listed_and_what_it_could_not() -> None:
    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "r")
        assert "Lost" in window.names
        assert window.says.startswith("1 topics listed; odd [x].md: its name has brackets. Rename it.")

    drive(Fake(), work)


def test_what_others_change_is_seen_when_it_reads_again() -> None:
    fake = Fake()

    async def work(pilot: Pilot[None], window: Window) -> None:
        await press(pilot, "down", "down")
        del fake.topics["Docker"]
        fake.notes = ("memory.jsonc is broken",)
        await press(pilot, "f5")
        assert window.names == ["Redis", "Mail"]
        assert "text of Mail" in window.page
        assert "memory.jsonc is broken" in window.says

    drive(fake, work)


def test_a_topic_cannot_paint_the_terminal() -> None:
    fake = Fake()
    fake.content = b"[red]\x1b[2J\x1b]0;x\x07 [/nonsense] "
    fake.topics["Docker"] = msgspec.structs.replace(fake.topics["Docker"], name="[bold]\x1b[1m")

    async def work(pilot: Pilot[None], window: Window) -> None:
        assert window.names[0] == "[bold][1m"
        assert "[red][2J]0;x [/nonsense]" in window.page

    drive(fake, work)


def test_a_topic_whose_file_is_away_is_said_to_be() -> None:
    fake = Fake()
    fake.topics["Docker"] = msgspec.structs.replace(fake.topics["Docker"], is_missing=True)

    async def work(pilot: Pilot[None], window: Window) -> None:
        assert "docker.md is not there" in window.page
        assert fake.reads == []

    drive(fake, work)
