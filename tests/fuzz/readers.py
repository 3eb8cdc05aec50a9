"""Readers of what other programs and people write: frames, requests, settings, indexes, notes, markers."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import trio
import zstandard

from fuzz.model import Target, choice, text_of
from memctl import hook, json_edit, json_scan, mcp_entries, registry
from memctl.hooks import settings as hook_settings
from memctl.hooks import toml as hook_toml
from memctl.hooks.settings import Wanted
from memctl.hooks.shapes import FLAT, LISTED, NAMED
from memctl.paths import MAX_HOOK_BYTES
from memd import gitconfig, protocol, settings, wire
from memd.errors import BadRequest, ConfigError, MemdError, Refused
from memd.ledger import cursor, messages, search, segments
from memd.memory import index as memory_index
from memd.memory.key import project_key
from memd.memory.outline import bare, split, units
from memd.memory.shared import claude_index, front, index, lock_rules, repairs, rules, tombstones
from memd.workstream import scope

TESTS = Path(__file__).resolve().parent.parent
SEEDS = TESTS / "fuzz" / "seeds"
NOW_MS = 1_796_000_000_000


# ------------------------------------------------------------------------------------------------- wire


class _Pieces(trio.abc.ReceiveStream):
    """Bytes that come in pieces, as many at a time as they themselves decide."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        size = 1 + choice(self._data + bytes((self._at & 255,)), 70)
        piece = self._data[self._at : self._at + min(size, max_bytes or size)]
        self._at += len(piece)
        return piece

    async def aclose(self) -> None:
        pass


def _finish(call: Any) -> Any:
    """What a coroutine that never waits for anything gives."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


def _wire(data: bytes) -> None:
    """The daemon's side of the framing, and what comes of a request."""
    try:
        got = _finish(wire.read_message(_Pieces(data)))
    except BadRequest as reason:
        str(reason).encode("utf-8")
        return
    if got is None:
        assert data == b""
        return
    kind, body = got
    assert len(body) <= MAX_HOOK_BYTES
    assert data.startswith(hook.frame(kind, body)) or b" 0" in data[:30]
    if kind == b"j":
        _request(body)


class _Socket:
    """As much of a socket as a client's side reads from."""

    def __init__(self, data: bytes) -> None:
        self._stream = _Pieces(data)

    def recv(self, size: int) -> bytes:
        got = _finish(self._stream.receive_some(size))
        assert isinstance(got, bytes)
        return got

    def settimeout(self, seconds: float) -> None:
        pass


def _reply(data: bytes) -> None:
    """The client's side, which hooks speak: only what it says it raises."""
    try:
        kind, body = hook.read_reply(_Socket(data), 1 << 20)  # type: ignore[arg-type]
    except (hook.Unreachable, hook.Late):
        return
    assert isinstance(kind, bytes)
    if kind == b"j":
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            protocol.decode_reply(body)


def _request(body: bytes) -> None:
    try:
        request = protocol.decode_request(body)
    except BadRequest as reason:
        str(reason).encode("utf-8")
        return
    again = protocol.decode_request(msgspec.json.encode(request))
    assert again == request


def _sample(schema: Any, defs: Any, depth: int = 0) -> Any:
    """A value that a schema allows."""
    if "$ref" in schema:
        return _sample(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _sample(schema["anyOf"][0], defs, depth + 1)
    match schema.get("type"):
        case "object":
            made = {
                name: _sample(inner, defs, depth + 1)
                for name, inner in schema.get("properties", {}).items()
                if depth < 6
            }
            more = schema.get("additionalProperties")
            return (
                {**made, "k": _sample(more, defs, depth + 1)}
                if isinstance(more, dict) and depth < 6
                else made
            )
        case "array":
            first = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
            return [_sample(first, defs, depth + 1)] if isinstance(first, dict) and depth < 6 else []
        case "string":
            return "L3c=" if schema.get("contentEncoding") == "base64" else "word"
        case "integer" | "number":
            return 7
        case "boolean":
            return True
    return None


@functools.cache
def _requests() -> tuple[bytes, ...]:
    """One of each request that there is."""
    found, defs = msgspec.json.schema_components([protocol.AnyRequest], ref_template="#/{name}")
    del found
    made = []
    for name, schema in defs.items():
        if "op" in schema.get("properties", {}):
            made.append(json.dumps(_sample(defs[name], defs)).encode())
    for tag in [
        m.get("const") for s in defs.values() for m in s.get("properties", {}).values() if "const" in m
    ]:
        made.append(json.dumps({"v": 1, "op": str(tag)}).encode())
    return tuple(made)


def _frames(data: bytes) -> None:
    """What a worker says to its daemon, cut anywhere."""
    frames = messages.Frames()
    try:
        for at in range(0, len(data), 13):
            for frame in frames.feed(data[at : at + 13]):
                for read in (messages.command, messages.news):
                    with contextlib.suppress(msgspec.DecodeError):
                        read(frame)
    except ValueError as reason:
        assert "frame" in str(reason)


def _segment(data: bytes) -> None:
    """What a crash or a bad disk left of a segment, sealed or growing; and stored cursors."""
    codec = segments.Codec()
    kept = codec.decode_tail(data)
    assert codec.decode_tail(codec.encode(kept)) == kept
    with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
        codec.decode(data)
    with contextlib.suppress(zstandard.ZstdError):
        segments.decompress(data)
    assert segments.decompress(codec.compress(data)) == data
    cursor.file_cursor(data)
    cursor.row_cursor(data)


# -------------------------------------------------------------------------------------------- settings


def _refusing(read: Callable[[], Any], *kinds: type[Exception]) -> Any:
    """What it gives; None where it refuses, in words that can be printed."""
    try:
        return read()
    except kinds as reason:
        str(reason).encode("utf-8")
        if isinstance(reason, MemdError):
            assert reason.remedy
        return None


def _jsonc(data: bytes) -> None:
    found = _refusing(lambda: rules.parse(data, "memory.jsonc"), ConfigError)
    if found is not None:
        assert 1 <= found.max_lines <= 1 << 20
        assert 0 <= found.stale_after_days <= 1e6


def _settings(data: bytes) -> None:
    found = _refusing(lambda: settings.parse(data, "config.toml"), ConfigError)
    if found is not None:
        assert settings.parse(settings.render(found, "config.toml").encode(), "config.toml") == found


def _marker(data: bytes) -> None:
    found = _refusing(lambda: scope.parse(b"/w/.memd.toml", data), ConfigError)
    if found is not None:
        decided = _refusing(
            lambda: scope.decide(workspace="", project="", marker=found, cwd=b"/w/a", root=b"/w"), MemdError
        )
        if decided is not None:
            assert decided.workspace
            assert decided.project
            decided.notice().encode("utf-8")


def _git(data: bytes) -> None:
    entries = _refusing(lambda: gitconfig.parse(data), ValueError)
    if entries is not None:
        gitconfig.remotes(entries)
        gitconfig.is_whole(entries)


def _registry(data: bytes) -> None:
    rows = _refusing(lambda: registry.parse(data), ValueError)
    if rows is not None:
        assert registry.parse(registry.render(rows)) == rows
        registry.rekeyed(rows, "local", ("default", "app"), ("default", "other"))


COMMAND = "/usr/bin/python3 -I -S /d/memd/hook/memd_hook.py kiro {} || true"
WANTED = tuple(
    Wanted(event=event, command=COMMAND.format(event), timeout_s=seconds)
    for event, seconds in (("SessionStart", 10), ("Stop", 0))
)


def _json_settings(form: Any, wanted: tuple[Wanted, ...], data: bytes) -> None:
    """Hooks put in are found there, come out again, and nothing else changes its meaning."""
    text = text_of(data)
    before = _refusing(lambda: form.found(text), Refused)
    made = _refusing(lambda: form.install(text, wanted), Refused)
    if made is not None:
        assert before is not None
        assert {one.event for one in form.found(made.text)} >= {want.event for want in wanted}
        again = form.install(made.text, wanted, made.hollow)
        assert again.text == made.text
        out = form.uninstall(made.text, made.hollow)
        assert all(one.own.kind == "mixed" for one in form.found(out.text))
        if not before:
            assert _meaning(form, out.text) == _meaning(form, text)
    _refusing(lambda: form.uninstall(text), Refused)


def _meaning(form: Any, text: str) -> Any:
    if form is hook_toml:
        import tomllib

        return tomllib.loads(text.removeprefix("\ufeff"))
    found = {} if json_edit.is_blank(text) else json_scan.parse(text)
    if form is LISTED and isinstance(found, dict) and found.get("hooks") == []:
        del found["hooks"]  # a file of this kind without a list is none: the list stays
    return found


def _json_edit(data: bytes) -> None:
    text = text_of(data)
    parsed = _refusing(lambda: json_scan.parse(text), Refused)
    node = _refusing(lambda: json_scan.scan(text), Refused)
    if node is not None and parsed is not None:
        made = _refusing(lambda: json_edit.put(text, ["mcpServers", "memd"], {"command": "memctl"}), Refused)
        if made is not None:
            assert json_scan.parse(made)["mcpServers"]["memd"] == {"command": "memctl"}
            taken = _refusing(lambda: mcp_entries.without_json(made, ["mcpServers", "memd"]), Refused)
            assert taken is None or "memd" not in (json_scan.parse(taken) or {}).get("mcpServers", {})


def _codex(data: bytes) -> None:
    text = text_of(data)
    made = _refusing(lambda: mcp_entries.with_codex(text, "/usr/bin/memctl", ["mcp"]), Refused)
    if made is not None:
        assert mcp_entries.with_codex(made, "/usr/bin/memctl", ["mcp"]) == made
        _refusing(lambda: mcp_entries.without_codex(made), Refused)


# ------------------------------------------------------------------------------------- memory's files


def _index(data: bytes) -> None:
    """The index of the shared folder: what is done to it keeps every foreign line."""
    rest = [line for line in index.lines_of(data) if index.parse_line(line) is None]
    assert b"".join(index.lines_of(data)) == data
    entries = index.entries_of(data)
    kept, dropped = index.maintained(data, now_ms=NOW_MS, stale_after_days=30.0, gone=frozenset({b"gone.md"}))
    assert [line for line in index.lines_of(kept) if index.parse_line(line) is None] == rest
    assert len(index.entries_of(kept)) + len(dropped) == len(entries)
    assert index.maintained(kept, now_ms=NOW_MS, stale_after_days=30.0)[0] == kept
    entry = index.Entry(name="A topic", file=b"a_topic.md", summary="words", date="2026-11-03T10:00:00+01:00")
    put = index.with_entry(data, entry)
    assert [one for one in index.entries_of(put) if one.file == b"a_topic.md"] == [entry]
    for one in entries:
        index.with_pin(data, one.file, not one.is_pinned)
        index.without(data, one.file)
        index.render(one)
    repairs.lost(data, [b"a.md", b"B C.md"], [b"a.md"], frozenset())
    claude_index.index_of_claude(data, {b"a.md": NOW_MS * 1_000_000})
    names = tombstones.parse(data)
    assert tombstones.parse(tombstones.added(data, [b"z.md"])) == names | {b"z.md"}


def _merge(data: bytes) -> None:
    """Two indexes of Claude Code: nothing of the owned one goes, and a second merge changes nothing."""
    owned, _, incoming = data.partition(b"\n===\n")
    merged = memory_index.merge_index(owned, incoming, won=frozenset())
    assert memory_index.merge_index(merged, incoming, won=frozenset()) == merged
    bom = b"\xef\xbb\xbf"
    held = set(bare(split(merged.removeprefix(bom))))
    ours = units(bare(split(owned.removeprefix(bom))))
    first = {unit.key: unit for unit in reversed(ours) if unit.kind == "entry"}  # of several only one stays
    kept = [*first.values(), *(unit for unit in ours if unit.kind != "entry")]
    assert all(line in held for unit in kept for line in unit.lines)
    won = frozenset(memory_index.index_keys(incoming)[:2])
    memory_index.merge_index(
        owned, incoming, won=won, left_behind=frozenset(memory_index.index_keys(owned)[:1])
    )
    memory_index.line_count(data)
    assert len(project_key(data)) <= 208


def _front(data: bytes) -> None:
    """A topic file: an added section keeps the text, a new body keeps the front matter."""
    front.read_front(data)
    body = front.body_of(data)
    assert data.endswith(body)
    date = "2026-11-03T10:00:00+01:00"
    more = front.appended(data, "summary", date, "more words")
    assert b"more words" in more
    other = front.replaced(data, "A topic", "summary", date, "other words")
    assert b"other words" in front.body_of(other)
    repairs.entry_for(b"a_topic.md", data, frozenset())


def _lock(data: bytes) -> None:
    pid = lock_rules.pid_of(data)
    assert pid is None or pid > 0
    since = lock_rules.since_ms(data)
    assert since is None or since >= 0
    seen = lock_rules.Seen(payload=data[:200], mtime_ms=NOW_MS - 5000, ino=1)
    assert lock_rules.age_ms(seen, NOW_MS) >= 0
    assert not lock_rules.may_reclaim(seen, NOW_MS, "alive")


def _query(data: bytes) -> None:
    text = text_of(data)
    for term in search.parse(text):
        assert any(sign.isalnum() for sign in term.text)
    search.clean(text).encode("utf-8")
    search.instant(text[:40])


# --------------------------------------------------------------------------------------------- seeds


def _kept(*kinds: str) -> Callable[[], Iterable[bytes]]:
    """Files of `seeds/KIND/`."""
    return lambda: [path.read_bytes() for kind in kinds for path in sorted((SEEDS / kind).iterdir())]


def _line_seeds() -> Iterable[bytes]:
    head = {"type": "segment", "v": 1, "harness": "claude", "number": 1}
    event = {
        "type": "event",
        "session": "s",
        "position": 1,
        "id": "native:0",
        "kind": "message",
        "content": "x",
    }
    yield b"".join(json.dumps(line).encode() + b"\n" for line in (head, event))
    for folder in sorted((TESTS / "fixtures" / "ledger").iterdir()):
        for path in sorted(folder.rglob("*.jsonl*")):
            data = path.read_bytes()
            yield segments.decompress(data) if path.suffix == ".zst" else data
    yield cursor.encode(cursor.RowCursor())
    yield segments.Codec().compress(b"some lines\n" * 9)


def targets() -> Iterator[Target]:
    framed = [hook.frame(b"j", one) for one in _requests()]
    yield Target(
        "wire.message", _wire, lambda: [*framed, hook.frame(b"h", b"claude\0Stop\0/w\0\01\0{}"), b"memd1 j 3"]
    )
    yield Target(
        "wire.reply", _reply, lambda: [hook.frame(b"t", b"0\ntext"), hook.frame(b"j", b'{"is":"pong"}')]
    )
    yield Target("protocol.request", _request, _requests)
    yield Target(
        "worker.frames",
        _frames,
        lambda: [messages.pack(messages.Flushed(token=3)), messages.pack(messages.Look())],
    )
    yield Target("ledger.segment", _segment, _line_seeds)
    yield Target("memory.jsonc", _jsonc, _kept("jsonc", "json"))
    yield Target("settings.toml", _settings, _kept("toml"))
    yield Target("scope.marker", _marker, _kept("toml"))
    yield Target("git.config", _git, _kept("git"))
    yield Target("registry", _registry, _kept("registry"))
    for name, form in (("json", hook_settings), ("flat", FLAT), ("listed", LISTED), ("named", NAMED)):
        yield Target(f"hooks.{name}", functools.partial(_json_settings, form, WANTED), _kept("json"))
    yield Target("hooks.toml", functools.partial(_json_settings, hook_toml, WANTED), _kept("toml"))
    yield Target("json.edit", _json_edit, _kept("json", "jsonc"))
    yield Target("mcp.codex", _codex, _kept("toml"))
    yield Target("memory.index", _index, _kept("index"))
    yield Target("memory.merge", _merge, _kept("index"))
    yield Target("memory.front", _front, _kept("front"))
    yield Target("memory.lock", _lock, _kept("lock"))
    yield Target(
        "search.query",
        _query,
        lambda: [b'two "words side" by begin* foo_bar.py:12', b'"open', b"2026-11-03T10:00:00Z"],
    )
