"""A backup is whole and of one moment, or it is not there; a restore puts all of it back, or nothing."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd import disk
from memd.errors import AlreadyRunning, ConfigError, Refused, TryAgain
from memd.ledger.store import schema
from memd.ledger.store.interface import Damaged
from memd.service import backup_format as form
from memd.service import backup_read, backup_replace, backup_restore, backup_write
from memd.service.backup_format import BackupDamaged, BackupTooNew
from memd.service.backup_places import Roots, below
from support_backups import back_up, facts, fill, folders, ledger_of, quiet, restore, small, strays
from support_ledger import Ledger, entry


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    made = folders(tmp_path / "home")
    fill(made)
    return made


@pytest.fixture
def backup(roots: Roots, tmp_path: Path) -> Path:
    path = tmp_path / "b.tar.zst"
    back_up(roots, path)
    return path


def plain(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()


def pack(path: Path, data: bytes) -> None:
    path.write_bytes(zstandard.ZstdCompressor().compress(data))


def members(path: Path) -> Iterator[tuple[bytes, bytes]]:
    import io

    with tarfile.open(fileobj=io.BytesIO(plain(path))) as archive:
        for info in archive:
            file = archive.extractfile(info)
            assert file is not None
            yield info.name.encode("utf-8", "surrogateescape"), file.read()


def made_of(path: Path, parts: list[tuple[bytes, bytes]], *, sums: bool = True) -> None:
    """A backup of these parts, with right sums."""
    import hashlib

    body = b"".join(b"".join(form.member(name, len(data), 0, (data,))) for name, data in parts)
    if sums:
        text = form.render_sums({name: hashlib.sha256(data).hexdigest() for name, data in parts})
        body += b"".join(form.member(form.SUMS, len(text), 0, (text,)))
    pack(path, body + form.end())


def verified(path: Path) -> form.Header:
    with disk.open_folder(bytes(path.parent)) as folder:
        return backup_read.verify(folder, bytes(Path(path.name)), lambda _done: None)


# ------------------------------------------------------------------------------------- writing


def test_a_backup_is_private_and_says_what_it_is(backup: Path) -> None:
    assert backup.stat().st_mode & 0o777 == 0o600
    header = verified(backup)
    assert (header.version, header.ledger, header.memd) == (1, schema.VERSION, "0.1.0")


def test_tar_zstd_and_sha256sum_read_a_backup(backup: Path, tmp_path: Path) -> None:
    import hashlib

    parts = dict(members(backup))
    lines = parts.pop(form.SUMS).decode().splitlines()
    assert dict(line.split("  ")[::-1] for line in lines) == {
        name.decode(): hashlib.sha256(data).hexdigest() for name, data in parts.items()
    }


def test_transient_things_are_not_in_a_backup(roots: Roots, tmp_path: Path) -> None:
    for name in (b"/memd.log", b"/spool/1.note", b"/memd.lock", b"/programs.json", b"/memory/v1/known.json"):
        disk.replace_file(roots.state + name, b"x")
    disk.replace_file(roots.data + b"/hook/memd_hook.py", b"x")
    disk.replace_file(roots.data + b"/memory/.lock", b"x")
    back_up(roots, tmp_path / "b")
    names = {name for name, _ in members(tmp_path / "b")}
    assert not {
        name for name in names if b"log" in name or b"spool" in name or b"lock" in name or b"py" in name
    }


def test_an_existing_file_is_never_written_over(roots: Roots, backup: Path) -> None:
    before = backup.read_bytes()
    with pytest.raises(Refused, match="there already"):
        back_up(roots, backup)
    assert backup.read_bytes() == before
    dangling = backup.with_name("dangling")
    dangling.symlink_to("nowhere")
    with pytest.raises(Refused, match="there already"):
        back_up(roots, dangling)


def test_a_file_that_appears_meanwhile_is_not_written_over(roots: Roots, tmp_path: Path) -> None:
    path = tmp_path / "b"

    def note(what: str, _done: int, _total: int) -> None:
        if what == "checking" and not path.exists():
            path.write_text("mine")

    with pytest.raises(Refused, match="there already"):
        back_up(roots, path, note)
    assert path.read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["b"]


def test_a_backup_that_is_called_off_leaves_nothing(roots: Roots, tmp_path: Path) -> None:
    for when in ("copying", "writing", "checking"):

        def note(what: str, _done: int, _total: int, when: str = when) -> None:
            if what == when:
                raise TryAgain("called off")

        with pytest.raises(TryAgain):
            back_up(roots, tmp_path / "b", note)
        assert [one.name for one in tmp_path.iterdir()] == ["home"], when
        assert strays(roots) == []


def test_what_a_killed_backup_left_goes_with_the_next_one(roots: Roots, tmp_path: Path) -> None:
    left = tmp_path / ".memd-0123456789abcdef.tmp"
    left.write_bytes(backup_write.MAGIC + b"cut")
    other = tmp_path / ".memd-0123456789abcdff.tmp"
    other.write_bytes(b"somebody's note")
    back_up(roots, tmp_path / "b")
    assert not left.exists()
    assert other.exists()


def test_segments_that_grow_and_are_sealed_meanwhile_are_as_they_were(roots: Roots, tmp_path: Path) -> None:
    before = facts(roots)
    is_done = False

    def note(what: str, _done: int, _total: int) -> None:
        nonlocal is_done
        if what == "writing" and not is_done:
            is_done = True
            with Ledger(ledger_of(roots)) as ledger:
                ledger.put(entry("too late"))
                ledger.writer.seal_all()

    back_up(roots, tmp_path / "b", note)
    assert is_done
    other = folders(tmp_path / "other")
    restore(other, tmp_path / "b")
    assert facts(other) == before
    with Ledger(ledger_of(other)) as ledger:
        assert "too late" not in ledger.texts()
        ledger.put(entry("goes on"))
        assert ledger.problems() == []


def test_a_damaged_segment_is_named_and_no_backup_made(roots: Roots, tmp_path: Path) -> None:
    sealed = next(ledger_of(roots).rglob("*.zst"))
    sealed.write_bytes(sealed.read_bytes()[:-10])
    with pytest.raises(Damaged, match=sealed.name.partition(".")[0]):
        back_up(roots, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_odd_names_and_things_that_are_no_files(roots: Roots, tmp_path: Path) -> None:
    odd = [
        b"b\xe9.md",
        b"new\nline.md",
        b"back\\slash.md",
        b"x" * 200 + b".md",
        b"deep/er/topic.md",
        b"empty.md",
    ]
    for name in odd:
        disk.replace_file(roots.data + b"/memory/" + name, b"" if name == b"empty.md" else name)
    os.symlink(b"/etc/passwd", roots.data + b"/memory/link.md")
    os.mkfifo(roots.data + b"/memory/pipe.md")
    written = back_up(roots, tmp_path / "b")
    assert [os.path.basename(one) for one in written.left_out] == [b"link.md", b"pipe.md"]
    other = folders(tmp_path / "other")
    restore(other, tmp_path / "b")
    for name in odd:
        assert disk.read_file(other.data + b"/memory/" + name, 999) == (b"" if name == b"empty.md" else name)


def test_a_linked_configuration_is_read_through_its_link(roots: Roots, tmp_path: Path) -> None:
    mine = tmp_path / "dotfiles.toml"
    mine.write_text("# mine\n")
    path = roots.config + b"/config.toml"
    os.unlink(path)
    os.symlink(bytes(mine), path)
    back_up(roots, tmp_path / "b")
    assert dict(members(tmp_path / "b"))[b"config/config.toml"] == b"# mine\n"
    restore(roots, tmp_path / "b")
    assert os.path.islink(path)  # what it says is what the backup says


# ----------------------------------------------------------------------------------- restoring


def test_a_restore_to_nothing_gives_all_of_it(roots: Roots, backup: Path, tmp_path: Path) -> None:
    before = facts(roots)
    other = folders(tmp_path / "other")
    restore(other, backup)
    assert facts(other) == before
    assert strays(other) == []
    for root in other:
        for path in Path(root.decode()).rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path


def test_what_was_there_is_kept_beside_it(roots: Roots, backup: Path, tmp_path: Path) -> None:
    before = facts(roots)
    other = folders(tmp_path / "other")
    fill(other, "second")
    old = facts(other)
    plan = restore(other, backup)
    now = facts(other)
    installed = form.FILES[2].decode()
    assert {**now, installed: None} == {**before, installed: None}
    assert now[installed] == old[installed]  # it tells of other programs' settings as they are
    kept = plan.kept.decode()
    folder = Path(other.data.decode())
    rebuilt = folders(tmp_path / "rebuilt")
    shutil.copytree(folder / "ledger" / kept, ledger_of(rebuilt), dirs_exist_ok=True)
    shutil.copytree(folder / kept, rebuilt.data.decode(), dirs_exist_ok=True)
    for name in ("texts", "view", "handoffs", "data/agents.json", "data/memory/topic.md"):
        assert facts(rebuilt)[name] == old[name], name


def test_two_restores_keep_two_states(roots: Roots, backup: Path) -> None:
    first, second = restore(roots, backup), restore(roots, backup)
    assert first.kept != second.kept


def test_files_that_are_the_same_stay_as_they_are(roots: Roots, backup: Path) -> None:
    path = roots.path(b"config/config.toml")
    before = os.stat(path).st_ino
    restore(roots, backup)
    assert os.stat(path).st_ino == before


def test_a_running_daemon_is_not_restored_over(
    roots: Roots, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_restore, "LOCK_WAIT_S", 0.0)
    small(roots, "new")
    before = facts(roots)
    with disk.take_lock(roots.state + b"/memd.lock"), pytest.raises(AlreadyRunning):
        restore(roots, backup)
    assert facts(roots) == before
    assert strays(roots) == []


def test_only_one_restore_at_a_time(roots: Roots, backup: Path) -> None:
    first = backup_restore.Restore(backup_restore.Backup(bytes(backup)), roots)
    with pytest.raises(TryAgain):
        restore(roots, backup)
    first.close()
    restore(roots, backup)


def test_a_restore_that_is_not_finished_takes_everything_back(roots: Roots, backup: Path) -> None:
    before = facts(roots)
    work = backup_restore.Restore(backup_restore.Backup(bytes(backup)), roots)
    work.stage(quiet)
    assert strays(roots)
    work.close()
    assert strays(roots) == []
    assert facts(roots) == before


def test_into_a_folder_touches_nothing_else(roots: Roots, backup: Path, tmp_path: Path) -> None:
    before = facts(roots)
    target = tmp_path / "look"
    target.mkdir()
    backup_restore.into(backup_restore.Backup(bytes(backup)), bytes(target), quiet)
    assert facts(below(bytes(target))) == before
    with pytest.raises(Refused, match="not empty"):
        backup_restore.into(backup_restore.Backup(bytes(backup)), bytes(target), quiet)


def test_a_plan_of_a_later_memd_is_refused_untouched(roots: Roots) -> None:
    path = roots.state + b"/restore.json"
    disk.replace_file(path, b'{"version": 2, "more": 1}')
    with pytest.raises(Refused, match="version 2"):
        backup_replace.finish_begun(roots)
    disk.replace_file(path, b"nonsense")
    with pytest.raises(ConfigError):
        backup_replace.finish_begun(roots)
    assert disk.look(path) is not None


# ------------------------------------------------------------------------------------- refusing


@pytest.mark.parametrize("what", ["version", "ledger", "segments"])
def test_a_backup_of_a_later_memd_is_refused_untouched(
    roots: Roots, backup: Path, what: str, tmp_path: Path
) -> None:
    parts = list(members(backup))[:-1]
    header = json.loads(parts[0][1])
    header[what] += 1
    header["more"] = "something new"
    made_of(tmp_path / "newer", [(form.HEADER, json.dumps(header).encode()), *parts[1:]])
    before = facts(roots)
    with pytest.raises(BackupTooNew, match="version") as raised:
        restore(roots, tmp_path / "newer")
    assert "Upgrade memd" in raised.value.remedy
    assert facts(roots) == before
    assert strays(roots) == []


def test_a_newer_database_behind_an_old_header_is_refused(roots: Roots, backup: Path, tmp_path: Path) -> None:
    parts = dict(list(members(backup))[:-1])
    database = tmp_path / "db"
    database.write_bytes(parts[form.DATABASE])
    connection = apsw.Connection(str(database))
    connection.pragma("journal_mode", "delete")
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    parts[form.DATABASE] = database.read_bytes()
    made_of(tmp_path / "newer", list(parts.items()))
    with pytest.raises(BackupTooNew):
        restore(roots, tmp_path / "newer")
    assert strays(roots) == []


def test_every_damage_is_found_before_anything_is_replaced(
    roots: Roots, backup: Path, tmp_path: Path
) -> None:
    parts = list(members(backup))[:-1]
    whole = backup.read_bytes()
    tar = plain(backup)
    path = tmp_path / "bad"
    damages = {
        "empty": b"",
        "text": b"not a backup",
        "cut": whole[: len(whole) // 2],
        "cut at the end": whole[:-60],
        "a bit": whole[:900] + bytes([whole[900] ^ 4]) + whole[901:],
    }
    before = facts(roots)
    for name, data in damages.items():
        path.write_bytes(data)
        with pytest.raises(BackupDamaged):
            restore(roots, path)
        assert strays(roots) == [], name
    flipped = tar.replace(b"first: it keeps", b"first: xt keeps")
    assert flipped != tar
    lacking = [part for part in parts if not part[0].startswith(form.SEGMENTS)]
    for made in (
        lambda: pack(path, flipped),
        lambda: made_of(path, parts, sums=False),
        lambda: made_of(path, lacking),
        lambda: made_of(path, [parts[0]]),
        lambda: made_of(path, parts[1:]),
        lambda: made_of(path, [*parts, parts[-1]]),
        lambda: made_of(path, [*parts, (b"data/other.json", b"x")]),
    ):
        made()
        with pytest.raises(BackupDamaged):
            restore(roots, path)
        assert strays(roots) == []
    assert facts(roots) == before


@pytest.mark.parametrize(
    "name",
    [
        b"../evil",
        b"/etc/evil",
        b"data/memory/../../evil",
        b"data/memory/./x",
        b"data/memory//x",
        b"data/ledger/segments/claude/../../x.jsonl",
        b"state/memd.lock",
        b"data/hook/memd_hook.py",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    roots: Roots, backup: Path, name: bytes, tmp_path: Path
) -> None:
    made_of(tmp_path / "evil", [*list(members(backup))[:-1], (name, b"evil")])
    with pytest.raises(BackupDamaged, match="does not belong"):
        restore(roots, tmp_path / "evil")
    assert not list(tmp_path.rglob("evil/*"))
    assert strays(roots) == []


def test_links_and_devices_in_a_backup_are_refused(roots: Roots, backup: Path, tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
        info = tarfile.TarInfo("data/memory/x.md")
        info.type, info.linkname = kind, "/etc/passwd"
        head = b"".join(form.member(*_head(backup)))
        pack(tmp_path / "evil", head + info.tobuf(tarfile.PAX_FORMAT) + form.end())
        with pytest.raises(BackupDamaged, match="does not belong"):
            restore(roots, tmp_path / "evil")


def _head(backup: Path) -> tuple[bytes, int, int, tuple[bytes]]:
    data = next(members(backup))[1]
    return form.HEADER, len(data), 0, (data,)


@given(at=st.integers(0, 1 << 20), byte=st.integers(0, 255), cut=st.integers(0, 1 << 20))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_are_more_than_damaged(backup: Path, at: int, byte: int, cut: int) -> None:
    """Whatever was changed in the archive, it is refused in words, or says what it said before."""
    tar = bytearray(plain(backup))
    tar[at % len(tar)] = byte
    bad = backup.with_name("bad")
    pack(bad, bytes(tar[: cut or None]))
    before = {name: data for name, data in members(backup) if name != form.SUMS}
    found = {}

    def keep(name: bytes, _mtime_s: int, chunks: Iterator[bytes]) -> None:
        found[name] = b"".join(chunks)

    try:
        with disk.open_folder(bytes(bad.parent)) as folder:
            backup_read.read(folder, b"bad", keep, lambda _done: None)
    except (BackupDamaged, BackupTooNew):
        return
    assert found.items() <= before.items()


def test_sums_are_read_as_they_are_written() -> None:
    sums = {b"a": "0" * 64, b"new\nline": "1" * 64, b"b\\n": "2" * 64, b"c\rd \xff": "3" * 64}
    assert form.parse_sums(form.render_sums(sums)) == sums
    for bad in (b"x", b"0" * 64 + b" a\n", b"0" * 64 + b"  a"):
        with pytest.raises(BackupDamaged):
            form.parse_sums(bad)


def test_a_header_of_the_future_is_understood_enough() -> None:
    with pytest.raises(BackupTooNew, match=r"made by memd 9\.0"):
        form.parse_header(
            msgspec.json.encode({"format": "memd-backup", "version": 7, "memd": "9.0", "new": []})
        )
    with pytest.raises(BackupDamaged):
        form.parse_header(b'{"format": "other", "version": 1}')
