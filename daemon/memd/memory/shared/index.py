"""The index `MEMORY.md`: one line for a topic, everything else passed through. Pure, on bytes.

    - [Name](file.md) [pin] 2026-11-03T10:00:00+01:00 [stale?] -- summary

What stands before ` -- ` may come in any order; what stands after it is text, whatever it looks like. A line
that is changed keeps its place and its end. Lines are never dropped in silence: whoever maintains an index
gets what was taken out of it.

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Container, Iterable, Sequence

import msgspec

from memd.memory.shared.slugs import is_safe

INITIAL = b"# Memory Index\n\n"
PIN = "[pin]"
STALE = "[stale?]"
NEWER = "a newer line for its file"  # why a line was dropped

_entry = re.compile(r"(\s*-\s+)\[([^\]]+)\]\(([^)]+)\)(.*)", re.DOTALL)
_date = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})?)?")
_pin = re.compile(r" ?\[pin\]")
_epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One topic's line, taken apart."""

    name: str
    file: bytes
    is_pinned: bool = False
    date: str = ""
    is_stale: bool = False
    summary: str = ""

    @property
    def is_safe(self) -> bool:
        return is_safe(self.file)


class Dropped(msgspec.Struct, frozen=True):
    """A line that maintenance took out, and why."""

    file: bytes
    line: bytes
    reason: str


def lines_of(text: bytes) -> list[bytes]:
    """The lines with their ends; only a line feed ends one."""
    return re.findall(rb"[^\n]*\n|[^\n]+", text)


def parse_line(line: bytes) -> Entry | None:
    """The entry in a line; None when it holds none."""
    found = _entry.fullmatch(_text(line).rstrip("\r\n"))
    if found is None:
        return None
    head, _, summary = found[4].partition(" -- ")
    date = _date.search(head)
    return Entry(
        name=found[2],
        file=found[3].encode("utf-8", "surrogateescape"),
        is_pinned=PIN in head,
        date=date[0] if date else "",
        is_stale=STALE in head,
        summary=summary.strip(),
    )


def entries_of(text: bytes) -> list[Entry]:
    """All entries in order, unsafe ones too."""
    return [entry for line in lines_of(text) if (entry := parse_line(line)) is not None]


def render(entry: Entry) -> bytes:
    """The line as it is written, without its end."""
    parts = [f"- [{entry.name}]({entry.file.decode('utf-8', 'surrogateescape')})"]
    if entry.is_pinned:
        parts.append(PIN)
    if entry.date:
        parts.append(entry.date)
    if entry.is_stale:
        parts.append(STALE)
    if entry.summary:
        parts.append(f"-- {entry.summary}")
    return " ".join(parts).encode("utf-8", "surrogateescape")


def eol_of(text: bytes) -> bytes:
    """The line end that a text uses most."""
    crlf = text.count(b"\r\n")
    return b"\r\n" if crlf > text.count(b"\n") - crlf else b"\n"


def with_lines(text: bytes, lines: Iterable[bytes]) -> bytes:
    """The index with lines at its end, one line end after each; blank lines at the end do not pile up."""
    fresh = list(lines)
    if not fresh:
        return text
    eol = eol_of(text)
    base = text.rstrip(b"\r\n") if text.strip() else INITIAL.rstrip(b"\n")
    gap = eol if base.rpartition(b"\n")[2].startswith(b"#") else b""
    return base + eol + gap + eol.join(fresh) + eol


def with_entry(text: bytes, entry: Entry) -> bytes:
    """The index with this entry in the place of those for its file, else at the end."""
    out: list[bytes] = []
    is_placed = False
    for line in lines_of(text):
        old = parse_line(line)
        if old is None or old.file != entry.file:
            out.append(line)
        elif not is_placed:
            out.append(_lead(line) + render(entry) + _end(line))
            is_placed = True
    joined = b"".join(out)
    return joined if is_placed else with_lines(joined, [render(entry)])


def with_file(line: bytes, file: bytes) -> bytes:
    """An entry's line, without its end, with another file in its link; all else as it stands."""
    text = _text(line).rstrip("\r\n")
    found = _entry.fullmatch(text)
    assert found is not None
    fresh = file.decode("utf-8", "surrogateescape")
    return f"{text[: found.start(3)]}{fresh}{text[found.end(3) :]}".lstrip().encode(
        "utf-8", "surrogateescape"
    )


def without(text: bytes, file: bytes) -> tuple[bytes, list[bytes]]:
    """The index without the lines for a file, and these lines."""
    out: list[bytes] = []
    gone: list[bytes] = []
    for line in lines_of(text):
        entry = parse_line(line)
        (gone if entry is not None and entry.file == file else out).append(line)
    return b"".join(out), gone


def with_pin(text: bytes, file: bytes, is_pinned: bool) -> bytes:
    """The index with the pin of a file's lines set or taken off; nothing else in them changes."""
    out = []
    for line in lines_of(text):
        entry = parse_line(line)
        if entry is not None and entry.file == file and entry.is_pinned != is_pinned:
            line = _pinned(line) if is_pinned else _unpinned(line)
        out.append(line)
    return b"".join(out)


def maintained(
    text: bytes, *, now_ms: int, stale_after_days: float, gone: Container[bytes] = ()
) -> tuple[bytes, list[Dropped]]:
    """The index put in order, and the lines that were taken out of it.

    Of several lines for one file the newest stays, in the place of the first, pinned if one of them was.
    Unsafe lines go, and those of files in `gone`, which are known to be missing for good. What is older than
    `stale_after_days` and not pinned is marked; a mark goes only when the topic is written again.
    """
    lines = lines_of(text)
    parsed = [parse_line(line) for line in lines]
    groups: dict[bytes, list[int]] = {}
    for at, entry in enumerate(parsed):
        if entry is not None:
            groups.setdefault(entry.file, []).append(at)
    out: dict[int, bytes] = dict(enumerate(lines))
    dropped: list[Dropped] = []
    for file, places in groups.items():
        reason = "it names no safe file" if not is_safe(file) else "its file is gone" if file in gone else ""
        if reason:
            dropped += [Dropped(file, out.pop(at), reason) for at in places]
            continue
        best = _newest(parsed, places)
        kept = lines[best]
        if len(places) > 1:
            dropped += [Dropped(file, lines[at], NEWER) for at in places if at != best]
            kept = kept.rstrip(b"\r\n") + (_end(lines[places[0]]) or eol_of(text))
            is_pinned = any(entry.is_pinned for at in places if (entry := parsed[at]) is not None)
            entry = parsed[best]
            if is_pinned and entry is not None and not entry.is_pinned:
                kept = _pinned(kept)
            for at in places[1:]:
                del out[at]
        out[places[0]] = _marked(kept, now_ms, stale_after_days)
    return b"".join(out[at] for at in sorted(out)), dropped


def _newest(parsed: Sequence[Entry | None], places: Sequence[int]) -> int:
    """The place of the newest of these entries; on a tie, of the first."""

    def key(at: int) -> tuple[int, int]:
        entry = parsed[at]
        instant = instant_ms(entry.date) if entry is not None else None
        return (instant if instant is not None else -(1 << 62), -at)

    return max(places, key=key)


def _marked(line: bytes, now_ms: int, stale_after_days: float) -> bytes:
    entry = parse_line(line)
    if entry is None or entry.is_pinned or entry.is_stale or stale_after_days <= 0:
        return line
    if not is_old(entry.date, now_ms, stale_after_days):
        return line
    head, sep, tail = _text(line).partition(" -- ")
    found = _date.search(head, head.index("](") + len(_text(entry.file)))
    if found is None:
        return line
    head = f"{head[: found.end()]} {STALE}{head[found.end() :]}"
    return (head + sep + tail).encode("utf-8", "surrogateescape")


def is_old(date: str, now_ms: int, stale_after_days: float) -> bool:
    instant = instant_ms(date)
    return instant is not None and now_ms - instant > stale_after_days * 86_400_000


def instant_ms(date: str) -> int | None:
    """The instant that a date of the index means; one without a zone counts as UTC. None: it means none."""
    try:
        moment = datetime.datetime.fromisoformat(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - _epoch) // datetime.timedelta(milliseconds=1)


def first_date(text: str) -> str:
    """The first date in a text that is one; empty when there is none."""
    return next((m[0] for m in _date.finditer(text) if instant_ms(m[0]) is not None), "")


def _pinned(line: bytes) -> bytes:
    """A line with the pin put behind its link."""
    text = _text(line)
    found = _entry.match(text)
    assert found is not None
    at = found.end(3) + 1
    return (f"{text[:at]} {PIN}{text[at:]}").encode("utf-8", "surrogateescape")


def _unpinned(line: bytes) -> bytes:
    text = _text(line)
    found = _entry.match(text)
    assert found is not None
    at = found.end(3) + 1
    head, sep, tail = text[at:].partition(" -- ")
    return (text[:at] + _pin.sub("", head) + sep + tail).encode("utf-8", "surrogateescape")


def _lead(line: bytes) -> bytes:
    """The indentation of a line."""
    return line[: len(line) - len(line.lstrip(b" \t"))]


def _end(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")
