"""Work grows as the text does, whatever the text: counted in calls that touch it, not in time.

The finders and the values they judge are the parts that are Python's; `re` and RE2 take a text in one call
each. So what can grow faster than a text is the number of calls, and the characters that each one is given.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from memd.ledger.sanitiser import SHAPES, Sanitiser
from memd.ledger.sanitiser.gates import load_re2
from memd.ledger.terminal import strip_terminal
from support_secrets import make_up

SMALL = 2 * 1024
TIMES = 8
ALLOWANCE = 1.35  # for what happens once per text

GATES = ["stdlib"] if load_re2() is None else ["stdlib", "re2"]

UNITS = [
    *(
        "a",
        "A",
        "0",
        " ",
        "-",
        ".",
        "/",
        "\\",
        '"',
        '\\"',
        "%",
        "%25",
        "%41",
        "\\u0041",
        "\\/",
        "=",
        "é",
        "\ud800",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "Private-Lines: 8\n",
    ),
    *(
        "eyJ",
        "eyJ.",
        "eyJa.",
        "sk-",
        "sk-sk-",
        "ghp_",
        "AKIA",
        "EAA",
        "1//",
        "SG.a",
        "1234567:",
        "M",
        "hvs.",
        "AZDO",
    ),
    *(
        "://",
        "://a:",
        "://a:b",
        "://a:b@",
        "bearer ",
        "basic a",
        "cookie=",
        "cookie: a=",
        "authorization: digest a=b,",
    ),
    *(
        "password=",
        'password="',
        "password='\"",
        'password="\\',
        "token=token",
        "key-key",
        "_key",
        "api_key: [",
        "pwd=",
    ),
    *(
        "token: a = ",
        "token(",
        "<password>",
        "pass<",
        '"token","value":',
        "token value",
        "--a-password ",
        "env pass ",
    ),
    *(
        "login a ",
        "mysql -p",
        "mysql ",
        "docker login ",
        "jdbc:oracle:a:",
        "curl -u a:",
        "-u a:",
        "$2b$",
        "mnemonic: a ",
    ),
    *(
        "[REDACTED",
        "[REDACTED:password]",
        "[REDACTED:password]x",
        "\x1b[",
        "\x1b[32m",
        "\n",
        "\r\n",
        "JQQJ99",
        "Q~",
    ),
    'password="a" token=b9 ',
]
_RNG = random.Random("linear")
UNITS += [make_up(shape.made_up, _RNG).text for shape in SHAPES]
UNITS += [unit[: len(unit) // 2] for unit in UNITS[-len(SHAPES) :]]


def repeated(unit: str, length: int) -> str:
    return unit * (length // len(unit))


def work(act: Callable[[str], object], text: str) -> int:
    """Calls made, of Python and of C, and the characters of the strings handed to those of Python."""
    done = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal done
        if event == "call":
            done += 1
            code = frame.f_code
            for name in code.co_varnames[: code.co_argcount]:
                value = frame.f_locals.get(name)
                if type(value) is str and name not in (
                    "text",
                    "_text",
                ):  # by that name everything takes the whole
                    done += len(value) // 64
        elif event == "c_call":
            done += 1

    sys.setprofile(count)
    try:
        act(text)
    finally:
        sys.setprofile(None)
    return done


@pytest.mark.parametrize("gate", GATES)
def test_eight_times_the_text_is_eight_times_the_work(gate: str) -> None:
    sanitiser = Sanitiser(gate=gate)
    excess = []
    for unit in UNITS:
        small = work(sanitiser.scrub, repeated(unit, SMALL))
        large = work(sanitiser.scrub, repeated(unit, SMALL * TIMES))
        if large > TIMES * ALLOWANCE * small + 500:
            excess.append((unit, small, large))
    assert excess == []


def test_documents_and_pieces_take_work_as_they_grow() -> None:
    sanitiser = Sanitiser()
    excess = []
    for unit in ('"a', '\\"', '{"password":"hunter2x",', "[" * 8, '"\\u0041"', "gh" + "p_" + "a1" * 20 + " "):
        for act in (
            sanitiser.scrub_json,
            lambda text: sanitiser.scrub_split([text[i : i + 50] for i in range(0, len(text), 50)]),
        ):
            small = work(act, repeated(unit, SMALL))
            large = work(act, repeated(unit, SMALL * TIMES))
            if large > TIMES * ALLOWANCE * small + 500:
                excess.append((unit, small, large))
    assert excess == []


@pytest.mark.parametrize(
    "unit", ["\x1b[", "\x1b]", "\x1b]0;a", "\x1b[1", "\x1bP", "\x9d", "\x1b", "\x1b(", "\x1b ", "a\x07"]
)
def test_a_terminals_text_is_stripped_in_one_pass(unit: str) -> None:
    # a quadratic pattern would need 10^11 steps here
    assert "\x1b" not in strip_terminal(repeated(unit, 1 << 20))


@pytest.mark.parametrize("gate", GATES)
def test_a_flood_of_near_misses_hides_nothing(gate: str) -> None:
    """Texts made to fill the automaton of a gate with states: it may be slow on them, never silent."""
    rng = random.Random("noise")
    words = [literal for shape in SHAPES for literal in shape.literals]
    words += [
        "password",
        "token",
        "key",
        "=",
        ":",
        '"',
        " ",
        "\n",
        "a",
        "A1",
        "-",
        "_",
        ".",
        "%",
        "\\",
        "/",
        "@",
        "Bearer ",
    ]
    noise = "".join(rng.choices(words, k=1 << 16))
    secret = "gh" + "p_" + "aB3" * 12
    scrubbed = Sanitiser(gate=gate).scrub(f"{noise[: 1 << 18]}\n\n{secret}\n\n")
    assert "[REDACTED:github_token]\n\n" in scrubbed
    assert secret not in scrubbed
