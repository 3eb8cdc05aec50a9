"""A gate may say too much and never too little: whatever a row finds, both gates name the row."""

from __future__ import annotations

import importlib
import inspect
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.ledger.sanitiser import SHAPES, pem
from memd.ledger.sanitiser.gates import Gate, LiteralGate, Re2Gate, load_re2
from memd.ledger.sanitiser.shape import Shape
from support_secrets import WAYS, make_up

GATES: dict[str, Gate] = {"stdlib": LiteralGate(SHAPES)}
if load_re2() is not None:
    GATES["re2"] = Re2Gate(load_re2(), SHAPES)


def unnamed(text: str, rows: Sequence[int] = range(len(SHAPES))) -> list[tuple[str, str]]:
    """Gates that do not name a row of `rows` which finds something in `text`."""
    finding = [number for number in rows if _finds(number, text)]
    if not finding:
        return []
    return [
        (name, f"{number}-{SHAPES[number].type}")
        for name, gate in GATES.items()
        for number in set(finding).difference(gate(text))
    ]


def _finds(number: int, text: str) -> bool:
    return next(SHAPES[number].find(text), None) is not None


parser: Any = importlib.import_module("re._parser")

LONG = "a" * 60
FOUND = [
    "Pwd=q&JuFYv4",  # signs in a value
    "Pwd=Tr0ub&4;dor",
    "PASSWORD=a,b,c1;d",
    "the secret is A|b9C|d7E",
    'password="ab\rcd12345"',  # a line that a carriage return does not end
    "'client_secret': '\rZk93kdLq02mP'",
    "<password>p{q}r(s)[t]9</password>",  # anything but an angle bracket between two tags
    "<ns:secret>a\"b\"'c'9é</ns:secret>",
    'api-_key = "Zk93kdLq02mP"',  # a name with several signs before its last word
    'api._key = "Zk93kdLq02mP"',
    'name="DB_PASSWORD"; value="hunter2x9"',  # a semicolon between a name and `value`
    f"--{LONG}-token Zk93kdLq02mP",  # names whose beginning lies out of sight
    f"-{LONG}-{LONG[:56]}_token_token Zk93kdLq02mP",
    f"set -gx {LONG[:57]}token Zk93kdLq02mP",
    "ATATT3xFf=GF0a=b2kdL=q02m=PAbc=dEf",  # keys with signs in their run
    "ya29.a0Ab.Xk29.dLqP.0aBc.D3Fg",
    "dp.st.dev.a0AbXk29.dLqP0aBc.D3Fg",
]


@pytest.mark.parametrize("text", FOUND)
def test_a_row_that_finds_is_named_by_both_gates(text: str) -> None:
    assert any(next(shape.find(text), None) for shape in SHAPES), "this must be a secret to some row"
    assert unnamed(text) == []


# ---------------------------------------------------------------- texts made of what the finders look for

SIGNS = [
    "=",
    ": ",
    ":",
    "=>",
    ":=",
    "?=",
    "==",
    "===",
    "%3D",
    "%3a",
    "\\u003d",
    "\\\\u003A",
    "&#61;",
    " = ",
    "\t=\t",
]
QUOTES = [
    "",
    "",
    '"',
    "'",
    "`",
    '\\"',
    "\\\\\\'",
    "\\u0022",
    "\\\\u0027",
    "%22",
    "%27",
    "&quot;",
    "&#34;",
    "&#39;",
]
BLANKS = [
    "",
    "",
    "",
    "",
    "",
    "",
    " ",
    "  ",
    "\t",
    "%20",
    " " * 15,
    "\n",
    "\r\n",
    "\\n",
    "\\\\r\\\\n",
    "\v",
    "\f",
    "\x1c",
]
HEADS = [
    *(
        "",
        "",
        "DB_",
        "my",
        "x-",
        "x.",
        "client",
        "CLIENT_",
        "a" * 40,
        "a" * 61,
        "b-" * 30,
        "é",
        "密",
        "\x00",
        "_",
        ".",
    ),
    *(
        "api",
        "API_",
        "secret-",
        "access._",
        "private.-_",
        "auth-",
        "upload_",
        "pad_",
        "public-",
        "-",
        "--",
        "--no-",
    ),
    *("env ", "ENV ", "setx ", "set -x ", "set -gx ", "<", "<n:", "?", "&", ";", "%26", 'obj["', "$", "@"),
]
TAILS = ["", "", "", "", "2", "_2", "-123", "_base", "_BASE", "s", "-x"]
TYPES = ["str", "&str", "Optional[str]", "str | None", "a.B_2", "_"]
PIECES = [
    *(
        ";",
        "&",
        "|",
        ",",
        "=",
        ":",
        ".",
        "/",
        "\\/",
        "\\\\/",
        "\\",
        "+",
        "-",
        "_",
        "%",
        "%3D",
        "%20",
        "&amp;",
        "#",
    ),
    *("(", ")", "[", "]", "{", "}", "<", ">", '"', "'", "`", '\\"', "\\n", " ", "\t", "\r", "\n", "\v", "\f"),
    *(
        "\x00",
        "\x1b",
        "\x1c",
        "\x7f",
        "\x85",
        "\xa0",
        "é",
        "ÿ",
        "密",
        "\u2028",
        "\ud800",
        "\U0001f511",
        "ſ",
        "\u212a",
    ),
    *("~", "!", "?", "@", "$", "^", "*"),
]
PLAIN = ["x", "Q", "9", "0a", "Zk93", "hunter2", "a1b", "7Qz_", "w-8"]
ROUND = [
    *(
        "",
        "",
        "",
        " ",
        "\n",
        "curl ",
        "wget -q ",
        "openssl -passin ",
        "x -passout='",
        "name: ",
        "é",
        "ÿ",
        "-",
        "/",
    ),
    *("\\n", "%3D", "\\u003d", "\x1b[1m", "=", ";", "&", "http:", "a"),
]
CASES: list[Callable[[str], str]] = [str, str, str.upper, str.title, str.capitalize, str.swapcase]
NAMED = [number for number, shape in enumerate(SHAPES) if shape.family == "assigned"]
FORMED = [number for number in range(len(SHAPES)) if number not in NAMED]
WORDS = [word for number in NAMED for word in sorted(set(SHAPES[number].literals[1:]))]


def value(rng: random.Random) -> str:
    odd = rng.choice((0.0, 0.1, 0.3))
    return "".join(rng.choice(PIECES if rng.random() < odd else PLAIN) for _ in range(rng.randrange(2, 10)))


def quoted(rng: random.Random) -> str:
    """A value with or without quotes and a letter that says what kind of string it is."""
    quote = rng.choice(QUOTES)
    return rng.choice(["", "", "", "f", "rb", "@"]) + quote + value(rng) + quote


def named(rng: random.Random) -> str:
    """A name and its value, in every way of `named`."""
    heads = rng.choices(HEADS, k=rng.randrange(3)) + rng.choices(["", "api_", "UPLOAD-"], k=1)
    name = "".join(heads) + rng.choice(WORDS) + rng.choice(TAILS)
    quote = rng.choice(QUOTES)
    between = rng.choice(["", ",", " ,", ";", " ;"]) + rng.choice(BLANKS) + rng.choice(QUOTES)
    attached = rng.choice(
        [
            quote
            + rng.choice(["", "]", "!", "?"])
            + rng.choice(BLANKS)
            + rng.choice(SIGNS)
            + rng.choice(BLANKS),
            f"{quote}: {rng.choice(TYPES)} = ",
            f"{quote}{between}value{rng.choice(QUOTES)}{rng.choice(SIGNS)}",
            rng.choice([f"{quote},", f"{quote} ,", "(", "( ", f"{quote} | ", " | "]) + rng.choice(BLANKS),
            ">",
            rng.choice([" ", "  ", "%20", "\t", f"{quote},", f"{quote}, "]) + rng.choice(BLANKS),
            rng.choice([" is ", " was: ", " IS :"]),
        ]
    )
    text = value(rng) + "</" if attached == ">" else quoted(rng)
    return rng.choice(ROUND) + rng.choice(CASES)(name) + attached + text + rng.choice(ROUND)


def expression(shape: Shape) -> str:
    """What the finder of a row looks for, as it stands in its own expression."""
    if shape is pem.BLOCK:
        return rf"(?:{pem._BEGIN.pattern})(?:[\s\\nr,]{{1,4}}[A-Za-z0-9+/=]{{16,}}){{1,3}}"
    inside = inspect.getclosurevars(shape.find).nonlocals
    pattern: re.Pattern[str] = inside.get("pattern") or inside["compiled"]
    if "head" not in inside:
        return pattern.pattern
    before = inside["head"].pattern.removesuffix("*\\Z")
    return f"{before}{{{inside['least']},{inside['most']}}}{pattern.pattern}"


CHARS = [chr(code) for code in range(256)] + ["密", "\ud800", "\U0001f511", "\u2028"]


class Written:
    """Writes texts that an expression matches: repetitions as short as they may be or a little longer."""

    def __init__(self, pattern: str) -> None:
        self._items = list(parser.parse(pattern, re.ASCII))
        self._members: dict[int, tuple[list[str], list[str]]] = {}

    def __call__(self, rng: random.Random) -> str:
        return self._all(self._items, rng)

    def _all(self, items: Sequence[tuple[Any, Any]], rng: random.Random) -> str:
        return "".join([self._one(str(op), what, rng) for op, what in items])

    def _one(self, op: str, what: Any, rng: random.Random) -> str:
        match op:
            case "LITERAL":
                return chr(what)
            case "IN":
                return self._member(what, rng)
            case "BRANCH":
                return self._all(rng.choice(what[1]), rng)
            case "SUBPATTERN":
                return self._all(what[3], rng)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = what
                times = min(int(most), least + rng.choice((0, 0, 0, 1, 2, 20)))
                return "".join([self._all(inner, rng) for _ in range(times)])
            case "ASSERT" | "ASSERT_NOT":  # what is put round a text may fulfil it
                return ""
        raise AssertionError(op)

    def _member(self, items: Any, rng: random.Random) -> str:
        """A letter or digit of a class mostly, else any character of it."""
        if id(items) not in self._members:
            is_negated = str(items[0][0]) == "NEGATE"
            some = [c for c in CHARS if any(_has(str(kind), what, c) for kind, what in items) != is_negated]
            self._members[id(items)] = [c for c in some if c.isascii() and c.isalnum()] or some, some
        plain, some = self._members[id(items)]
        return rng.choice(some if rng.random() < 0.2 else plain)


def _has(kind: str, what: Any, character: str) -> bool:
    match kind:
        case "LITERAL":
            return ord(character) == what
        case "RANGE":
            return bool(what[0] <= ord(character) <= what[1])
        case "CATEGORY":
            return (character in " \t\n\r\f\v") == (str(what) == "CATEGORY_SPACE")
    return False  # the sign of a class of what is not in it


WRITTEN = {number: Written(expression(SHAPES[number])) for number in FORMED}


def formed(rng: random.Random, number: int) -> str:
    """What row `number` finds or nearly finds, written down in some way."""
    text = WRITTEN[number](rng) if rng.random() < 0.7 else make_up(SHAPES[number].made_up, rng).text
    if rng.random() < 0.2:  # expressions of known places match in any case
        text = rng.choice(CASES)(text)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.choice((0, rng.randrange(len(text) + 1), len(text)))
        text = text[:at] + rng.choice(PIECES) + text[at + rng.randrange(2) :]
    text = rng.choice(ROUND) + text + rng.choice(ROUND)
    return rng.choice(list(WAYS.values()))(text) if rng.random() < 0.3 else text


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 64))
def test_values_of_names_are_seen_however_they_are_attached(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        text = named(rng)
        assert unnamed(text, NAMED) == [], text


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 64))
def test_keys_of_a_form_are_seen_whatever_their_characters(seed: int) -> None:
    rng = random.Random(seed)
    for number in FORMED:
        text = formed(rng, number)
        assert unnamed(text, [number]) == [], text


def test_the_texts_are_such_as_every_row_finds() -> None:
    """Texts that no row finds would try no gate."""
    rng = random.Random("grammar")
    names = [named(rng) for _ in range(6000)]
    for number in NAMED:
        assert sum(_finds(number, text) for text in names) > 20, SHAPES[number].type
    for number in FORMED:
        assert sum(_finds(number, formed(rng, number)) for _ in range(100)) > 2, SHAPES[number].type
