"""What a terminal is shown of a text that somebody else wrote."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.ledger.terminal import strip_terminal

SHOWN = [
    ("plain text, ünïcode 密码 🔑\n\ttab", "plain text, ünïcode 密码 🔑\n\ttab"),
    ("a\x00b\x07c\x08d\x7fe", "abcde"),
    ("line\r\nnext\rover", "line\nnextover"),
    ("\x1b[31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m", "red rgb"),
    ("\x1b[2J\x1b[H\x1b[?25lgone", "gone"),
    ("\x1b[6n\x1b[c\x1b[>0q ok", " ok"),
    ("\x9b31mred\x9b0m", "red"),
    ("\x1b]0;owned\x07title", "title"),
    ("\x1b]0;owned\x1b\\title", "title"),
    ("\x9d0;owned\x9ctitle", "title"),
    ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
    ("\x1b]52;c;Y3VybCBldmls\x07clip", "clip"),
    ("\x1bP$q\x1b\\dcs\x90q\x9c", "dcs"),
    ("\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
    ("\x1b(0lqqk\x1b(B", "lqqk"),
    ("\x1b7save\x1b8\x1bcreset\x1bM", "savereset"),
    ("unclosed \x1b]0;the rest is read", "unclosed ]0;the rest is read"),
    ("unclosed \x1b[", "unclosed ["),
    ("ends in \x1b", "ends in "),
    ("\x1b\x1b[31m[31m", "[31m"),
    ("user\u202egnp.exe\u202c \u2066x\u2069 \u200fy\u200e \u061cz", "usergnp.exe x y z"),
    ("half \ud83d pair \udc00", "half \ufffd pair \ufffd"),
    ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_only_what_is_safe_is_shown(text: str, shown: str) -> None:
    assert strip_terminal(text) == shown


_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(
    st.lists(
        st.one_of(
            st.text(alphabet=st.characters(exclude_categories=()), max_size=10),
            st.sampled_from(
                ["\x1b", "\x1b[", "\x1b]", "\x07", "\x1b\\", "\x9b", "\x9d", "\x9c", "31m", ";", "\u202e"]
            ),
        ),
        max_size=12,
    ).map("".join)
)
def test_nothing_unsafe_is_left_of_any_text(text: str) -> None:
    shown = strip_terminal(text)
    assert _UNSAFE.search(shown) is None
    assert strip_terminal(shown) == shown
    shown.encode("utf-8")


def test_safe_text_is_returned_as_it_is() -> None:
    text = "nothing to do\n" * 100
    assert strip_terminal(text) is text
