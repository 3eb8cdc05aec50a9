"""The folder name Claude Code derives from a project's root. Pure: one root has one name, on any machine.

Every UTF-16 code unit outside `A-Za-z0-9` becomes one dash: an emoji gives two, an accented letter one, runs
stay runs, nothing is normalised. A name over 200 units is cut there and gets a dash and a hash of the root.
Different roots may share a name (`/a/b-c` and `/a/b/c`), so a name never proves whom a folder belongs to.

source  Claude Code 2.1.197 and 2.1.332, read 2026-11
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

MAX_UNITS = 200

_other = re.compile(r"[^A-Za-z0-9]")
_suffix = re.compile(r"[0-9A-Za-z]+")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class KeyChoice(msgspec.Struct, frozen=True):
    """The folder of one root under one `projects/`."""

    name: str  # what to use: it is there, or nothing else is
    problem: str = ""  # why it should not be used; empty for nothing
    current: str = (
        ""  # what a version of today uses, whatever is there; differs from `name` for an older hash
    )


def project_key(root: bytes) -> str:
    """The name of a root's folder under `projects/`; ASCII, at most 208 characters.

    root  a path as the system has it. Bytes that are not UTF-8 count as U+FFFD, one for each maximal
          broken part, as Node decodes them. (The program refuses to start in such a directory)
    """
    units = _units(root)
    plain = "".join(chr(u) if _is_plain(u) else "-" for u in units)
    if len(units) <= MAX_UNITS:
        return plain
    return plain[:MAX_UNITS] + "-" + _hash(units)


def choose_key(root: bytes, names: Iterable[str]) -> KeyChoice:
    """The folder of `root` among the `names` found under one `projects/`.

    Only names over 200 units leave a choice: older versions hashed them differently, so where the exact
    folder is absent, a single `<200 units>-<hash>` is taken for it. Several are a problem, because nothing
    tells which of them is meant. Whether the one found belongs to this root is for the transcripts in it
    to say. The versions of today make the exact folder (`current`) beside an older one and look nowhere else.
    """
    exact = project_key(root)
    if len(exact) <= MAX_UNITS:
        return KeyChoice(exact, current=exact)
    prefix = exact[: MAX_UNITS + 1]
    found = {n for n in names if n.startswith(prefix) and _suffix.fullmatch(n, MAX_UNITS + 1)}
    if exact in found or not found:
        return KeyChoice(exact, current=exact)
    if len(found) == 1:
        return KeyChoice(found.pop(), current=exact)
    problem = f"{len(found)} folders share the first {MAX_UNITS} characters of the name"
    return KeyChoice(exact, problem, current=exact)


def _units(root: bytes) -> list[int]:
    data = root.decode("utf-8", "replace").encode("utf-16-le")
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


def _is_plain(unit: int) -> bool:
    return unit < 128 and _other.match(chr(unit)) is None


def _hash(units: list[int]) -> str:
    """`h * 31 + unit` in 32 signed bits over the path itself, absolute value, base 36."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    if value >= 1 << 31:
        value = (1 << 32) - value
    text = ""
    while True:
        value, digit = divmod(value, 36)
        text = _DIGITS[digit] + text
        if not value:
            return text
