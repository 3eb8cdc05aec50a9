"""Whose project folder it is, by the transcripts in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import support_roots
from memd.memory.belongs import HEAD_BYTES, MAX_FILES, TAIL_BYTES, foreign_cwd
from memd.memory.key import project_key
from support_cases import build


class Login:
    """One login with the project folder of a root."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "work/a/b"
        self.root.mkdir(parents=True)
        self.twin = top / "work/a-b"
        self.folder = self.projects(self.root)
        self.folder.mkdir(parents=True)
        self.clock = 1_770_000_000

    def projects(self, root: Path) -> Path:
        return self.top / "home/.claude/projects" / project_key(os.fsencode(root))

    def transcript(self, *cwds: Path | str | None, padding: int = 0, name: str | None = None) -> Path:
        """A transcript, newer than all before: a record a directory, `padding` bytes after the first."""
        self.clock += 1
        path = self.folder / (name or f"{self.clock}.jsonl")
        records = [{"type": "user", "cwd": str(cwd)} if cwd else {"type": "mode"} for cwd in cwds]
        lines = [json.dumps(record) for record in records]
        if padding:
            lines.insert(1, json.dumps({"type": "mode", "text": "x" * padding}))
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (self.clock, self.clock))
        return path

    def foreign(self) -> bytes | None:
        return foreign_cwd(os.fsencode(self.folder), os.fsencode(self.root))


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(Path(os.path.realpath(tmp_path)))


def test_transcripts_of_another_root_with_the_same_key_show(login: Login) -> None:
    login.twin.mkdir()
    assert login.projects(login.twin) == login.folder
    login.transcript(login.root)
    login.transcript(login.twin)
    assert login.foreign() == os.fsencode(login.twin)


def test_directory_that_is_gone_is_judged_by_its_text(login: Login) -> None:
    login.transcript(login.twin)
    assert not login.twin.exists()
    assert login.foreign() == os.fsencode(login.twin)
    assert foreign_cwd(os.fsencode(login.folder), os.fsencode(login.twin)) is None


def test_agents_of_one_key_tell_each_other_apart(tmp_path: Path) -> None:
    case = build("01-two-agents-one-key", tmp_path)
    folder = tmp_path / "home/.claude/projects" / case["key"]
    (folder / "s.jsonl").write_text(json.dumps({"cwd": case["healed"]}) + "\n")
    assert foreign_cwd(os.fsencode(folder), os.fsencode(case["heal_now"])) == os.fsencode(case["healed"])
    assert foreign_cwd(os.fsencode(folder), os.fsencode(case["healed"])) is None


def test_own_directories_are_not_foreign(login: Login) -> None:
    login.transcript(login.root)
    login.transcript(login.root / "sub/gone")
    login.transcript(login.root, login.top / "work/elsewhere", login.root / "sub")
    assert login.foreign() is None


def test_linked_worktree_is_not_foreign(tmp_path: Path) -> None:
    roots = support_roots.Roots(Path(os.path.realpath(tmp_path)))
    roots.repo("main")
    roots.worktree("main", "wt")
    folder = roots.top / project_key(os.fsencode(roots.top / "main"))
    folder.mkdir()
    (folder / "s.jsonl").write_text(json.dumps({"cwd": str(roots.top / "wt/sub")}) + "\n")
    (roots.top / "wt/sub").mkdir()
    assert foreign_cwd(os.fsencode(folder), os.fsencode(roots.top / "main")) is None


def test_root_reached_through_a_link_is_not_foreign(login: Login) -> None:
    (login.top / "alias").symlink_to(login.root)
    login.transcript(login.top / "alias")
    assert login.foreign() is None


def test_guest_directory_beside_our_own_is_not_foreign(login: Login) -> None:
    """A shell that went to another checkout writes that one's path in the middle of our transcript."""
    other = login.top / "other"
    other.mkdir()
    login.transcript(login.root, other, other)
    login.transcript(other, login.root)
    assert login.foreign() is None


def test_transcript_of_nothing_but_another_directory_is_foreign(login: Login) -> None:
    login.transcript(login.top / "other")
    assert login.foreign() == os.fsencode(login.top / "other")


def test_collision_shows_in_a_transcript_that_both_roots_went_on_with(login: Login) -> None:
    login.twin.mkdir()
    login.transcript(login.root, login.twin)
    assert login.foreign() == os.fsencode(login.twin)


def test_subdirectory_of_another_checkout_is_no_collision(login: Login) -> None:
    """Its transcripts lie here, but its memory lies under the key of its own root."""
    other = login.top / "work"
    (other / ".git").mkdir()
    (login.root / ".git").mkdir()
    login.twin.mkdir()
    login.transcript(login.twin)
    assert login.foreign() is None


def test_newest_transcripts_are_looked_at_first(login: Login) -> None:
    login.transcript("/gone/first")
    login.transcript("/gone/second")
    assert login.foreign() == b"/gone/second"


def test_look_is_bounded_in_files(login: Login) -> None:
    login.transcript("/gone/other")
    for _ in range(MAX_FILES):
        login.transcript(login.root)
    assert login.foreign() is None


def test_look_is_bounded_in_bytes(login: Login) -> None:
    """The head and the tail of a large transcript are read, what lies between is not."""
    middle = [json.dumps({"cwd": str(login.twin)}), json.dumps({"x": "x" * (2 * TAIL_BYTES)})]
    path = login.transcript(login.root, login.root, padding=2 * HEAD_BYTES)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], *middle, *lines[2:]]) + "\n")
    assert login.foreign() is None
    login.transcript(login.root, login.twin, padding=2 * HEAD_BYTES)
    assert login.foreign() == os.fsencode(login.twin), "it stands in the tail"


def test_record_that_is_still_growing_is_passed_over(login: Login) -> None:
    path = login.transcript(login.root)
    path.write_text(path.read_text() + '{"type":"user","cwd":"/gone/oth')
    assert login.foreign() is None


def test_last_record_needs_no_newline(login: Login) -> None:
    path = login.transcript("/gone/other")
    path.write_text(path.read_text().rstrip("\n"))
    assert login.foreign() == b"/gone/other"


def test_directory_inside_a_tool_call_says_nothing(login: Login) -> None:
    record = {"message": {"content": [{"input": {"cwd": "/gone/other"}}]}, "toolUseResult": {"cwd": "/gone"}}
    (login.folder / "s.jsonl").write_text(json.dumps(record) + "\n")
    assert login.foreign() is None


ODD_RECORDS = [
    b'{"cwd": 7}',
    b'{"cwd": ""}',
    b'{"cwd": "relative"}',
    b'{"cwd": "/nul\\u0000"}',
    b'["cwd"]',
    b'"cwd"',
    b'\xff{"cwd"',
    b'\0\0\0{"cwd": "/gone/other"}',
    b'{"cwd": "/x\xff"}',
    b"",
    b"{}" * 4,
]


@pytest.mark.parametrize("line", ODD_RECORDS)
def test_odd_records_say_nothing(line: bytes, login: Login) -> None:
    (login.folder / "s.jsonl").write_bytes(line + b"\n" + line)
    assert login.foreign() is None


def test_lone_surrogate_is_only_text(login: Login) -> None:
    (login.folder / "s.jsonl").write_text('{"cwd": "/gone/\\ud83d"}\n')
    found = login.foreign()
    assert found is None or found.startswith(b"/gone/")


def test_links_and_fifos_are_not_read(login: Login) -> None:
    outside = login.top / "outside.jsonl"
    outside.write_text(json.dumps({"cwd": "/gone/other"}) + "\n")
    (login.folder / "link.jsonl").symlink_to(outside)
    (login.folder / "dir.jsonl").mkdir()
    os.mkfifo(login.folder / "fifo.jsonl")
    login.transcript("/gone/other", name="notes.txt")
    assert login.foreign() is None


def test_folder_without_transcripts_says_nothing(login: Login) -> None:
    assert login.foreign() is None
    (login.folder / "memory").mkdir()
    assert login.foreign() is None
    assert foreign_cwd(os.fsencode(login.top / "gone"), os.fsencode(login.root)) is None
    assert foreign_cwd(b"/nul\0", b"/x") is None


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take names in UTF-8 only")
def test_root_that_is_not_utf8_knows_its_own_transcripts(tmp_path: Path) -> None:
    root = os.fsencode(os.path.realpath(tmp_path)) + b"/b\xff"
    os.makedirs(root)
    folder = os.fsencode(tmp_path) + b"/projects/" + project_key(root).encode()
    os.makedirs(folder)
    with open(folder + b"/s.jsonl", "w", encoding="utf-8") as transcript:
        transcript.write(json.dumps({"cwd": root.decode("utf-8", "replace")}) + "\n")
    assert foreign_cwd(folder, root) is None


def test_folder_with_an_older_hash_is_compared_up_to_it(login: Login) -> None:
    root = login.top / ("x" * 120) / ("y" * 120)
    root.mkdir(parents=True)
    exact = login.projects(root)
    login.folder = exact.with_name(exact.name[:201] + "older1")
    login.folder.mkdir()
    login.transcript(root, "/gone/other", str(root) + "-twin")
    assert foreign_cwd(os.fsencode(login.folder), os.fsencode(root)) == os.fsencode(f"{root}-twin")
    login.folder.rename(exact)
    assert foreign_cwd(os.fsencode(exact), os.fsencode(root)) is None


@given(st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_raise_nothing(login: Login, content: bytes) -> None:
    (login.folder / "s.jsonl").write_bytes(content)
    assert login.foreign() is None or content


def test_looking_leaves_the_transcript_as_it_was(login: Login) -> None:
    path = login.transcript(login.twin)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    login.foreign()
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before
