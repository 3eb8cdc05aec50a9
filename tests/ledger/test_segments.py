"""The files: what a crash leaves in them, sealing, damage."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import zstandard

from memd import disk
from memd.errors import DiskError
from memd.harness.model import Session, Turn
from memd.ledger import segments
from memd.ledger.segments import Codec, EventLine, HeadLine, Segments, StandingLine
from memd.ledger.store import rows, sqlite
from memd.ledger.store.interface import Damaged, Filter
from support_ledger import S1, S2, Ledger, batch, entry, loss


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root / "segments")) for path in (root / "segments").rglob("*.jsonl*"))


class Died(BaseException):
    """The process ends here: nothing is caught, nothing is cleaned up."""


def die(*_args: object, **_kwargs: object) -> None:
    raise Died


def test_what_a_kill_left_behind_the_mark_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    ledger.put(entry("a"), source=b"s", cursor=b"1")
    with monkeypatch.context() as patch:
        patch.setattr(rows, "mark_segment", die)
        with pytest.raises(Died):
            ledger.put(
                entry("b"),
                entry("a", session=S2),
                entry("c", session=S2, at=7),
                source=b"s",
                cursor=b"2",
                losses=[loss("image")],
                sessions=[Session(id=S2, cwd="/other", title="copied")],
            )
    ledger.close()
    with Ledger(root) as ledger:
        assert ledger.texts() == ["a", "b"]
        assert ledger.texts(S2) == ["a", "c"]
        assert ledger.reader.cursor(b"s") == b"1"
        assert [row.cwd for row in ledger.reader.find(S2)] == ["/other"]
        assert ledger.problems() == []
        said = ledger.put(entry("b"), entry("d"), losses=[loss("image")])
        assert (said.duplicates, said.stored) == (1, 1)
        ledger.writer.seal_all()
        assert ledger.problems() == []
    with Ledger(root) as ledger:
        assert ledger.texts() == ["a", "b", "d"]


def test_the_first_batch_of_a_segment_is_put_in_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "mark_segment", die)
        with pytest.raises(Died):
            ledger.put(entry("a"))
    ledger.close()
    assert files(root) == ["claude/00000001.jsonl"]
    with Ledger(root) as ledger:
        assert ledger.texts() == ["a"]
        assert files(root) == ["claude/00000002.jsonl"]
        assert ledger.problems() == []


def test_a_replacement_that_a_kill_cut_off_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    ledger.put(entry("a", at=3))
    with monkeypatch.context() as patch:
        patch.setattr(rows, "mark_segment", die)
        with pytest.raises(Died):
            ledger.put(entry("b", at=9, replaces=3))
    ledger.close()
    with Ledger(root) as ledger:
        assert ledger.texts() == ["b"]
        assert ledger.problems() == []


def test_a_turn_that_a_kill_cut_off_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    ledger.put(entry("a", at=1), entry("b", at=2))
    with monkeypatch.context() as patch:
        patch.setattr(rows, "mark_segment", die)
        with pytest.raises(Died):
            ledger.put(entry("c", at=3), turns=[Turn(session=S1, first=2, last=2, is_side=True)])
    ledger.close()
    with Ledger(root) as ledger:
        assert ledger.texts() == ["a", "c"]
        assert ledger.texts(side=True) == ["a", "b", "c"]
        assert ledger.problems() == []


def test_a_torn_line_behind_the_mark_is_dropped(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
    path = root / "segments" / "claude" / "00000001.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"event","session":"11111')
    with Ledger(root) as ledger:
        ledger.put(entry("b"))
        ledger.writer.seal_all()
        assert ledger.problems() == []
        assert ledger.texts() == ["a", "b"]
    assert b"11111\n" not in segments.decompress(path.with_suffix(".jsonl.zst").read_bytes())


def test_a_full_segment_is_sealed(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        for number in range(7):
            ledger.put(*(entry(f"{number} {at} " + "text " * 2000) for at in range(20)))
        while ledger.writer.tidy():
            pass
        assert files(root)[0] == "claude/00000001.jsonl.zst"
        assert sum(name.endswith(".jsonl") for name in files(root)) == 1
        assert ledger.reader.stats().unsealed == 1
        assert ledger.problems() == []


def test_a_segment_at_rest_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
        assert not ledger.writer.tidy()
        monkeypatch.setattr(sqlite, "REST_S", 0.0)
        assert ledger.writer.tidy()
        assert files(root) == ["claude/00000001.jsonl.zst"]
        ledger.put(entry("b"))
        assert files(root) == ["claude/00000001.jsonl.zst", "claude/00000002.jsonl"]
        assert ledger.problems() == []


@pytest.mark.parametrize("at", ["seal", "drop_plain"])
def test_a_kill_while_sealing_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    ledger.put(entry("a"))
    with monkeypatch.context() as patch:
        patch.setattr(Segments, at, die)
        with pytest.raises(Died):
            ledger.writer.seal_all()
    ledger.close()
    with Ledger(root) as ledger:
        ledger.put(entry("b"))
        ledger.writer.seal_all()
        assert ledger.problems() == []
        assert ledger.texts() == ["a", "b"]
    assert not [name for name in files(root) if name.endswith(".jsonl")]


def test_a_batch_that_failed_may_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"))
        with monkeypatch.context() as patch:
            patch.setattr(rows, "mark_segment", die)
            with pytest.raises(Died):
                ledger.put(entry("b"))
        assert ledger.put(entry("b"), entry("c")).stored == 2
        assert ledger.sequences() == [1, 2, 3]
        ledger.writer.seal_all()
        assert ledger.problems() == []


def test_check_names_a_damaged_segment(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))
        ledger.writer.seal_all()
        path = root / "segments" / "claude" / "00000001.jsonl.zst"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(bytes(data))
        assert ("segment", "segments/claude/00000001.jsonl.zst is damaged") in [
            (what, sentence.split(":")[0]) for what, sentence in ledger.problems()
        ]
        path.unlink()
        assert "segment" in {what for what, _sentence in ledger.problems()}


def test_check_names_rows_that_differ(tmp_path: Path) -> None:
    import apsw

    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"), entry("b"), entry("c"), source=b"s", losses=[loss("image")])
        assert ledger.problems() == []
        connection = apsw.Connection(str(root / "ledger.sqlite3"))
        connection.execute("update events set content = 'changed' where content = 'a'")
        connection.execute("delete from session_events where position = 2")
        connection.execute("update losses set count = 7")
        connection.close()
        assert {what for what, _sentence in ledger.problems()} == {"index", "row", "place", "count", "loss"}


def test_check_finds_an_index_that_misses_words(tmp_path: Path) -> None:
    import apsw

    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("alpha beta"))
        connection = apsw.Connection(str(root / "ledger.sqlite3"))
        [row] = connection.execute("select n, scope from events")
        connection.execute(
            "insert into event_text(event_text, rowid, scope, content) values('delete', ?, ?, 'alpha beta')",
            row,
        )
        connection.close()
        assert [what for what, _sentence in ledger.problems()] == ["index"]
        assert not (root / "ledger-check.sqlite3").exists()


def test_lines_come_back_as_they_were() -> None:
    lines = [
        HeadLine(v=1, harness="claude", number=7),
        EventLine(session=S1, position=1, id="x", kind="message", role="user", content="é\u2028\n\ud7ff"),
        StandingLine(session=S2, position=3, id="x", at=5, is_side=True),
    ]
    codec = Codec()
    data = codec.encode(lines)
    assert data.count(b"\n") == 3
    assert codec.decode(data) == lines
    assert codec.decode_tail(data[:-5]) == lines[:2]
    assert segments.decompress(codec.compress(data)) == data


def test_a_bomb_is_not_unpacked() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(segments.MAX_SEGMENT_BYTES + 1))
    with pytest.raises(zstandard.ZstdError, match="larger"):
        segments.decompress(bomb)


def test_a_missing_segment_says_so(tmp_path: Path) -> None:
    made = Segments(bytes(tmp_path))
    with pytest.raises(Exception, match="00000003"):
        made.read("claude", 3, 10, is_sealed=True)
    made.append("claude", 4, 0, b"abc\n")
    with pytest.raises(Damaged, match="4 of its 9 bytes"):
        made.read("claude", 4, 9, is_sealed=False)
    made.close()


def test_a_segment_is_one_flush_per_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.put(entry("a"))
        flushed: list[int] = []
        monkeypatch.setattr(disk, "flush", flushed.append)
        ledger.writer.append(batch(*(entry(f"{n}", session=f"s{n}") for n in range(50))))
        assert len(flushed) == 1
        assert ledger.reader.stats().sessions == 51
        assert len(ledger.reader.sessions(Filter())) == 51


def test_a_full_disk_gathers_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ledger"
    with Ledger(root) as ledger:
        ledger.put(entry("a"))

        def full(*_args: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(disk, "flush", full)
            for _ in range(5):
                with pytest.raises(DiskError, match="No space left"):
                    ledger.put(entry("b"))
        assert files(root) == ["claude/00000001.jsonl"]
        assert ledger.put(entry("b")).stored == 1
        ledger.writer.seal_all()
        assert ledger.problems() == []


def test_the_copy_that_a_killed_check_left_is_taken_away(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    Ledger(root).close()
    (root / "ledger-check.sqlite3").write_bytes(b"every text")
    (root / "ledger-check.sqlite3-journal").write_bytes(b"every text")
    Ledger(root).close()
    assert [path.name for path in root.iterdir() if "check" in path.name] == []
