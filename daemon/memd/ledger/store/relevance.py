"""How relevant hits are: the formula of the index's own `bm25`, without reading every event with a word.

`bm25` weighs each word of a query by how many events hold it, and counts them anew for every query: also for
the words of a scope, which may be in every event, and for the only word of a query, where it changes nothing.
Here the words somebody typed are weighed, only against each other, and how common they are is remembered for
a while. Same order, same sign: lower is better.

    source  SQLite 3.54, fts5_aux.c: k1 1.2, b 0.75, the weight of a word never below 1e-6
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Final

import apsw

FUNCTION: Final = "memd_relevance"
CONTENT: Final = 0  # the column of the index
K1: Final = 1.2
B: Final = 0.75
KEPT_S: Final = 60.0
MAX_KEPT: Final = 512


class Relevance:
    """Registers `FUNCTION` with the connection; `weigh` prepares it for the next query."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._held: list[int] = []
        self._weights: list[float] = []
        self._mean = 0.0
        self._known: dict[str, tuple[float, int]] = {}
        connection.execute("create virtual table temp.event_words using fts5vocab(main, event_text, 'row')")
        connection.register_fts5_function(FUNCTION, self._relevance)

    def weigh(self, phrases: Sequence[Sequence[str]]) -> None:
        """Take the words of the next query, phrase by phrase, in the order in which it names them."""
        self._mean = 0.0
        if len(phrases) == 1:
            self._held = [0]
            return
        self._held = [min(self._held_by(word) for word in words) for words in phrases]

    def _held_by(self, word: str) -> int:
        """How many events hold a word; at most a minute old."""
        now = time.monotonic()
        known = self._known.get(word)
        if known is not None and now - known[0] < KEPT_S:
            return known[1]
        found: int = self._connection.execute("select doc from event_words where term = ?", (word,)).get or 0
        if len(self._known) >= MAX_KEPT:
            self._known.clear()
        self._known[word] = (now, found)
        return found

    def _relevance(self, api: Any, *_args: object) -> float:
        if not self._mean:
            rows = max(api.row_count, 1)
            self._mean = max(api.column_total_size() / rows, 1.0)
            odds = (max(rows - held + 0.5, 0.5) / (held + 0.5) for held in self._held)
            self._weights = [max(math.log(one), 1e-6) for one in odds]
        length = K1 * (1 - B + B * api.column_size() / self._mean)
        found = 0.0
        for phrase, weight in enumerate(self._weights):
            count = len(api.phrase_column_offsets(phrase, CONTENT))
            found += weight * count * (K1 + 1) / (count + length)
        return -found
