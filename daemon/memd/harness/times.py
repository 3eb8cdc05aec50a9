"""When something happened, from the numbers that harnesses write: seconds or milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this is the year 5138, as milliseconds March 1973
_LAST_MS = 253_402_300_799_999  # the end of the year 9999


def milliseconds(number: object) -> int:
    """A time in either unit as milliseconds since 1970; 0 for anything that is no time."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return 0
    if not 0 < number <= _LAST_MS:  # also false for NaN
        return 0
    return int(number if number >= _MILLISECONDS_FROM else number * 1000)


def rfc3339(number: object) -> str:
    """A time in either unit as RFC 3339 in UTC with milliseconds; empty for anything that is no time."""
    ms = milliseconds(number)
    if not ms:
        return ""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
