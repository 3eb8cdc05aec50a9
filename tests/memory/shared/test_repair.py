"""Repair and drift: additive, only when asked, and nothing that the other tools would refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import support_cases
from memd.memory.shared.index import entries_of
from support_topics import Home, put, read, topic, tree


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_case_39_an_index_is_repaired_around_files_with_odd_names(tmp_path: Path) -> None:
    support_cases.make("39-repair-odd-names", tmp_path)
    expected = support_cases.expectation("39-repair-odd-names")
    home = Home(tmp_path)
    before, others = home.index(), tree(home.shared)
    assert home.topics().list_topics().unlisted == len(expected["adds"])
    assert home.index() == before
    done = home.topics().repair()
    after = home.index()
    assert after.startswith(before)
    fresh = entries_of(after[len(before) :])
    assert sorted(entry.file.decode() for entry in fresh) == expected["adds"]
    assert all(entry.is_stale for entry in fresh)
    dates = {entry.file.decode(): entry.date for entry in fresh}
    assert {name: date[:10] for name, date in dates.items() if date} == expected["dates"]
    assert after.count(b"\n") == after.count(b"\r\n")
    reported = {row.file.decode(): row.remedy for row in done.reported}
    assert sorted(reported) == expected["reported"]
    assert "a-b.md" in reported["a]b.md"] or "ab.md" in reported["a]b.md"]
    assert "notes-old.md" in reported["notes (old).md"]
    listed = set(home.files())
    assert not listed & set(expected["not_listed"])
    topics = home.topics()
    for entry in entries_of(after):
        assert topics.read(entry.name).topic.file == entry.file.decode()
    again = home.topics().repair()
    assert again.added == ()
    assert len(again.reported) == 2
    assert home.index() == after
    assert {k: v for k, v in tree(home.shared).items() if k != b"MEMORY.md"} == {
        k: v for k, v in others.items() if k != b"MEMORY.md"
    }


def test_repair_takes_name_date_and_words_from_the_front_matter(home: Home) -> None:
    put(home.shared + b"/a.md", topic("Topic A", "x"))
    put(home.shared + b"/b.md", b"no front matter [pin]")
    home.topics().repair()
    assert home.index().splitlines() == [
        b"# Memory Index",
        b"",
        b"- [Topic A](a.md) 2026-01-03T08:00:00+01:00 [stale?] -- about Topic A",
        b"- [b](b.md) [stale?] -- b",
    ]


def test_a_pin_or_a_link_in_front_matter_is_only_text(home: Home) -> None:
    put(
        home.shared + b"/a.md",
        b'---\nname: "x](y.md) [z"\ndescription: "d [pin]"\nlast_updated: 2026-01-03 [pin]\n---\n\nb\n',
    )
    home.topics().repair()
    (entry,) = home.entries()
    assert (entry.file, entry.is_pinned, entry.date) == (b"a.md", False, "2026-01-03")
    assert home.topics().read("a.md").topic.name == entry.name


def test_the_mark_of_a_repaired_line_lasts_until_the_topic_is_written(home: Home) -> None:
    put(home.shared + b"/a.md", topic("A", "x", updated=home.clock.stamp()))
    home.topics().repair()
    home.write("Other")
    assert home.entries()[0].is_stale
    home.write("A", "more")
    assert not home.entries()[0].is_stale


def test_a_removed_topic_is_not_brought_back_until_it_is_written(home: Home) -> None:
    home.write("A")
    home.topics().remove("A")
    home.topics().repair()
    assert home.files() == []
    home.write("A", "again")
    assert home.files() == ["a.md"]


def test_names_that_are_not_utf8_or_hold_control_characters_are_reported(home: Home) -> None:
    odd = [b"caf\xe9.md", b"a\tb.md", b"Memory.MD.md", b"memory.md", b"a..b.md"]
    for name in odd:
        try:
            put(home.shared + b"/" + name, b"x")
        except OSError:
            pytest.skip("this file system takes no such names")
    done = home.topics().repair()
    assert {row.file for row in done.reported} == set(odd) - {b"Memory.MD.md"}
    assert all("Rename it" in row.remedy for row in done.reported)


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_is_listed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home.shared + b"/a.md", b"x")
    put(home.shared + b"/big.md", b"x" * 1000)
    monkeypatch.setattr("memd.memory.shared.store.MAX_TOPIC_BYTES", 100)
    done = home.topics().repair()
    assert [row.file for row in done.added] == ["a.md"]
    assert [row.file for row in done.reported] == [b"big.md"]


def test_repair_without_anything_to_add_writes_nothing(home: Home) -> None:
    put(home.shared + b"/MEMORY.md", b"no newline at the end")
    before = os.stat(home.shared + b"/MEMORY.md").st_mtime_ns
    home.topics().repair()
    assert os.stat(home.shared + b"/MEMORY.md").st_mtime_ns == before
    assert read(home.shared + b"/MEMORY.md") == b"no newline at the end"


def test_seven_unlisted_files_are_drift_and_listing_changes_nothing(home: Home) -> None:
    for number in range(7):
        put(home.shared + b"/t%d.md" % number, b"x")
    put(home.shared + b"/MEMORY.md", b"# Memory Index\n")
    assert home.topics().unlisted() == 7
    assert home.topics().list_topics().unlisted == 7
    assert home.index() == b"# Memory Index\n"
