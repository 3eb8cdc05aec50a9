"""Notes of hooks that met no daemon, and the memory of when hooks fired."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from memctl import hook
from memd import disk
from memd.errors import DiskError
from memd.service import spool
from memd.service.hook_log import HookLog
from memd.service.hook_view import Waiting
from memd.service.spool import Note, Spool, parse

WHO = (b"claude", b"Stop", b"/w\xff", b"run", b"42")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("posix.environ", {b"HOME": bytes(tmp_path)})
    return Path(os.fsdecode(hook.notes_dir()))


def anything(_note: Note) -> bool:
    return True


def taken(folder: Path) -> list[Note]:
    """Taken, and acted on."""
    spool = Spool(bytes(folder))
    notes = spool.take(anything)
    for note in notes:
        spool.let_go(note)
    return notes


def test_what_a_hook_leaves_is_what_the_daemon_takes(folder: Path) -> None:
    before = int(time.time() * 1000)
    hook.leave_note(WHO, b"")
    hook.leave_note(WHO, b'{"kept":"\0"}')
    waiting = Spool(bytes(folder)).waiting()
    assert waiting.count == 2
    assert before <= waiting.oldest_ms <= time.time() * 1000
    first, second = taken(folder)
    assert first.at_ms <= second.at_ms
    assert first == Note(harness="claude", event="Stop", cwd=b"/w\xff", run="run", pid=42, at_ms=first.at_ms)
    assert second.payload == b'{"kept":"\0"}'
    assert list(folder.iterdir()) == []
    assert Spool(bytes(folder)).waiting() == Waiting()
    assert taken(folder) == []


def test_a_text_stays_until_it_is_kept_elsewhere_and_is_given_once_until_then(folder: Path) -> None:
    hook.leave_note(WHO, b"text")
    hook.leave_note(WHO, b"")
    spool = Spool(bytes(folder))
    text, _ = sorted(spool.take(anything), key=lambda note: not note.payload)
    assert len(list(folder.iterdir())) == 1
    assert spool.take(anything) == []
    assert [note.payload for note in Spool(bytes(folder)).take(anything)] == [b"text"]  # after a kill
    spool.give_back(text)
    assert [note.payload for note in spool.take(anything)] == [b"text"]
    spool.let_go(text)
    assert list(folder.iterdir()) == []
    assert spool.take(anything) == []


def test_no_folder_is_no_note(tmp_path: Path) -> None:
    assert taken(tmp_path / "none") == []
    assert Spool(bytes(tmp_path / "none")).waiting() == Waiting()


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    with pytest.raises(DiskError):
        taken(tmp_path / "spool")


def test_what_is_no_note_goes_and_what_is_not_ours_stays(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "1-1").write_bytes(b"odd")
    (folder / "2-1").touch()
    (folder / "3-1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"mine")
    (folder / "4-1").mkdir()
    os.mkfifo(folder / "5-1")
    (folder / ".6-1").write_bytes(b"being written")
    (folder / ".7-1").write_bytes(b"left half written")
    os.utime(folder / ".7-1", (1, 1))
    with (folder / "8-1").open("wb") as large:
        large.truncate(spool.MAX_NOTE_BYTES + 1)
    hook.leave_note(WHO, b"")
    assert len(taken(folder)) == 1
    assert sorted(path.name for path in folder.iterdir()) == [".6-1", "4-1"]
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"


def test_a_note_that_cannot_be_read_keeps_no_other_from_being_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.leave_note(WHO, b"")
    (first,) = folder.iterdir()
    hook.leave_note(WHO, b"")
    read = disk.Folder.read

    def refused(self: disk.Folder, name: bytes, limit: int) -> bytes:
        if name == os.fsencode(first.name):
            raise DiskError("read", self.at(name), PermissionError(13, "Permission denied"))
        return read(self, name, limit)

    monkeypatch.setattr(disk.Folder, "read", refused)
    assert len(taken(folder)) == 1
    assert list(folder.iterdir()) == []


def test_a_text_that_nobody_can_take_yet_is_kept(folder: Path) -> None:
    hook.leave_note((b"a-later-one", *WHO[1:]), b"text")
    hook.leave_note(WHO, b"")
    notes = Spool(bytes(folder)).take(lambda note: not note.payload)
    assert [note.harness for note in notes] == ["claude"]
    assert len(list(folder.iterdir())) == 1


def test_no_more_is_held_at_once_than_one_large_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_NOTE_BYTES", 100)
    for _ in range(5):
        hook.leave_note(WHO, b"x" * 40)
        time.sleep(0)  # names are made of microseconds and the pid
    assert [len(taken(folder)) for _ in range(3)] == [3, 2, 0]


def test_texts_are_kept_up_to_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "MAX_KEPT_BYTES", 1000)
    for _ in range(4):
        hook.leave_note(WHO, b"x" * 400)
    assert [len(note.payload) for note in taken(folder)] == [400, 400, 0, 0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"memd-note1",
        b"memd-note2\0a\0b\0c\0d\x001\x002\0",
        b"memd-note1\0a\0b\0c\0d\x00x\x002\0",
        b"memd-note1\0a\0b\0c\0d\x001\x00-2\0",
        b"memd-note1\0a\0b\0c\0d\x001\x0099999999999999999\0",
    ],
)
def test_damaged_notes_are_none(data: bytes) -> None:
    assert parse(data) is None


def test_when_hooks_fired_outlives_the_daemon(tmp_path: Path) -> None:
    path = bytes(tmp_path / "hooks.json")
    log = HookLog(path, lambda: 5000)
    log.note("claude", "Stop")
    log.note("claude", "SessionStart", 3000)
    log.note("claude", "SessionStart", 2000)
    log.note("codex", "Stop", 9_999_999)  # a clock that was set back since
    log.save()
    again = HookLog(path, lambda: 6000)
    assert again.fired() == {"claude": {"Stop": 5000, "SessionStart": 3000}, "codex": {"Stop": 5000}}


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    log = HookLog(bytes(path), lambda: 1)
    log.save()
    assert not path.exists()
    log.note("claude", "Stop")
    log.save()
    path.unlink()
    log.save()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"claude":7}', b'{"claude":{"Stop":"x"}}', b"\xff"])
def test_a_damaged_memory_of_hooks_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "hooks.json").write_bytes(content)
    assert HookLog(bytes(tmp_path / "hooks.json"), lambda: 1).fired() == {}


def test_a_full_disk_costs_only_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = HookLog(bytes(tmp_path / "hooks.json"), lambda: 1)
    log.note("claude", "Stop")

    def full(path: bytes, data: bytes) -> None:
        raise DiskError("write", path, OSError(28, "No space left on device"))

    monkeypatch.setattr(disk, "replace_file", full)
    log.save()
    assert log.fired() == {"claude": {"Stop": 1}}


def test_the_memory_is_plain_json(tmp_path: Path) -> None:
    log = HookLog(bytes(tmp_path / "hooks.json"), lambda: 7)
    log.note("pi", "context")
    log.save()
    assert msgspec.json.decode((tmp_path / "hooks.json").read_bytes()) == {"pi": {"context": 7}}
