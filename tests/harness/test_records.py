"""Lines as agents really leave them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.harness.records import arguments, clip, compact, head_lines, split, whole_halves
from support_records import SESSION, codex, line, losses, message, meta, parse, user


def test_only_line_feeds_end_a_record() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\rg".encode()
    assert split(text + b"\n" + text) == ([text], len(text) + 1)


@pytest.mark.parametrize(("chunk", "expected"), [(b"", ([], 0)), (b"x", ([], 0)), (b"\n", ([b""], 1))])
def test_unfinished_line_is_left(chunk: bytes, expected: tuple[list[bytes], int]) -> None:
    assert split(chunk) == expected


@given(st.lists(st.sampled_from([b"", b"a", b"bc", b"\r"]), min_size=1, max_size=6), st.integers(0, 7))
def test_head_lines_are_the_first_pieces_between_line_feeds(pieces: list[bytes], count: int) -> None:
    assert list(head_lines(b"\n".join(pieces), count)) == pieces[:count]


@given(st.binary(max_size=60).map(lambda raw: raw.replace(b"\x01", b"\n")))
def test_split_gives_what_stands_between_line_feeds(chunk: bytes) -> None:
    *lines, rest = chunk.split(b"\n")
    assert split(chunk) == (lines, len(chunk) - len(rest))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb'"\ud83d x"', rb'"\ufffd x"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\\uD83D\uDCB2"', rb'"\\uD83D\ufffd"'),
        (b"plain", b"plain"),
    ],
)
def test_half_surrogates_become_replacement_characters(before: bytes, after: bytes) -> None:
    assert whole_halves(before) == after


@given(st.text(alphabet=st.characters(), max_size=40), st.integers(0, 60))
def test_clip_cuts_at_a_character(text: str, limit: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    cut, is_cut = clip(text, limit)
    assert len(cut.encode()) <= limit
    assert text.startswith(cut)
    assert is_cut == (cut != text)


VALUES = st.recursive(
    st.integers() | st.text(max_size=4), lambda one: st.dictionaries(st.text(max_size=3), one), max_leaves=6
)


@given(VALUES)
@settings(max_examples=50)
def test_compact_is_the_same_value(value: object) -> None:
    spaced = msgspec.json.format(msgspec.json.encode(value), indent=2)
    assert msgspec.json.decode(compact(spaced)[0]) == value


@given(st.binary(max_size=200))
def test_compact_takes_anything(data: bytes) -> None:
    text, is_cut = compact(data, 100)
    assert len(text.encode()) <= 3 * 100 or is_cut


def test_bytes_that_are_not_utf8_are_replaced_and_noted() -> None:
    broken = line(user("u", "caf? here")).replace(b"caf?", b"caf\xe9")
    parsed = parse("claude", broken, user("v", "next"))
    assert [one.content for one in parsed.events] == ["caf\ufffd here", "next"]
    assert losses(parsed) == {"encoding": 1}


def test_bytes_in_a_part_that_is_not_read_do_no_harm() -> None:
    broken = line(user("u", "fine", toolUseResult="caf?")).replace(b"caf?", b"caf\xe9")
    parsed = parse("claude", broken)
    assert [one.content for one in parsed.events] == ["fine"]
    assert not parsed.losses


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 512 + b"\n",
        b"\0" * 64 + line(user("x", "half lost words")),
        line(user("x", "torn words"))[:-9] + b"\n",
        b"garbage\n",
        b"[1]\n",
        b"{" * 5000 + b"\n",
        b'{"type":' + b"[" * 100_000 + b"\n",
    ],
)
def test_damaged_line_is_one_loss_and_the_rest_goes_on(damage: bytes) -> None:
    parsed = parse("claude", user("u", "before"), damage, user("v", "after"))
    assert [one.content for one in parsed.events] == ["before", "after"]
    assert sum(losses(parsed).values()) == 1


def test_record_glued_to_a_torn_one_is_taken() -> None:
    torn = line(user("x", "torn words"))[:-40]
    parsed = parse("claude", user("u", "before"), torn + line(user("v", "after")), user("w", "later"))
    assert [one.content for one in parsed.events] == ["before", "after", "later"]
    assert parsed.events[1].at > parsed.events[0].at
    assert losses(parsed) == {"malformed": 1}


def test_part_of_a_torn_record_is_not_taken_for_a_record() -> None:
    nested = user(
        "x", [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "inner"}]}]
    )
    whole = line(nested)
    for end in range(1, len(whole) - 1):
        parsed = parse("claude", whole[:end] + b"\n", user("v", "after"))
        assert [one.content for one in parsed.events] == ["after"]


def test_glued_rollout_record_is_taken() -> None:
    torn = line(message("user", "torn words"))[:-12]
    parsed = parse("codex", meta(), torn + line(message("assistant", "kept")), codex("turn_context"))
    assert [one.content for one in parsed.events] == ["kept"]
    assert losses(parsed) == {"malformed": 1}


def test_blank_lines_are_nothing() -> None:
    parsed = parse("claude", b"\n", b"  \r\n", user("u", "hi"))
    assert [one.content for one in parsed.events] == ["hi"]
    assert not parsed.losses
    assert parsed.events[0].session == SESSION


def test_arguments_are_compact_json_however_they_are_written() -> None:
    assert arguments(b'{"a": 1, "b": "\xc3\xa9"}') == '{"a":1,"b":"é"}'
    assert arguments(b'"{\\"a\\": 1}"') == '{"a":1}'
    assert arguments(b'"not json"') == "not json"
    assert arguments(b'"torn') == '"torn'
    assert arguments(b"") == ""
