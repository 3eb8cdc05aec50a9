"""Cutting: whole characters, whole replacements, never over the limit, and only after scrubbing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.ledger.sanitiser import LIMIT_BYTES, Sanitiser, cut
from support_secrets import MadeUp


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200), st.integers(0, 300))
def test_a_cut_text_fits_and_begins_like_the_whole(text: str, limit: int) -> None:
    shortened = cut(text, limit)
    assert size(shortened) <= limit
    if size(text) <= limit:
        assert shortened == text
    else:
        assert shortened == "" or (shortened.endswith("…") and text.startswith(shortened[:-1]))
        assert cut(shortened, limit) == shortened


def test_the_default_is_the_ledgers_cap() -> None:
    assert LIMIT_BYTES == 65536
    assert cut("a" * 65536) == "a" * 65536
    assert cut("a" * 65537) == "a" * 65533 + "…"
    assert size(cut("ü" * 40000)) <= 65536


@pytest.mark.parametrize("character", ["é", "密", "\U0001f511", "\ud800"])
def test_no_character_is_cut_in_two(character: str) -> None:
    for limit in range(3, 40):
        assert set(cut(character * 30, limit)) <= {character, "…"}


def test_a_replacement_is_kept_whole_or_not_at_all() -> None:
    text = "before [REDACTED:github_token] after and more"
    for limit in range(3, size(text)):
        shortened = cut(text, limit)
        assert ("[REDACTED:github_token]" in shortened) or ("[" not in shortened), shortened


def test_a_bracket_that_is_no_replacement_is_cut_like_any_text() -> None:
    assert cut("[REDACTED" + "x" * 100, 40) == "[REDACTED" + "x" * 28 + "…"


def test_a_secret_across_the_limit_is_found_when_scrubbing_comes_first() -> None:
    secret = MadeUp("gh" + "p_" + "aZ3" * 12, ("aZ3" * 12,))
    text = "x" * (LIMIT_BYTES - 20) + " " + secret.text + " tail"
    kept = cut(Sanitiser().scrub(text))
    assert size(kept) <= LIMIT_BYTES
    assert "aZ3" not in kept
