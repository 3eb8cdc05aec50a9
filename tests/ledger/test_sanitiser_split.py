"""A secret cut in two: found when the pieces are of one text, judged in halves when they are two records."""

from __future__ import annotations

import random

from memd.ledger.sanitiser import SHAPES, Sanitiser
from support_secrets import Hunt, MadeUp, make_up

VALUES = 5


def values() -> list[MadeUp]:
    rng = random.Random("cut in two")
    return [make_up(shape.made_up, rng) for shape in SHAPES for _ in range(VALUES)]


def cut(secret: MadeUp) -> tuple[str, str]:
    """In the middle of the part that is secret."""
    part = secret.longest()
    at = secret.text.index(part) + len(part) // 2
    return secret.text[:at], secret.text[at:]


def test_pieces_of_one_text_keep_nothing() -> None:
    sanitiser = Sanitiser()
    for secret in values():
        first, second = cut(secret)
        pieces = sanitiser.scrub_split([f"I ran {first}", f"{second} and it worked"])
        assert Hunt([secret]).left("".join(pieces).encode()) == [], secret.text


def test_a_secret_in_two_records_is_judged_in_halves() -> None:
    """What the page about security says of it; should more be found one day, it should say so."""
    sanitiser = Sanitiser()
    beginnings = ends = 0
    for secret in values():
        first, second = cut(secret)
        left = Hunt([secret])
        beginnings += not left.left(sanitiser.scrub(f"I ran {first}").encode())
        ends += not left.left(sanitiser.scrub(f"{second} and it worked").encode())
    total = len(SHAPES) * VALUES
    print(f"of {total}: {beginnings} beginnings and {ends} ends are replaced")
    assert beginnings > 0.4 * total
    assert ends < 0.2 * total
