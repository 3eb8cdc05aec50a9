"""Choosing a project and an agent, driven by the window's own pilot and, for numbers, by what is typed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memctl import show_numbers
from memctl.show_projects import Project
from memctl.show_view import Choice, Offer

USED = "2026-02-07T09:00:00Z"
APP = Project("default", "app", b"/w/app", "local", "registry", True, 2, 9, USED)
QUEUE = Project("acme", "queue", b"/w/queue", "local", "scan", False)
OTHER = Project("default", "other", b"/w/other", "local", "scan", None)


@pytest.fixture
def offer(tmp_path: Path) -> Offer:
    harnesses = [("claude", "Claude Code"), ("codex", "Codex")]
    return Offer([APP, QUEUE, OTHER], harnesses, bytes(tmp_path), b"/home/me")


# ------------------------------------------------------------------------------------- in a window


def press(offer: Offer, *keys: str, look: Callable[[str], None] | None = None) -> Choice | None:
    """What is chosen by these keys; `look` gets what the window shows before the last of them."""
    pytest.importorskip("textual", reason="the extra `tui` is not installed")
    from textual.widgets import OptionList, Static

    from memctl.show_picker import Picker

    async def drive() -> Choice | None:
        picker = Picker(offer)
        async with picker.run_test(size=(80, 24)) as pilot:
            await pilot.press(*keys[:-1])
            await pilot.pause()
            if look is not None:
                lines = [str(one.render()) for one in picker.query(Static) if one.display]
                options = picker.query_one(OptionList)
                if options.display:
                    lines += [str(option.prompt) for option in options.options]
                look("\n".join(lines))
            await pilot.press(keys[-1])
            await pilot.pause()
            assert not picker.is_running
        return picker.return_value

    return asyncio.run(drive())


def shows(*parts: str, lacks: Sequence[str] = ()) -> Callable[[str], None]:
    def look(text: str) -> None:
        for part in parts:
            assert part in text
        for part in lacks:
            assert part not in text

    return look


def test_enter_goes_on_in_the_project_that_was_used_last(offer: Offer) -> None:
    look = shows("What shall be started in app?", "go on where you left off", "claude  (Claude Code)")
    assert press(offer, "enter", "enter", look=look) == Choice(APP, "", "")
    assert press(offer, "enter", "down", "down", "enter") == Choice(APP, "", "codex")


def test_typing_filters_both_lists(offer: Offer) -> None:
    look = shows("acme/queue", lacks=["/w/app"])
    assert press(offer, *"/queu", "escape", look=look) is None
    assert press(offer, *"oth", "enter", *"dex", "enter") == Choice(OTHER, "", "codex")


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "q"])
def test_these_leave_from_both_lists(offer: Offer, key: str) -> None:
    assert press(offer, key) is None
    assert press(offer, "enter", key) is None


def test_a_q_within_a_word_is_typed(offer: Offer) -> None:
    assert press(offer, *"eq", "escape") is None
    assert press(offer, *"/q", "enter", "enter") == Choice(QUEUE, "", "claude")


def test_backspace_goes_back_from_an_agent_to_the_projects(offer: Offer) -> None:
    assert press(offer, "enter", "x", "backspace", "backspace", *"oth", "enter", "enter") == Choice(
        OTHER, "", "claude"
    )


def test_nothing_that_fits_leaves_the_new_project(offer: Offer) -> None:
    look = shows("+ New project", lacks=["/w/"])
    assert press(offer, *"zzz", "escape", look=look) is None
    assert press(offer, *"zzz", "enter", *"fresh", "enter", "enter") == Choice(None, "fresh", "claude")


def test_the_first_entry_is_a_new_project_whose_name_is_checked(offer: Offer, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    look = shows("how is it called?", "taken is there already")
    assert press(offer, "up", "enter", *"taken", "enter", "escape", look=look) is None
    look = shows("a name begins with a small letter")
    assert press(offer, "up", "enter", *"Bad", "enter", "escape", look=look) is None
    keys = [*"q1-x", "enter", "enter"]
    assert press(offer, "up", "enter", *keys) == Choice(None, "q1-x", "claude")
    assert os.listdir(tmp_path) == ["taken"]  # nothing is made here


def test_an_empty_name_goes_back(offer: Offer) -> None:
    assert press(offer, "up", "enter", "backspace", "enter", "enter") == Choice(APP, "", "")


def test_a_window_of_another_size_keeps_what_is_highlighted(offer: Offer) -> None:
    pytest.importorskip("textual", reason="the extra `tui` is not installed")
    from textual.widgets import OptionList

    from memctl.show_picker import Picker

    async def drive() -> Choice | None:
        picker = Picker(offer)
        async with picker.run_test(size=(80, 24)) as pilot:
            await pilot.press("down")
            for size in ((20, 5), (200, 60), (1, 1), (80, 24)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                assert picker.query_one(OptionList).highlighted == 2
            await pilot.press("enter", "enter")
        return picker.return_value

    assert asyncio.run(drive()) == Choice(QUEUE, "", "claude")


def test_names_that_look_like_markup_are_shown_as_they_are(offer: Offer) -> None:
    odd = OTHER._replace(project="[red]x[/red]", path="/w/[b]ö 名".encode())
    look = shows("[red]x[/red]", "/w/[b]ö 名")
    assert press(offer._replace(projects=[odd]), "escape", look=look) is None


# -------------------------------------------------------------------------------------- by numbers


@pytest.fixture
def numbers(
    offer: Offer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Choice | None, str]]:
    def typing(*lines: str | None, offer: Offer = offer) -> tuple[Choice | None, str]:
        left = list(lines)
        monkeypatch.setattr("memctl.chooser.read_line", lambda renew: left.pop(0))
        monkeypatch.setenv("COLUMNS", "80")
        chosen = show_numbers.pick(offer)
        assert left == []
        return chosen, capsys.readouterr().out

    return typing


Typing = Callable[..., tuple[Choice | None, str]]


def test_numbers_choose_and_enter_is_the_first(numbers: Typing) -> None:
    assert numbers("\n", "\n")[0] == Choice(APP, "", "")
    assert numbers("3\n", "2\n")[0] == Choice(OTHER, "", "codex")
    assert numbers("1\n", "codex\n")[0] == Choice(APP, "", "codex")


def test_words_filter_and_what_fits_nothing_is_said(numbers: Typing) -> None:
    chosen, text = numbers("zzz\x1b[1m\n", "que\n", "1\n", "9\n", "1\n")
    assert chosen == Choice(QUEUE, "", "claude")
    assert "Nothing fits 'zzz?[1m'." in text
    assert "Type a number from 1 to 2" in text


def test_a_number_that_is_on_no_line_is_a_word(numbers: Typing, offer: Offer) -> None:
    game = OTHER._replace(project="2048")
    assert numbers("2048\n", "\n", "\n", offer=offer._replace(projects=[APP, game]))[0] == Choice(
        game, "", "claude"
    )


@pytest.mark.parametrize("line", ["q\n", "\x1b\n", None])
def test_these_leave(numbers: Typing, line: str | None) -> None:
    assert numbers(line)[0] is None
    assert numbers("1\n", line)[0] is None


def test_an_interrupt_leaves(offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(renew: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("memctl.chooser.read_line", interrupted)
    assert show_numbers.pick(offer) is None


def test_a_new_project_is_named_until_the_name_will_do(numbers: Typing, offer: Offer) -> None:
    chosen, text = numbers("+\n", "Ä\n", "q\n", "1\n")
    assert chosen == Choice(None, "q", "claude")
    assert "a name begins with a small letter" in text
    assert numbers("\n", "new\n", "\n", offer=offer._replace(projects=[]))[0] == Choice(None, "new", "claude")
    assert numbers("+\n", "\n", "q\n")[0] is None


def test_a_long_list_is_cut_and_says_so(numbers: Typing, offer: Offer) -> None:
    many = [OTHER._replace(project=f"p{number:02}", path=b"/w/p%02d" % number) for number in range(40)]
    chosen, text = numbers("20\n", "1\n", offer=offer._replace(projects=many))
    assert chosen == Choice(many[19], "", "claude")
    assert "and 25 more: type a part of the name" in text
    assert "p15" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("Project ["))
