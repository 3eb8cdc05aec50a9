"""JSON Lines as agents really write them: split on the byte 0x0A only, decode one record, survive damage.

A record is bad in one of a few known ways, and each has one answer:

    half surrogates (`\\ud83d` alone)    become U+FFFD, nothing is lost
    bytes that are not UTF-8             become U+FFFD, loss `encoding`
    a run of NULs, a torn record         loss `malformed`
    a record glued to a torn one         the whole one is taken, the torn one is the loss
    a known type with odd fields         loss `unknown-shape`

What is left after that is `malformed`. Nothing here raises, whatever the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES

T = TypeVar("T")

FAULTS = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What a msgspec decoder may raise on hostile bytes; catch this around a first, fast attempt."""

MAX_GLUE_ATTEMPTS = 32  # a torn record that holds more record openers than this stays lost

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: leave it
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})"  # a half
    rb"|.)",  # any other escape, so that `\\\\ud83d` is read as a backslash and text
    re.DOTALL,
)


def split(chunk: bytes) -> tuple[list[bytes], int]:
    """The whole lines of a chunk without their newlines, and how many bytes they take.

    Only 0x0A ends a record: U+2028, U+0085 and the like are text, and `\\r` is white space to JSON.
    """
    lines, at, find = [], 0, chunk.find  # `bytes.split` looks at every byte, `find` at many at once
    while (end := find(b"\n", at)) >= 0:
        lines.append(chunk[at:end])
        at = end + 1
    return lines, at


def head_lines(head: bytes, count: int) -> Iterator[bytes]:
    """The first so many lines of a chunk; what follows the last newline is one too."""
    at = 0
    for _ in range(count):
        end = head.find(b"\n", at)
        if end < 0:
            yield head[at:]
            return
        yield head[at:end]
        at = end + 1


def whole_halves(line: bytes) -> bytes:
    """The line with every escaped half of a surrogate pair replaced by an escaped U+FFFD."""
    if _HALF.search(line) is None:
        return line
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], line)


SAFE_LENGTH = MAX_EVENT_BYTES // 4
"""Characters that are within `MAX_EVENT_BYTES` whatever they are."""


def clip(text: str, limit: int = MAX_EVENT_BYTES) -> tuple[str, bool]:
    """The text within `limit` bytes of UTF-8, cut at a character, and whether it was cut."""
    if len(text) * 4 <= limit or (len(text) <= limit and text.isascii()):
        return text, False
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text, False
    return encoded[:limit].decode("utf-8", "ignore"), True


def compact(raw: msgspec.Raw | bytes, limit: int = MAX_EVENT_BYTES) -> tuple[str, bool]:
    """JSON text without white space between its parts, within `limit` bytes, and whether it was cut.

    Programs in JavaScript write it so already; the others put a space behind the first colon.
    """
    data = bytes(raw)
    colon = data.find(b":", 0, 256)
    if colon < 0 or data[colon + 1 : colon + 2] in (b" ", b"\n"):
        try:
            data = msgspec.json.format(data, indent=-1)
        except FAULTS:
            pass
    return data[:limit].decode("utf-8", "replace"), len(data) > limit


def arguments(raw: msgspec.Raw | bytes) -> str:
    """A tool call's arguments as compact JSON, also where they stand as JSON in a string.

    Such a string that is no JSON comes as it is.
    """
    given = bytes(raw)
    if given.startswith(b'"'):
        try:
            inner = msgspec.json.decode(given, type=str)
        except FAULTS:
            return compact(given)[0]
        try:
            return msgspec.json.format(inner.encode(), indent=-1).decode("utf-8", "replace")
        except FAULTS:
            return inner
    return compact(given)[0]


class _Tagged(msgspec.Struct, gc=False):
    type: str = ""


_tag = msgspec.json.Decoder(_Tagged).decode


class Recovered(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """What `recover` made of a line: the record if there is one, where in the line it begins, the loss."""

    record: T | None = None
    start: int = 0
    what: str = ""  # a loss class, empty when nothing was lost


def recover(
    line: bytes,
    decode: Callable[[bytes], T],
    is_record: Callable[[T], bool],
    openers: Sequence[bytes],
    silent: Collection[str] = (),
) -> Recovered[T]:
    """Make the best of a line that `decode` refused.

    is_record  whether a decoded object stands on its own as a record (and is not a part of a torn one)
    openers    how a record of this harness begins, to find one that was glued to a torn one
    silent     types whose records nobody misses, however odd their fields
    """
    if not line.strip():
        return Recovered()
    repaired, what = whole_halves(line), ""
    try:
        repaired.decode("utf-8")
    except UnicodeDecodeError:
        repaired, what = repaired.decode("utf-8", "replace").encode("utf-8"), "encoding"
    try:
        return Recovered(decode(repaired), 0, what)
    except msgspec.ValidationError:
        return Recovered(None, 0, "" if _type_of(repaired) in silent else "unknown-shape")
    except FAULTS:
        pass
    if not line.startswith(b"{") or len(line) > MAX_RECORD_BYTES:
        return Recovered(None, 0, "malformed")
    start = 0
    for _ in range(MAX_GLUE_ATTEMPTS):
        start = min((at for at in (line.find(opener, start + 1) for opener in openers) if at > 0), default=0)
        if not start or b"\0" in line[:start]:
            break
        glued = whole_halves(line[start:])
        try:
            record = decode(glued)
        except FAULTS:
            continue
        if is_record(record):
            return Recovered(record, start, "malformed")
    return Recovered(None, 0, "malformed")


def each(
    lines: Iterable[bytes],
    at: int,
    decode: Callable[[bytes], T],
    is_record: Callable[[T], bool],
    openers: Sequence[bytes],
    lose: Callable[[str], None],
    silent: Collection[str] = (),
) -> Iterator[tuple[T, bytes, int]]:
    """The record of each whole line, its bytes, and where it begins in the file; of `at` the first line.

    lose  is told the class of what could not be had of a line, before the record that was saved of it comes
    """
    for line in lines:
        start = at
        at += len(line) + 1
        try:
            record = decode(line)
        except FAULTS:
            found = recover(line, decode, is_record, openers, silent)
            if found.what:
                lose(found.what)
            if found.record is None:
                continue
            record, line, start = found.record, line[found.start :], start + found.start
        yield record, line, start


def _type_of(line: bytes) -> str:
    try:
        return _tag(line).type
    except FAULTS:
        return ""
