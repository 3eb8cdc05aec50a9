"""Putting one entry into somebody's settings: everything else stays, byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.json_edit import drop, parse, put
from memctl.json_scan import scan
from memd.errors import Refused

VALUE = {"command": "/p", "args": ["-m", "x"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcp": {\n    "memd": 1\n  }\n}\n'),
        ("{}\n", '{\n  "mcp": {\n    "memd": 1\n  }\n}\n'),
        ('{\n    "a": 1\n}', '{\n    "a": 1,\n    "mcp": {\n        "memd": 1\n    }\n}'),
        ('{"a": 1}', '{"a": 1, "mcp": {"memd": 1}}'),
        ('{"mcp": {"x": 2}}', '{"mcp": {"x": 2, "memd": 1}}'),
        ('{\n\t"mcp": {\n\t\t"x": 2\n\t}\n}\n', '{\n\t"mcp": {\n\t\t"x": 2,\n\t\t"memd": 1\n\t}\n}\n'),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "mcp": {\r\n    "memd": 1\r\n  }\r\n}\r\n'),
        (
            '// head\n{\n  "a": 1 // why\n  /* more */\n}\n// tail\n',
            '// head\n{\n  "a": 1, // why\n  /* more */\n  "mcp": {\n    "memd": 1\n  }\n}\n// tail\n',
        ),
        (
            '{\n  "mcp": {\n    "x": 2, // kept\n  },\n}\n',
            '{\n  "mcp": {\n    "x": 2, // kept\n    "memd": 1,\n  },\n}\n',
        ),
        ('{"mcp": {"memd": 0, "y": [1, 2]}}', '{"mcp": {"memd": 1, "y": [1, 2]}}'),
        (
            '{"u": "https://x // y", "s": "[1, ]"}',
            '{"u": "https://x // y", "s": "[1, ]", "mcp": {"memd": 1}}',
        ),
        ("\ufeff{}", '\ufeff{\n  "mcp": {\n    "memd": 1\n  }\n}'),
    ],
)
def test_an_entry_takes_the_form_of_its_neighbours(before: str, after: str) -> None:
    assert put(before, ("mcp", "memd"), 1) == after
    assert put(after, ("mcp", "memd"), 1) == after


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"mcp": []}',
        "[]",
        '{"a": 1} x',
        '{"mcp": {"a": 1}, "mcp": {}}',
        "{'a': 1, }",
        '{"a" 1}',
        '{"a\x01": 1}',
        "[" * 5000,
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        put(text, ("mcp", "memd"), 1)


def test_a_key_with_a_control_character_or_an_odd_escape_is_refused() -> None:
    for text in ('{"a\x01": 1}', '{"a\\x": 1}', '{"\\ud8": 1}'):
        with pytest.raises(Refused):
            scan(text)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["mcp", "memd", "a", "b"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=4),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["x", "memd"]), values, max_size=3)),
    st.sampled_from([None, 1, 2, 4, "\t"]),
)
def test_any_settings_keep_their_other_bytes(
    others: dict[str, object], mcp: object, indent: int | str | None
) -> None:
    document = dict(others) if mcp is None else {**others, "mcp": mcp}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    made = put(text, ("mcp", "memd"), VALUE)
    expected = {**document, "mcp": {**(mcp if isinstance(mcp, dict) else {}), "memd": VALUE}}
    assert json.loads(made) == expected
    assert parse(made) == expected
    if not (isinstance(mcp, dict) and "memd" in mcp):
        left = iter(made)
        assert all(c in left for c in text), "a byte of the old text is gone"


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{"a": 1}', ("a",), "{}"),
        ('{"a": 1, "b": 2}', ("a",), '{"b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
        ("[1, 2, 3]", (1,), "[1, 3]"),
        ("[\n  1,\n  2,\n]", (0,), "[\n  2,\n]"),
        ("[\n  1,\n  2,\n]", (1,), "[\n  1,\n]"),
        ("[\n  1, // one\n  2 // two\n]", (1,), "[\n  1 // one\n   // two\n]"),
        ("[1, // one\n  2]", (1,), "[1 // one\n  ]"),
        ("[ /* kept */ 1 ]", (0,), "[ /* kept */ ]"),
        ('{"a": {"b": [[0], {"c": 1}]}}', ("a", "b", 1, "c"), '{"a": {"b": [[0], {}]}}'),
    ],
)
def test_taking_out_leaves_the_rest_as_it_was(text: str, path: tuple[str | int, ...], left: str) -> None:
    made = drop(text, path)
    assert made == left
    parse(made)


def test_a_large_file_with_comments_is_read_too() -> None:
    text = "// head\n{" + ",\n".join(f'"k{n}": "// {n}," // why\n' for n in range(20_000)) + ", }"
    assert parse(text)["k19999"] == "// 19999,"
