"""Adapters: their record grammars, row grammars, what they make of paths, of hooks and of documents."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fuzz.model import MAX_SEED_BYTES, Target, choice
from memd.errors import BadRequest
from memd.harness import registry
from memd.harness.losses import CLASSES
from memd.harness.model import (
    MAX_EVENT_BYTES,
    MAX_STATE_BYTES,
    METADATA_KEYS,
    Adapter,
    Environment,
    Parsed,
    Session,
    Store,
    event_id,
)
from memd.service import hook_calls, spool
from support_adapters import captured, opened, piecewise, shown

TYPES = {"is_error": bool, "exit_code": int, "loss_count": int}
MEMORY = Session(id="0b7c3d1e-0000-4000-8000-000000000001", cwd="/home/dev/demo")


def bounded(name: str, parsed: Parsed) -> None:
    """What every answer of an adapter holds."""
    assert len(parsed.state) <= MAX_STATE_BYTES
    places = [event.at for event in parsed.events]
    assert places == sorted(places)
    for event in parsed.events:
        assert event.origin
        assert 0 <= event.at < 1 << 63
        assert len(event.content.encode("utf-8")) <= MAX_EVENT_BYTES
        event.session.encode("utf-8")
        event.occurred_at.encode("utf-8")
        event.record.encode("utf-8")
        event.role.encode("utf-8")
        assert event_id(name, event).startswith("native:")
        assert set(event.metadata) <= METADATA_KEYS
        for key, value in event.metadata.items():
            assert type(value) is TYPES.get(key, str)
            if isinstance(value, str):
                assert len(value.encode("utf-8")) <= 512
            elif not isinstance(value, bool):
                assert -(1 << 31) <= value < 1 << 32
    for loss in parsed.losses:
        assert CLASSES[loss.what] == loss.sentence
        assert loss.count > 0
        loss.session.encode("utf-8")
    for session in parsed.sessions:
        for text in (
            session.id,
            session.cwd,
            session.title,
            session.started,
            session.version,
            session.parent,
        ):
            text.encode("utf-8")


# ------------------------------------------------------------------------------------- record grammars


def _flavors(adapter: Adapter) -> list[str]:
    return sorted({store.flavor for store in _stores(adapter) if not store.database and not store.documents})


def _stores(adapter: Adapter) -> Sequence[Store]:
    return adapter.stores(Environment(home=b"/home/dev"))


def _parse(adapter: Adapter, flavor: str, data: bytes) -> None:
    """Whole, in pieces, and again: bounded, and the same each time."""
    assert adapter.parse is not None
    begun = adapter.begin(MEMORY, flavor)
    whole = adapter.parse(data, 0, begun)
    assert whole.consumed == data.rfind(b"\n") + 1
    bounded(adapter.name, whole)
    assert adapter.parse(data, 0, begun) == whole
    cuts = sorted(choice(data + bytes((n,)), len(data) + 1) for n in range(3))
    pieces = piecewise(adapter, data, cuts, begun)
    for piece in pieces:
        bounded(adapter.name, piece)
    assert shown(pieces) == shown([whole])


def _parse_state(adapter: Adapter, data: bytes) -> None:
    """A state that no adapter made: what is remembered may be of another version."""
    assert adapter.parse is not None
    length = int.from_bytes(data[:2], "big")
    state, chunk = data[2 : 2 + length], data[2 + length :]
    parsed = adapter.parse(chunk, choice(data, 1 << 40), state)
    assert parsed.consumed == chunk.rfind(b"\n") + 1
    assert len(parsed.state) <= MAX_STATE_BYTES
    assert adapter.parse(chunk, choice(data, 1 << 40), state) == parsed


def _identify(adapter: Adapter, data: bytes) -> None:
    path, _, head = data.partition(b"\n")
    for flavor in {store.flavor for store in _stores(adapter)} or {""}:
        session = adapter.identify(path, head, flavor)
        assert session is None or isinstance(session, Session)
        if session is not None:
            assert len(adapter.begin(session, flavor)) <= MAX_STATE_BYTES
            for text in (session.id, session.cwd, session.title, session.started, session.version):
                text.encode("utf-8")
    for answer in (adapter.beside(path), adapter.instead(path), adapter.kin(path)):
        assert isinstance(answer, bytes)


def _windows(data: bytes) -> Iterator[bytes]:
    """Pieces of a source that are short enough, each of whole lines."""
    at = 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + MAX_SEED_BYTES) + 1
        if end <= at:
            end = data.find(b"\n", at) + 1 or len(data)
        if end - at <= MAX_SEED_BYTES:
            yield data[at:end]
        at = end


@functools.cache
def _sources(name: str) -> tuple[tuple[str, bytes, bytes], ...]:
    """Flavor, path and content of the captured sources."""
    return tuple((store.flavor, path, data) for _s, store, path, data in captured(name))


def _seeds(name: str, flavor: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [
        piece for found, _path, data in _sources(name) if found == flavor for piece in _windows(data)
    ]


def _state_seeds(name: str, flavors: Sequence[str]) -> Callable[[], Iterable[bytes]]:
    def made() -> Iterator[bytes]:
        adapter = registry.resolve(name)
        assert adapter.parse is not None
        for scenario, store, path, data in captured(name):
            if store.flavor not in flavors or not scenario:
                continue
            at, state = 0, adapter.begin(opened(adapter, store, path, data), store.flavor)
            for piece in _windows(data):
                yield len(state[:65535]).to_bytes(2, "big") + state[:65535] + piece
                state = adapter.parse(piece, at, state).state
                at += len(piece)

    return made


def _identify_seeds(name: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [
        *(path + b"\n" + next(_windows(data), b"") for _flavor, path, data in _sources(name)),
        b"a/b.jsonl\n{}",
    ]


# ---------------------------------------------------------------------------------------- row grammars


def _rows(adapter: Adapter, data: bytes) -> None:
    """Lines of `[query, [values]]`; a text after `b64:` stands for bytes."""
    assert adapter.parse_rows is not None
    state, names = b"", [query.name for query in adapter.queries]
    taken: list[tuple[str, list[tuple[object, ...]]]] = []
    for line in data.split(b"\n")[:200]:
        try:
            number, values = json.loads(line)
            taken.append((names[int(number) % len(names)], [tuple(_value(value) for value in values)]))
        except (ValueError, TypeError, OverflowError, RecursionError):
            continue
    for name, rows in taken:
        parsed = adapter.parse_rows(name, rows, state)
        assert parsed.consumed == len(rows)
        bounded(adapter.name, parsed)
        state = parsed.state
    if names:  # a state that was never made here
        for name, rows in taken[:3]:
            bounded(adapter.name, adapter.parse_rows(name, rows, data[:64]))


def _value(value: Any) -> object:
    """A value as SQLite could give it."""
    if isinstance(value, str) and value.startswith("b64:"):
        return base64.b64decode(value[4:].encode("ascii", "ignore"), validate=False)
    if isinstance(value, bool | list | dict):
        return json.dumps(value).encode("utf-8", "surrogatepass")
    if isinstance(value, int):
        return max(-(1 << 63), min(value, (1 << 63) - 1))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _row_seeds(name: str) -> Callable[[], Iterable[bytes]]:
    return lambda: _row_lines(name)


@functools.cache
def _row_lines(name: str) -> tuple[bytes, ...]:
    """Rows of captured databases, and of one that is made."""
    adapter = registry.resolve(name)
    if name == "crush":
        return (_crush_rows(),)
    folder = Path(tempfile.mkdtemp(prefix="memd-fuzz-"))
    try:
        return tuple(_rows_of(adapter, path, folder) for path in _databases(name, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _crush_rows() -> bytes:
    from support_crush import FINISH, row, text

    call = {"type": "tool_call", "data": {"id": "c1", "name": "bash", "input": "{}", "finished": True}}
    result = {"type": "tool_result", "data": {"tool_call_id": "c1", "content": "out", "is_error": False}}
    made = [
        row([text("ask")], id="m1", role="user"),
        row([text("answer"), call, FINISH], id="m2"),
        row([result], id="m3", role="tool"),
        row([text("summary"), FINISH], id="m4", summary=1),
    ]
    return b"\n".join(
        json.dumps([n, [_written(value) for value in one]]).encode() for n, one in enumerate(made)
    )


def _databases(name: str, folder: Path) -> Iterator[Path]:
    from support_adapters import FIXTURES

    if name == "antigravity":
        from support_antigravity import write_fixtures

        write_fixtures(folder / "made")
        yield from sorted((folder / "made").rglob("*.db"))
    for path in sorted((FIXTURES / name).rglob("*.db")):
        if path.stat().st_size < 4 << 20:
            yield path


def _rows_of(adapter: Adapter, path: Path, folder: Path) -> bytes:
    from memd.ledger.snapshot import fetch, read_snapshot

    lines = []
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    for number, query in enumerate(adapter.queries):
        found = read_snapshot(
            os.fsencode(path),
            os.fsencode(scratch),
            lambda connection, query=query: fetch(
                connection, query, updated=0, row_id="", limit=40, until=1 << 60, session="", store=None
            ),
        )
        if isinstance(found, tuple):
            rows, _is_cut = found
            lines += [json.dumps([number, [_written(value) for value in row]]).encode() for row in rows]
    return b"\n".join(lines)


def _written(value: object) -> object:
    return "b64:" + base64.b64encode(value).decode() if isinstance(value, bytes) else value


# ----------------------------------------------------------------------------------- documents, around


def _documents(adapter: Adapter, data: bytes) -> None:
    """A folder of documents: lines of `[path, content]`; every name asked for is one of them."""
    assert adapter.gather is not None
    assert adapter.parse_rows is not None
    files: dict[bytes, bytes] = {}
    for line in data.split(b"\n")[:60]:
        try:
            path, content = json.loads(line)
            files[str(path).encode("utf-8", "surrogatepass")] = json.dumps(content).encode("utf-8", "replace")
        except (ValueError, TypeError, RecursionError):
            files[b"session/p/ses_1.json"] = line

    def names(folder: bytes) -> Sequence[bytes]:
        under = folder.rstrip(b"/") + b"/"
        return sorted({path[len(under) :].split(b"/")[0] for path in files if path.startswith(under)})

    state = b""
    for source in [path for path in files if path.startswith(b"session/")][:3]:
        for query in adapter.queries:
            rows = list(adapter.gather(source, names, lambda path: files.get(path, b"")))
            parsed = adapter.parse_rows(query.name, rows, state)
            bounded(adapter.name, parsed)
            state = parsed.state


def _document_seeds() -> Iterable[bytes]:
    from support_adapters import FIXTURES

    for folder in sorted((FIXTURES / "opencode").rglob("storage")):
        files = sorted(folder.rglob("*.json"))
        yield b"\n".join(
            json.dumps([str(path.relative_to(folder)), json.loads(path.read_bytes())]).encode()
            for path in files
        )
    part = {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "hello"}
    message = {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "user",
        "time": {"created": 1_796_000_000_000, "completed": 1_796_000_000_001},
    }
    session = {
        "id": "ses_1",
        "directory": "/w",
        "title": "t",
        "version": "1",
        "time": {"created": 1, "updated": 2},
    }
    made = {
        "session/p/ses_1.json": session,
        "message/ses_1/msg_1.json": message,
        "part/msg_1/prt_1.json": part,
        "part/ses_1/msg_1/prt_1.json": part,
    }
    yield b"\n".join(json.dumps([path, content]).encode() for path, content in made.items())


class _Near:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def names(self, folder: bytes) -> Sequence[bytes]:
        return sorted({line.split(b"\t")[0][-40:] for line in self._data.split(b"\n")[:9]})

    def read(self, path: bytes) -> bytes | None:
        return None if choice(path + self._data, 7) == 0 else self._data

    def born(self, path: bytes) -> int:
        return choice(path + self._data, 1 << 41)


def _around(adapter: Adapter, data: bytes) -> None:
    assert adapter.around is not None
    state, _, rest = data.partition(b"\0\0")
    for begun in (b"", state, adapter.begin(MEMORY, "conversation")):
        parsed = adapter.around(begun, _Near(rest), 1_770_000_100_000)
        bounded(adapter.name, parsed)


# ------------------------------------------------------------------------------------------------ hooks


def _hear(adapter: Adapter, data: bytes) -> None:
    hooks = adapter.hooks
    assert hooks is not None
    payload = hook_calls.payload_of(data)
    for event in hooks.events:
        heard = hooks.hear(event.name, payload)
        assert heard == hooks.hear(event.name, payload)
        for text in (heard.session, heard.cwd, heard.transcript, heard.harness):
            assert len(text) <= 4096
            assert "\0" not in text
        if hooks.events_of is not None:
            bounded(adapter.name, hooks.events_of(event.name, payload, 1_770_000_000_000))
        told = hooks.answer(event.name, data.decode("utf-8", "replace"))
        told.encode("utf-8")
        if hooks.is_escaped and told:
            json.loads(told)


def _hear_seeds(adapter: Adapter) -> Callable[[], Iterable[bytes]]:
    base: dict[str, Any] = {
        "session_id": MEMORY.id,
        "cwd": "/home/dev/demo",
        "transcript_path": "/home/dev/t.jsonl",
    }

    def made() -> Iterator[bytes]:
        assert adapter.hooks is not None
        for event in adapter.hooks.events:
            yield json.dumps(
                {**base, "hook_event_name": event.name, "source": "startup", "prompt": "say"}
            ).encode()
        yield json.dumps(
            {
                "conversationId": MEMORY.id,
                "workspacePaths": ["/w"],
                "stepIdx": 3,
                "invocationNum": 1,
                "toolCall": {"name": "bash", "args": {"CommandLine": "ls"}},
                "error": "e",
                "transcriptPath": "/w/t",
                "fullyIdle": True,
            }
        ).encode()
        yield b'\xef\xbb\xbf{"session_id": "a", "cwd": "/w", "nested": {"a": [1'

    return made


def message(data: bytes) -> None:
    """The header of a hook's message, and what its harness makes of it."""
    call = hook_calls.read(data)
    assert call.cwd == b"" or call.cwd.startswith(b"/")
    assert 0 <= call.pid < 1 << 31
    try:
        session = hook_calls.heard(call)
    except BadRequest:
        return
    assert session.cwd == b"" or session.cwd.startswith(b"/")


def note(data: bytes) -> None:
    """A note in the spool; what it says goes the way of a message."""
    found = spool.parse(data)
    if found is None:
        return
    assert found.pid >= 0
    assert found.at_ms >= 0
    head = b"\0".join(
        (
            found.harness.encode("utf-8", "replace"),
            found.event.encode("utf-8", "replace"),
            found.cwd,
            found.run.encode("utf-8", "replace"),
            b"%d" % found.pid,
            b"",
        )
    )
    message(head + found.payload)


def _message_seeds() -> Iterable[bytes]:
    run = MEMORY.id.encode()
    for name, adapter in registry.adapters().items():
        for event in adapter.hooks.events if adapter.hooks else ():
            payload = json.dumps({"session_id": MEMORY.id, "cwd": "/w", "conversationId": MEMORY.id}).encode()
            yield b"\0".join((name.encode(), event.name.encode(), b"/w", run, b"123", payload))


def _note_seeds() -> Iterable[bytes]:
    for seed in _message_seeds():
        harness, event, cwd, run, pid, payload = seed.split(b"\0", 5)
        yield b"\0".join((b"memd-note1", harness, event, cwd, run, pid, b"1770000000000", payload))


def targets() -> Iterator[Target]:
    for name, adapter in registry.adapters().items():
        if adapter.parse is not None:
            flavors = _flavors(adapter)
            for flavor in flavors:
                words = ".".join(filter(None, (name, flavor if len(flavors) > 1 else "", "parse")))
                yield Target(words, functools.partial(_parse, adapter, flavor), _seeds(name, flavor))
            yield Target(
                f"{name}.state", functools.partial(_parse_state, adapter), _state_seeds(name, flavors)
            )
        yield Target(f"{name}.identify", functools.partial(_identify, adapter), _identify_seeds(name))
        if adapter.parse_rows is not None:
            yield Target(f"{name}.rows", functools.partial(_rows, adapter), _row_seeds(name))
        if adapter.gather is not None:
            yield Target(f"{name}.documents", functools.partial(_documents, adapter), _document_seeds)
        if adapter.around is not None:
            yield Target(f"{name}.around", functools.partial(_around, adapter), lambda: [b"s\0\0a\tb\nc"])
        if adapter.hooks is not None:
            yield Target(f"{name}.hear", functools.partial(_hear, adapter), _hear_seeds(adapter))
    yield Target("hook.message", message, _message_seeds)
    yield Target("hook.note", note, _note_seeds)
