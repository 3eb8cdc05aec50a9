"""Made-up secrets, built at run time from the recipes in the sanitiser's table, and ways to write them down.

No value of the form of a real key stands in any file: scanners of hosting sites would report it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import apsw
import zstandard

_LETTERS = string.ascii_letters
_CLASSES: dict[str, str] = {
    "alnum": _LETTERS + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "word": _LETTERS + string.digits + "_-",
    "b64": _LETTERS + string.digits + "+/",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_NOUNS = ("orbit", "velvet", "lemon", "copper", "winter", "garden", "puzzle", "anchor", "silver", "marble")
_PIECE = re.compile(r"\{([a-z0-9]+):([0-9]+)\}")


@dataclass(frozen=True, slots=True)
class MadeUp:
    """One value and the random parts of it, of which none may survive."""

    text: str
    parts: tuple[str, ...]

    def longest(self) -> str:
        return max(self.parts, key=len)


def _piece(kind: str, count: int, rng: random.Random) -> str:
    if kind == "uuid":
        digits = "".join(rng.choices("0123456789abcdef", k=32))
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if kind == "login":
        return base64.b64encode(f"robot:{_piece('alnum', count, rng)}".encode()).decode()
    if kind == "words":
        return " ".join(rng.choices(_NOUNS, k=count))
    # the ends are letters or digits, as they are in nearly every key
    ends = [c for c in _CLASSES[kind] if c.isalnum()]
    middle = rng.choices(_CLASSES[kind], k=max(0, count - 2))
    return "".join([rng.choice(ends), *middle, rng.choice(ends)][:count])


def make_up(recipe: str, rng: random.Random) -> MadeUp:
    """A value of a recipe: text with `{class:count}` pieces."""
    parts: list[str] = []

    def expanded(match: re.Match[str]) -> str:
        parts.append(_piece(match[1], int(match[2]), rng))
        return parts[-1]

    return MadeUp(_PIECE.sub(expanded, recipe), tuple(parts))


def _slashes(text: str) -> str:
    return json.dumps(text).replace("/", "\\/")


def _all_escaped(text: str) -> str:
    return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'


WAYS: dict[str, Callable[[str], str]] = {
    "text": lambda s: f"I ran it with {s} and it worked, see above.",
    "lines": lambda s: f"first line\n{s}\nlast line\n",
    "json": lambda s: json.dumps({"role": "tool", "content": f"ran {s}\nok"}),
    "json in json": lambda s: json.dumps({"content": json.dumps({"inner": s})}),
    "json with slashes": _slashes,
    "json all escaped": _all_escaped,
    "url": lambda s: f"https://example.com/go?next={quote(s, safe='', errors='replace')}&page=2",
    "environment": lambda s: f"PATH=/usr/bin:/bin\nSETTING={s}\nexport LANG=C\n",
    "quoted environment": lambda s: f'SETTING="{s}"\n',
    "yaml": lambda s: f"settings:\n  value: {s}\n  other: true\n",
    "diff": lambda s: f"-old\n+{s}\n context\n",
    "colour": lambda s: f"\x1b[32m{s}\x1b[0m\n",
    "json of colour": lambda s: json.dumps({"output": f"\x1b[2K\x1b[1;32m{s}\x1b[0m\n"}),
    "json of a diff": lambda s: json.dumps({"command": f"-old\n+{s}\n context\n"}),
}


# -------------------------------------------------------------------------------- looking for what is left

SHORT = 8  # signs that a piece has at least
_RUN = re.compile(rb"[A-Za-z0-9+/=_.-]{8,}")
_ESCAPED = re.compile(rb"\\+u00([0-9a-fA-F]{2})")


class Hunt:
    """Looks for what is left of made-up secrets: half of the longest random part of one, at any place."""

    def __init__(self, secrets: Iterable[MadeUp]) -> None:
        self._places: dict[bytes, list[tuple[bytes, int]]] = {}
        self._phrases: list[bytes] = []
        for part in {secret.longest().encode() for secret in secrets}:
            if _RUN.fullmatch(part) is None:
                self._phrases.append(part)
                continue
            for at in range(len(part) - SHORT + 1):
                self._places.setdefault(part[at : at + SHORT], []).append((part, at))

    def left(self, data: bytes) -> list[str]:
        """A piece of each secret that can be read in these bytes, as they are, decoded or without escapes."""
        plain = _ESCAPED.sub(lambda escape: bytes((int(escape[1], 16),)), data)
        views = {data, plain, plain.replace(b"\\", b""), unquote_to_bytes(plain)}
        runs = {run for view in views for run in _RUN.findall(view)}
        found = {part: piece for run in runs for part, piece in self._left(run)}
        for phrase in self._phrases:
            half = max(SHORT, len(phrase) // 2)
            pieces = [phrase[at : at + half] for at in range(0, len(phrase) - half + 1, 4)]
            found.update((phrase, piece) for piece in pieces if any(piece in view for view in views))
        return sorted(piece.decode() for piece in found.values())

    def _left(self, run: bytes) -> Iterator[tuple[bytes, bytes]]:
        for at in range(len(run) - SHORT + 1):
            for part, offset in self._places.get(run[at : at + SHORT], ()):
                end = SHORT
                while (more := part[offset + end : offset + end + 1]) and run[
                    at + end : at + end + 1
                ] == more:
                    end += 1
                if end >= max(SHORT, len(part) // 2):
                    yield part, part[offset : offset + end]


def kept_bytes(*folders: Path) -> bytes:
    """Every byte of every file below these folders, with what is in compressed files."""
    kept = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                kept.append(os.fsencode(path) + b"\n" + data)
                if path.suffix == ".zst":
                    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                        kept.append(reader.read())
    return b"\n".join(kept)


def indexed_terms(database: Path) -> set[str]:
    """Every term of the full-text index."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.execute("create virtual table temp.terms using fts5vocab('main', 'event_text', 'row')")
        return {str(row[0]) for row in connection.execute("select term from temp.terms")}
    finally:
        connection.close()
