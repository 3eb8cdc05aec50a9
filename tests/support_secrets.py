"""Made-up secrets, built at run time from the recipes in the sanitiser's table, and ways to write them down.

No value of the form of a real key stands in any file: scanners of hosting sites would report it.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

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
    "url": lambda s: f"https://example.com/go?next={quote(s, safe='')}&page=2",
    "environment": lambda s: f"PATH=/usr/bin:/bin\nSETTING={s}\nexport LANG=C\n",
    "quoted environment": lambda s: f'SETTING="{s}"\n',
    "yaml": lambda s: f"settings:\n  value: {s}\n  other: true\n",
    "diff": lambda s: f"-old\n+{s}\n context\n",
    "colour": lambda s: f"\x1b[32m{s}\x1b[0m\n",
}
