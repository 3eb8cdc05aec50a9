"""Asking for a session: by number on any terminal, in a list on a capable one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from textual.widgets import OptionList

from memctl import chooser
from memctl.picker import Picker
from memd.errors import TryAgain
from memd.protocol_runs import Choice

CHOICES = tuple(
    Choice(session=f"s{number}", title=f"title {number}", age="just now", events=number)
    for number in range(1, 4)
)


class Typing:
    """Standard input as a pipe that the test types into."""

    def __init__(self) -> None:
        read, self._write = os.pipe()
        self._kept = os.dup(0)
        os.dup2(read, 0)
        os.close(read)

    def type(self, text: str) -> None:
        os.write(self._write, text.encode())

    def end_input(self) -> None:
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def close(self) -> None:
        self.end_input()
        os.dup2(self._kept, 0)
        os.close(self._kept)


@pytest.fixture
def typing() -> Iterator[Typing]:
    made = Typing()
    yield made
    made.close()


def no_renewal() -> None:
    raise AssertionError("nobody thought that long")


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("\n", "s1"),
        ("2\n", "s2"),
        ("3", "s3"),
        ("0\n", ""),
        ("n\n", ""),
        ("NEW\n", ""),
        ("9\nx\n\n", "s1"),
        ("", ""),
        ("12345678901234567890\n2\n", "s2"),
        ("é\n1\n", "s1"),
    ],
)
def test_an_answer_by_number(
    typing: Typing, capsys: pytest.CaptureFixture[str], text: str, session: str
) -> None:
    typing.type(text)
    typing.end_input()
    assert chooser.by_number(CHOICES, no_renewal) == session
    said = capsys.readouterr()
    assert said.out == ""
    assert "title 3" in said.err
    assert said.err.count("Enter 0 through 3.") == {"9\nx\n\n": 2}.get(text, len(text) > 10 or "é" in text)


@pytest.mark.parametrize(
    ("text", "is_yes"),
    [("\n", True), ("y\n", True), ("YES\n", True), ("no\n", False), ("x\nn\n", False), ("", False)],
)
def test_yes_and_no(typing: Typing, text: str, is_yes: bool) -> None:
    typing.type(text)
    typing.end_input()
    assert chooser.confirm("Copy it?", no_renewal) is is_yes


def test_the_lease_is_renewed_while_nobody_answers(typing: Typing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chooser, "RENEW_S", 0.0)
    renewed = []

    def renew() -> None:
        renewed.append(1)
        if len(renewed) == 3:
            monkeypatch.setattr(chooser, "RENEW_S", 30.0)
            typing.type("2\n")

    assert chooser.by_number(CHOICES, renew) == "s2"
    assert len(renewed) == 3


def test_a_lease_that_is_gone_ends_the_question(typing: Typing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chooser, "RENEW_S", 0.0)

    def gone() -> None:
        raise TryAgain("somebody else has it")

    with pytest.raises(TryAgain):
        chooser.by_number(CHOICES, gone)


@pytest.mark.parametrize(
    ("keys", "session"),
    [
        (["enter"], "s1"),
        (["down", "enter"], "s2"),
        (["down", "down", "down", "enter"], ""),
        (["3"], "s3"),
        (["0"], ""),
        (["n"], ""),
        (["9", "2"], "s2"),
        (["ctrl+c"], None),
        (["escape"], None),
        (["q"], None),
    ],
)
def test_keys_in_the_list(keys: list[str], session: str | None) -> None:
    import asyncio

    async def go() -> str | None:
        picker = Picker(CHOICES, no_renewal, 30.0)
        async with picker.run_test() as pilot:
            assert picker.query_one(OptionList).option_count == 4
            await pilot.press(*keys)
        return picker.return_value

    assert asyncio.run(go()) == session


def test_a_lease_that_is_gone_closes_the_list() -> None:
    import asyncio

    def gone() -> None:
        raise TryAgain("somebody else has it")

    async def go() -> Picker:
        picker = Picker(CHOICES, gone, 0.01)
        async with picker.run_test() as pilot:
            while picker.trouble is None:
                await pilot.pause(0.01)
        return picker

    picker = asyncio.run(go())
    assert isinstance(picker.trouble, TryAgain)
    assert picker.return_value is None


def test_one_line_says_what_a_session_is() -> None:
    assert chooser.described(CHOICES[0]) == "s1  (just now, 1 event)  title 1"
    plain = Choice(session="x" * 80, title="", age="", events=2)
    assert chooser.described(plain) == "x" * 64 + "…  (2 events)"
