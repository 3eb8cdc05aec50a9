"""Searching: literal words, scope, ranking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.ledger import search
from memd.ledger.store.interface import Filter
from support_ledger import Ledger, entry

CASE = Path(__file__).parents[1] / "cases" / "32-search-literal-text"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        yield made


def found(ledger: Ledger, query: str, limit: int = 20, **where: str) -> list[str]:
    return [hit.content for hit in ledger.reader.search(query, Filter(**where), limit)]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_parsing_any_text_gives_bounded_terms(query: str) -> None:
    terms = search.parse(query)
    assert len(terms) <= search.MAX_TERMS
    for term in terms:
        assert any(character.isalnum() for character in term.text)
        term.text.encode("utf-8")


def test_relevance_is_that_of_the_index_and_the_same_in_a_scope(ledger: Ledger) -> None:
    texts = [("lock " * (1 + n % 5) + "free " * (n % 3) + f"filler{n} " * (n % 7)).strip() for n in range(40)]
    ledger.put(*(entry(f"{text} {n}", at=n) for n, text in enumerate(texts)))
    connection = apsw.Connection(str(ledger.root / "ledger.sqlite3"))
    for query, expression in (
        ("lock", '"lock"'),
        ("lock free", '"lock" "free"'),
        ('"lock free"', '"lock free"'),
    ):
        best = connection.execute(
            "select events.content from event_text join events on n = event_text.rowid"
            " where event_text match ? order by bm25(event_text, 1.0, 0.0), n desc",
            (f"content : ({expression})",),
        )
        plain = [content for (content,) in best]
        assert len(plain) > 5
        assert found(ledger, query, limit=50) == plain, query
        assert found(ledger, query, limit=50, harness="claude") == plain, query
        assert found(ledger, query, limit=50, cwd="/home/dev/proj", role="user") == plain, query
    connection.close()
