"""Which file a line of an index links to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.memory.index import index_keys, line_count
from memd.memory.links import linked_file, normal_name


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b"- [A](a.md) - about a", b"a.md"),
        (b"- [A](./a.md)", b"a.md"),
        (b"- [A](.//./a.md)", b"a.md"),
        (b"- [A](<a.md>)", b"a.md"),
        (b"- [A]( a.md )", b"a.md"),
        (b"- [A](a.md#top)", b"a.md"),
        (b"- [A](<a.md#top>)", b"a.md"),
        (b'- [A](a.md "a title")', b"a.md"),
        (b"- [A](a.md 'a title')", b"a.md"),
        (b'- [A](<a.md> "a title") more', b"a.md"),
        (b"- [A](a%20b.md)", b"a b.md"),
        (b"- [A](<a b.md>)", b"a b.md"),
        (b"- [A](a b.md)", b"a b.md"),
        (b"- [A](a(1).md)", b"a(1).md"),
        (b"- [A](a((1)(2)).md) (old)", b"a((1)(2)).md"),
        (b"- [A](a\\(1.md)", b"a(1.md"),
        (b"- [A](<a(1.md>)", b"a(1.md"),
        (b"- [A](a(1.md)", b"a(1.md"),
        (b"- [A](a%281%29.md)", b"a(1).md"),
        (b"- [A](a%23b.md)", b"a#b.md"),
        (b"- [A](a%zz.md)", b"a%zz.md"),
        (b"- [A](caf\xe9.md)", b"caf\xe9.md"),
        (b"- [A](caf%C3%A9.md)", "café.md".encode()),
        (b"- [A](sub/a.md)", b"sub/a.md"),
        (b"- [A](sub/../a.md)", b"a.md"),
        (b"- [A](../outside.md)", b"../outside.md"),
        (b"- [A](sub/../../outside.md)", b"../outside.md"),
        (b"- [A](/etc/passwd)", b"/etc/passwd"),
        (b"- [A](a.md), [B](b.md)", b"a.md"),
        (b"- [site](https://example.org/x.md), see [A](a.md)", b"a.md"),
        (b"- [[A]](a.md)", b"a.md"),
        (b"- [A [sic]](a.md)", b"a.md"),
        (b"![picture](p.png)", b"p.png"),
        (b"[A](a.md)\r", b"a.md"),
        (b"- [A](a.md\r)", b"a.md"),
        (b"- [site](https://example.org/a.md)", b""),
        (b"- [mail](mailto:a@example.org)", b""),
        (b"- [site](//example.org/a.md)", b""),
        (b"- [here](#top)", b""),
        (b"- [nothing]()", b""),
        (b"- [A](a.md", b""),
        (b"- [A] (a.md)", b""),
        (b"a](b.md)", b""),
        (b"- a.md", b""),
        (b"", b""),
    ],
)
def test_key_of_a_line(line: bytes, key: bytes) -> None:
    assert linked_file(line) == key


def test_keys_of_an_index_in_order() -> None:
    text = (
        b"\xef\xbb\xbf- [B](b.md)\r\n# H [x](x.md)\r\n- [A](./a.md)\r- [B again](b%2Emd)\ntext\n [N](n.md)\n"
    )
    assert index_keys(text) == (b"b.md", b"a.md", b"b.md", b"n.md")


def test_continuation_lines_and_code_hold_no_keys() -> None:
    text = b"- [A](a.md)\n  see [B](b.md)\n\n  and [C](c.md)\n\n```\n- [D](d.md)\n```\n"
    assert index_keys(text) == (b"a.md",)


def test_fence_that_is_never_closed_hides_nothing() -> None:
    assert index_keys(b"```\n- [A](a.md)\n~~~\n- [B](b.md)\n") == (b"a.md", b"b.md")


def test_nested_entry_is_an_entry() -> None:
    assert index_keys(b"- [A](a.md)\n  - [B](b.md)\n    - more\n    1. [C](c.md)\n") == (
        b"a.md",
        b"b.md",
        b"c.md",
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\r\nb\r\n", 2), (b"a\n\n", 2)],
)
def test_lines_are_counted_as_claude_code_does(text: bytes, count: int) -> None:
    assert line_count(text) == count


@given(st.binary(max_size=200))
def test_name_is_in_its_only_spelling(target: bytes) -> None:
    name = normal_name(target)
    assert b"//" not in name
    assert not name.startswith(b"./")
    assert b"/./" not in name
    assert not name.endswith(b"/") or name == b"/"


@given(
    st.lists(st.sampled_from([b"[", b"](", b"(", b")", b"<", b">", b"\\", b"a.md", b" ", b'"', b"#", b"%2"]))
)
def test_any_brackets_end(parts: list[bytes]) -> None:
    assert b"\n" not in linked_file(b"".join(parts))


def test_hostile_line_is_read_in_bounded_time() -> None:
    assert linked_file(b"[" + b"](" * 500_000) == b""
    assert linked_file(b"[x](" + b"(" * 500_000) == b""
