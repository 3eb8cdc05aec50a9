"""Lines for people on a terminal, and for programs elsewhere."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import IO

import pytest

from memctl.lines import filled

LONG = "memctl: " + "a word or two, " * 12 + "/a/path/that/is/longer/than/the/terminal/is/wide/" + "x" * 40


@pytest.fixture
def terminal() -> Iterator[IO[str]]:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(follower, "w") as stream:
        yield stream
    os.close(leader)


def test_on_a_terminal_lines_end_at_words_and_a_path_is_never_cut(terminal: IO[str]) -> None:
    lines = filled(LONG, terminal, "  ")
    assert all(len(line) < 80 for line in lines[:-1])
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(line.strip() for line in lines) == LONG
    assert filled("short", terminal, "  ") == ["short"]


def test_a_command_is_not_broken(terminal: IO[str]) -> None:
    text = (
        "some words that take up most of the width there is, and then `memctl install-hooks --apply` follows"
    )
    assert "  `memctl install-hooks --apply` follows" in filled(text, terminal, "  ")
    endless = "`" + "word " * 30 + "`"
    assert all(len(line) < 80 for line in filled(endless, terminal, "  "))


def test_elsewhere_a_line_is_a_line() -> None:
    assert filled(LONG, io.StringIO(), "  ") == [LONG]
    closed = io.StringIO()
    closed.close()
    assert filled(LONG, closed, "  ") == [LONG]
