"""How the server is reached: what libpq is told, and what memd will not be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd.errors import ConfigError
from memd.ledger import configured
from memd.ledger.store.postgres.connecting import checked_schema, parameters

pytest.importorskip("psycopg")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE", "PGSSLROOTCERT", "PGSERVICEFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    "words",
    [
        "host=db password=geheim",
        "host=db sslpassword = geheim",
        "postgresql://me:geheim@db/memd",
        "postgresql://db/memd?password=geheim",
    ],
)
def test_a_password_is_refused_and_not_repeated(words: str) -> None:
    assert configured.has_password(words)
    for refuse in (
        lambda: parameters(words),
        lambda: configured.parse(f'[ledger]\nconnection = "{words}"\n'.encode(), "c.toml"),
    ):
        with pytest.raises(ConfigError) as caught:
            refuse()
        assert "geheim" not in str(caught.value) + caught.value.remedy
        assert ".pgpass" in caught.value.remedy


@pytest.mark.parametrize("words", ["service=memd", "host=db user=me", "postgresql://me@db/memd", ""])
def test_words_without_a_password_are_taken(words: str) -> None:
    assert not configured.has_password(words)
    configured.parse(f'[ledger]\nconnection = "{words}"\n'.encode(), "c.toml")


def test_what_is_no_local_socket_has_to_show_its_certificate() -> None:
    assert parameters("host=db.example.org")["sslmode"] == "verify-full"
    assert parameters("hostaddr=192.0.2.1")["sslmode"] == "verify-full"
    assert parameters("host=/run/postgresql,db.example.org")["sslmode"] == "verify-full"
    assert parameters("host=db.example.org sslmode=require")["sslmode"] == "require"
    for local in ("host=/run/postgresql", "dbname=memd", ""):
        assert "sslmode" not in parameters(local)


def test_a_service_is_read_as_libpq_reads_it(tmp_path: Path) -> None:
    (tmp_path / ".pg_service.conf").write_text(
        "[near]\nhost=/run/postgresql\n[far]\n# host=/tmp\nhost=db.example.org\n"
        "[eased]\nhost=db\nsslmode=require\n"
    )
    assert "sslmode" not in parameters("service=near")
    assert parameters("service=far")["sslmode"] == "verify-full"
    assert "sslmode" not in parameters("service=eased")


def test_words_that_libpq_does_not_take_are_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        parameters("geheim")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "Memd", "a b", "x;drop", "pg_x", "1a"])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError):
        checked_schema(name)
