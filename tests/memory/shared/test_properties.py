"""What holds for every index, topic and list of tombstones, however broken."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from memd.errors import ConfigError
from memd.memory.shared import front, tombstones
from memd.memory.shared.block import Contents, render
from memd.memory.shared.carrying import Incoming, Standing, plan
from memd.memory.shared.index import (
    Entry,
    entries_of,
    lines_of,
    maintained,
    parse_line,
    with_entry,
    with_lines,
    with_pin,
    without,
)
from memd.memory.shared.index import render as render_entry
from memd.memory.shared.lock_rules import Seen, age_ms, pid_of
from memd.memory.shared.repairs import lines_for, lost
from memd.memory.shared.rules import GENERAL, parse
from memd.memory.shared.slugs import is_safe, one_line, stem_of, suffixed, topic_name

NOW_MS = 1_790_000_000_000
FILES = [
    b"a.md",
    b"b.md",
    b"\xc3\xa9.md",
    b"../x.md",
    b"MEMORY.md",
    b"a(1.md",
    b"n.txt",
    b"\xff.md",
    b".h.md",
]
FLAGS = [
    b"",
    b" [pin]",
    b" 2020-01-01",
    b" 2026-09-05T10:00:00+02:00 [stale?]",
    b" 9999-99-99",
    b"[pin] 2025-01-01",
]
WORDS = [b"", b" -- words", b" -- [pin] 2020-01-01 -- x", b"x", b" -- \xff"]

entry = st.builds(
    lambda lead, file, flags, words: lead + b"[Name " + file[:1] + b"](" + file + b")" + flags + words,
    st.sampled_from([b"- ", b"  - ", b"-  ", b"* ", b""]),
    st.sampled_from(FILES),
    st.sampled_from(FLAGS),
    st.sampled_from(WORDS),
)
other = st.sampled_from([b"", b"# Heading", b"prose", b"caf\xe9", b"- item", b"\x00"])
line = st.tuples(st.one_of(entry, other), st.sampled_from([b"\n", b"\n", b"\r\n"]))
index = st.one_of(
    st.builds(
        lambda lines, cut: b"".join(a + b for a, b in lines)[: -1 if cut else None],
        st.lists(line, max_size=12),
        st.booleans(),
    ),
    st.binary(max_size=200),
)
text = st.text(max_size=60)


def tidy(given_index: bytes, gone: frozenset[bytes] = frozenset()) -> bytes:
    return maintained(given_index, now_ms=NOW_MS, stale_after_days=180, gone=gone)[0]


@given(index)
def test_lines_joined_are_the_index(given_index: bytes) -> None:
    assert b"".join(lines_of(given_index)) == given_index


@given(index)
def test_maintaining_twice_is_maintaining_once(given_index: bytes) -> None:
    once = tidy(given_index)
    assert tidy(once) == once


@given(index)
def test_maintenance_keeps_all_that_is_no_entry_and_every_safe_file(given_index: bytes) -> None:
    once = tidy(given_index)
    prose = [raw for raw in lines_of(given_index) if parse_line(raw) is None]
    assert [raw for raw in lines_of(once) if parse_line(raw) is None] == prose
    files = [e.file for e in entries_of(once)]
    assert len(files) == len(set(files))
    assert set(files) == {e.file for e in entries_of(given_index) if e.is_safe}
    pinned = {e.file for e in entries_of(given_index) if e.is_pinned and e.is_safe}
    assert {e.file for e in entries_of(once) if e.is_pinned} == pinned


@given(index, st.sampled_from(FILES), st.booleans())
def test_a_pin_changes_nothing_but_itself(given_index: bytes, file: bytes, is_pinned: bool) -> None:
    changed = with_pin(given_index, file, is_pinned)
    assert all(e.is_pinned == is_pinned for e in entries_of(changed) if e.file == file)
    assert with_pin(changed, file, is_pinned) == changed
    assert len(lines_of(changed)) == len(lines_of(given_index))


@given(index, st.sampled_from([f for f in FILES if is_safe(f)]))
def test_a_topic_that_is_put_has_one_line_and_taking_it_out_leaves_the_rest(
    given_index: bytes, file: bytes
) -> None:
    put = with_entry(given_index, Entry(name="New", file=file, date="2026-09-05", summary="s"))
    assert [e.name for e in entries_of(put) if e.file == file] == ["New"]
    rest, gone = without(put, file)
    assert len(gone) == 1
    others = [e for e in entries_of(given_index) if e.file != file]
    assert entries_of(rest) == others


@given(text, text, st.booleans())
def test_whatever_is_asked_for_makes_one_line_with_one_entry(
    name: str, summary: str, is_pinned: bool
) -> None:
    clean = topic_name(name)
    if not clean or not stem_of(clean):
        return
    file = stem_of(clean).encode() + b".md"
    made = Entry(name=clean, file=file, is_pinned=is_pinned, summary=one_line(summary, 500))
    if is_safe(file):
        assert entries_of(with_lines(b"", [render_entry(made)])) == [made]


@given(text)
def test_a_stem_is_safe_or_nothing(name: str) -> None:
    stem = stem_of(name)
    assert stem == "" or stem == "memory" or is_safe(stem.encode() + b".md")
    assert len(stem.encode()) <= 180


@given(st.sampled_from([f for f in FILES if is_safe(f)]), st.integers(1, 3))
def test_a_suffixed_name_differs_and_stays_safe(file: bytes, number: int) -> None:
    assert is_safe(suffixed(file, b"-memd", number))
    assert suffixed(file, b"-memd", number) != file
    assert is_safe(suffixed(b"x" * 250 + b".md", b"-memd", number))


@given(st.binary(max_size=300), st.text(min_size=1, max_size=50))
def test_an_append_keeps_every_byte_of_the_body(old: bytes, body: str) -> None:
    body = body.replace("\r", "").encode("utf-8", "replace").decode() or "x"
    new = front.appended(old, "summary", "2026-09-05", body)
    kept = front.body_of(old).rstrip(b"\r\n")
    assert kept in new
    assert body.strip("\n").encode() in new.replace(b"\r\n", b"\n")


@given(st.one_of(st.binary(max_size=300), index.map(lambda body: b"---\n" + body + b"\n---\n" + body)))
def test_front_matter_of_any_bytes_is_read_without_a_word(old: bytes) -> None:
    found = front.read_front(old)
    assert found.length >= 0
    replaced = front.replaced(old, "n", "s", "2026-09-05", "body")
    assert replaced.endswith((b"\nbody\n", b"\r\nbody\r\n"))
    assert front.read_front(replaced).last_updated == "2026-09-05"


@given(st.binary(max_size=100), st.lists(st.sampled_from([f for f in FILES if is_safe(f)])))
def test_tombstones_are_added_once_and_cleared(old: bytes, files: list[bytes]) -> None:
    more = tombstones.added(old, files)
    assert more.startswith(old)
    assert set(files) <= tombstones.parse(more)
    assert tombstones.added(more, files) == more
    for file in files:
        more = tombstones.cleared(more, file)
    assert not set(files) & tombstones.parse(more)


@given(index, st.lists(st.tuples(st.sampled_from(FILES), index), max_size=5))
def test_repair_adds_and_then_has_nothing_to_add(
    given_index: bytes, topics: list[tuple[bytes, bytes]]
) -> None:
    names = dict(topics)
    found = lost(given_index, names, names, frozenset())
    made = lines_for(given_index, [(file, names[file]) for file in found.files], {})
    after = with_lines(given_index, [raw for _, raw in made])
    assert lost(after, names, names, frozenset()).files == ()
    fresh = [e for e in entries_of(after) if e.file in found.files]
    folded = [e.name.casefold() for e in fresh]
    assert len(folded) == len(set(folded))
    if made and given_index.strip():
        assert after.startswith(given_index.rstrip(b"\r\n"))


@given(
    index,
    st.dictionaries(st.sampled_from(FILES), st.sampled_from("pqr")),
    index,
    st.dictionaries(st.sampled_from(FILES), st.sampled_from("pqr")),
)
def test_carrying_over_twice_is_carrying_over_once(
    source: bytes, theirs: dict[bytes, str], into: bytes, ours: dict[bytes, str]
) -> None:
    incoming = Incoming(index=source, topics=theirs)
    first = plan(incoming, Standing(index=into, names=ours, digests=lambda f: ours.get(f, "")), lambda _: b"")
    for carry in first.carries:
        if carry.is_copied:
            assert carry.to not in ours
            ours[carry.to] = theirs[carry.file]
        assert ours[carry.to] == theirs[carry.file]
        assert is_safe(carry.to)
    after = with_lines(into, [carry.line for carry in first.carries if carry.line])
    again = plan(
        incoming, Standing(index=after, names=ours, digests=lambda f: ours.get(f, "")), lambda _: b""
    )
    assert [(c.to, c.is_copied, c.line) for c in again.carries] == [(c.to, False, b"") for c in first.carries]


@given(st.binary(max_size=120), st.integers(-(10**13), 10**13))
def test_any_lock_has_an_age_and_perhaps_a_holder(payload: bytes, mtime_ms: int) -> None:
    assert age_ms(Seen(payload=payload, ino=1, mtime_ms=mtime_ms), NOW_MS) >= 0
    pid = pid_of(payload)
    assert pid is None or pid > 0


@given(
    st.one_of(
        st.binary(max_size=80), st.text(alphabet='{}[]":,/* \n01truefalsenull', max_size=60).map(str.encode)
    )
)
def test_any_settings_are_settings_or_an_error(words: bytes) -> None:
    with contextlib.suppress(ConfigError):
        assert 50 <= parse(words, "x").max_lines <= 1000


@given(index, st.integers(0, 3000))
def test_a_block_is_never_longer_than_allowed(given_index: bytes, limit: int) -> None:
    made = render(
        Contents(folder="/f", index=given_index, unlisted=9, max_lines=300, lists=GENERAL, rules_source=""),
        limit,
    )
    assert not limit or len(made.encode()) <= limit
    assert made.count("</memd-memory-index>") == (1 if made else 0)
