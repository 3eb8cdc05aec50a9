"""Every row of the table, twenty made-up values each, in every way a text writes them down."""

from __future__ import annotations

import json
import random
from urllib.parse import unquote

import pytest

from memd.ledger.sanitiser import SHAPES, Sanitiser
from memd.ledger.sanitiser.shape import Shape
from support_secrets import WAYS, MadeUp, make_up

VALUES = 20
WITH_RE2 = Sanitiser(gate="auto")
WITHOUT = Sanitiser(gate="stdlib")


def values(number: int) -> list[MadeUp]:
    rng = random.Random(f"row {number}")
    return [make_up(SHAPES[number].made_up, rng) for _ in range(VALUES)]


def leaks(made_up: MadeUp, scrubbed: str) -> bool:
    """Whether half of the longest random part can still be read."""
    part = made_up.longest()
    half = max(8, len(part) // 2)
    readable = (scrubbed, unquote(scrubbed), scrubbed.replace("\\/", "/"), scrubbed.replace("\\", ""))
    return any(part[i : i + half] in text for text in readable for i in range(0, len(part) - half + 1, 4))


def row(shape: Shape) -> str:
    return f"{SHAPES.index(shape)}-{shape.type}"


@pytest.mark.parametrize("shape", SHAPES, ids=row)
def test_made_up_secrets_are_gone_however_they_are_written(shape: Shape) -> None:
    left = []
    for made_up in values(SHAPES.index(shape)):
        for way, written in WAYS.items():
            text = written(made_up.text)
            scrubbed = WITH_RE2.scrub(text)
            assert "[REDACTED:" in scrubbed, (way, text)
            if leaks(made_up, scrubbed):
                left.append((way, text, scrubbed))
            assert WITHOUT.scrub(text) == scrubbed, (way, text)
            assert WITH_RE2.scrub(scrubbed) == scrubbed, (way, text)
    assert left == []


@pytest.mark.parametrize("shape", SHAPES, ids=row)
def test_json_documents_stay_documents_and_keep_no_secret(shape: Shape) -> None:
    for made_up in values(SHAPES.index(shape)):
        for way in ("json", "json in json", "json with slashes", "json all escaped"):
            text = WAYS[way](made_up.text)
            scrubbed = WITH_RE2.scrub_json(text)
            assert not leaks(made_up, scrubbed), (way, text, scrubbed)
            assert not leaks(made_up, json.dumps(json.loads(scrubbed))), (way, text)
            assert WITH_RE2.scrub_json(scrubbed) == scrubbed


@pytest.mark.parametrize("shape", SHAPES, ids=row)
def test_secrets_cut_anywhere_are_found_in_the_whole(shape: Shape) -> None:
    rng = random.Random(shape.made_up)
    for made_up in values(SHAPES.index(shape)):
        text = f"so {made_up.text} it is"
        at = sorted(rng.randrange(len(text)) for _ in range(3))
        pieces = [text[: at[0]], text[at[0] : at[1]], text[at[1] : at[2]], text[at[2] :]]
        scrubbed = WITH_RE2.scrub_split(pieces)
        assert len(scrubbed) == len(pieces)
        assert not leaks(made_up, "".join(scrubbed)), (pieces, scrubbed)


def test_the_table_is_about_sixty_kinds_and_more() -> None:
    assert len({shape.type for shape in SHAPES}) >= 60
    assert all(shape.made_up and shape.gate and shape.literals for shape in SHAPES)
