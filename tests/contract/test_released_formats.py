"""What a released memd wrote is read by this one; what a later one wrote is refused untouched, with a remedy.

`tests/fixtures/released/` holds a file of every version of every format, and the bytes that clients of every
protocol version send. The ledger's own versions are in `tests/fixtures/ledger` (`tests/ledger/test_schema`).
Such a file is never changed: a new version gets another one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memctl import hook, registry
from memctl.hooks import record as hook_record
from memd import disk, protocol
from memd.errors import BadRequest, ConfigError, Refused
from memd.ledger.store import schema
from memd.memory.agents import Agents
from memd.service import backup_format, backup_replace
from memd.service.environments import Environments
from memd.service.spool import Note, Spool
from support_backups import facts, folders, restore
from support_daemon import Home

RELEASED = Path(__file__).parents[1] / "fixtures" / "released"
REQUESTS = sorted((RELEASED / "protocol-v1").glob("*.request"))

KNOWN = {
    "agents": 1,
    "backup": backup_format.VERSION,
    "environments": 1,
    "installed": hook_record.VERSION,
    "note": 1,
    "note-with-text": 1,
    "projects": registry.VERSION,
    "restore-plan": backup_replace.VERSION,
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """memd's data folder in a temporary home."""
    monkeypatch.setattr("posix.environ", {b"HOME": bytes(tmp_path)})
    made = tmp_path / ".local/share/memd"
    made.mkdir(parents=True)
    return made


def put(name: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(RELEASED / name, path)
    return path


def later(path: Path) -> bytes:
    """The same file as a memd to come might have left it."""
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "version": 2, "news": ["of things to come"]}))
    return path.read_bytes()


def test_there_is_a_file_of_every_version_of_every_format() -> None:
    found: dict[str, set[int]] = {}
    for path in RELEASED.iterdir():
        if match := re.fullmatch(r"(.+?)\.v(\d+)(\..*)?", path.name):
            found.setdefault(match[1], set()).add(int(match[2]))
    assert found == {name: set(range(1, version + 1)) for name, version in KNOWN.items()}


# -------------------------------------------------------------------------------- files, as they were


def test_enrolled_agents(data: Path) -> None:
    put("agents.v1.json", data / "agents.json")
    first, second = Agents(bytes(data)).all()
    assert (first.home, first.owned, first.is_leaving) == (
        b"/home/dev/agent",
        b"/home/dev/agent/.memd/memory",
        False,
    )
    assert (second.home, second.is_leaving) == (b"/home/dev/b\xe9", True)


def test_saved_checkouts(data: Path) -> None:
    put("projects.v1.json", data / "projects.json")
    assert [(link.ledger, link.project, link.path) for link in registry.links()] == [
        ("local", "app", b"/home/dev/app"),
        ("db.example/memd", "api", b"/home/dev/b\xe9"),
    ]


def test_places_where_sessions_were_seen(tmp_path: Path) -> None:
    path = put("environments.v1.json", tmp_path / "environments.json")
    usual, *seen = Environments(b"/home/dev", bytes(path), lambda: None).all()
    assert usual.home == b"/home/dev"
    assert [(one.home, dict(one.variables), one.places) for one in seen] == [
        (b"/home/dev", {"CODEX_HOME": b"/srv/codex"}, ()),
        (b"/home/other", {"XDG_DATA_HOME": b"/home/other/data"}, ()),
        (b"/home/dev", {"CRUSH_GLOBAL_DATA": b"/srv/crush"}, (b"/home/dev/app",)),
    ]


def test_installed_hooks(data: Path) -> None:
    put("installed.v1.json", data / "hook/installed.json")
    record = hook_record.read()
    assert [(one.agent, one.path, one.form) for one in record.installed] == [
        ("claude", b"/home/dev/.claude/settings.json", "claude"),
        ("kimi", b"/home/dev/.kimi/config.toml", "kimi"),
    ]
    assert record.installed[0].hollow == {"hooks": "{}"}


def test_notes_of_hooks(tmp_path: Path) -> None:
    put("note.v1", tmp_path / "spool/1790000000000000-1")
    put("note-with-text.v1", tmp_path / "spool/1790000000001000-1")
    first, second = Spool(bytes(tmp_path / "spool")).take(lambda _note: True)
    assert first == Note(
        harness="claude", event="Stop", cwd=b"/home/dev/b\xe9", run="run-1", pid=4242, at_ms=1790000000000
    )
    assert second.payload == b'{"toolCall":{"name":"view_file"}}\0tail'


def test_backups(tmp_path: Path) -> None:
    roots = folders(tmp_path)
    restore(roots, RELEASED / "backup.v1.tar.zst")
    found = facts(roots)
    assert found["texts"] == [["first: what does the cache do"], ["first: it keeps parsed files"]]
    assert found["handoffs"] == ["first: go on"]
    assert found["data/memory/topic.md"] == b"first"


def test_a_restore_that_was_begun(tmp_path: Path) -> None:
    roots = folders(tmp_path)
    ledger = Path(os.fsdecode(roots.data)) / "ledger"
    (ledger / ".memd-restore").mkdir(parents=True)
    (ledger / ".memd-restore/ledger.sqlite3").write_text("new")
    (ledger / "ledger.sqlite3").write_text("old")
    plan = json.loads((RELEASED / "restore-plan.v1.json").read_text())
    import base64

    for step in plan["steps"]:
        step["folder"] = base64.b64encode(
            base64.b64decode(step["folder"]).replace(b"@DATA@", roots.data)
        ).decode()
    disk.replace_file(roots.state + b"/restore.json", json.dumps(plan).encode())
    backup_replace.finish_begun(roots)
    assert (ledger / "ledger.sqlite3").read_text() == "new"
    assert (ledger / "before-restore-20260203T101112Z/ledger.sqlite3").read_text() == "old"


# ------------------------------------------------------------------------------- files of a later memd


def test_later_agents_are_refused_untouched(data: Path) -> None:
    path = put("agents.v1.json", data / "agents.json")
    text = later(path)
    agents = Agents(bytes(data))
    for work in (agents.all, lambda: agents.add(b"/x", b"/x/y", now_ms=1), lambda: agents.remove(b"/x")):
        with pytest.raises(Refused, match="version 2") as raised:
            work()
        assert "the memd that wrote it" in raised.value.remedy
    assert path.read_bytes() == text


def test_a_later_registry_is_refused_untouched(data: Path) -> None:
    path = put("projects.v1.json", data / "projects.json")
    text = later(path)
    with pytest.raises(ConfigError, match="version is 2") as raised:
        registry.links()
    assert raised.value.remedy
    with pytest.raises(ConfigError):
        registry.change(lambda rows: rows[:1])
    assert path.read_bytes() == text


def test_a_later_record_of_hooks_is_refused_untouched(data: Path) -> None:
    path = put("installed.v1.json", data / "hook/installed.json")
    text = later(path)
    with pytest.raises(Refused, match="version 2") as raised:
        hook_record.read()
    assert "upgrade" in raised.value.remedy
    with pytest.raises(Refused):
        hook_record.note([hook_record.Installed(agent="pi", path=b"/x", form="pi")])
    assert path.read_bytes() == text


def test_places_that_a_later_memd_noted_are_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "environments.json"
    path.write_text('{"version": 2, "seen": []}')
    environments = Environments(b"/home/dev", bytes(path), lambda: None)
    environments.see({"CODEX_HOME": b"/srv/codex"})
    assert [dict(one.variables) for one in environments.all()] == [{}, {"CODEX_HOME": b"/srv/codex"}]
    assert path.read_text() == '{"version": 2, "seen": []}'


@pytest.mark.parametrize("head", [b"memd-note2", b"memd-note17"])
def test_a_later_note_stays_for_the_memd_that_knows_it(tmp_path: Path, head: bytes) -> None:
    note = tmp_path / "spool" / "1790000000000000-1"
    note.parent.mkdir()
    note.write_bytes(head + b"\0something\0new")
    odd = tmp_path / "spool" / "1790000000000001-1"
    odd.write_bytes(b"memd-notes\0no note")
    spool = Spool(bytes(note.parent))
    assert spool.take(lambda _note: True) == []
    assert note.read_bytes() == head + b"\0something\0new"
    assert not odd.exists()
    assert spool.waiting().count == 1  # which the status tells


def test_a_daemon_leaves_a_later_ledger_alone_and_says_so(tmp_path: Path) -> None:
    home = Home((tmp_path / "h").resolve(), runtime=tmp_path / "run")
    ledger = home.path / ".local/share/memd/ledger"
    shutil.copytree(RELEASED.parent / "ledger" / f"v{schema.VERSION}", ledger)
    connection = apsw.Connection(str(ledger / "ledger.sqlite3"))
    connection.pragma("journal_mode", "delete")
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    before = {path: path.read_bytes() for path in ledger.rglob("*") if path.is_file()}
    try:
        home.start()
        asked = home.memctl("search", "cache")
        assert asked.returncode == 75
        assert f"version {schema.VERSION + 1}" in asked.stderr
        refused = home.memctl("backup", "b.tar.zst")
        assert refused.returncode == 75
        said = home.memctl("doctor").stdout
        assert f"version {schema.VERSION + 1}" in said
        assert "Upgrade memd" in said
    finally:
        home.end_all()
    assert {path: path.read_bytes() for path in ledger.rglob("*") if path.is_file()} == before


# -------------------------------------------------------------------------------------- the protocol


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    base = tmp_path_factory.mktemp("m")
    made = Home((base / "h").resolve(), runtime=base / "run")
    made.start()
    yield made
    made.end_all()


def answer(home: Home, message: bytes) -> tuple[bytes, bytes]:
    sock = hook.dial(home.socket(), 20.0)
    try:
        sock.sendall(message)
        return hook.read_reply(sock)
    finally:
        sock.close()


def framed(body: bytes) -> bytes:
    return b"memd1 j %d\n%s" % (len(body), body)


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_what_an_older_client_sends_is_answered(home: Home, path: Path) -> None:
    kind, body = answer(home, path.read_bytes())
    if kind == b"t":
        assert body.partition(b"\n")[0].isdigit()
        return
    reply = protocol.decode_reply(body)
    if path.stem == "export":
        assert isinstance(reply, protocol.Failure)
        assert reply.code == "not_found"  # understood: there is no such session
    else:
        assert not isinstance(reply, protocol.Failure), reply


def test_the_fixtures_of_the_protocol_are_as_they_were_released() -> None:
    """Its bytes are sent by clients that are out there: a change here hides that they are refused."""
    whole = b"".join(path.name.encode() + path.read_bytes() for path in REQUESTS)
    assert zlib.crc32(whole) == SUM


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"op":"ping","v":1,"news":true}', "news"),
        (b'{"op":"dance","v":1}', "dance"),
        (b'{"op":"ping","v":2}', "v"),
        (b'{"op":"memory","action":{"do":"fly"}}', "do"),
    ],
)
def test_what_only_a_later_client_says_gets_a_clear_answer(home: Home, body: bytes, says: str) -> None:
    kind, text = answer(home, framed(body))
    assert kind == b"j"
    reply = protocol.decode_reply(text)
    assert isinstance(reply, protocol.Failure)
    assert (reply.code, reply.exit_status) == ("bad_request", 65)
    assert "protocol version 1" in reply.message
    assert says in reply.message
    assert "memctl up" in reply.remedy
    with pytest.raises(BadRequest):
        protocol.decode_request(body)


def test_a_later_framing_gets_a_clear_answer(home: Home) -> None:
    kind, text = answer(home, b"memd2 j 13\n" + b'{"op":"ping"}')
    reply = protocol.decode_reply(text)
    assert kind == b"j"
    assert isinstance(reply, protocol.Failure)
    assert "memd1" in reply.message


SUM = 1824694838
