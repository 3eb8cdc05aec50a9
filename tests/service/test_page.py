"""Lines for people: filled, padded, counted, dated."""

from __future__ import annotations

from memd.service import page


def test_lines_are_filled_and_a_long_word_stays_whole() -> None:
    assert page.filled("a bb ccc " + "d" * 30 + " e", 20) == ["a bb ccc", "d" * 30, "e"]
    assert page.filled("  \n ", 20) == []
    assert page.filled("one two", 1) == ["one two"]  # narrower than this nobody can read


def test_only_the_first_line_has_the_lead() -> None:
    assert page.wrapped("aaaa bbbb cccc dddd eeee", 24, "-> ") == ["-> aaaa bbbb cccc dddd", "   eeee"]
    assert page.wrapped("a", 80, "  ", str.upper) == ["  A"]


def test_columns_of_a_terminal_are_counted_not_characters() -> None:
    assert page.padded("ab", 4) == "ab  "
    assert page.padded("日本", 6) == "日本  "
    assert page.padded("e\u0301", 3) == "e\u0301  "
    assert page.padded("longer", 3) == "longer"


def test_ages_are_rounded_down_and_never_negative() -> None:
    now = 1_790_000_000_000
    for seconds, words in (
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (2 * 86400, "2 days ago"),
        (400 * 86400, "13 months ago"),
    ):
        assert page.age(now - seconds * 1000, now) == words
    assert page.span(0) == "less than a minute"


def test_what_is_left_is_the_nearest_count_and_never_a_day_too_few_at_once() -> None:
    for seconds, words in (
        (7 * 86400, "7 days"),
        (7 * 86400 - 2, "7 days"),
        (6.4 * 86400, "6 days"),
        (1.5 * 86400, "36 hours"),
        (3 * 3600 - 1, "3 hours"),
        (5400, "90 minutes"),
        (50, "1 minute"),
        (20, "less than a minute"),
        (-5, "less than a minute"),
    ):
        assert page.left(int(seconds * 1000)) == words


def test_a_time_that_no_calendar_has_is_empty() -> None:
    assert page.utc(1_790_000_000_000) == "2026-09-21T14:13:20Z"
    assert page.utc(10**18) == ""


def test_what_is_cut_says_so_and_stays_on_one_line() -> None:
    assert page.cut("a\n  b", 80) == "a b"
    assert page.cut("abcdef", 4) == "abc…"
