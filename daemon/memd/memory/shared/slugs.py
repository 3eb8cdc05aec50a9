"""Names of topics and of their files: what may be one, and what is made of which. Pure.

A topic's name is any text in one line without brackets. Its file is named after it: lower case, letters and
digits of any script, hyphens for spaces. For a name in ASCII that is what the other tools of the folder make
of it. A name of nothing but signs (no letter, no digit) has no file name; one with pictures gets a digest.

    entry's file   non-empty, ends in `.md`, is not the index in any case, does not begin with a dot, holds no
                   `/`, `\\`, `..`, brackets, control characters, and is UTF-8. Anything else is *unsafe*: it
                   is never opened, listed or copied, since the other tools refuse it as well

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

INDEX = b"MEMORY.md"
EXTENSION = b".md"
RESERVED = "last-session-recap"  # openpi takes this topic's line away at every start
PREFIX = "memd-"

MAX_NAME_CHARS = 200
MAX_SUMMARY_CHARS = 500
MAX_STEM_BYTES = 180  # leaves room for a suffix, a number and a temporary name's own letters
MAX_FILE_BYTES = 250

_links = re.compile(r"[\[\]()]")
_spaces = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str, limit: int) -> str:
    """A text in one line, without what could make an index entry of it, at most `limit` characters."""
    clean = _spaces.sub(" ", _links.sub(" ", _printable(text))).strip()
    return clean[:limit].rstrip()


def _printable(text: str) -> str:
    """Without half characters and without signs that turn the direction of writing."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Cs", "Cf") or c in "\u200c\u200d")


def topic_name(text: str) -> str:
    """The name a topic gets; empty when nothing is left of it. A long one ends in a digest of the whole."""
    clean = one_line(text, len(text) + 1)
    if len(clean) <= MAX_NAME_CHARS:
        return clean
    return f"{clean[: MAX_NAME_CHARS - 10].rstrip()} ~{_digest(clean)}"


def summary_of(text: str) -> str:
    return one_line(text, MAX_SUMMARY_CHARS)


def comparable(name: str) -> str:
    """The same for two names that mean one topic."""
    return unicodedata.normalize("NFC", " ".join(name.split())).casefold()


def stem_of(name: str) -> str:
    """The file name, without its extension, that a topic's name leads to; empty when it leads to none."""
    lowered = unicodedata.normalize("NFC", name).lower()
    kept = "".join(c for c in lowered if c in " -" or unicodedata.category(c)[0] in "LNM")
    stem = re.sub(r"-+", "-", re.sub(r"\s+", "-", kept.strip())).strip("-")
    if not stem and any(unicodedata.category(c) == "So" or ord(c) > 0xFFFF for c in name):
        stem = f"topic-{_digest(name)}"
    if stem == RESERVED:
        stem = PREFIX + stem
    encoded = stem.encode("utf-8", "surrogatepass")
    if len(encoded) > MAX_STEM_BYTES:
        cut = encoded[: MAX_STEM_BYTES - 9].decode("utf-8", "ignore").rstrip("-")
        stem = f"{cut}-{_digest(name)}"
    return stem


def file_of(stem: str, number: int = 1) -> bytes:
    """`stem.md`, `stem-2.md`, `stem-3.md`, ..."""
    return (stem if number == 1 else f"{stem}-{number}").encode("utf-8") + EXTENSION


def is_safe(file: bytes) -> bool:
    """Whether an index may name this file; see above."""
    try:
        text = file.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return (
        len(file) <= MAX_FILE_BYTES + len(EXTENSION)
        and text.endswith(".md")
        and not text.startswith(".")
        and text.casefold() != "memory.md"
        and ".." not in text
        and not any(c in "/\\[]()" or unicodedata.category(c) in ("Cc", "Cs") for c in text)
    )


def folded(file: bytes) -> str:
    """The same for two file names that a disk may take for one."""
    return unicodedata.normalize("NFC", file.decode("utf-8", "surrogateescape")).casefold()


def suffixed(file: bytes, suffix: bytes, number: int = 1) -> bytes:
    """`a.md` with the suffix `-memd`: `a-memd.md`, then `a-memd-2.md`, ..."""
    stem = file.removesuffix(EXTENSION)
    tail = suffix if number == 1 else b"%b-%d" % (suffix, number)
    room = MAX_FILE_BYTES - len(tail)
    if len(stem) > room:
        stem = stem[:room].decode("utf-8", "ignore").encode("utf-8")
    return stem + tail + EXTENSION


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
