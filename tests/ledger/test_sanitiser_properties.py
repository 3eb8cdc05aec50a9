"""What holds for any text: gates that agree, scrubbing that rests, pieces that stay pieces, no exception."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memd.ledger.sanitiser import SHAPES, Sanitiser
from memd.ledger.sanitiser.gates import LiteralGate, load_re2
from support_secrets import make_up

AUTO = Sanitiser()
STDLIB = Sanitiser(gate="stdlib")
UNGATED = Sanitiser(gate="stdlib")
UNGATED._gate = lambda text, raw=None: range(len(SHAPES) + 1)  # every row looks at every text

_RNG = random.Random("properties")
_MADE_UP = [make_up(shape.made_up, _RNG).text for shape in SHAPES for _ in range(2)]
_LITERALS = sorted({literal for shape in SHAPES for literal in shape.literals})
_BETWEEN = [
    *(
        "=",
        ": ",
        ":",
        "=>",
        ' = "',
        "='",
        '":"',
        '\\":\\"',
        "%3D",
        "%22%3A%22",
        "\\u0022:\\u0022",
        "&quot;: &quot;",
    ),
    *(
        " ",
        "  ",
        "\n",
        "\r\n",
        "\\n",
        "\t",
        '"',
        "'",
        "`",
        "\\",
        "\\\\",
        "/",
        "\\/",
        "//",
        "@",
        ",",
        ";",
        "&",
        "|",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "{",
        "}",
        ".",
        "..",
        "-",
        "--",
        "_",
        "+",
        "%",
        "%2F",
        "%25",
        "$",
        "~",
        "#",
        "*",
    ),
    *(
        "[REDACTED:password]",
        "[REDACTED:jwt]",
        "[REDACTED",
        "[REDACTED:made_up]",
        "\x1b[31m",
        "\x1b[0m",
        "\x00",
    ),
    *("é", "ſ", "K", "İ", "\u00a0", "\u2003", "\x1c", "\x85", "\ud800", "\U0001f511", "密码"),
]
_NAMES = [
    *(
        "password",
        "PASSWORD",
        "DB_PASS",
        "pwd",
        "secret",
        "CLIENT_SECRET",
        "token",
        "authToken",
        "api_key",
        "x-api-key",
    ),
    *(
        "apiKey",
        "PRIVATE_KEY",
        "credentials",
        "SECRET_KEY_BASE",
        "token2",
        "--token",
        "env TOKEN",
        "Authorization",
    ),
    *(
        "Bearer",
        "Basic",
        "Cookie",
        "Set-Cookie",
        "curl -u",
        "mysql -p",
        "value",
        "name",
        "://",
        "login",
        "is",
        "was",
    ),
]
_VALUES = [
    "hunter2hunter2",
    "Xk29dLqP0",
    "abc",
    "None",
    "${VAR}",
    "<your-key>",
    "***",
    "12345678",
    "f(x)",
    "word_word",
]


def one_of_many(values: list[str]) -> st.SearchStrategy[str]:
    """`sampled_from` without all of them in its repr."""
    return st.integers(0, len(values) - 1).map(values.__getitem__)


fragments = st.one_of(
    one_of_many(_MADE_UP),
    one_of_many(_LITERALS),
    st.sampled_from(_BETWEEN),
    st.sampled_from(_NAMES),
    st.sampled_from(_VALUES),
    st.text(alphabet=st.characters(), max_size=8),
    st.text(alphabet="abcXYZ019_-", max_size=40),
)
texts = st.lists(fragments, max_size=12).map("".join)
# half of a made-up value, or one with something in it: what nearly matches
broken = st.builds(
    lambda value, at, wedge: value[: at % len(value)] + wedge + value[at % len(value) :],
    one_of_many(_MADE_UP),
    st.integers(min_value=0, max_value=400),
    st.sampled_from(_BETWEEN),
)
hostile = st.lists(st.one_of(texts, broken), max_size=5).map("".join)

needs_re2 = pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")


@needs_re2
@settings(max_examples=400, deadline=None)
@given(hostile)
@example("pa\u017f\u017fword=hunter2hunter2")
@example("to\u212aen=hunter2hunter2")
@example("password\u00a0=\u00a0hunter2hunter2")
@example("password=\x1chunter2hunter2")
@example("\ud800password=hunter2\udfffhunter2")
def test_both_gates_give_what_no_gate_gives(text: str) -> None:
    expected = UNGATED.marks(text)
    assert AUTO.marks(text) == expected
    assert STDLIB.marks(text) == expected


@settings(max_examples=400, deadline=None)
@given(hostile)
def test_scrubbing_again_changes_nothing(text: str) -> None:
    once = AUTO.scrub(text)
    assert AUTO.scrub(once) == once


@settings(max_examples=200, deadline=None)
@given(hostile)
def test_a_text_comes_to_rest_in_few_passes(text: str) -> None:
    scrubbed = AUTO.scrub(text)
    assert scrubbed != "[REDACTED:custom]", "only patterns of the user's own may give up on a text"


@settings(max_examples=200, deadline=None)
@given(st.lists(hostile, max_size=6))
def test_texts_that_are_clean_together_are_clean_one_by_one(batch: list[str]) -> None:
    for sanitiser in (AUTO, STDLIB):
        if sanitiser.is_clean(batch):
            assert [sanitiser.scrub(text) for text in batch] == batch


@settings(max_examples=150, deadline=None)
@given(st.lists(hostile, max_size=6))
def test_pieces_come_back_as_pieces_and_rest(pieces: list[str]) -> None:
    scrubbed = AUTO.scrub_split(pieces)
    assert len(scrubbed) == len(pieces)
    assert AUTO.scrub_split(scrubbed) == scrubbed
    if AUTO.scrub("".join(pieces)) == "".join(pieces):
        assert scrubbed == pieces


documents = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), hostile),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(_NAMES), texts), inner, max_size=4),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(documents, st.booleans(), st.sampled_from([None, 2]))
@example("z0B2obD\x00VbfZrxi.atlasv1." + "cZjY2eQgfmpGOfSUTuuKa9ft7k7ETgLfOPIxu0BHhRNxfyx", True, None)
def test_documents_stay_documents(document: object, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii, indent=indent)
    scrubbed = AUTO.scrub_json(text)
    json.loads(scrubbed)
    assert AUTO.scrub_json(scrubbed) == scrubbed


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_any_text_is_taken(text: str) -> None:
    for sanitiser in (AUTO, STDLIB):
        assert isinstance(sanitiser.scrub(text), str)
        assert isinstance(sanitiser.scrub_json(text), str)


@needs_re2
def test_auto_takes_re2_where_it_is() -> None:
    assert AUTO.gate_name == "re2"
    assert isinstance(STDLIB._gate, LiteralGate)
