"""`memory.jsonc`: what it may look like, whose counts, and what happens while it is broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.errors import ConfigError
from memd.memory.shared.rules import GENERAL, Lists, Rules, parse
from memd.protocol_memory import WriteTopic
from support_topics import Home, put, read, tree


def test_comments_and_trailing_commas_are_accepted_and_strings_are_left_alone() -> None:
    rules = parse(
        b"""\xef\xbb\xbf// a comment
        {
          "shared_dir": true, /* block
          comment */
          "always_persist": ["see https://example.com/a // b", "[1, ]", "a */ b", ],
          "max_lines": 100, // with a comma
        }""",
        "x",
    )
    assert rules.shared_dir
    assert rules.max_lines == 100
    assert rules.lists.always_persist == ("see https://example.com/a // b", "[1, ]", "a */ b")


@pytest.mark.parametrize(
    ("value", "lines"),
    [("10", 50), ("5000", 1000), ('"70"', 300), ("70.5", 300), ("true", 300), ("70", 70), ("70.0", 70)],
)
def test_max_lines_is_bounded_and_anything_else_is_the_default(value: str, lines: int) -> None:
    assert parse(f'{{"max_lines": {value}}}'.encode(), "x").max_lines == lines


@pytest.mark.parametrize(
    ("value", "days"),
    [("-3", 0), ("0", 0), ("12.5", 12.5), ('"x"', 180), ("NaN", 180), ("1e999", 1e6), ("1" * 400, 1e6)],
)
def test_stale_after_days_is_bounded(value: str, days: float) -> None:
    assert parse(f'{{"stale_after_days": {value}}}'.encode(), "x").stale_after_days == days


def test_lists_keep_their_texts_only_each_in_one_line() -> None:
    rules = parse(b'{"never_persist": ["a\\nb", 7, null, "", {}], "always_ask": "no list"}', "x")
    assert rules.lists == Lists(never_persist=("a b",))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"shared_dir": tru}',
        b"[]",
        b"7",
        b'{"shared_dir": "true"}',
        b"\xff{}",
        b"[" * 60_000,
        b"{}" + b" " * 70_000,
    ],
)
def test_what_cannot_be_understood_is_an_error_that_names_the_file(text: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^memory\.jsonc"):
        parse(text, "memory.jsonc")


def test_without_a_file_the_local_store_is_used(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    done = home.write("First")
    assert not done.is_shared
    assert os.listdir(home.local) != []
    assert not os.path.exists(home.shared)


def test_ours_wins_and_theirs_is_read_for_the_rules_only(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    configuration = home.configuration()
    assert configuration.in_force().rules.lists == GENERAL
    put(home.pi, b'{"always_ask": ["by pi"]}')
    assert configuration.in_force().rules.lists == Lists(always_ask=("by pi",))
    put(home.opencode, b'{"always_ask": ["by opencode"], "shared_dir": true, "max_lines": 60}')
    found = configuration.in_force()
    assert found.rules == Rules(lists=Lists(always_ask=("by opencode",)))
    assert found.rules_source.endswith("opencode/memory.jsonc")
    put(home.config, b'{"never_persist": ["by us"]}')
    assert configuration.in_force().rules.lists == Lists(never_persist=("by us",))
    put(home.opencode, b"{ broken")
    put(home.config, b"{}")
    assert configuration.in_force().rules.lists == Lists(always_ask=("by pi",))


def test_a_broken_file_keeps_the_store_in_use_and_refuses_to_write(tmp_path: Path) -> None:
    home = Home(tmp_path)
    topics = home.topics()
    topics.write(WriteTopic(topic="First", summary="s", body="b"))
    put(home.config, b'{ "shared_dir": true, ')
    before = tree(home.home)
    for after_a_restart in (False, True):
        topics = home.topics() if after_a_restart else topics
        listed = topics.list_topics()
        assert [topic.name for topic in listed.topics] == ["First"]
        assert "memory.jsonc" in listed.notes[0]
        for change in (
            lambda: topics.write(WriteTopic(topic="Second", summary="s", body="b")),  # noqa: B023
            lambda: topics.remove("First"),  # noqa: B023
            lambda: topics.pin("First", True),  # noqa: B023
            topics.repair,
            topics.carry_overs.local,
        ):
            with pytest.raises(ConfigError, match="nothing was written"):
                change()
    assert tree(home.home) == before
    put(home.config, b'{ "shared_dir": true }')
    topics.write(WriteTopic(topic="Second", summary="s", body="b"))
    assert home.files() == ["first.md", "second.md"]


def test_a_file_that_cannot_be_read_counts_as_broken(tmp_path: Path) -> None:
    home = Home(tmp_path)
    topics = home.topics()
    topics.list_topics()
    os.unlink(home.config)
    os.symlink(b"/nowhere/at/all", home.config)
    assert topics.list_topics().is_shared
    with pytest.raises(ConfigError):
        topics.repair()
    os.unlink(home.config)
    os.mkfifo(home.config)
    with pytest.raises(ConfigError):
        topics.repair()


def test_a_link_to_the_settings_is_followed(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    put(home.home + b"/dotfiles/memory.jsonc", b'{"shared_dir": true}')
    os.makedirs(os.path.dirname(home.config))
    os.symlink(home.home + b"/dotfiles/memory.jsonc", home.config)
    assert home.write("First").is_shared


def test_a_change_of_the_file_is_seen_at_the_next_use(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    topics = home.topics()
    assert not topics.list_topics().is_shared
    put(home.config, b'{"shared_dir": true}')
    assert topics.list_topics().is_shared
    os.unlink(home.config)
    assert not topics.list_topics().is_shared
    assert read(home.state + b"/topics/v1/settings.json")
