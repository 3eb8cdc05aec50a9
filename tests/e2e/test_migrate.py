"""`memctl ledger migrate` in a home with a real daemon: there, back, and what stands in its way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support_desk import Desk
from support_postgres import Server
from support_postgres import server as a_server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with a_server() as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def configure(desk: Desk, text: str) -> None:
    folder = desk.home.path / ".config" / "memd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def test_a_ledger_moves_to_a_server_and_back(desk: Desk, postgres: Server) -> None:
    connection = f'[ledger]\nconnection = "{postgres.connection()}"\n'
    desk.ok("claude", do="say:first_words")
    before = desk.words()
    configure(desk, connection)
    refused = desk.home.memctl("ledger", "migrate", "--to", "postgresql")
    assert refused.returncode == 77
    assert "memctl down" in refused.stderr
    desk.home.memctl("down")
    done = desk.home.memctl("ledger", "migrate", "--to", "postgresql")
    assert done.returncode == 0, done.stderr
    assert "copied, read again, and the same" in done.stdout
    assert 'engine = "postgresql"' in done.stdout

    configure(desk, connection + 'engine = "postgresql"\n')
    assert desk.words() == before
    assert desk.home.json("status")["ledger"]["engine"] == "postgresql"
    started = desk.ok("claude", do="say:on_the_server")["args"]
    assert any("resume" in word for word in started)  # the link came along
    after = desk.words()
    assert after == [*before, "on the server", "re on the server"]
    desk.home.memctl("down")

    back = desk.home.memctl("ledger", "migrate", "--to", "sqlite")
    assert back.returncode == 0, back.stderr + back.stdout
    configure(desk, "")
    assert desk.words() == after
    checked = desk.home.memctl("ledger", "check")
    assert checked.returncode == 0, checked.stdout


def test_without_a_word_of_the_server_nothing_is_tried(desk: Desk) -> None:
    desk.ok("claude", do="say:x")
    desk.home.memctl("down")
    refused = desk.home.memctl("ledger", "migrate", "--to", "postgresql")
    assert refused.returncode == 78
    assert "service=memd" in refused.stderr
