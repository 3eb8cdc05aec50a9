"""`.ocl-removed`: topics that were removed on purpose, so no repair or carry-over brings them back. Pure.

One file name a line. Lines that are no safe names stay where they are; they are none of ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from memd.memory.shared.index import lines_of
from memd.memory.shared.slugs import is_safe

REMOVED = b".ocl-removed"


def parse(text: bytes) -> frozenset[bytes]:
    return frozenset(name for line in lines_of(text) if is_safe(name := line.strip(b" \t\r\n")))


def added(text: bytes, files: Iterable[bytes]) -> bytes:
    """The list with these names, each once."""
    known = parse(text)
    fresh = [name for name in dict.fromkeys(files) if name not in known]
    if not fresh:
        return text
    lead = b"\n" if text and not text.endswith(b"\n") else b""
    return text + lead + b"".join(name + b"\n" for name in fresh)


def cleared(text: bytes, file: bytes) -> bytes:
    """The list without a name."""
    return b"".join(line for line in lines_of(text) if line.strip(b" \t\r\n") != file)
