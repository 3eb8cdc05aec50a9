"""The address of a ledger: where it is, and never who may go there."""

from __future__ import annotations

from pathlib import Path

import pytest

from memctl import ledger_address, registry
from memctl.ledger_address import LOCAL, address
from memd.errors import ConfigError

SERVER = "postgresql://db.example.org:5432/memd?schema=memd"


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        ("host=db.example.org port=5432 dbname=memd user=me", SERVER),
        ("user=me dbname = memd  port=5432 host='db.example.org' sslmode=verify-full", SERVER),
        ("postgresql://me@DB.example.org:5432/memd?sslmode=require", SERVER),
        ("postgres://me:secret@db.example.org:5432/memd", SERVER),
        ("service=memd", "postgresql://?schema=memd&service=memd"),
        ("dbname='a b''s'", "postgresql:///a%20b?schema=memd"),
        (r"dbname='it\'s \\'", "postgresql:///it%27s%20%5C?schema=memd"),
        ("host=/run/postgresql dbname=memd", "postgresql:///memd?host=%2Frun%2Fpostgresql&schema=memd"),
        ("postgresql://a:1,b:2/memd", "postgresql:///memd?host=a%3A1%2Cb%3A2&schema=memd"),
        ("postgresql:///memd?host=db.example.org&port=5432", SERVER),
        ("", "postgresql://?schema=memd"),
        ("nonsense = = ''", "postgresql://?schema=memd"),
    ],
)
def test_it_says_where_and_not_who(connection: str, expected: str) -> None:
    found = address(connection, "memd")
    assert found == expected
    assert "me@" not in found
    assert "secret" not in found


def test_another_schema_is_another_ledger() -> None:
    assert address("service=memd", "team") != address("service=memd", "memd")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / ".config/memd/config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_the_configuration_says_which_one(config: Path) -> None:
    assert ledger_address.here() == LOCAL
    config.write_text('[ledger]\nconnection = "service=memd"\n')
    assert ledger_address.here() == LOCAL
    config.write_text('[ledger]\nengine = "postgresql"\nconnection = "service=memd"\n')
    assert ledger_address.here() == "postgresql://?schema=memd&service=memd"
    config.write_text("[ledger\n")
    with pytest.raises(ConfigError):
        ledger_address.here()


def test_checkouts_are_saved_for_their_ledger_apart_from_those_of_others(
    config: Path, tmp_path: Path
) -> None:
    registry.note("default", "app", bytes(tmp_path))
    config.write_text('[ledger]\nengine = "postgresql"\nconnection = "host=db user=me"\n')
    registry.note("default", "app", bytes(tmp_path))
    registry.note("default", "app", bytes(tmp_path))
    assert [row.ledger for row in registry.links()] == [LOCAL, "postgresql://db?schema=memd"]
    assert b"user" not in Path(registry.registry_path().decode()).read_bytes()
