"""Choosing a project and an agent in a terminal: lists that are filtered as one types.

    project --Enter--> start --Enter--> chosen
       |  ^              |
       |  '--Backspace---'        on an empty filter
       '--Enter on +--> name --Enter--> start

Esc and Ctrl-C leave everywhere, `q` where nothing was typed yet; a slash in front makes it a letter.
"""

from __future__ import annotations

from typing import Literal

from textual import events
from textual.app import App, ComposeResult
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from memctl import new_project
from memctl.show_projects import Project
from memctl.show_view import Choice, Offer, fitting, name, place, rows, starts

Stage = Literal["project", "name", "start"]

HINTS: dict[Stage, str] = {
    "project": "type to filter   ↑↓ move   Enter choose   Esc or q leave",
    "name": "Enter go on   Backspace back   Esc leave",
    "start": "type to filter   ↑↓ move   Enter start   Backspace back   Esc or q leave",
}

STEPS = {"up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down"}


def pick(offer: Offer) -> Choice | None:
    """None: the person leaves."""
    return Picker(offer).run()


class Filter(Input):
    """What is typed. All keys are dealt with here, in the order in which they come: a word with Enter behind
    it means that word, however fast it was typed.
    """

    def on_key(self, event: events.Key) -> None:
        picker = self.app
        assert isinstance(picker, Picker)
        if picker.took(event.key):
            event.stop()
            event.prevent_default()


class Picker(App[Choice]):
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #title { height: 1; padding: 0 1; text-style: bold; }
    #filter { height: 3; }
    #list { height: 1fr; border: none; }
    #list > .option-list--option-highlighted { text-style: bold reverse; }
    #says { height: auto; padding: 0 1; color: $text-error; }
    #hint { height: 1; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, offer: Offer) -> None:
        super().__init__()
        self.offer = offer
        self.stage: Stage = "project"
        self.project: Project | None = None
        self.new = ""
        self._projects: list[Project | None] = []
        self._words: list[str] = []
        self._listed = ("", "", 0)  # for what: stage, filter, width
        self._refused = ""
        self._is_over = False

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Filter(id="filter")
        yield Static(id="says", markup=False)
        options = OptionList(id="list", markup=False)
        options.can_focus = False  # the keys go to the filter; those that move are handed on
        yield options
        yield Static(id="hint", markup=False)

    def on_mount(self) -> None:
        self._go("project")

    def on_resize(self, event: events.Resize) -> None:
        self._list()

    # ------------------------------------------------------------------ what is shown

    def _go(self, stage: Stage) -> None:
        self.stage = stage
        titles: dict[Stage, str] = {
            "project": "Which project?",
            "name": f"A new project: how is it called?   ({place(self.offer.parent, self.offer.home)})",
            "start": f"What shall be started in {self.new or (name(self.project) if self.project else '')}?",
        }
        self.query_one("#title", Static).update(titles[stage])
        self.query_one("#hint", Static).update(HINTS[stage])
        self._say("")
        typed = self.query_one(Input)
        typed.placeholder = "small letters, digits, . _ -" if stage == "name" else ""
        typed.value = self.new if stage == "name" else ""
        typed.focus()
        self.query_one(OptionList).display = stage != "name"
        self._list()

    def _list(self) -> None:
        """The rows that fit the filter."""
        typed = self.query_one(Input).value
        if self._listed == (wanted := (self.stage, typed, self.size.width)):
            return
        kept = self.query_one(OptionList).highlighted if self._listed[:2] == wanted[:2] else None
        self._listed = wanted
        if self.stage == "project":
            found = fitting(self.offer.projects, typed, self.offer.home)
            lines = rows(found, self.offer.home, max(self.size.width - 4, 20))
            self._projects = [None, *found]
            lines.insert(0, "+ New project")
            self._fill(lines, (1 if found else 0) if kept is None else kept)
        elif self.stage == "start":
            parts = typed.casefold().split()
            fit = [
                (word, text)
                for word, text in starts(self.offer, self.project)
                if all(part in text.casefold() for part in parts)
            ]
            self._words = [word for word, _ in fit]
            self._fill([text for _, text in fit], kept or 0)

    def _fill(self, lines: list[str], highlighted: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(line) for line in lines])
        options.highlighted = highlighted if lines else None

    def _say(self, text: str) -> None:
        says = self.query_one("#says", Static)
        says.update(text)
        says.display = bool(text)

    # ------------------------------------------------------------------ what a person does

    def on_input_changed(self, event: Input.Changed) -> None:
        if self.query_one(Input).value != self._refused:  # the event may be of an earlier letter
            self._say("")
        self._list()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._chosen(event.option_index)  # by the mouse

    def took(self, key: str) -> bool:
        """Whether the key was for the picker; all others are typed."""
        typed = self.query_one(Filter)
        if self._is_over:
            return True
        if key in ("escape", "ctrl+c") or (key == "q" and not typed.value and self.stage != "name"):
            self._end(None)
        elif key == "enter":
            self._choose()
        elif key in STEPS and self.stage != "name":
            getattr(self.query_one(OptionList), f"action_{STEPS[key]}")()
        elif key == "backspace" and typed.value:
            typed.action_delete_left()
        elif key == "backspace" and self.stage != "project":
            self.new = ""
            self._go("project")
        else:
            return False
        return True

    def _choose(self) -> None:
        if self.stage == "name":
            self._named(self.query_one(Input).value.strip())
            return
        self._list()  # what was typed just now counts
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._chosen(at)

    def _chosen(self, at: int) -> None:
        if self.stage == "start":
            self._end(Choice(self.project, self.new, self._words[at]))
            return
        self.project = self._projects[at]
        self._go("name" if self.project is None else "start")

    def _named(self, typed: str) -> None:
        why = new_project.trouble(typed, self.offer.parent)
        if why:
            self._refused = self.query_one(Input).value
            self._say(f"{why}.")
            return
        self.new = typed
        self._go("start")

    def _end(self, chosen: Choice | None) -> None:
        self._is_over = True
        self.exit(chosen)
