"""A gate may say too much and never too little: whatever a row finds, both gates name the row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memd.ledger.sanitiser import SHAPES
from memd.ledger.sanitiser.gates import Gate, LiteralGate, Re2Gate, load_re2

GATES: dict[str, Gate] = {"stdlib": LiteralGate(SHAPES)}
if load_re2() is not None:
    GATES["re2"] = Re2Gate(load_re2(), SHAPES)


def unnamed(text: str, rows: Sequence[int] = range(len(SHAPES))) -> list[tuple[str, str]]:
    """Gates that do not name a row of `rows` which finds something in `text`."""
    finding = [number for number in rows if next(SHAPES[number].find(text), None) is not None]
    if not finding:
        return []
    return [
        (name, f"{number}-{SHAPES[number].type}")
        for name, gate in GATES.items()
        for number in set(finding).difference(gate(text))
    ]


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
