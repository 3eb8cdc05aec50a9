"""A database of one session, of which other files of the store say more: its first prompt."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memd.harness.antigravity import ADAPTER
from memd.harness.model import Environment, Parsed
from memd.ledger.birth import born_ms
from memd.ledger.cursor import RowCursor
from memd.ledger.lookup import look_for
from memd.ledger.rows import RowsRead, read_database
from memd.ledger.sources import Source, walk
from memd.ledger.worker import Worker
from support_antigravity import Antigravity, U

ME, OTHER = U.format(1), U.format(2)
CWD = "/home/dev/somewhere"


@pytest.fixture
def made(tmp_path: Path) -> Antigravity:
    return Antigravity(tmp_path)


def source(made: Antigravity) -> Source:
    store = ADAPTER.stores(Environment(home=os.fsencode(made.folder.parents[1])))[0]
    (found,) = walk(ADAPTER, store).sources
    return found


def read(made: Antigravity, now_ms: int, known: RowCursor | None = None) -> RowsRead:
    scratch = os.fsencode(made.folder.parents[1] / "scratch")
    return read_database(ADAPTER, source(made), known or RowCursor(), scratch, now_ms)


def texts(parsed: Parsed) -> list[str]:
    return [event.content for event in parsed.events]


def birth(path: Path) -> int:
    moment = born_ms(os.fsencode(path))
    if not moment:
        pytest.skip("this file system does not say when a file was made")
    return moment


def test_a_new_file_was_made_just_now(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    assert abs(birth(tmp_path / "new") - time.time() * 1000) < 60_000
    assert born_ms(os.fsencode(tmp_path / "none")) == 0
    assert born_ms(b"/a\0b") == 0


def test_the_first_prompt_comes_once_it_is_certain_and_only_once(made: Antigravity) -> None:
    moment = birth(made.conversation(ME, cwd=CWD))
    made.prompt("start the migration", time=moment - 300, cwd=CWD)
    early = read(made, moment + 1000)
    assert texts(early.parsed) == []
    later = read(made, moment + 6000, early.cursor)
    assert texts(later.parsed) == ["start the migration"]
    assert texts(read(made, moment + 9000, later.cursor).parsed) == []


def test_a_list_without_it_settles_the_matter(made: Antigravity) -> None:
    moment = birth(made.conversation(ME, cwd=CWD))
    made.prompt("of another place", time=moment, cwd="/elsewhere")
    settled = read(made, moment + 6000)
    made.prompt("too late to be told", time=moment, cwd=CWD)
    assert texts(read(made, moment + 7000, settled.cursor).parsed) == []


def test_a_conversation_is_there_when_its_own_database_is(made: Antigravity, tmp_path: Path) -> None:
    made.conversation(ME, cwd=CWD)
    made.prompt("hello", OTHER, cwd=CWD)
    stores = ADAPTER.stores(Environment(home=os.fsencode(tmp_path)))
    found = {one: look_for(ADAPTER, stores, one, os.fsencode(tmp_path / "s")).outcome for one in (ME, OTHER)}
    assert found == {ME: "present", OTHER: "absent"}


def test_what_a_list_tells_comes_after_what_it_tells_of(made: Antigravity, tmp_path: Path) -> None:
    made.conversation(ME, cwd=CWD)
    made.prompt("hello", ME, cwd=CWD)
    os.utime(made.history, (time.time() + 60,) * 2)
    stores = ADAPTER.stores(Environment(home=os.fsencode(tmp_path)))
    news = [found for store in stores for found in walk(ADAPTER, store).sources]
    ordered = Worker(-1, -1)._in_reading_order(news)
    assert [one.store.is_index for one in ordered] == [False, True]
