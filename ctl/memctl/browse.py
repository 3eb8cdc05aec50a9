"""memctl memory browse: the topics in a terminal. Filter as you type, read, pin, remove with undo, repair.

It asks the daemon for everything and knows no file. The list is read again every few seconds, so that what
other tools write, and a change of `memory.jsonc`, shows by itself.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from memctl.paths import shown
from memd import protocol_memory as m
from memd.errors import MemdError, UsageError
from memd.frame import harmless

T = TypeVar("T")

RE_READ_S = 3.0
MAX_SHOWN_BYTES = 200_000


class Gateway(Protocol):
    """What the browser needs of the daemon; every method may raise a MemdError."""

    def list_topics(self) -> m.Topics: ...
    def read(self, topic: str) -> m.TopicText: ...
    def pin(self, topic: str, is_pinned: bool) -> m.Changed: ...
    def remove(self, topic: str) -> m.Changed: ...
    def restore(self, file: str) -> m.Changed: ...
    def repair(self) -> m.Repaired: ...


class Daemon:
    """The running one."""

    def list_topics(self) -> m.Topics:
        return _ask(m.ListTopics(), m.Topics)

    def read(self, topic: str) -> m.TopicText:
        return _ask(m.ReadTopic(topic=topic), m.TopicText)

    def pin(self, topic: str, is_pinned: bool) -> m.Changed:
        return _ask(m.PinTopic(topic=topic, pin=is_pinned), m.Changed)

    def remove(self, topic: str) -> m.Changed:
        return _ask(m.RemoveTopic(topic=topic), m.Changed)

    def restore(self, file: str) -> m.Changed:
        return _ask(m.RestoreTopic(file=file), m.Changed)

    def repair(self) -> m.Repaired:
        return _ask(m.RepairIndex(), m.Repaired)


R = TypeVar("R", bound=m.Result)


def _ask(action: m.AnyAction, expect: type[R]) -> R:
    from memctl import client
    from memd import protocol

    result = client.ask(protocol.Memory(action=action), protocol.MemoryReply).result
    assert isinstance(result, expect)
    return result


class Browser(App[None]):
    """The window. `removed` is what an undo brings back, the last first."""

    TITLE = "memory"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #filter { height: 3; }
    #topics { width: 45%; height: 1fr; }
    #page { width: 1fr; height: 1fr; padding: 0 1; border-left: solid $panel; }
    #says { height: 1; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # These move the focus before the next key is looked at: a word typed fast is no command.
        Binding("slash", "filter", "filter", priority=True),
        Binding("escape,enter", "leave_filter", "list", show=False, priority=True),
        Binding("p", "pin", "pin or unpin"),
        Binding("d", "remove", "remove"),
        Binding("u", "undo", "undo"),
        Binding("r", "repair", "repair"),
        Binding("f5", "read_again", "read again"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self.gateway = gateway
        self.topics: tuple[m.Topic, ...] = ()
        self.removed: list[m.Topic] = []
        self._visible: list[m.Topic] = []
        self._read_file = ""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="filter: words of name, file or summary", id="filter")
        with Horizontal():
            table: DataTable[Text] = DataTable(id="topics", cursor_type="row", zebra_stripes=True)
            yield table
            with VerticalScroll(id="page"):
                yield Static(id="text", markup=False)
        yield Static(id="says", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        self._table().add_columns("topic", "", "date")
        self._table().focus()
        self.set_interval(RE_READ_S, self.action_read_again)
        await self._load()

    def _table(self) -> DataTable[Text]:
        return self.query_one("#topics", DataTable)

    # ------------------------------------------------------------------ what is shown

    async def _load(self) -> None:
        found = await self._try(self.gateway.list_topics)
        if found is None:
            return
        self.topics = found.topics
        kind = "shared" if found.is_shared else "local"
        words = [f"{len(found.topics)} topics in {shown(found.store)} ({kind})", *found.notes]
        if found.unlisted:
            words.append(f"{found.unlisted} not in the index: r lists them")
        self.sub_title = words[0]
        self._say("; ".join(words))
        self._show_list()

    def _show_list(self) -> None:
        """The topics that fit the filter; the cursor stays on its topic."""
        table = self._table()
        chosen = self._chosen()
        wanted = self.query_one("#filter", Input).value.casefold().split()
        self._visible = [topic for topic in self.topics if _fits(topic, wanted)]
        table.clear()
        for topic in self._visible:
            marks = ("*" if topic.is_pinned else "") + ("?" if topic.is_stale else "")
            name = Text(harmless(topic.name), style="dim" if topic.is_missing else "")
            table.add_row(name, Text(marks), Text(topic.date[:10]), key=topic.file)
        places = [n for n, topic in enumerate(self._visible) if chosen and topic.file == chosen.file]
        if places:
            table.move_cursor(row=places[0])
        self._refresh_page()

    def _chosen(self) -> m.Topic | None:
        row = self._table().cursor_row
        return self._visible[row] if 0 <= row < len(self._visible) else None

    def _refresh_page(self) -> None:
        """Show the topic under the cursor; one that is still being read is called off."""
        self.run_worker(self._show_page, exclusive=True, group="page")  # type: ignore[arg-type]

    async def _show_page(self) -> None:
        topic = self._chosen()
        page = self.query_one("#text", Static)
        if topic is None:
            page.update("no topic fits" if self.topics else "no topics yet")
            return
        if topic.is_missing:
            page.update(f"{topic.file} is not there at the moment")
            return
        found = await self._try(lambda: self.gateway.read(topic.file))
        if found is not None and self._chosen() == topic:
            cut = found.content[:MAX_SHOWN_BYTES].decode("utf-8", "replace")
            page.update(harmless(cut) + ("\n…" if len(found.content) > MAX_SHOWN_BYTES else ""))

    def _say(self, words: str) -> None:
        self.query_one("#says", Static).update(harmless(words))

    async def _try(self, work: Callable[[], T]) -> T | None:
        """The result of a question to the daemon; its refusal is shown instead."""
        try:
            return await asyncio.to_thread(work)
        except MemdError as reason:
            self._say(f"{reason}  {reason.remedy}")
            return None

    # ------------------------------------------------------------------ what a person does

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show_list()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._refresh_page()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash within the filter is a slash; leaving it needs that one is in it."""
        is_typing = isinstance(self.focused, Input)
        if action == "filter":
            return not is_typing
        return is_typing if action == "leave_filter" else True

    def action_filter(self) -> None:
        self.screen.set_focus(self.query_one("#filter", Input))

    def action_leave_filter(self) -> None:
        self.screen.set_focus(self._table())

    async def action_read_again(self) -> None:
        await self._load()

    async def action_pin(self) -> None:
        topic = self._chosen()
        if topic is not None:
            done = await self._try(lambda: self.gateway.pin(topic.file, not topic.is_pinned))
            await self._after(done, f"{topic.name}: {done.outcome}" if done else "")

    async def action_remove(self) -> None:
        topic = self._chosen()
        if topic is not None:
            done = await self._try(lambda: self.gateway.remove(topic.file))
            if done is not None:
                self.removed.append(topic)
            await self._after(done, f"{topic.name} removed; u brings it back")

    async def action_undo(self) -> None:
        if not self.removed:
            self._say("nothing to undo")
            return
        topic = self.removed[-1]
        done = await self._try(lambda: self.gateway.restore(topic.file))
        if done is not None:
            self.removed.pop()
        await self._after(done, f"{topic.name} is back")

    async def action_repair(self) -> None:
        done = await self._try(self.gateway.repair)
        if done is not None:
            words = [f"{len(done.added)} topics listed"]
            words += [f"{shown(row.file)}: {row.reason}. {row.remedy}" for row in done.reported]
            await self._after(done, "; ".join(words))

    async def _after(self, done: m.Result | None, words: str) -> None:
        """Show what changed and what was done; a refusal stands there already."""
        if done is not None:
            await self._load()
            self._say(words)


def _fits(topic: m.Topic, wanted: list[str]) -> bool:
    text = f"{topic.name} {topic.file} {topic.summary}".casefold()
    return all(word in text for word in wanted)


def run() -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("browsing needs a terminal", remedy="Use `memctl memory list` and `read` instead.")
    daemon = Daemon()
    daemon.list_topics()  # what is wrong is said before the window opens
    Browser(daemon).run()
    return 0
