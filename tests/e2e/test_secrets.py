"""Made-up secrets of every kind through a real memd: not one is left in anything it wrote or says.

They come as they do in life: said by a person or a model, as an argument or a result of a tool, in rows of a
database, in a hook's call with and without a daemon, cut in two by a write that was not finished, in a
damaged record, in a title, a handoff, a commit, a search.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from memd.ledger.sanitiser import SHAPES
from support_daemon import Home, eventually, request
from support_desk import Desk
from support_hooks import command, placed
from support_opencode import Store, tool
from support_pi import Tree
from support_records import assistant, line, message, meta, user
from support_secrets import WAYS, Hunt, MadeUp, indexed_terms, kept_bytes, make_up
from support_stand_ins import install, prompts

VALUES = 20
ANTIGRAVITY = "7c0d5c1e-2222-4222-8333-{:012d}"
CLAUDE = "0b7c3d1e-0000-4000-8000-{:012d}"
CODEX = "0b7c3d1e-0000-4000-9000-{:012d}"


@dataclass(frozen=True)
class Written:
    secret: MadeUp
    text: str


def written() -> list[Written]:
    """Each kind twenty times, each time written another way."""
    rng = random.Random("every secret")
    ways = list(WAYS.values())
    made = []
    for number, shape in enumerate(SHAPES):
        for n in range(VALUES):
            secret = make_up(shape.made_up, rng)
            made.append(Written(secret, ways[(number + n) % len(ways)](secret.text)))
    return made


@pytest.fixture(scope="module")
def all_written() -> list[Written]:
    return written()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "d" / "home").resolve(), runtime=tmp_path / "run")
    config = made.path / ".config" / "memd"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[log]\nlevel = "debug"\n')
    yield made
    made.end_all()


def memds_own(home: Home) -> bytes:
    """All that memd wrote below a home, and beside its socket."""
    folders = [home.path / name / "memd" for name in (".local/share", ".local/state", ".config", ".cache")]
    return kept_bytes(*folders, Path(home.environment["XDG_RUNTIME_DIR"]))


def claude_file(home: Home, texts: Sequence[Written], session: str) -> tuple[Path, bytes]:
    """As a person's words, as a model's, as a tool's arguments and results, in odd and damaged records."""
    records: list[bytes] = []
    for n, one in enumerate(texts):
        uuid = f"{n:08x}-0000-4000-8000-000000000000"
        match n % 6:
            case 0:
                record = user(uuid, one.text)
            case 1:
                record = assistant(uuid, [{"type": "text", "text": one.text}])
            case 2:
                call = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": one.text}}
                record = assistant(uuid, [call])
            case 3:
                record = user(
                    uuid, [{"type": "tool_result", "tool_use_id": f"c{n - 1}", "content": one.text}]
                )
            case 4:
                record = user(uuid, "a title and an unknown record come along", hologram=one.text)
                records.append(line({"type": "custom-title", "customTitle": one.text, "sessionId": session}))
                records.append(line({"type": "hologram", "payload": one.text, "sessionId": session}))
            case _:
                record = user(uuid, "a torn record comes behind")
                records.append(b'{"type":"user","message":' + json.dumps(one.text).encode() + b"\n")
        records.append(
            line({**record, "sessionId": session, "timestamp": f"2026-02-03T10:00:{n % 60:02}.000Z"})
        )
    path = home.path / ".claude" / "projects" / "-home-dev-proj" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path, b"".join(records)


def codex_file(home: Home, texts: Sequence[Written], session: str) -> tuple[Path, bytes]:
    def item(**payload: object) -> bytes:
        return line({"timestamp": "2026-02-03T10:00:00.000Z", "type": "response_item", "payload": payload})

    head = meta()
    head["payload"]["id"] = session
    records = [line(head)]
    for n, one in enumerate(texts):
        match n % 4:
            case 0:
                records.append(line(message("user", one.text)))
            case 1:
                records.append(line(message("assistant", one.text)))
            case 2:
                words = json.dumps({"command": ["bash", "-lc", one.text]})
                records.append(item(type="function_call", name="shell", call_id=f"c{n}", arguments=words))
            case _:
                records.append(item(type="function_call_output", call_id=f"c{n - 1}", output=one.text))
    path = (
        home.path
        / ".codex"
        / "sessions"
        / "2026"
        / "02"
        / "03"
        / f"rollout-2026-02-03T10-00-00-{session}.jsonl"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    return path, b"".join(records)


def opencode_rows(home: Home, texts: Sequence[Written]) -> None:
    store = Store(home.path / ".local" / "share" / "opencode" / "opencode.db")
    store.session()
    for n, one in enumerate(texts):
        name = f"msg_{n:05}"
        if n % 3 == 0:
            store.say(name, one.text)
        elif n % 3 == 1:
            store.answer(name, one.text)
        else:
            store.message(name, "assistant")
            part = tool("completed", one.text, title=one.text)
            part["state"]["input"] = {"command": one.text}
            store.part(f"{name}_t", name, **part)
            store.change(name, completed=True)


def pi_file(home: Home, texts: Sequence[Written]) -> tuple[Path, bytes]:
    tree = Tree(cwd="/home/dev/proj")
    for n, one in enumerate(texts):
        if n % 3 == 0:
            tree.say(one.text)
        elif n % 3 == 1:
            tree.answer(one.text)
        else:
            call = {"type": "toolCall", "id": f"c{n}", "name": "bash", "arguments": {"command": one.text}}
            tree.message("assistant", [call])
            result = [{"type": "text", "text": one.text}]
            tree.message("toolResult", result, toolCallId=f"c{n}", toolName="bash", isError=False)
    folder = home.path / ".pi" / "agent" / "sessions" / "--home-dev-proj--"
    folder.mkdir(parents=True, exist_ok=True)
    name = "2026-11-30T00-00-00-000Z_01a22ddc-c080-775b-9f4a-4e538d4468b8.jsonl"
    return folder / name, tree.data


def antigravity_call(text: str, step: int) -> dict[str, object]:
    return {
        "conversationId": ANTIGRAVITY.format(1),
        "workspacePaths": ["/home/dev/proj"],
        "stepIdx": step,
        "toolCall": {"name": "run_command", "args": {"CommandLine": text}},
        "error": text,
    }


def test_nothing_of_a_secret_is_left_in_what_memd_wrote(home: Home, all_written: list[Written]) -> None:
    """Stores of five agents, read while they grow; files cut in the middle of a secret; notes of hooks."""
    every = list(all_written)
    random.Random("which store").shuffle(every)
    fifth = len(every) // 5
    shares = [every[n * fifth : (n + 1) * fifth] for n in range(4)] + [every[4 * fifth :]]
    hooked = shares[4][:120]

    hook_file = placed(home.path / ".local" / "share")
    for n, one in enumerate(hooked[:40]):  # nobody answers: the text exists nowhere else and waits in a note
        _fire(home, hook_file, "antigravity", "PostToolUse", antigravity_call(one.text, n))
    for one in hooked[:10]:  # the text stands in a transcript too: a note says no word of it
        payload = {"session_id": CLAUDE.format(9), "cwd": "/home/dev/proj", "prompt": one.text}
        _fire(home, hook_file, "claude", "UserPromptSubmit", payload)
    spool = home.path / ".local" / "state" / "memd" / "spool"
    assert len(list(spool.iterdir())) == 50
    texts = [path.read_bytes() for path in spool.iterdir()]
    hunt = Hunt(one.secret for one in every)
    assert not [text for text in texts if b"antigravity" not in text and hunt.left(text)]

    files = [
        claude_file(home, shares[0], CLAUDE.format(1)),
        codex_file(home, shares[1], CODEX.format(1)),
        pi_file(home, shares[2]),
    ]
    opencode_rows(home, shares[3])
    for number, (path, data) in enumerate(files):
        path.write_bytes(data[: _inside_a_secret(data, every, number)])
    with home.daemon() as child:
        assert home.memctl("import", "--wait").returncode == 0
        socket = home.socket()
        for n, one in enumerate(hooked):
            payload = json.dumps(antigravity_call(one.text, 1000 + n)).encode()
            body = b"antigravity\0PreToolUse\0/home/dev/proj\0\0" + b"1\0" + payload
            request(socket, b"h", body)
        for path, data in files:
            with path.open("ab") as file:
                file.write(data[path.stat().st_size :])
        claude_path, claude_data = claude_file(home, shares[4][120:], CLAUDE.format(2))
        claude_path.write_bytes(claude_data)
        assert home.memctl("import", "--wait").returncode == 0
        eventually(lambda: not list(spool.iterdir()))
        for one in every[:3]:
            home.memctl("search", one.secret.text)
        said = [
            home.memctl(*words).stdout.encode()
            for words in (
                ("status", "--json"),
                ("doctor", "--json"),
                ("sessions", "--json", "--limit", "100"),
                ("search", "see above", "--json", "--limit", "100"),
                ("report", "--json"),
                *(("export", "--session", name) for name in (CLAUDE.format(1), CODEX.format(1), "ses_1")),
            )
        ]
        events = home.json("status")["ledger"]["events"]
        assert events > 2500, events
        database = home.path / ".local" / "share" / "memd" / "ledger" / "ledger.sqlite3"
        terms = indexed_terms(database)
        assert hunt.left(memds_own(home)) == []  # with the log that is not checkpointed yet
        home.stop(child)
    data = memds_own(home)
    assert data.count(b"[REDACTED:") > 2000
    assert hunt.left(data) == []
    assert hunt.left(b"\n".join(said)) == []
    parts = {one.secret.longest().lower() for one in every}
    assert "redacted" in terms
    assert sorted(term for term in terms if len(term) >= 8 and term in parts) == []


def _fire(home: Home, hook_file: Path, harness: str, event: str, payload: dict[str, object]) -> None:
    from memd.harness import registry

    hooks = registry.resolve(harness).hooks
    assert hooks is not None
    found = hooks.event(event)
    assert found is not None
    done = subprocess.run(
        command(hook_file, harness, found),
        input=json.dumps(payload).encode(),
        env=home.environment,
        cwd=home.path,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0


def _inside_a_secret(data: bytes, every: Sequence[Written], number: int) -> int:
    """A place in the second half of a file that lies in the middle of a secret."""
    for one in every[number * 50 :]:
        part = one.secret.longest().encode()
        at = data.find(part, len(data) // 2)
        if at >= 0:
            return at + len(part) // 2
    raise AssertionError("no secret stands there as it is")


PLAIN = re.compile("[A-Za-z0-9-]+")  # can be a word of a stand-in's task


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    install(made.fakes.folder)
    made.home.start()
    yield made
    made.close()


def test_nothing_of_a_secret_is_told_or_shown(desk: Desk) -> None:
    """A packet, a handoff, a checkpoint, lists, searches and MCP's answers."""
    rng = random.Random("told")
    made = [one for shape in SHAPES if PLAIN.fullmatch((one := make_up(shape.made_up, rng)).text)][:36]
    assert len(made) == 36
    hunt = Hunt(made)
    rest, said = iter(made[:20]), made[20:]
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(desk.checkout))
    branch, subject = next(rest), next(rest)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"use {subject.text}"], check=True)
    subprocess.run([*git, "checkout", "-q", "-b", f"try/{branch.text}"], check=True)
    (desk.checkout / f"with {next(rest).text}").touch()
    words = " ".join(f"say:key_is_{one.text}" for one in said)
    desk.ok("codex", "--config", f"key={next(rest).text}", do=words)
    fields = [next(rest).text for _ in range(4)]
    done = desk.home.memctl(
        "handoff",
        *(
            "create",
            f"summary {fields[0]}",
            "--question",
            f"is it {fields[1]}?",
            "--step",
            f"use {fields[2]}",
        ),
        *("--file", f"a {fields[3]}.txt"),
        cwd=desk.checkout,
    )
    assert done.returncode == 0, done.stderr
    shown = [done.stdout]
    for words in (
        ("handoff", "list", "--json"),
        ("handoff", "show"),
        ("workstreams", "--json"),
        ("search", "key", "--json", "--limit", "100"),
        ("workstream-search", "key", "--json", "--limit", "100"),
        ("sessions", "--json"),
        ("report", "--json"),
        ("status",),
        ("logs",),
    ):
        shown.append(desk.home.memctl(*words, cwd=desk.checkout).stdout)
    shown.append(_mcp(desk))
    desk.ok("crush", do="say:hello")
    told = "".join(prompts(desk.home.path))
    assert told.count("key is [REDACTED:") >= 5
    assert "memd-handoff" in told + "".join(shown)
    desk.home.memctl("down")
    assert hunt.left(told.encode()) == []
    assert hunt.left("".join(shown).encode()) == []
    assert hunt.left(memds_own(desk.home)) == []


def _mcp(desk: Desk) -> str:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def ask() -> str:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "memctl", "mcp"],
            env=desk.home.environment,
            cwd=str(desk.checkout),
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            texts = []
            for name, arguments in (("search_history", {"query": "key"}), ("handoff", {"action": "show"})):
                result = await session.call_tool(name, arguments)
                texts += [str(content) for content in result.content]
            return "".join(texts)

    return asyncio.run(ask())
