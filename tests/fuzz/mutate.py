"""Changes that keep the form of JSON Lines, so that what lies behind a decoder is reached too.

libFuzzer changes bytes and hardly ever leaves a JSON text whole. Most of the changes are therefore made here:
a value in a record exchanged for another of the same file or for an odd one, a member renamed, added or taken
out, a line moved, torn or glued to the next.
"""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1 << 31,
    1 << 63,
    (1 << 64) + 1,
    -(1 << 70),
    0.5,
    -0.0,
    1e308,
    "",
    " ",
    "\0",
    "x" * 5000,
    "\ud83d",
    "\u2028",
    "é" * 50,
    "../../etc/passwd",
    "/",
    "[REDACTED:token]",
    "<!-- memd:workstream-packet:v1 -->",
    "</memd-workstream-history>",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999+23:59",
    "NaN",
    [],
    {},
    [[]],
    [{}],
    {"type": "text"},
    [{"type": "text", "text": "x"}],
    [None],
    {"": ""},
)
MAX_DEPTH = 40


def twist(data: bytes, rng: random.Random, limit: int, other: bytes = b"") -> bytes:
    """The bytes with one change, at most `limit` of them. `other` lends lines."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    change = rng.choice((_record, _record, _record, _move, _double, _drop, _tear, _glue, _blank))
    if other and rng.random() < 0.15:
        lines.insert(at, rng.choice(other.split(b"\n")))
    else:
        change(lines, at, rng)
    return b"\n".join(lines)[:limit]


def _record(lines: list[bytes], at: int, rng: random.Random) -> None:
    try:
        found = json.loads(lines[at])
        lines[at] = json.dumps(_changed(found, found, rng, 0), ensure_ascii=rng.random() < 0.8).encode(
            "utf-8", "surrogatepass"
        )
    except (ValueError, RecursionError):
        _bytes(lines, at, rng)


def _changed(value: Any, whole: Any, rng: random.Random, depth: int) -> Any:
    if depth < MAX_DEPTH and isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        match rng.randrange(8):
            case 0:
                return {name: inner for name, inner in value.items() if name != key}
            case 1:
                return {(_name(whole, rng) if name == key else name): inner for name, inner in value.items()}
            case 2:
                return {**value, _name(whole, rng): _other(whole, rng)}
            case _:
                return {**value, key: _changed(value[key], whole, rng, depth + 1)}
    if depth < MAX_DEPTH and isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        match rng.randrange(6):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return value[: place + 1] + value[place:]
            case _:
                return [*value[:place], _changed(value[place], whole, rng, depth + 1), *value[place + 1 :]]
    if isinstance(value, str) and rng.random() < 0.4:
        place = rng.randrange(len(value) + 1)
        odd = rng.choice([one for one in ODD if isinstance(one, str)])
        return value[:place] + odd + value[place:]
    return _other(whole, rng)


def _other(whole: Any, rng: random.Random) -> Any:
    return rng.choice(ODD) if rng.random() < 0.6 else rng.choice(_values(whole))


def _name(whole: Any, rng: random.Random) -> str:
    names = [name for value in _values(whole) if isinstance(value, dict) for name in value]
    return rng.choice(names or ["type"])


def _values(whole: Any) -> list[Any]:
    found, left = [], [whole]
    while left and len(found) < 300:
        value = left.pop()
        found.append(value)
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return found


def _bytes(lines: list[bytes], at: int, rng: random.Random) -> None:
    line = lines[at]
    start = rng.randrange(len(line) + 1)
    end = min(len(line), start + rng.choice((0, 0, 1, 2, 9)))
    put = rng.choice(
        (
            b"",
            b"\0",
            b"\xff",
            b"\r",
            b'"',
            b"\\",
            b"{",
            b"]",
            b"\xed\xa0\xbd",
            b"\xef\xbb\xbf",
            rng.randbytes(3),
        )
    )
    lines[at] = line[:start] + put + line[end:]


def _move(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines)), lines.pop(at))


def _double(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines) + 1), lines[at])


def _drop(lines: list[bytes], at: int, rng: random.Random) -> None:
    if len(lines) > 1:
        del lines[at]


def _tear(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]


def _glue(lines: list[bytes], at: int, rng: random.Random) -> None:
    if at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + lines[at + 1]]


def _blank(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines.insert(at, rng.choice((b"", b" ", b"\0" * 9, b"\xef\xbb\xbf", b"{}", b"[]", b"null", b"\r")))
