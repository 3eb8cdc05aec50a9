"""Topics: what a write, a read, a pin and a removal do to the folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.errors import DiskError, NotFound, Refused, TryAgain, UsageError
from memd.memory.shared.index import entries_of, parse_line
from memd.memory.shared.slugs import file_of, stem_of
from memd.protocol_memory import WriteTopic
from support_topics import Home, put, read, topic, tree

DAY_MS = 86_400_000
INDEX = b"# Memory Index\n\n- [One](one.md) 2026-09-05 -- first\n- [Two](two.md) [pin] 2026-09-05 -- second\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def filled(home: Home) -> Home:
    put(home.shared + b"/MEMORY.md", INDEX)
    put(home.shared + b"/one.md", topic("One", "text one"))
    put(home.shared + b"/two.md", topic("Two", "text two"))
    return home


# ------------------------------------------------------------------ writing


def test_a_new_topic_is_a_file_and_a_line(home: Home) -> None:
    done = home.write("Docker setup", "use compose", "how we run things")
    assert done.outcome == "created"
    text = read(done.path).decode()
    assert text.startswith('---\nname: "Docker setup"\ndescription: "how we run things"\ncreated: 20')
    assert text.endswith("metadata:\n  node_type: memory\n---\n\nuse compose\n")
    assert home.index().startswith(b"# Memory Index\n\n- [Docker setup](docker-setup.md) 20")
    assert home.index().endswith(b" -- how we run things\n")
    assert sorted(os.listdir(home.shared)) == [b"MEMORY.md", b"docker-setup.md"]


def test_a_second_write_appends_under_a_heading_with_the_date(home: Home) -> None:
    home.write("Docker", "first text")
    home.clock.pass_ms(DAY_MS)
    done = home.write("docker", "second text", "newer summary")
    stamp = home.clock.stamp()
    text = read(done.path).decode()
    assert done.outcome == "appended"
    assert text.endswith(f"\n---\n\nfirst text\n\n## {stamp}\n\nsecond text\n")
    assert f"last_updated: {stamp}\n" in text
    assert 'description: "newer summary"' in text
    assert [(e.name, e.date, e.summary) for e in home.entries()] == [("Docker", stamp, "newer summary")]


def test_replace_swaps_the_body_keeps_the_front_matter_and_a_copy_of_the_old(home: Home) -> None:
    home.write("Docker", "old text")
    path = home.shared + b"/docker.md"
    put(path, read(path).replace(b"metadata:\n", b"color: blue\nmetadata:\n"))
    before = read(path)
    home.clock.pass_ms(DAY_MS)
    done = home.write("Docker", "new text", replace=True)
    text = read(path).decode()
    assert done.outcome == "replaced"
    assert text.endswith("---\n\nnew text\n")
    assert "old text" not in text
    assert "color: blue\n" in text
    assert f"last_updated: {home.clock.stamp()}\n" in text
    assert text.count("created: ") == 1
    assert read(done.kept) == before


def test_a_topic_without_front_matter_stays_without(home: Home) -> None:
    put(home.shared + b"/MEMORY.md", b"- [Bare](bare.md) -- x\n")
    put(home.shared + b"/bare.md", b"just text\r\nlast_updated: never\r\n")
    home.write("Bare", "more")
    assert read(home.shared + b"/bare.md") == (
        f"just text\r\nlast_updated: never\r\n\r\n## {home.clock.stamp()}\r\n\r\nmore\r\n".encode()
    )


def test_a_line_of_the_body_that_looks_like_front_matter_is_not_touched(home: Home) -> None:
    home.write("Docker", "last_updated: in the body\n---\nname: x")
    home.clock.pass_ms(DAY_MS)
    home.write("Docker", "more")
    assert b"\nlast_updated: in the body\n---\nname: x\n" in read(home.shared + b"/docker.md")


def test_front_matter_is_quoted_so_that_colons_do_no_harm(home: Home) -> None:
    home.write('Say: "no"', "b", "what: and why # not")
    text = read(home.shared + b"/say-no.md").decode()
    assert 'name: "Say: \\"no\\""\ndescription: "what: and why # not"\n' in text


def test_pin_marks_and_a_later_write_without_it_keeps_the_pin(home: Home) -> None:
    home.write("Docker", pin=True)
    assert home.entries()[0].is_pinned
    home.write("Docker", "more")
    assert home.entries()[0].is_pinned
    home.topics().pin("Docker", False)
    assert not home.entries()[0].is_pinned


@pytest.mark.parametrize(
    ("name", "body", "summary"),
    [("", "b", "s"), ("  ", "b", "s"), ("!?", "b", "s"), ("T", "", "s"), ("T", " \n", "s"), ("T", "b", "")],
)
def test_what_says_nothing_is_refused_and_changes_nothing(
    home: Home, name: str, body: str, summary: str
) -> None:
    filled(home)
    before = tree(home.home)
    with pytest.raises(UsageError):
        home.write(name, body, summary)
    assert {k: v for k, v in tree(home.home).items() if b"/state/" not in k} == {
        k: v for k, v in before.items() if b"/state/" not in k
    }


def test_a_known_topic_needs_no_new_summary(home: Home) -> None:
    home.write("Docker", "b", "the summary")
    home.write("Docker", "more", "")
    assert home.entries()[0].summary == "the summary"


def test_two_topics_with_one_slug_get_two_files(home: Home) -> None:
    home.write("C", "see")
    home.write("C++", "plus")
    home.write("C#", "sharp")
    home.write("C++", "more")
    assert [(e.name, e.file) for e in home.entries()] == [
        ("C", b"c.md"),
        ("C++", b"c-2.md"),
        ("C#", b"c-3.md"),
    ]
    assert b"more" in read(home.shared + b"/c-2.md")


def test_newlines_and_brackets_cannot_make_a_second_entry(home: Home) -> None:
    home.write("A](x.md) [B", "b", "one\n- [Evil](evil.md) [pin] -- two\x00\u2028")
    assert home.files() == ["a-x-md-b.md"] or len(home.files()) == 1
    (entry,) = home.entries()
    assert not entry.is_pinned
    assert entry.summary == "one - Evil evil.md pin -- two"
    assert "[" not in entry.name


def test_a_summary_is_one_line_of_500_characters_the_same_everywhere(home: Home) -> None:
    home.write("Long", "b", "😀" * 600)
    assert home.entries()[0].summary == "😀" * 500
    assert f'description: "{"😀" * 500}"' in read(home.shared + b"/long.md").decode()


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Docker  setup", "docker-setup"),
        ("a - b", "a-b"),
        ("Größe", "größe"),
        ("日本語 メモ", "日本語-メモ"),
        ("Привет", "привет"),
        ("Cafe\u0301", "café"),
        ("!?", ""),
        ("Last session recap", "memd-last-session-recap"),
    ],
)
def test_names_of_any_script_lead_to_files(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_a_name_of_pictures_gets_a_file_of_its_own(home: Home) -> None:
    home.write("🚀", "b")
    home.write("🔥", "b")
    assert len(set(home.files())) == 2
    assert home.topics().read("🚀").topic.name == "🚀"


def test_a_very_long_name_gets_a_file_that_the_disk_takes(home: Home) -> None:
    home.write("ä" * 300, "one")
    home.write("ä" * 299 + "b", "two")
    assert all(len(file.encode()) < 255 for file in home.files())
    assert len(set(home.files())) == 2


@pytest.mark.parametrize("name", ["Memory", "MEMORY", "memory"])
def test_a_topic_called_memory_never_is_the_index(home: Home, name: str) -> None:
    home.write(name, "b")
    assert home.files() == ["memory-2.md"]


def test_a_file_that_is_there_unlisted_is_used_only_for_the_same_topic(home: Home) -> None:
    put(home.shared + b"/docker.md", topic("Docker", "theirs"))
    put(home.shared + b"/redis.md", topic("Redis cache", "theirs"))
    put(home.shared + b"/plain.md", b"no front matter\n")
    assert home.write("Docker", "ours").outcome == "appended"
    home.write("Redis", "ours")
    home.write("Plain", "ours")
    assert home.files() == ["docker.md", "redis-2.md", "plain-2.md"]
    assert read(home.shared + b"/redis.md") == topic("Redis cache", "theirs")
    assert read(home.shared + b"/plain.md") == b"no front matter\n"


def test_a_name_that_a_line_has_is_taken_although_its_file_is_missing(home: Home) -> None:
    put(home.shared + b"/MEMORY.md", b"# Memory Index\n\n- [Somebody's](docker.md) 2026-01-05 -- x\n")
    home.write("Docker", "ours")
    assert home.files() == ["docker.md", "docker-2.md"]
    assert not os.path.exists(home.shared + b"/docker.md")


def test_a_file_in_the_way_that_is_no_file_is_left(home: Home) -> None:
    os.makedirs(home.shared + b"/docker.md")
    os.symlink(home.home + b"/outside.md", home.shared + b"/redis.md")
    home.write("Docker", "b")
    home.write("Redis", "b")
    assert home.files() == ["docker-2.md", "redis-2.md"]
    assert not os.path.lexists(home.home + b"/outside.md")


def test_a_line_with_an_unsafe_file_is_refused_and_left(home: Home) -> None:
    put(home.home + b"/.agents/secret.md", b"SECRET")
    put(home.shared + b"/MEMORY.md", b"- [Up](../secret.md) -- no\n")
    for change in (lambda: home.write("Up", "b"), lambda: home.topics().remove("Up")):
        with pytest.raises(Refused, match="names a file that may not be"):
            change()
    with pytest.raises(Refused):
        home.topics().read("Up")
    assert home.index() == b"- [Up](../secret.md) -- no\n"
    assert read(home.home + b"/.agents/secret.md") == b"SECRET"
    assert home.topics().list_topics().topics == ()


def test_an_index_or_topic_that_is_a_link_is_never_followed_or_replaced(home: Home) -> None:
    put(home.home + b"/elsewhere.md", INDEX)
    os.makedirs(home.shared)
    os.symlink(home.home + b"/elsewhere.md", home.shared + b"/MEMORY.md")
    with pytest.raises(Refused, match="no regular file"):
        home.write("Docker")
    assert read(home.home + b"/elsewhere.md") == INDEX
    assert os.path.islink(home.shared + b"/MEMORY.md")
    os.unlink(home.shared + b"/MEMORY.md")
    put(home.shared + b"/MEMORY.md", b"- [Link](link.md) -- x\n- [Pipe](pipe.md) -- x\n")
    os.symlink(home.home + b"/elsewhere.md", home.shared + b"/link.md")
    os.mkfifo(home.shared + b"/pipe.md")
    for name in ("Link", "Pipe"):
        with pytest.raises(Refused, match="no regular file"):
            home.topics().read(name)
        with pytest.raises(Refused, match="no regular file"):
            home.write(name, "b")
    assert read(home.home + b"/elsewhere.md") == INDEX


def test_a_replaced_file_keeps_its_mode(home: Home) -> None:
    filled(home)
    os.chmod(home.shared + b"/MEMORY.md", 0o644)
    os.chmod(home.shared + b"/one.md", 0o664)
    home.write("One", "more")
    modes = [os.stat(home.shared + b"/" + name).st_mode & 0o777 for name in (b"MEMORY.md", b"one.md")]
    assert modes == [0o644, 0o664]


def test_a_full_topic_is_refused_instead_of_growing_for_ever(home: Home) -> None:
    filled(home)
    put(home.shared + b"/one.md", b"x" * (8 << 20))
    with pytest.raises(Refused, match="MiB"):
        home.write("One", "more")
    with pytest.raises(UsageError, match="KiB"):
        home.write("Two", "x" * (600 << 10))


def test_an_index_write_that_fails_takes_the_topic_back(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(home)
    topics = home.topics()
    from memd.memory.shared.store import Store

    write = Store.write

    def fail(self: Store, name: bytes, content: bytes) -> None:
        if name == b"MEMORY.md":
            raise DiskError("write", name, OSError(28, "No space left on device"))
        write(self, name, content)

    monkeypatch.setattr(Store, "write", fail)
    before = tree(home.shared)
    for name in ("One", "New"):
        with pytest.raises(DiskError):
            topics.write(WriteTopic(topic=name, summary="s", body="b"))
        assert tree(home.shared) == before
    monkeypatch.undo()
    assert home.topics().recover() is False
    assert home.write("New", "b", "s").outcome == "created"


def test_a_try_with_the_same_key_is_the_same_write(home: Home) -> None:
    first = home.write("Docker", "text", key="k1")
    again = home.write("Docker", "text", key="k1")
    assert (first.outcome, again.outcome) == ("created", "repeated")
    assert again.topic.file == "docker.md"
    assert read(first.path).count(b"text") == 1


def test_the_same_words_twice_are_two_writes_for_a_daemon_that_answered_the_first(home: Home) -> None:
    topics = home.topics()
    ask = WriteTopic(topic="Docker", summary="s", body="done")
    topics.write(ask)
    assert topics.write(ask).outcome == "appended"
    assert home.topics().write(ask).outcome == "repeated"  # a daemon that began since cannot know
    home.clock.pass_ms(700_000)
    assert home.topics().write(ask).outcome == "appended"


# ------------------------------------------------------------------ reading and finding


def test_an_exact_name_beats_a_part_and_several_parts_are_refused(home: Home) -> None:
    for name in ("Docker", "Docker setup", "Docker compose"):
        home.write(name, f"text of {name}")
    topics = home.topics()
    assert b"text of Docker\n" in topics.read("docker").content
    assert topics.read("SETUP").topic.name == "Docker setup"
    assert topics.read("docker-compose.md").topic.name == "Docker compose"
    assert topics.read("docker-compose").topic.name == "Docker compose"
    with pytest.raises(Refused, match=r"several topics: .*Docker compose"):
        topics.read("ocker ")
    with pytest.raises(Refused, match="several"):
        topics.remove("dock")
    with pytest.raises(NotFound, match="no topic is called 'podman'"):
        topics.read("podman")
    assert len(home.files()) == 3


def test_a_store_that_is_not_there_is_empty_and_reading_makes_nothing(home: Home) -> None:
    topics = home.topics()
    assert topics.list_topics().topics == ()
    assert topics.search("x", 5).hits == ()
    with pytest.raises(NotFound):
        topics.read("x")
    assert not os.path.exists(home.shared)
    put(home.shared + b"/a.md", b"x")
    assert topics.list_topics().unlisted == 1
    assert os.listdir(home.shared) == [b"a.md"]


def test_search_finds_words_in_names_summaries_and_texts_best_first(home: Home) -> None:
    home.write("Docker", "ports and volumes", "containers")
    home.write("Redis", "runs in docker, port 6379", "the cache")
    home.write("Mail", "nothing here", "about docker ports")
    topics = home.topics()
    assert [hit.topic.name for hit in topics.search("DOCKER port", 10).hits] == ["Docker", "Mail", "Redis"]
    assert topics.search("6379", 10).hits[0].lines == ("runs in docker, port 6379",)
    assert topics.search("docker podman", 10).hits == ()
    found = topics.search("docker", 1)
    assert (len(found.hits), found.left_out) == (1, 2)


def test_a_topic_whose_file_is_away_is_listed_as_missing_and_says_so(home: Home) -> None:
    filled(home)
    os.unlink(home.shared + b"/one.md")
    topics = home.topics()
    assert [topic.is_missing for topic in topics.list_topics().topics] == [True, False]
    with pytest.raises(Refused, match=r"one\.md, is not there"):
        topics.read("One")


# ------------------------------------------------------------------ small things


def test_a_store_that_is_no_folder_is_named(home: Home) -> None:
    put(home.shared, b"a file")
    with pytest.raises(Refused, match="is no folder"):
        home.topics().list_topics()
    with pytest.raises((Refused, DiskError)):
        home.write("Docker")


def test_a_file_that_appears_this_moment_is_not_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from memd.memory.shared.store import Store

    create = Store.create

    def late(self: Store, name: bytes, content: bytes) -> bool:
        put(self.folder.at(name), b"theirs")
        return create(self, name, content)

    monkeypatch.setattr(Store, "create", late)
    with pytest.raises(TryAgain):
        home.write("Docker", "ours")
    assert read(home.shared + b"/docker.md") == b"theirs"


def test_the_grammar_of_a_line_is_read_as_leniently_as_the_others_do() -> None:
    entry = parse_line(b"  -  [A (b)](a.md)2026-01-05T10:00:00Z [pin][stale?] -- x -- y [z]\r\n")
    assert entry is not None
    assert (entry.name, entry.file, entry.is_pinned, entry.is_stale) == ("A (b)", b"a.md", True, True)
    assert (entry.date, entry.summary) == ("2026-01-05T10:00:00Z", "x -- y [z]")
    assert parse_line(b"* [A](a.md)\n") is None
    assert parse_line(b"-[A](a.md)\n") is None
    assert len(entries_of(b"- [a](a.md)\r- [b](b.md)\n")) <= 1
    assert file_of("a", 3) == b"a-3.md"
