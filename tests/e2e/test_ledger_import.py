"""Transcripts into the ledger and out of it again, through the real daemon, its worker and memctl."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import support_cases
from memd.harness import registry
from support_daemon import Home, eventually

CASES = sorted(
    folder.name
    for folder in support_cases.CASES.iterdir()
    if (folder / "expect.json").exists()
    and json.loads((folder / "expect.json").read_text()).get("kind") == "import"
    and json.loads((folder / "expect.json").read_text()).get("harness") in registry.adapters()
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "d" / "home").resolve(), runtime=tmp_path / "run")
    yield made
    made.end_all()


def conversation(home: Home, session: str, harness: str = "") -> list[list[str]]:
    """The visible messages of a session, as the ledger has them."""
    return [
        [row["role"], row["content"]] for row in exported(home, session, harness) if row["kind"] == "message"
    ]


def exported(home: Home, session: str, harness: str = "") -> list[dict[str, Any]]:
    words = ["--harness", harness] if harness else []
    done = home.memctl("export", "--session", session, *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def import_all(home: Home) -> None:
    done = home.memctl("import", "--wait")
    assert done.returncode == 0, done.stderr


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "memd" not in path.parts
    }


def ledger_bytes(home: Home) -> bytes:
    """Everything memd keeps on the disk, in one."""
    kept = b""
    for base in (".local/share/memd", ".local/state/memd"):
        for path in sorted((home.path / base).rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                if path.suffix == ".zst":
                    import zstandard

                    data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
                kept += data
    return kept


PACKET = "<!-- memd:workstream-packet:v1 -->\n" + "# What was said before\n\nwords of an earlier run\n" * 60


def _steps(case: str, dest: Path) -> Iterator[int]:
    """Build a case step by step, as far as it has steps."""
    extra = []
    if case.startswith("27-"):
        dest.mkdir(exist_ok=True)
        (dest / "packet.txt").write_text(PACKET + "the port is 8123\n")
        extra = ["--packet", str(dest / "packet.txt")]
    for step in range(1, 9):
        made = subprocess.run(
            [sys.executable, "-B", support_cases.CASES / case / "make.py", dest, "--step", str(step), *extra],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode and "invalid choice" in made.stderr:
            return
        assert made.returncode == 0, made.stderr
        yield step


@pytest.mark.parametrize("case", CASES)
def test_a_hard_case_gives_exactly_its_messages(home: Home, case: str) -> None:
    expect = json.loads((support_cases.CASES / case / "expect.json").read_text())
    harness = expect["harness"]
    home.start()
    session = ""
    for step in _steps(case, home.path.parent):
        import_all(home)
        session = expect.get("session") or expect["session_after"][str(step)]
        if str(step) in expect.get("messages_after", {}):
            assert conversation(home, session, harness) == expect["messages_after"][str(step)]
    said = conversation(home, session, harness)
    assert said == expect.get("messages", said)
    import_all(home)
    home.end_all()
    home.start()
    import_all(home)
    assert conversation(home, session, harness) == said
    events = exported(home, session, harness)
    for text in expect.get("once", ()):
        assert sum(text in event["content"] for event in events) == 1, text
    for text in expect.get("never", ()):
        assert not any(text in event["content"] for event in events), text
    row = next(row for row in home.json("sessions") if row["id"].removeprefix("session_") == session)
    assert row["losses"] >= expect.get("losses_min", 0)
    log = (home.path / ".local/state/memd/memd.log").read_text()
    assert "Traceback" not in log
    assert "worker.ended" not in log


def _fixture(home: Home, harness: str, name: str) -> tuple[Path, dict[str, Any]]:
    folder = Path(__file__).resolve().parent.parent / "fixtures" / harness / name
    shutil.copytree(folder, home.path, dirs_exist_ok=True, symlinks=True)
    described = next(home.path / n for n in ("expected.json", "MANIFEST.json") if (home.path / n).exists())
    return home.path, json.loads(described.read_text())


@pytest.mark.parametrize(
    "harness", ["claude", "codex", "opencode", "pi", "omp", "kimi", "command-code", "grok"]
)
def test_a_store_is_byte_identical_after_its_import(home: Home, harness: str) -> None:
    _fixture(home, harness, "tool-use")
    before = hashes(home.path)
    home.start()
    import_all(home)
    rows = home.json("sessions")
    assert rows
    assert {row["harness"] for row in rows} == {harness}
    assert hashes(home.path) == before


def _claude_line(n: int, role: str, text: str, session: str, cwd: str) -> str:
    parent = f"00000000-0000-4000-8000-{n - 1:012d}" if n else None
    return (
        json.dumps(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "type": role,
                "uuid": f"00000000-0000-4000-8000-{n:012d}",
                "timestamp": f"2026-03-01T10:{n // 60 % 60:02d}:{n % 60:02d}.000Z",
                "cwd": cwd,
                "sessionId": session,
                "version": "2.1.197",
                "message": {
                    "role": role,
                    "content": text if role == "user" else [{"type": "text", "text": text}],
                },
            }
        )
        + "\n"
    )


class Transcript:
    """A Claude Code session that grows."""

    def __init__(self, home: Home, session: str, cwd: str = "/work/somewhere") -> None:
        self.session = session
        self.cwd = cwd
        self.path = home.path / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.n = 0

    def say(self, *texts: str) -> None:
        with self.path.open("a") as file:
            for text in texts:
                file.write(
                    _claude_line(
                        self.n, "user" if self.n % 2 == 0 else "assistant", text, self.session, self.cwd
                    )
                )
                self.n += 1


def sid(n: int) -> str:
    return f"11111111-0000-4000-8000-{n:012d}"


def found(home: Home, *words: str) -> list[dict[str, Any]]:
    rows = home.json("search", *words)
    assert isinstance(rows, list)
    return rows


def test_what_is_said_while_memd_runs_can_be_searched_without_asking_for_an_import(home: Home) -> None:
    home.start()
    talk = Transcript(home, sid(1))
    talk.say("why does the zebrafish migration fail", "because of the lock")
    eventually(lambda: len(found(home, "zebrafish")) == 1, 5)
    talk.say("and the quokka one")
    eventually(lambda: len(found(home, "quokka")) == 1, 5)
    (hit,) = found(home, "quokka")
    assert hit["harness"] == "claude"
    assert hit["session"] == sid(1)
    assert hit["sequence"] == found(home, "zebrafish")[0]["sequence"] + 2
    assert " ".join(hit) == ("harness session cwd sequence event_id kind role occurred_at snippet content")


def test_a_deep_hit_at_the_end_of_a_long_text_is_found(home: Home) -> None:
    Transcript(home, sid(2)).say("ordinary words " * 4000 + "axolotl")
    home.start()
    import_all(home)
    assert len(found(home, "axolotl")) == 1


def test_three_sessions_that_appear_at_once_are_all_imported(home: Home) -> None:
    dest = home.path.parent
    case = support_cases.CASES / "36-late-tree-burst" / "make.py"
    subprocess.run([sys.executable, "-B", case, dest], check=True, capture_output=True)
    home.start()
    subprocess.run([sys.executable, "-B", dest / "burst.py", dest], check=True, capture_output=True)
    eventually(lambda: len(home.json("sessions")) == 3, 5)
    subprocess.run(
        [sys.executable, "-B", dest / "burst.py", dest, "--replace"], check=True, capture_output=True
    )
    eventually(lambda: len(found(home, "replaced")) == 1, 5)


def test_a_burst_of_files_is_found_to_the_last_one(home: Home) -> None:
    home.start()
    Transcript(home, sid(0)).say("first")
    eventually(lambda: len(found(home, "first")) == 1)
    for n in range(1, 2001):
        Transcript(home, sid(n), f"/work/p{n % 50}").say(f"burst number{n}")
    eventually(lambda: len(home.json("sessions")) == 2001, 60)


def test_a_killed_worker_doubles_and_loses_nothing(home: Home) -> None:
    for n in range(200):
        Transcript(home, sid(n)).say(*(f"word{n}x{i}" for i in range(40)))
    home.start()
    for _ in range(4):
        children = _children(home.json("status")["pid"])
        for pid in children:
            os.kill(pid, 9)
        eventually(lambda before=children: _children(home.json("status")["pid"]) not in ([], before))
    import_all(home)
    assert sum(row["events"] for row in home.json("sessions")) == 8000
    assert conversation(home, sid(7)) == [
        ["user" if i % 2 == 0 else "assistant", f"word7x{i}"] for i in range(40)
    ]


def test_a_killed_daemon_doubles_and_loses_nothing(home: Home) -> None:
    for n in range(200):
        Transcript(home, sid(n)).say(*(f"word{n}x{i}" for i in range(40)))
    for _ in range(5):
        child = home.start()
        home.memctl("import")
        child.kill()
        child.communicate()
    home.start()
    import_all(home)
    assert sum(row["events"] for row in home.json("sessions")) == 8000
    check = home.memctl("ledger", "check")
    assert check.returncode == 0, check.stdout


def _children(pid: int) -> list[int]:
    found_ = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found_ += [int(child) for child in (task / "children").read_text().split()]
    return sorted(found_)


def test_a_secret_reaches_no_file_of_memd(home: Home) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    talk = Transcript(home, sid(1))
    talk.say(f"my token is {secret} please", "noted")
    home.start()
    import_all(home)
    assert len(found(home, "noted")) == 1
    assert secret.encode() not in ledger_bytes(home)
    assert "[REDACTED" in conversation(home, sid(1))[0][1]


def test_what_is_forgotten_is_gone_from_the_disk_and_stays_away(home: Home) -> None:
    Transcript(home, sid(1)).say("the wombat plan", "agreed")
    Transcript(home, sid(2)).say("the numbat plan", "also agreed")
    home.start()
    import_all(home)
    planned = home.json("forget", "--session", sid(1), "--dry-run")
    assert planned["events"] == 2
    assert len(found(home, "wombat")) == 1
    assert home.memctl("forget", "--session", sid(1)).returncode == 64
    assert home.json("forget", "--session", sid(1), "--yes")["events"] == 2
    for _ in range(2):
        assert found(home, "wombat") == []
        assert len(found(home, "numbat")) == 1
        assert b"wombat" not in ledger_bytes(home)
        import_all(home)
        home.end_all()
        home.start()
        import_all(home)
    assert home.memctl("ledger", "check").returncode == 0


@pytest.mark.parametrize(
    "marker",
    [
        "[import]\nenabledd = false\n",
        "[import]\nenabled = false\n",
        '[capture]\nignore_paths = ["."]\n',
        "not = [valid",
    ],
)
def test_a_checkout_can_keep_its_sessions_out(home: Home, tmp_path: Path, marker: str) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / ".memd.toml").write_text(marker)
    Transcript(home, sid(1), str(private)).say("the wombat plan")
    Transcript(home, sid(2), str(tmp_path)).say("the numbat plan")
    home.start()
    import_all(home)
    assert found(home, "wombat") == []
    assert len(found(home, "numbat")) == 1
    assert b"wombat" not in ledger_bytes(home)


def test_a_directory_and_a_harness_can_be_excluded_by_the_settings(home: Home, tmp_path: Path) -> None:
    (home.path / ".config/memd").mkdir(parents=True)
    config = home.path / ".config/memd/config.toml"
    config.write_text(f'[import]\nignore_paths = ["{tmp_path}/private"]\n')
    Transcript(home, sid(1), str(tmp_path / "private" / "deep")).say("the wombat plan")
    Transcript(home, sid(2), str(tmp_path)).say("the numbat plan")
    home.start()
    import_all(home)
    assert found(home, "wombat") == []
    assert len(found(home, "numbat")) == 1
    config.write_text('[import]\nharnesses = ["codex"]\n')
    assert home.memctl("reload").returncode == 0
    Transcript(home, sid(3), str(tmp_path)).say("the bilby plan")
    import_all(home)
    assert found(home, "bilby") == []


def test_a_store_outside_the_usual_places_is_imported_when_named(home: Home, tmp_path: Path) -> None:
    elsewhere = Home((tmp_path / "other").resolve())
    Transcript(elsewhere, sid(9)).say("the dunnart plan")
    home.start()
    done = home.memctl("import", "--wait", "--harness", "claude", "--store", str(elsewhere.path / ".claude"))
    assert done.returncode == 0, done.stderr
    assert len(found(home, "dunnart")) == 1


def test_a_session_copied_between_logins_is_one_session(home: Home) -> None:
    for name in (".claude", ".claude-work"):
        (home.path / name).mkdir()
        (home.path / name / ".credentials.json").write_text("{}")
    talk = Transcript(home, sid(1))
    talk.say("the potoroo plan", "agreed")
    copy = home.path / ".claude-work" / talk.path.relative_to(home.path / ".claude")
    copy.parent.mkdir(parents=True)
    shutil.copy(talk.path, copy)
    home.start()
    import_all(home)
    with copy.open("a") as file:
        file.write(_claude_line(2, "user", "and the quoll plan", sid(1), talk.cwd))
    import_all(home)
    (row,) = home.json("sessions")
    assert row["events"] == 3
    assert [text for _, text in conversation(home, sid(1))] == [
        "the potoroo plan",
        "agreed",
        "and the quoll plan",
    ]


def test_filters_narrow_a_search(home: Home) -> None:
    Transcript(home, sid(1), "/work/one").say("shared word here", "shared reply")
    Transcript(home, sid(2), "/work/two").say("shared word there")
    home.start()
    import_all(home)
    assert len(found(home, "shared")) == 3
    assert {hit["cwd"] for hit in found(home, "shared", "--cwd", "/work/one")} == {"/work/one"}
    assert len(found(home, "shared", "--role", "assistant")) == 1
    assert found(home, "shared", "--harness", "codex") == []
    assert found(home, "shared", "--since", "2026-04-01") == []
    assert len(found(home, "shared", "--limit", "2")) == 2
    assert [row["id"] for row in home.json("sessions", "--cwd", "/work/two")] == [sid(2)]


def test_an_export_is_a_readable_conversation_too(home: Home) -> None:
    Transcript(home, sid(1)).say("what is \x1b[31mred\x1b[0m", "a colour")
    home.start()
    import_all(home)
    done = home.memctl("export", "--session", sid(1), "--format", "markdown")
    assert done.returncode == 0
    assert "## User" in done.stdout
    assert "a colour" in done.stdout
    assert "\x1b" not in done.stdout
    unknown = home.memctl("export", "--session", "nonsense")
    assert unknown.returncode == 65
    assert "nonsense" in unknown.stderr


def test_no_query_is_an_error(home: Home) -> None:
    home.start()
    for query in ('"', "(", "a AND", "NOT", "*", "x:y", "-", "\\", "a* OR (b", "’", "\udcff"):
        done = home.memctl("search", "--json", "--", query)
        assert done.returncode == 0, (query, done.stderr)
        assert json.loads(done.stdout) == []
