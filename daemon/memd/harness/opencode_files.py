"""OpenCode's storage before it had a database: one JSON file per session, message and part.

    session/<project>/<session>.json    directory, title, version, parentID, time
    message/<session>/<message>.json    what the database keeps in `message.data`
    part/<message>/<part>.json          what it keeps in `part.data`

Files are replaced as a whole. Ids are taken from the names, as OpenCode itself does when it copies the
files into its database, because earlier migrations moved sessions without changing what is inside. `gather`
gives the rows that the database would give, so both are read by one grammar and give the same events.

    source  OpenCode 1.18.33, its migration to the database read 2026-11
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from memd.harness.model import MAX_RECORD_BYTES, Session
from memd.harness.opencode_rows import text_of, word
from memd.harness.records import FAULTS, clip, whole_halves
from memd.harness.times import milliseconds, rfc3339

_ENDING = b".json"


class _Time(msgspec.Struct, gc=False):
    created: Any = None
    updated: Any = None
    completed: Any = None


class _Session(msgspec.Struct, gc=False):
    parentID: Any = None
    directory: Any = None
    title: Any = None
    version: Any = None
    time: _Time | None = None


class _Error(msgspec.Struct, gc=False):
    name: Any = None


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    time: _Time | None = None
    summary: Any = None
    error: _Error | None = None


_session = msgspec.json.Decoder(_Session).decode
_message = msgspec.json.Decoder(_Message).decode


def session_of(path: bytes, content: bytes) -> Session | None:
    """The session of a file `session/<project>/<session>.json`; None while it cannot be read."""
    found = _read_session(content)
    if found is None:
        return None
    parent = word(found.parentID)
    return Session(
        id=_stem(path),
        cwd=text_of(found.directory),
        title=clip(text_of(found.title), 512)[0],
        started=rfc3339(found.time.created) if found.time else "",
        version=word(found.version),
        is_side=bool(parent),
        parent=parent,
    )


def gather(
    source: bytes, names: Callable[[bytes], Sequence[bytes]], read: Callable[[bytes], bytes | None]
) -> Iterator[tuple[object, ...]]:
    """The rows (`memd.harness.opencode_rows.COLUMNS`) of one session, by message and part.

    source  `session/<project>/<session>.json`
    raises  nothing of its own; a session file that cannot be read gives rows that say less
    """
    about = _read_session(read(source) or b"") or _Session()
    began = about.time.created if about.time else None
    session = _stem(source)
    folder = b"message/" + source.rsplit(b"/", 1)[-1].removesuffix(_ENDING)
    heads = []
    for name in _documents(names(folder)):
        head = _read_message(read(folder + b"/" + name) or b"")
        heads.append((milliseconds(head.time.created) if head.time else 0, name, head))
    heads.sort(key=lambda head: head[:2])
    replies = [place for place, head in enumerate(heads) if head[2].role == "assistant"]
    last_reply = replies[-1] if replies else -1
    for place, (created, document, head) in enumerate(heads):
        message = _stem(document)
        start = (session, message, about.parentID, about.directory, about.title, about.version, began)
        facts = (
            head.role,
            created,
            head.time.completed if head.time else None,
            None if head.error is None else word(head.error.name) or "error",
            1 if head.summary is True else 0,
            created if place < last_reply else None,
        )
        parts = b"part/" + document.removesuffix(_ENDING)
        found = _documents(names(parts))
        if not found:
            yield (created, message, *start, *facts, 0, None, None)
        for ordinal, name in enumerate(found):
            data = read(parts + b"/" + name)
            if data != b"":
                size = len(data) if data is not None else MAX_RECORD_BYTES + 1
                yield (created, _stem(name), *start, *facts, ordinal, size, data)


def _documents(names: Sequence[bytes]) -> list[bytes]:
    """Names of whole documents; a name with a dot in front is one that is being written."""
    return sorted(name for name in names if name.endswith(_ENDING) and not name.startswith(b"."))


def _read_session(content: bytes) -> _Session | None:
    try:
        return _session(whole_halves(content))
    except FAULTS:
        return None


def _read_message(content: bytes) -> _Message:
    try:
        return _message(whole_halves(content))
    except FAULTS:
        return _Message()


def _stem(path: bytes) -> str:
    return path.rsplit(b"/", 1)[-1].removesuffix(_ENDING).decode("utf-8", "replace")
