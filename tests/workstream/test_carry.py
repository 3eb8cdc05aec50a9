"""A session that goes on in another login: what is decided, and what is written."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path

import pytest

from memd import disk
from memd.disk import Folder
from memd.errors import DiskError, NotFound, Refused, TryAgain
from memd.workstream import carry as rules
from memd.workstream import carrying
from memd.workstream.carry import Holder, Relation
from support_logins import ID, KEY, ONE, THREE, TWO, Logins, tree

PATH = f"{KEY}/{ID}.jsonl".encode()


# ------------------------------------------------------------------------------------ deciding


def related(**logins: dict[bytes, bytes]) -> rules.Relate:
    """What the copies are to the originals, by the texts."""

    def relate(original: bytes, copy: bytes, path: bytes) -> Relation:
        one, other = (logins[login.decode()].get(path) for login in (original, copy))
        if other is None:
            return "absent"
        if one is None:
            return "ahead"
        if one == other:
            return "same"
        if one.startswith(other):
            return "behind"
        return "ahead" if other.startswith(one) else "apart"

    return relate


def planned(target: dict[bytes, bytes], **sources: dict[bytes, bytes]) -> rules.Plan:
    holders = [Holder(login=name.encode(), files=tuple(files)) for name, files in sources.items()]
    here = Holder(login=b"target", files=tuple(target))
    return rules.plan(ID, holders, here, related(target=target, **sources))


def test_what_belongs_to_a_session_comes_before_its_transcript() -> None:
    side = PATH.removesuffix(b".jsonl") + b"/subagents/agent-1.jsonl"
    todo = planned({}, a={PATH: ONE, side: TWO})
    assert (todo.source, todo.copy) == (b"a", (side, PATH))


def test_a_beginning_is_made_longer_and_what_is_there_stays() -> None:
    side = PATH.removesuffix(b".jsonl") + b"/tool-results/x.txt"
    todo = planned({PATH: ONE, side: b"x"}, a={PATH: ONE + TWO, side: b"x"})
    assert (todo.copy, todo.extend, todo.unchanged) == ((), (PATH,), (side,))
    assert planned({PATH: ONE}, a={PATH: ONE}).is_done
    ahead = planned({PATH: ONE + TWO}, a={PATH: ONE})
    assert ahead.is_done
    assert ahead.is_ahead


def test_where_both_have_gone_on_nothing_is_planned() -> None:
    with pytest.raises(Refused, match="separately in a and in target"):
        planned({PATH: ONE + TWO}, a={PATH: ONE + THREE})


def test_of_several_logins_the_one_that_went_on_is_the_source() -> None:
    for order in ("abc", "cba", "bac"):
        texts = {"a": {PATH: ONE}, "b": {PATH: ONE + TWO + THREE}, "c": {PATH: ONE + TWO}}
        assert planned({}, **{name: texts[name] for name in order}).source == b"b"
    with pytest.raises(Refused, match="separately in a and in b"):
        planned({}, a={PATH: ONE + TWO}, b={PATH: ONE + THREE})


def test_a_session_in_two_folders_is_one() -> None:
    stub = f"-home-dev/{ID}.jsonl".encode()
    assert planned({}, a={PATH: ONE, stub: b"{}\n"}, b={PATH: ONE}).source == b"a"
    with pytest.raises(Refused):
        planned({}, a={PATH: ONE + TWO}, b={PATH: ONE, stub: b"{}\n"})


def test_a_session_that_nobody_has_is_not_found_and_one_that_only_the_target_has_is_there() -> None:
    with pytest.raises(NotFound, match="no login has a session"):
        planned({}, a={b"k/x/tool-results/y": b"y"})
    assert planned({PATH: ONE}, a={}).is_done


# ------------------------------------------------------------------------------------- writing


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path)


def test_the_copy_is_whole_private_and_the_original_stays(logins: Logins) -> None:
    before = tree(logins.old)
    for path in logins.old.rglob("*"):
        path.chmod(0o755)
    done = logins.carry()
    assert len(done.copy) == 3
    assert tree(logins.new) == before
    for path in (logins.new / "projects").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE((logins.new / "projects").stat().st_mode) == 0o700
    assert tree(logins.old) == before


def test_a_second_time_there_is_nothing_to_do(logins: Logins) -> None:
    logins.carry()
    before = logins.transcript(logins.new).stat()
    done = logins.carry()
    assert done.is_done
    assert len(done.unchanged) == 3
    assert logins.transcript(logins.new).stat() == before


def test_a_copy_that_is_the_beginning_gets_the_rest(logins: Logins) -> None:
    logins.write(logins.new, ONE)
    done = logins.carry()
    assert done.extend == (PATH,)
    assert tree(logins.new) == tree(logins.old)
    assert stat.S_IMODE(logins.transcript(logins.new).stat().st_mode) == 0o600


def test_a_copy_that_went_on_or_differs_stays_byte_for_byte(logins: Logins) -> None:
    logins.write(logins.new, ONE + TWO + THREE)
    assert logins.carry().is_ahead
    assert logins.transcript(logins.new).read_bytes() == ONE + TWO + THREE
    logins.write(logins.new, ONE + THREE)
    before = tree(logins.new)
    with pytest.raises(Refused, match="separately"):
        logins.carry()
    assert tree(logins.new) == before


def test_both_folders_of_a_split_session_are_carried_under_their_keys(logins: Logins) -> None:
    logins.write(logins.old, b"{}\n", key="-home-dev-proj--claude-worktrees-fx")
    logins.carry()
    assert tree(logins.new) == tree(logins.old)


def test_links_below_a_login_are_never_followed(logins: Logins, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (logins.old / "projects" / KEY / ID / "tool-results" / "link.txt").symlink_to(secret)
    os.mkfifo(logins.old / "projects" / KEY / ID / "pipe")
    done = logins.carry()
    assert [path.rpartition(b"/")[2] for path in done.left_out] == [b"pipe", b"link.txt"]
    assert not any("link" in name or "pipe" in name for name in tree(logins.new))
    shutil.rmtree(logins.new / "projects")
    away = tmp_path / "away"
    away.mkdir()
    (logins.new / "projects").mkdir()
    (logins.new / "projects" / KEY).symlink_to(away)
    with pytest.raises(Refused, match="link"):
        logins.carry()
    assert list(away.iterdir()) == []
    (logins.new / "projects" / KEY).unlink()
    (logins.new / "projects" / KEY).mkdir()
    logins.transcript(logins.new).symlink_to(secret)
    with pytest.raises(Refused, match="link"):
        logins.carry()
    assert secret.read_text() == "secret"


def test_logins_that_share_their_projects_have_nothing_to_carry(logins: Logins) -> None:
    (logins.new / "projects").symlink_to(logins.old / "projects")
    before = tree(logins.old)
    assert logins.carry().is_done
    assert tree(logins.old) == before
    (logins.new / "projects").unlink()
    (logins.new / "projects").mkdir()
    (logins.new / "projects" / KEY).symlink_to(logins.old / "projects" / KEY)
    assert logins.carry().is_done
    assert tree(logins.old) == before


def test_a_login_that_is_a_link_is_the_folder_behind_it(logins: Logins, tmp_path: Path) -> None:
    link = tmp_path / ".claude-link"
    link.symlink_to(logins.new)
    done = carrying.carry(ID, [bytes(logins.old)], bytes(link))
    assert done.target == os.path.realpath(bytes(logins.new))
    assert tree(logins.new) == tree(logins.old)


def test_a_session_that_is_open_is_not_carried(logins: Logins) -> None:
    (logins.old / "sessions").mkdir()
    (logins.old / "sessions" / "broken.json").write_text("{")
    (logins.old / "sessions" / "7.json").write_text(f'{{"pid":7,"sessionId":"{ID}","procStart":"99"}}')
    with pytest.raises(Refused, match="in process 7"):
        logins.carry(see=lambda pid, start: "alive" if (pid, start) == (7, "99") else "gone")
    assert tree(logins.new) == {}
    assert not logins.carry(see=lambda _pid, _start: "gone").is_done


def test_an_open_session_with_nothing_to_do_is_no_trouble(logins: Logins) -> None:
    logins.carry()
    (logins.new / "sessions").mkdir()
    (logins.new / "sessions" / "7.json").write_text(f'{{"pid":7,"sessionId":"{ID}"}}')
    assert logins.carry(see=lambda _pid, _start: "alive").is_done


def test_ids_that_are_no_ids_and_logins_that_are_none_are_refused(logins: Logins, tmp_path: Path) -> None:
    for id in ("", "..", "../x", "a/b", "-x", "a\0b", "none"):
        with pytest.raises(NotFound):
            logins.carry(id)
    with pytest.raises(NotFound, match="no login"):
        carrying.carry(ID, [bytes(logins.old)], bytes(tmp_path / "gone"))
    assert tree(logins.new) == {}


def test_only_the_named_login_is_taken_as_source(logins: Logins, tmp_path: Path) -> None:
    third = tmp_path / ".claude-third"
    logins.write(third, ONE + THREE)
    both = [bytes(logins.old), bytes(third)]
    with pytest.raises(Refused, match="separately"):
        carrying.carry(ID, both, bytes(logins.new))
    carrying.carry(ID, both, bytes(logins.new), source=bytes(third))
    assert logins.transcript(logins.new).read_bytes() == ONE + THREE


def test_a_full_disk_leaves_no_trace_and_says_so(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "write_all", full)
    with pytest.raises(DiskError, match="No space"):
        logins.carry()
    assert tree(logins.new) == {}


def test_what_is_written_during_the_exchange_is_put_back(
    logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = logins.write(logins.new, ONE)
    real = Folder.swap

    def meanwhile(self: Folder, name: bytes, other: Folder, other_name: bytes) -> None:
        if copy.read_bytes() == ONE:
            copy.write_bytes(ONE + THREE)
        real(self, name, other, other_name)

    monkeypatch.setattr(Folder, "swap", meanwhile)
    with pytest.raises(Refused, match="separately"):
        logins.carry()
    assert copy.read_bytes() == ONE + THREE
    assert [name for name in tree(logins.new) if ".memd-" in name] == []


def test_an_original_that_grows_meanwhile_is_copied_to_its_end_or_not_called_carried(
    logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = logins.transcript(logins.old)
    real = carrying._bring
    times = [1]

    def growing(source: bytes, target: bytes, path: bytes, *, is_new: bool) -> None:
        real(source, target, path, is_new=is_new)
        if path == PATH and times[0]:
            times[0] -= 1
            original.write_bytes(original.read_bytes() + THREE)

    monkeypatch.setattr(carrying, "_bring", growing)
    done = logins.carry()
    assert PATH in done.copy
    assert done.extend == ()
    assert tree(logins.new) == tree(logins.old)
    times[0] = 100
    original.write_bytes(original.read_bytes() + THREE)
    with pytest.raises(TryAgain, match="keeps changing"):
        logins.carry()


def test_two_at_once_wait_for_each_other(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "LOCK_S", 0.0)
    fd = os.open(logins.new, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(TryAgain):
            logins.carry()
    finally:
        os.close(fd)
    assert tree(logins.new) == {}
