"""Which engine is chosen, and what happens where its driver is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memd.errors import ConfigError
from memd.ledger.store import engines, machine
from memd.ledger.store.engines import Choice
from support_ledger import batch, entry


def test_the_default_is_the_file_and_knows_of_no_server(tmp_path: Path) -> None:
    engine = engines.chosen(bytes(tmp_path), Choice())
    writer = engine.writer()
    writer.append(batch(entry("a"), source=b"/t", cursor=b"1"))
    assert (engine.name, engine.trouble(), engine.waiting().groups) == ("sqlite", "", 0)
    assert engine.cursors(b"", 10) == {b"/t": b"1"}
    writer.close()
    assert not (tmp_path / "waiting.sqlite3").exists()
    assert not (tmp_path / "machine").exists()


def test_without_the_driver_the_remedy_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    engine = engines.chosen(bytes(tmp_path), Choice(engine="postgresql"))
    with pytest.raises(ConfigError) as caught:
        engine.writer()
    assert "memd[postgresql]" in caught.value.remedy


def test_a_server_that_was_never_there_lets_the_import_begin(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    words = "host=127.0.0.1 port=1 sslmode=disable"
    engine = engines.chosen(bytes(tmp_path), Choice(engine="postgresql", connection=words))
    writer = engine.writer()
    writer.append(batch(entry("a"), source=b"/t", cursor=b"1"))
    assert engine.waiting().groups == 1
    assert engine.trouble()
    assert engine.cursors(b"", 10) == {b"/t": b"1"}
    assert engine.rest_s() < 10
    writer.close()


def test_a_machine_keeps_its_id_and_no_two_have_one(tmp_path: Path) -> None:
    first = machine.id_of(bytes(tmp_path / "a"))
    assert machine.id_of(bytes(tmp_path / "a")) == first
    assert machine.id_of(bytes(tmp_path / "b")) != first
    (tmp_path / "a" / "machine").write_bytes(first.encode()[:10])
    again = machine.id_of(bytes(tmp_path / "a"))
    assert len(again) == 32
    assert machine.id_of(bytes(tmp_path / "a")) == again
    assert machine.host_name()
