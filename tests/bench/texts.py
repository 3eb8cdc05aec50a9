"""Invented texts of agents' sessions: Zipf words, long tails of tool output. Same seed, same bytes."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

VOCABULARY = 50_000
SESSION_EVENTS = 120
MAX_CHARACTERS = 32_000
_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "ji",
    "ke",
    "lo",
    "mu",
    "na",
    "pe",
    "qui",
    "ro",
    "tion",
    "ment",
)
_KINDS = (("message", "user", 0.12), ("message", "assistant", 0.2), ("tool_call", "assistant", 0.34))


class Said(NamedTuple):
    """One event before it has an id."""

    session: int
    at: int
    kind: str
    role: str
    occurred_at: str
    text: str


class Words:
    """Words by how common they are: `words[0]` is the most common one."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        made: dict[str, None] = {}
        for number in itertools.count():
            if len(made) >= VOCABULARY:
                break
            parts = self._random.choices(_SYLLABLES, k=1 + number % 5)
            if number % 7 == 6:
                made["".join(parts) + "_" + "".join(parts[::-1])] = None
            else:
                made["".join(parts) + (str(number % 1000) if number % 9 == 8 else "")] = None
        self.words = list(made)[:VOCABULARY]
        weights = itertools.accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY))
        self._cumulative = list(weights)

    def text(self, size: int) -> str:
        """Words of about that many characters together, a line break now and then."""
        total = self._cumulative[-1]
        parts: list[str] = []
        length = 0
        while length < size:
            word = self.words[bisect.bisect(self._cumulative, self._random.random() * total)]
            parts.append(word + (".\n" if self._random.random() < 0.06 else " "))
            length += len(word) + 1
        return "".join(parts)

    def size(self, median: int) -> int:
        return min(MAX_CHARACTERS, max(8, int(self._random.lognormvariate(0, 1.1) * median)))


def conversation(count: int, *, median: int = 450, seed: int = 1) -> Iterator[Said]:
    """So many events, session by session, over two years."""
    words = Words(seed)
    chance = random.Random(seed)
    for number in range(count):
        draw = chance.random()
        kind, role = next(((k, r) for k, r, share in _KINDS if draw < share), ("tool_result", "tool"))
        day = number * 700 // max(count, 1)
        yield Said(
            number // SESSION_EVENTS,
            number % SESSION_EVENTS * 1000,
            kind,
            role,
            f"{2024 + day // 350}-{1 + day % 350 // 30:02d}-{1 + day % 28:02d}T{number % 24:02d}:00:00.000Z",
            words.text(words.size(median if kind == "tool_result" else median // 3)),
        )
