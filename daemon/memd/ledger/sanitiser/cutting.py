"""Cutting a text to a number of bytes. Scrub first, cut second: a cut secret no longer looks like one."""

from __future__ import annotations

LIMIT_BYTES = 64 << 10  # of text in one event, in row and segment alike
ELLIPSIS = "…"
_ELLIPSIS_BYTES = len(ELLIPSIS.encode())
_MARKER = b"[REDACTED"
_MARKER_BYTES = 64  # longer than any replacement


def cut(text: str, limit_bytes: int = LIMIT_BYTES) -> str:
    """`text`, or as much of its beginning as fits with an ellipsis.

    limit_bytes  of the result in UTF-8, the ellipsis included; a lone surrogate counts three
    returns      whole characters and whole replacements: one that the cut would split goes with the rest.
                 Cutting twice changes nothing more
    """
    length = len(text)
    if length * 4 <= limit_bytes or (length <= limit_bytes and text.isascii()):
        return text  # as most texts are: no need to encode
    # no character takes less than one byte: what lies beyond the limit need not be encoded
    raw = text[: limit_bytes + _MARKER_BYTES].encode("utf-8", "surrogatepass")
    if len(raw) <= limit_bytes:
        return text
    end = limit_bytes - _ELLIPSIS_BYTES
    if end < 0:
        return ""
    while end and raw[end] & 0xC0 == 0x80:  # in the middle of a character
        end -= 1
    marker = raw.rfind(_MARKER, max(0, end - _MARKER_BYTES), end + len(_MARKER))
    if 0 <= marker < end and raw.find(b"]", marker, marker + _MARKER_BYTES) >= end:
        end = marker
    return raw[:end].decode("utf-8", "surrogatepass") + ELLIPSIS
