"""Which ledger this machine's memd keeps: `local`, or the address of a shared one, without credentials.

    postgresql://db.example.org:5432/memd?schema=memd
    postgresql://?schema=memd&service=memd              known to libpq by a name alone

Two spellings of one place may give two addresses; one address never stands for two places of one person.

source  PostgreSQL 15, libpq: connection strings (words, and URIs by RFC 3986)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from memctl import paths
from memd import settings
from memd.errors import DiskError

LOCAL = "local"
PLACES = ("host", "hostaddr", "port", "dbname", "service")
"""The words of libpq that say where, and nothing of who."""

_word = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>(?:[^\s'\\]|\\.)*))")


def here() -> str:
    """By the configuration. raises ConfigError when that is broken, DiskError"""
    path = paths.config_path()
    try:
        with open(path, "rb") as file:
            found = settings.parse(file.read(), paths.shown(path)).ledger
    except FileNotFoundError:
        return LOCAL
    except OSError as reason:
        raise DiskError("read", path, reason) from reason
    return LOCAL if found.engine == "sqlite" else address(found.connection, found.schema)


def address(connection: str, schema: str) -> str:
    """The address that these words for libpq, or this URI, lead to."""
    given = dict(
        _of_uri(connection) if re.match(r"postgres(?:ql)?://", connection) else _of_words(connection)
    )
    host, port = given.pop("host", ""), given.pop("port", "")
    name = given.pop("dbname", "")
    if "," in host or host.startswith("/"):  # several, or a socket's folder: no part of an authority
        given["host"], host = host, ""
    if not host and port:
        given["port"], port = port, ""
    where = f"{host.lower()}{':' + port if port else ''}"
    rest = urlencode(sorted({**given, "schema": schema}.items()))
    return f"postgresql://{where}{'/' + quote(name, safe='') if name else ''}?{rest}"


def _of_words(text: str) -> Iterator[tuple[str, str]]:
    for found in _word.finditer(text):
        if found["name"] in PLACES:
            value = found["quoted"] if found["quoted"] is not None else found["plain"]
            yield found["name"], re.sub(r"\\(.)", r"\1", value)


def _of_uri(text: str) -> Iterator[tuple[str, str]]:
    parts = urlsplit(text)
    hosts = parts.netloc.rpartition("@")[2]
    if "," in hosts or hosts.startswith("["):
        yield "host", unquote(hosts)
    elif hosts:
        host, _, port = hosts.partition(":")
        yield "host", unquote(host)
        if port:
            yield "port", port
    if name := parts.path.removeprefix("/"):
        yield "dbname", unquote(name)
    for key, value in parse_qsl(parts.query):
        if key in PLACES:
            yield key, value
