"""What is taken out of an index or changed in it: pins, removals, and the order that a write puts it in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.errors import NotFound, Refused
from support_topics import Home, put, read, topic

INDEX = b"# Memory Index\n\n- [One](one.md) 2026-09-05 -- first\n- [Two](two.md) [pin] 2026-09-05 -- second\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def filled(home: Home) -> Home:
    put(home.shared + b"/MEMORY.md", INDEX)
    put(home.shared + b"/one.md", topic("One", "text one"))
    put(home.shared + b"/two.md", topic("Two", "text two"))
    return home


# ------------------------------------------------------------------ pins and removals


def test_pin_unpin_and_pin_twice(home: Home) -> None:
    filled(home)
    topics = home.topics()
    assert topics.pin("One", True).outcome == "pinned"
    assert topics.pin("One", True).outcome == "unchanged"
    assert b"- [One](one.md) [pin] 2026-09-05" in home.index()
    assert topics.pin("One", False).outcome == "unpinned"
    assert topics.pin("Two", False).outcome == "unpinned"
    assert home.index().count(b"[pin]") == 0


def test_remove_drops_the_line_keeps_the_file_and_remembers_the_removal_first(home: Home) -> None:
    filled(home)
    home.topics().remove("One")
    assert home.files() == ["two.md"]
    assert read(home.shared + b"/one.md") == topic("One", "text one")
    assert read(home.shared + b"/.ocl-removed") == b"one.md\n"
    assert home.topics().repair().added == ()


def test_a_pinned_topic_is_not_removed(home: Home) -> None:
    filled(home)
    with pytest.raises(Refused, match="pinned"):
        home.topics().remove("Two")
    assert home.index() == INDEX
    assert not os.path.exists(home.shared + b"/.ocl-removed")


def test_a_removal_can_be_undone_with_its_line(home: Home) -> None:
    filled(home)
    line = home.index().splitlines()[2]
    home.topics().remove("One")
    done = home.topics().restore("one.md")
    assert done.outcome == "restored"
    assert line in home.index().splitlines()
    assert read(home.shared + b"/.ocl-removed") == b""
    for bad in ("../secret.md", "MEMORY.md", "nothing.md"):
        with pytest.raises(Refused):
            home.topics().restore(bad)


def test_writing_a_removed_topic_again_brings_it_back_and_clears_the_tombstone(home: Home) -> None:
    filled(home)
    put(home.shared + b"/.ocl-removed", b"other.md\nodd [line]\n")
    home.topics().remove("One")
    home.write("One", "again", "s")
    assert read(home.shared + b"/.ocl-removed") == b"other.md\nodd [line]\n"
    assert b"text one" in read(home.shared + b"/one.md")
    assert b"again" in read(home.shared + b"/one.md")


def test_another_topic_with_the_slug_of_a_removed_one_gets_its_own_file(home: Home) -> None:
    home.write("C++", "plus")
    home.topics().remove("C++")
    home.write("C#", "sharp")
    assert home.files() == ["c-2.md"]
    assert read(home.shared + b"/.ocl-removed") == b"c.md\n"


def test_a_removal_that_is_asked_for_again_is_done_and_a_topic_nobody_had_is_unknown(home: Home) -> None:
    filled(home)
    home.topics().remove("One")
    assert home.topics().remove("One").outcome == "removed"  # the first answer may have been lost
    home.clock.pass_ms(700_000)
    with pytest.raises(NotFound, match="no topic is called"):
        home.topics().remove("One")
    with pytest.raises(NotFound):
        home.topics().pin("nothing", True)


# ------------------------------------------------------------------ maintenance


def test_a_file_that_is_briefly_away_keeps_its_line_and_one_gone_for_long_loses_it(home: Home) -> None:
    filled(home)
    os.rename(home.shared + b"/two.md", home.home + b"/two.md")
    for _ in range(3):
        home.clock.pass_ms(7 * 3_600_000)
        home.write("One", "more")
        assert home.files() == ["one.md", "two.md"]
    home.clock.pass_ms(11 * 3_600_000)
    home.write("One", "more")
    assert home.files() == ["one.md"]
    os.rename(home.home + b"/two.md", home.shared + b"/two.md")
    home.topics().repair()
    assert home.index().splitlines()[-1] == b"- [Two](two.md) [pin] 2026-09-05 -- second"


def test_a_file_that_came_back_starts_anew(home: Home) -> None:
    filled(home)
    os.rename(home.shared + b"/two.md", home.home + b"/two.md")
    home.write("One", "more")
    home.clock.pass_ms(20 * 3_600_000)
    os.rename(home.home + b"/two.md", home.shared + b"/two.md")
    home.write("One", "more")
    os.rename(home.shared + b"/two.md", home.home + b"/two.md")
    home.clock.pass_ms(20 * 3_600_000)
    home.write("One", "more")
    assert home.files() == ["one.md", "two.md"]


def test_of_two_lines_for_a_file_the_newer_stays_in_the_place_of_the_first_with_either_pin(
    home: Home,
) -> None:
    put(
        home.shared + b"/MEMORY.md",
        b"# Memory Index\n\n- [One](one.md) [pin] 2026-01-05T23:30:00+02:00 -- older\n- [Two](two.md) -- x\n"
        b"- [One!](one.md) 2026-01-05T22:00:00Z -- newer\n",
    )
    put(home.shared + b"/one.md")
    put(home.shared + b"/two.md")
    home.write("Three", "b")
    assert home.index().splitlines()[2:4] == [
        b"- [One!](one.md) [pin] 2026-01-05T22:00:00Z -- newer",
        b"- [Two](two.md) -- x",
    ]


def test_old_topics_are_marked_pinned_and_undated_ones_never_and_a_write_takes_the_mark_off(
    home: Home,
) -> None:
    put(
        home.shared + b"/MEMORY.md",
        b"- [Old](old.md) 2020-01-05 -- see 2026-09-01 [pin]\n- [Pin](pin.md) [pin] 2020-01-05 -- x\n"
        b"- [None](none.md) -- 2020-01-05 [stale?]\n",
    )
    for name in (b"old.md", b"pin.md", b"none.md"):
        put(home.shared + b"/" + name, b"x")
    home.write("New", "b")
    assert home.index().splitlines()[:3] == [
        b"- [Old](old.md) 2020-01-05 [stale?] -- see 2026-09-01 [pin]",
        b"- [Pin](pin.md) [pin] 2020-01-05 -- x",
        b"- [None](none.md) -- 2020-01-05 [stale?]",
    ]
    assert [entry.is_stale for entry in home.entries()] == [True, False, False, False]
    home.write("Old", "b")
    assert not home.entries()[0].is_stale


def test_stale_after_0_days_marks_nothing(home: Home) -> None:
    put(home.config, b'{"shared_dir": true, "stale_after_days": 0}')
    put(home.shared + b"/MEMORY.md", b"- [Old](old.md) 2020-01-05 -- x\n")
    put(home.shared + b"/old.md", b"x")
    home.write("New", "b")
    assert b"[stale?]" not in home.index()


def test_unsafe_lines_go_at_a_write_and_are_remembered(home: Home) -> None:
    odd = b"- [Up](../x.md) -- a\n- [Sub](a/b.md) -- b\n- [Hidden](.x.md) -- c\n- [Index](MEMORY.md) -- d\n"
    put(home.shared + b"/MEMORY.md", b"# Memory Index\n\nprose stays\n" + odd + b"\n## Heading\n")
    home.write("New", "b")
    assert home.files() == ["new.md"]
    assert home.index().startswith(b"# Memory Index\n\nprose stays\n\n## Heading\n")
    kept = [read(os.path.join(at, name)) for at, _, names in os.walk(home.state) for name in names]
    assert any(b"Li4veC5tZA==" in text for text in kept)  # ../x.md


def test_line_ends_and_odd_bytes_of_an_index_survive_a_write(home: Home) -> None:
    put(
        home.shared + b"/MEMORY.md",
        b"# Memory Index\r\n\r\ncaf\xe9\r\n- [One](one.md) 2026-09-05 -- \xff\r\n\r\n\r\n",
    )
    put(home.shared + b"/one.md", b"x")
    home.write("New", "b", "s")
    assert home.index().startswith(
        b"# Memory Index\r\n\r\ncaf\xe9\r\n- [One](one.md) 2026-09-05 -- \xff\r\n- [New]"
    )
    assert home.index().endswith(b" -- s\r\n")
    before = home.index()
    home.write("New", "b", "s")
    assert home.index() == before


def test_blank_lines_do_not_pile_up(home: Home) -> None:
    for number in range(5):
        home.write(f"Topic {number}")
        put(home.shared + b"/MEMORY.md", home.index() + b"\n")
    assert home.index().count(b"\n\n") == 2
