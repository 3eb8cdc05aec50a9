"""What holds for every pair of indexes, however broken."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from memd.memory.index import index_keys, merge_index
from memd.memory.outline import Outline, bare, split, units

MARK = b"\xef\xbb\xbf"
FILES = [b"a.md", b"b.md", b"a b.md", b"a(1).md", b"sub/c.md", b"../out.md", b"caf\xe9.md"]
TARGETS = [*FILES, b"./a.md", b"a%20b.md", b"<a b.md>", b"a.md#x", b"b.md 'title'", b"https://x.example/a.md"]

entry = st.builds(
    lambda indent, mark, target, tail: indent + mark + b"[t](" + target + b")" + tail,
    st.sampled_from([b"", b"", b"", b"  ", b"\t"]),
    st.sampled_from([b"- ", b"- ", b"* ", b"1. ", b""]),
    st.sampled_from(TARGETS),
    st.sampled_from([b"", b" - words", b" - other \xff words", b", [second](z.md)"]),
)
OTHERS = b"""


# One
## Two
## Two
### Three ###
#
prose
more prose
- item
* x
  continued
	continued
    deep
---
| t |
[ref]: a.md
text [x](a.md) text
*""".split(b"\n")
other = st.sampled_from(OTHERS)
fence = st.sampled_from([b"```", b"```sh", b"~~~", b"````"])
ending = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r"])


def index(*lines: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    pairs = st.lists(st.tuples(st.one_of(*lines), ending), max_size=14)
    body = pairs.map(lambda found: b"".join(line + end for line, end in found))
    return st.builds(
        lambda mark, text, cut: mark + (text.rstrip(b"\r\n") if cut else text),
        st.sampled_from([b"", b"", MARK]),
        body,
        st.booleans(),
    )


plain = index(entry, other)
fenced = index(entry, other, fence)
anything = st.one_of(plain, fenced, st.binary(max_size=200))
winners = st.sets(st.sampled_from(FILES)).map(frozenset)


@given(anything, anything, winners)
@example(b"```\n", b"```\n- [t](a.md)\n", frozenset())
@example(b"- [t](a.md)\n\n    deep\n", b"    deep\n- [t](a.md) - x\n", frozenset([b"a.md"]))
def test_merging_again_changes_nothing(owned: bytes, incoming: bytes, won: frozenset[bytes]) -> None:
    once = merge_index(owned, incoming, won=won)
    assert merge_index(once, incoming, won=won) == once


@given(plain, plain, winners)
def test_no_key_is_lost(owned: bytes, incoming: bytes, won: frozenset[bytes]) -> None:
    merged = set(index_keys(merge_index(owned, incoming, won=won)))
    assert set(index_keys(owned)) | set(index_keys(incoming)) <= merged


@given(plain, plain, winners)
def test_no_key_is_doubled(owned: bytes, incoming: bytes, won: frozenset[bytes]) -> None:
    merged = merge_index(owned, incoming, won=won)
    if merged != owned and owned.strip(MARK + b" \t\r\n"):
        keys = index_keys(merged)
        assert len(keys) == len(set(keys))


@given(anything, anything)
def test_every_owned_line_stays_in_order_when_nothing_won(owned: bytes, incoming: bytes) -> None:
    keys = index_keys(owned)
    if len(keys) == len(set(keys)) and owned.strip(MARK + b" \t\r\n"):
        merged = iter(bare(split(merge_index(owned, incoming, won=frozenset()).removeprefix(MARK))))
        assert all(line in merged for line in bare(split(owned.removeprefix(MARK))))


@given(plain, plain, winners)
def test_every_line_of_prose_is_still_there(owned: bytes, incoming: bytes, won: frozenset[bytes]) -> None:
    merged = {line.strip() for line in bare(split(merge_index(owned, incoming, won=won).removeprefix(MARK)))}
    for text in (owned, incoming):
        for unit in units(bare(split(text.removeprefix(MARK)))):
            if unit.kind in ("item", "prose"):
                assert {line.strip() for line in unit.lines} <= merged


@given(anything, anything, winners, winners)
def test_any_bytes_raise_nothing(
    owned: bytes, incoming: bytes, won: frozenset[bytes], left: frozenset[bytes]
) -> None:
    merged = merge_index(owned, incoming, won=won, left_behind=left, carried=won)
    assert merge_index(None, incoming, won=won, left_behind=frozenset()) == incoming
    assert isinstance(merged, bytes)


@given(anything)
def test_merging_an_index_with_itself_changes_nothing(text: bytes) -> None:
    assert merge_index(text, text, won=frozenset(FILES)) == text


@given(anything)
def test_outline_holds_every_line_once(text: bytes) -> None:
    outline = Outline.of(text)
    assert b"".join(outline.raw) == text
    covered = [n for unit in outline.units for n in range(unit.start, unit.end)]
    assert covered == sorted(set(covered))
    assert all(outline.lines[n].strip(b" \t") == b"" for n in set(range(len(outline.lines))) - set(covered))


def test_large_index_is_merged_in_one_go() -> None:
    owned = b"".join(b"- [t](n%d.md)\n" % n for n in range(20_000))
    incoming = b"# New\n" + b"".join(b"- [t](n%d.md)\n```\n" % n for n in range(15_000, 25_000))
    merged = merge_index(owned, incoming, won=frozenset([b"n1.md"]))
    assert len(set(index_keys(merged))) == 20_000 + len(set(index_keys(incoming)) - set(index_keys(owned)))
