"""A list of sessions to move in, drawn below the prompt on standard error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from memctl.chooser import described
from memd.protocol_runs import Choice

Renew = Callable[[], None]


def pick(choices: Sequence[Choice], renew: Renew, renew_s: float) -> str:
    """The session that is chosen; empty: a new one. raises KeyboardInterrupt, what `renew` raises"""
    picker = Picker(choices, renew, renew_s)
    chosen = picker.run(inline=True)
    if picker.trouble is not None:
        raise picker.trouble
    if chosen is None:
        raise KeyboardInterrupt
    return chosen


class Picker(App[str]):
    """trouble: what `renew` raised, which ends it"""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { height: auto; }
    OptionList { height: auto; max-height: 12; border: none; }
    Static { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q,escape,q", "leave", show=False, priority=True),
        Binding("0,n", "number(0)", show=False),
        *(Binding(str(number), f"number({number})", show=False) for number in range(1, 10)),
    ]

    def __init__(self, choices: Sequence[Choice], renew: Renew, renew_s: float) -> None:
        super().__init__()
        self._choices = choices
        self._renew = renew
        self._renew_s = renew_s
        self.trouble: Exception | None = None

    def compose(self) -> ComposeResult:
        yield Static("Go on in a session that was begun here, or begin a new one:", markup=False)
        rows = [f"{number}  {described(one)}" for number, one in enumerate(self._choices, 1)]
        yield OptionList(*(Option(row) for row in (*rows, "0  a new session")), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.set_interval(self._renew_s, self._keep)

    def _keep(self) -> None:
        try:
            self._renew()
        except Exception as reason:  # noqa: BLE001  whatever it is, it goes to whoever asked
            self.trouble = reason
            self.exit(None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._answer(event.option_index + 1)

    def action_number(self, number: int) -> None:
        if number <= len(self._choices):
            self._answer(number)

    def action_leave(self) -> None:
        self.exit(None)

    def _answer(self, number: int) -> None:
        self.exit(self._choices[number - 1].session if 0 < number <= len(self._choices) else "")
