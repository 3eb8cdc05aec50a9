"""Search in topics: every word must be in the name, the summary or the text, in any case. Pure."""

from __future__ import annotations

import msgspec

MAX_LINES = 3
MAX_LINE_CHARS = 200


class Match(msgspec.Struct, frozen=True, kw_only=True):
    score: int  # the greater, the better
    lines: tuple[str, ...]


def match(words: str, name: str, summary: str, body: str) -> Match | None:
    """How a topic fits; None when a word is nowhere in it, or there are no words."""
    wanted = list(dict.fromkeys(words.casefold().split()))
    title, about, text = name.casefold(), summary.casefold(), body.casefold()
    if not wanted or not all(word in title or word in about or word in text for word in wanted):
        return None
    score = sum(100 * (w in title) + 10 * (w in about) + min(text.count(w), 9) for w in wanted)
    fitting = [line.strip() for line in body.splitlines() if any(w in line.casefold() for w in wanted)]
    fitting.sort(key=lambda line: -sum(w in line.casefold() for w in wanted))
    return Match(score=score, lines=tuple(_short(line, wanted) for line in fitting[:MAX_LINES]))


def _short(line: str, wanted: list[str]) -> str:
    """A line cut round the first word that was looked for."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    at = min((p for w in wanted if (p := line.casefold().find(w)) >= 0), default=0)
    start = max(0, min(at - MAX_LINE_CHARS // 3, len(line) - MAX_LINE_CHARS))
    cut = line[start : start + MAX_LINE_CHARS]
    return ("…" if start else "") + cut + ("…" if start + MAX_LINE_CHARS < len(line) else "")
