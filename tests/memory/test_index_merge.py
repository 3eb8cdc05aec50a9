"""Merging two indexes: what stays, what is replaced, what is added and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd.memory.index import index_keys, merge_index
from support_cases import build

NOTHING: frozenset[bytes] = frozenset()


def merge(owned: bytes | None, incoming: bytes, *won: bytes) -> bytes:
    return merge_index(owned, incoming, won=frozenset(won))


# ------------------------------------------------------------------- what stays


def test_owned_order_and_owned_lines_stay_when_nothing_won() -> None:
    owned = b"# Memory\n\n- [B](b.md) - ours\n- [A](a.md) - ours\n"
    incoming = b"# Memory\n\n- [A](a.md) - theirs\n- [B](b.md) - theirs\n"
    assert merge(owned, incoming) == owned


def test_winner_brings_its_line() -> None:
    owned = b"- [B](b.md) - ours\n- [A](a.md) - ours\n"
    incoming = b"- [A](./a.md) - theirs\n- [B](b.md) - theirs\n"
    assert merge(owned, incoming, b"a.md") == b"- [B](b.md) - ours\n- [A](./a.md) - theirs\n"


def test_winner_without_a_line_changes_nothing() -> None:
    owned = b"- [A](a.md) - ours\n"
    assert merge(owned, b"- [B](https://b.example)\n- [A2](a2.md)\n", b"a.md").startswith(owned)


def test_winner_in_a_subfolder_is_known_by_its_path() -> None:
    owned = b"- [A](sub/a.md) - ours\n- [A](a.md) - ours\n"
    incoming = b"- [A](sub/a.md) - theirs\n- [A](a.md) - theirs\n"
    assert merge(owned, incoming, b"sub/a.md") == b"- [A](sub/a.md) - theirs\n- [A](a.md) - ours\n"


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n"])
def test_same_text_but_for_the_final_newline_changes_nothing(end: bytes) -> None:
    text = b"# M\n\n- [A](a.md)\n- [A](a.md)\n\nprose"
    assert merge(text, text + end, b"a.md") == text
    assert merge(text + end, text, b"a.md") == text + end


def test_line_ends_alone_change_nothing() -> None:
    owned = b"# M\n\n- [A](a.md) - x\n\nprose\n"
    assert merge(owned, b"\xef\xbb\xbf" + owned.replace(b"\n", b"\r\n"), b"a.md") == owned
    assert merge(owned.replace(b"\n", b"\r\n"), owned, b"a.md") == owned.replace(b"\n", b"\r\n")


def test_bytes_that_are_not_utf8_survive() -> None:
    owned = b"- [caf\xe9](caf\xe9.md) - \xff\xfe\n"
    merged = merge(owned, b"- [n](n.md) - \x80\n", b"n.md")
    assert merged == owned + b"- [n](n.md) - \x80\n"


def test_missing_index_is_taken_as_it_is() -> None:
    incoming = b"\xef\xbb\xbf# M\r\n- [A](a.md)\r\n- [A](./a.md)"
    assert merge(None, incoming) == incoming
    assert merge(b"", incoming) == incoming
    assert merge(b"\n \n", incoming) == incoming


def test_empty_index_adds_nothing() -> None:
    assert merge(b"- [A](a.md)", b"") == b"- [A](a.md)"
    assert merge(b"- [A](a.md)", b"\xef\xbb\xbf\r\n") == b"- [A](a.md)"
    assert merge(None, b"\n") == b"\n"
    assert merge(b"", b"") == b""


# ------------------------------------------------------------------- duplicates


def test_duplicate_entry_is_replaced_once_and_kept_once() -> None:
    owned = b"- [A](a.md) - one\n- [B](b.md)\n- [A](./a.md) - two\n"
    assert merge(owned, b"- [A](a.md) - new\n", b"a.md") == b"- [A](a.md) - new\n- [B](b.md)\n"


def test_duplicates_alone_are_no_reason_to_write() -> None:
    owned = b"- [A](a.md) - one\n- [A](./a.md) - two\n"
    assert merge(owned, b"- [A](a.md) - theirs\n") == owned


def test_incoming_duplicate_is_added_once() -> None:
    assert merge(b"- [A](a.md)\n", b"- [B](b.md) - one\n- [B](./b.md) - two\n") == (
        b"- [A](a.md)\n- [B](b.md) - one\n"
    )


@pytest.mark.parametrize(
    "spelling",
    [b"./my%20notes.md", b"<my notes.md>", b"<./my notes.md#x>", b"my notes.md", b"x/../my%20notes.md"],
)
def test_every_spelling_is_one_file(spelling: bytes) -> None:
    owned = b"- [N](my%20notes.md) - ours\n"
    assert merge(owned, b"- [N](" + spelling + b") - theirs\r\n") == owned


# ------------------------------------------------------------------- what is added


def test_new_entries_go_under_their_own_heading() -> None:
    owned = b"# Memory\n\n## Data\n- [A](a.md)\n\n## People\n- [P](p.md)\n"
    incoming = b"# Memory\n\n## People\n- [Q](q.md)\n\n## Data\n- [B](b.md)\n"
    assert merge(owned, incoming) == (
        b"# Memory\n\n## Data\n- [A](a.md)\n- [B](b.md)\n\n## People\n- [P](p.md)\n- [Q](q.md)\n"
    )


def test_missing_heading_is_made_with_what_stands_under_it() -> None:
    owned = b"# Memory\n\n- [A](a.md)\n"
    incoming = b"# Memory\n\n- [A](a.md)\n\n## Data\n\n- [B](b.md)\n\n### Deep\n- [C](c.md)\n"
    assert merge(owned, incoming) == (
        b"# Memory\n\n- [A](a.md)\n\n## Data\n\n- [B](b.md)\n\n### Deep\n- [C](c.md)\n"
    )


def test_missing_heading_is_made_inside_its_parent() -> None:
    owned = b"# One\n\n- [A](a.md)\n\n## Sub\n- [S](s.md)\n\n# Two\n\n- [T](t.md)\n"
    incoming = b"# One\n\n## New\n- [N](n.md)\n"
    assert merge(owned, incoming) == (
        b"# One\n\n- [A](a.md)\n\n## Sub\n- [S](s.md)\n\n## New\n- [N](n.md)\n\n# Two\n\n- [T](t.md)\n"
    )


def test_heading_with_nothing_new_under_it_is_not_made() -> None:
    owned = b"# Memory\n- [A](a.md)\n"
    assert merge(owned, b"# Notes\n- [A](a.md)\n\n## Empty\n") == owned


def test_heading_is_found_by_its_words_alone() -> None:
    owned = b"# Project\n\n## data ##\n- [A](a.md)\n\n## More\n- [M](m.md)\n"
    incoming = b"# Memory\n\n### Data\n- [B](b.md)\n"
    assert (
        merge(owned, incoming)
        == b"# Project\n\n## data ##\n- [A](a.md)\n- [B](b.md)\n\n## More\n- [M](m.md)\n"
    )


def test_headings_of_one_name_are_told_apart_by_what_is_above_them() -> None:
    owned = b"# One\n## Notes\n- [A](a.md)\n# Two\n## Notes\n- [B](b.md)\n"
    incoming = b"# Two\n## Notes\n- [C](c.md)\n# One\n## Notes\n- [D](d.md)\n"
    assert merge(owned, incoming) == (
        b"# One\n## Notes\n- [A](a.md)\n- [D](d.md)\n\n# Two\n## Notes\n- [B](b.md)\n- [C](c.md)\n"
    )


def test_text_without_a_heading_goes_under_the_title() -> None:
    assert merge(b"# Memory\n\n## Data\n- [A](a.md)\n", b"- [B](b.md)\n") == (
        b"# Memory\n\n- [B](b.md)\n\n## Data\n- [A](a.md)\n"
    )
    assert merge(b"## Data\n- [A](a.md)\n", b"- [B](b.md)\n") == b"- [B](b.md)\n\n## Data\n- [A](a.md)\n"
    assert merge(b"- [A](a.md)\n\n# X\nx\n", b"- [B](b.md)\n") == b"- [A](a.md)\n- [B](b.md)\n\n# X\nx\n"


def test_missing_final_newline_does_not_join_two_entries() -> None:
    assert merge(b"- [A](a.md)", b"- [B](b.md)") == b"- [A](a.md)\n- [B](b.md)\n"


def test_added_lines_have_the_owned_line_ends() -> None:
    assert merge(b"- [A](a.md)\r\n", b"- [B](b.md)\n  more\n") == b"- [A](a.md)\r\n- [B](b.md)\r\n  more\r\n"
    assert merge(b"- [A](a.md)\n", b"- [B](b.md)\r\n  more\r\n") == b"- [A](a.md)\n- [B](b.md)\n  more\n"


def test_owned_byte_order_mark_stays_at_the_front() -> None:
    owned = b"\xef\xbb\xbf## Data\n"
    assert merge(owned, b"\xef\xbb\xbf- [B](b.md)\n") == b"\xef\xbb\xbf- [B](b.md)\n\n## Data\n"


# ------------------------------------------------------------------- continuation lines and prose


def test_continuation_lines_stay_with_their_entry() -> None:
    owned = b"- [A](a.md) - ours\n  ours too\n- [B](b.md)\n"
    incoming = b"- [A](a.md) - theirs\n  theirs too\n\n  and after a blank line\n- [C](c.md)\n\tc too\n"
    assert merge(owned, incoming, b"a.md") == (
        b"- [A](a.md) - theirs\n  theirs too\n\n  and after a blank line\n- [B](b.md)\n- [C](c.md)\n\tc too\n"
    )


def test_nested_entry_that_is_new_leaves_its_parent() -> None:
    """Under the last line of the owned list it would be nested under a stranger."""
    owned = b"- [A](a.md)\n- [Z](z.md)\n"
    incoming = b"- [A](a.md)\n  - [B](b.md)\n    - [C](c.md)\n"
    assert merge(owned, incoming) == b"- [A](a.md)\n- [Z](z.md)\n- [B](b.md)\n    - [C](c.md)\n"


def test_replaced_nested_entry_stays_where_it_is_nested() -> None:
    owned = b"- [A](a.md)\n  - [B](b.md) - ours\n"
    assert merge(owned, b"- [B](b.md) - theirs\n", b"b.md") == b"- [A](a.md)\n  - [B](b.md) - theirs\n"


def test_prose_is_kept_once() -> None:
    owned = b"# Memory\n\nThe lab keeps its own clock.\n"
    incoming = (
        b"# Memory\r\n\r\nThe lab keeps its own clock.\r\n\r\nUse tabs.\r\nAlways.\r\n\r\n- no link\r\n"
    )
    merged = merge(owned, incoming)
    assert merged == b"# Memory\n\nThe lab keeps its own clock.\n\nUse tabs.\nAlways.\n\n- no link\n"
    assert merge(merged, incoming) == merged


def test_paragraph_is_added_whole() -> None:
    merged = merge(b"one line\n", b"one line\nand another\n")
    assert merged == b"one line\n\none line\nand another\n"
    assert merge(merged, b"one line\nand another\n") == merged


def test_link_to_a_site_is_prose() -> None:
    line = b"- [site](https://example.org) - docs\n"
    assert merge(b"- [A](a.md)\n", line) == b"- [A](a.md)\n" + line
    assert merge(line, line + b"- [A](a.md)\n") == line + b"- [A](a.md)\n"


def test_code_block_is_kept_in_one_piece() -> None:
    block = b"```sh\n# install\n\nmake [x](y.md)\n```\n"
    merged = merge(b"# Memory\n- [A](a.md)\n", b"# Memory\n" + block)
    assert merged == b"# Memory\n- [A](a.md)\n\n" + block
    assert merge(merged, b"# Memory\n" + block) == merged


# ------------------------------------------------------------------- files that are not there


def test_entry_of_a_missing_file_is_kept() -> None:
    merged = merge_index(
        b"- [A](a.md)\n", b"- [Gone](gone.md) - words\n", won=NOTHING, carried=frozenset([b"a.md"])
    )
    assert merged == b"- [A](a.md)\n- [Gone](gone.md) - words\n"


def test_entry_of_a_file_left_behind_is_not_merged() -> None:
    incoming = b"- [L](link.md)\n  more of it\n- [D](dir/x.md)\n- [E](dirt.md)\n"
    left = frozenset([b"link.md", b"dir"])
    assert (
        merge_index(b"- [A](a.md)\n", incoming, won=NOTHING, left_behind=left)
        == b"- [A](a.md)\n- [E](dirt.md)\n"
    )
    assert (
        merge_index(None, b"\xef\xbb\xbf" + incoming, won=NOTHING, left_behind=left)
        == b"\xef\xbb\xbf- [E](dirt.md)\n"
    )


def test_entry_of_a_file_left_behind_stays_when_the_owned_folder_has_one() -> None:
    merged = merge_index(
        b"- [A](a.md)\n",
        b"- [L](link.md)\n",
        won=NOTHING,
        carried=frozenset([b"link.md"]),
        left_behind=frozenset([b"link.md"]),
    )
    assert merged == b"- [A](a.md)\n- [L](link.md)\n"


def test_owned_entry_is_never_dropped_for_a_file_left_behind() -> None:
    owned = b"- [L](link.md) - ours\n"
    left = frozenset([b"link.md"])
    assert merge_index(owned, b"- [L](link.md) - x\n- [N](n.md)\n", won=NOTHING, left_behind=left) == (
        owned + b"- [N](n.md)\n"
    )


def test_nothing_but_entries_left_behind_changes_nothing() -> None:
    left = frozenset([b"link.md"])
    assert merge_index(b"- [A](a.md)", b"- [L](link.md)\n", won=NOTHING, left_behind=left) == b"- [A](a.md)"


# ------------------------------------------------------------------- a case in full


def test_odd_lines_from_two_editors_merge_into_one_index(tmp_path: Path) -> None:
    build("06-index-merge-odd-lines", tmp_path)
    one, two = (
        next((tmp_path / "home").glob(f"{login}/projects/*/memory/MEMORY.md")).read_bytes()
        for login in (".claude", ".claude-win")
    )
    for owned, incoming in ((one, two), (two, one)):
        merged = merge_index(owned, incoming, won=frozenset([b"db.md"]))
        keys = index_keys(merged)
        assert sorted(keys) == [b"../outside.md", b"db.md", b"gone.md", b"my notes.md"]
        assert merged.count(b"The lab keeps its own clock.") == 1
        assert merged.count(b"# Memory") == 1
        assert merged.count(b"\xef\xbb\xbf") == owned.count(b"\xef\xbb\xbf")
        assert not any(b"\r" in key for key in keys)
        assert merge_index(merged, incoming, won=frozenset([b"db.md"])) == merged
        assert merge_index(merged, owned, won=NOTHING) == merged
